# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# Sourced by ./run, ./check and .ci/run (root is the sources): system packages, configuring, building.
# Everything it prints goes to stderr.
build=${VLMEST_BUILD_DIR:-$root/build}

note() { printf '%s\n' "$*" >&2; }
die() {
  note "error: $1"
  [ $# -lt 2 ] || note "hint: $2"
  exit 4
}

# quietly WHAT COMMAND...: the command's output is shown only when it fails.
quietly() {
  local what=$1 log status=0
  shift
  note "vlmest: $what"
  log=$(mktemp)
  "$@" >"$log" 2>&1 || status=$?
  [ $status -eq 0 ] || cat "$log" >&2
  rm -f "$log"
  return $status
}

# need PACKAGE...: installs with apt what is missing; elsewhere CMake names what it cannot find.
need() {
  local package missing=() as_root=()
  command -v apt-get >/dev/null && command -v dpkg-query >/dev/null || return 0
  for package in "$@"; do
    case $package in
      g++ | cmake) ! command -v "$package" >/dev/null || continue ;;
      ninja-build) ! command -v ninja >/dev/null || continue ;;
      pkg-config) ! command -v pkg-config >/dev/null || continue ;;
    esac
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "missing packages: ${missing[*]}" "apt-get install ${missing[*]} as root"
    as_root=(sudo)
  fi
  quietly "reading the package lists" "${as_root[@]}" apt-get update -qq || note "vlmest: using the package lists as they are"
  quietly "installing ${missing[*]}" "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" || die "apt-get could not install ${missing[*]}"
}

# configure FOLDER CMAKE_ARGUMENT...: Release with Ninja unless the folder or the arguments say otherwise.
configure() {
  local folder=$1 fresh=()
  shift
  command -v cmake >/dev/null || die "CMake is missing" "install CMake 3.25 or newer"
  if [ ! -e "$folder/CMakeCache.txt" ]; then
    fresh=(-DCMAKE_BUILD_TYPE=Release)
    ! command -v ninja >/dev/null || fresh+=(-G Ninja)
  fi
  quietly "configuring $folder" cmake -S "$root" -B "$folder" "${fresh[@]}" "$@"
}

# compile FOLDER CMAKE_BUILD_ARGUMENT...
compile() {
  local folder=$1
  shift
  quietly "building in $folder" cmake --build "$folder" --parallel "$(nproc)" "$@"
}
