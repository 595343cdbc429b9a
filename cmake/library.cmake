# SPDX-License-Identifier: Apache-2.0
# vlmest::vlmest (standard library only) and vlmest::json (adds what reads and writes with nlohmann_json: lib/vlmest/json,
# and of lib/vlmest/family the registry and each family's read.hpp).
file(GLOB_RECURSE vlmest_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/lib/vlmest/*.hpp)
set(vlmest_json_headers ${vlmest_headers})
set(vlmest_json_header "/lib/vlmest/(json/|family/registry\\.hpp$|family/[^/]+/read(_[a-z0-9_]+)?\\.hpp$)")
list(FILTER vlmest_json_headers INCLUDE REGEX ${vlmest_json_header})
list(FILTER vlmest_headers EXCLUDE REGEX ${vlmest_json_header})

add_library(vlmest INTERFACE)
add_library(vlmest::vlmest ALIAS vlmest)
target_sources(vlmest INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/lib FILES ${vlmest_headers})
target_compile_features(vlmest INTERFACE cxx_std_20)

find_package(nlohmann_json 3.9 QUIET)
if(nlohmann_json_FOUND OR TARGET nlohmann_json::nlohmann_json)
  add_library(vlmest_json INTERFACE)
  add_library(vlmest::json ALIAS vlmest_json)
  set_target_properties(vlmest_json PROPERTIES EXPORT_NAME json)
  target_sources(vlmest_json INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/lib FILES ${vlmest_json_headers})
  target_link_libraries(vlmest_json INTERFACE vlmest nlohmann_json::nlohmann_json)
else()
  message(STATUS "vlmest: nlohmann_json not found, vlmest::json is left out (Debian: nlohmann-json3-dev)")
endif()
