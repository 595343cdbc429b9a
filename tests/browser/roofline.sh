#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# roofline.sh PROGRAM FOLDER: writes rooflines into FOLDER, opens them in headless Chromium and lets roofline.js use
# them. Fails where the page's script did not run, a point or a row is missing, or the console shows anything. Leaves
# screenshots in FOLDER. Ends with 77 where no browser is found.
set -eu
program=$1 folder=$2
here=$(cd "$(dirname "$0")" && pwd)
browser=
for name in chromium chromium-browser google-chrome; do
  [ -n "$browser" ] || browser=$(command -v $name || true)
done
if [ -z "$browser" ]; then
  echo "skipped: none of chromium, chromium-browser and google-chrome is installed"
  exit 77
fi
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"

# open_page ARGUMENT...: what the browser prints, its console in `log`.
open_page() {
  HOME=$folder "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
    --user-data-dir="$folder/profile" --host-resolver-rules='MAP * ~NOTFOUND' --enable-logging=stderr --v=0 "$@" 2>log
  if grep ':CONSOLE' log; then
    echo "the page wrote to the console"
    exit 1
  fi
}

# The model's name would be markup if it were not escaped.
cp "$here/model.json" .
for phase in prefill decode train; do
  "$program" roofline --config model.json --phase $phase --measured "$here/measured.json" --output $phase.html
  points=$(grep -c '^<g class="point.*data-points' $phase.html)
  rows=$(grep -c '^<tr id="op-' $phase.html)
  [ "$points" -gt 5 ] && [ "$rows" -ge "$points" ]
  # The page, and behind its own script one that uses it.
  { sed '/<\/body>/,$d' $phase.html; echo '<script>'; cat "$here/roofline.js"; echo '</script></body></html>'; } >used.html
  open_page --dump-dom "file://$folder/used.html" >dom.html
  head -n 2 dom.html | grep -q "data-points=\"$points\"" || { echo "$phase: the script did not see $points points"; exit 1; }
  head -n 2 dom.html | grep -q "data-rows=\"$rows\"" || { echo "$phase: the script did not see $rows rows"; exit 1; }
  head -n 2 dom.html | grep -q 'data-used="yes"' || { echo "$phase: $(head -n 2 dom.html)"; exit 1; }
done
open_page --window-size=1280,1700 --screenshot="$folder/light.png" "file://$folder/prefill.html"
open_page --window-size=1280,1700 --force-dark-mode --blink-settings=preferredColorScheme=0 \
  --screenshot="$folder/dark.png" "file://$folder/prefill.html"
[ -s light.png ] && [ -s dark.png ]
"$program" roofline --config model.json --output chart.svg
open_page --window-size=1120,1100 --screenshot="$folder/svg.png" "file://$folder/chart.svg"
[ -s svg.png ]
echo "opened by $browser"
