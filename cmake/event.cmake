# SPDX-License-Identifier: Apache-2.0
# vlmest::event: libevent's loop and HTTP server, which `vlmest watch` waits and serves with. pkg-config is not needed.
find_path(VLMEST_EVENT_INCLUDE_DIR event2/http.h)
find_library(VLMEST_EVENT_CORE event_core)
find_library(VLMEST_EVENT_EXTRA event_extra)
mark_as_advanced(VLMEST_EVENT_INCLUDE_DIR VLMEST_EVENT_CORE VLMEST_EVENT_EXTRA)
if(NOT VLMEST_EVENT_INCLUDE_DIR OR NOT VLMEST_EVENT_CORE OR NOT VLMEST_EVENT_EXTRA)
  message(FATAL_ERROR "vlmest: the program needs libevent 2 (Debian: libevent-dev)")
endif()
add_library(vlmest_event INTERFACE)
add_library(vlmest::event ALIAS vlmest_event)
target_include_directories(vlmest_event SYSTEM INTERFACE ${VLMEST_EVENT_INCLUDE_DIR})
target_link_libraries(vlmest_event INTERFACE ${VLMEST_EVENT_EXTRA} ${VLMEST_EVENT_CORE})
