# SPDX-License-Identifier: Apache-2.0
cmake_minimum_required(VERSION 3.25)
# cmake -DCOMPILER= -DLIB=<sources> -DSCRATCH=<empty folder> -P action.cmake
# Adds one row to a copy of one table of actions, which the compiler finds before the library's own, and compiles
# action.cpp: with the row it must, without it must not.
set(table vlmest/diagnose/advise/action/actions_inference.hpp)
set(row [[
    ActionEntry{"toy-action", "one new token", Loses::quality,
                [](const Subject& s) { return changed(s, !s.training(), [](Settings& n) { n.plan.new_tokens = 1; }); },
                [](const Subject&, const Settings&) { return std::string("max_new_tokens=1"); }}
        .in_general({.training = false, .torch = "max_new_tokens=1"}),
]])
file(READ ${LIB}/${table} content)
set(opening "inline constexpr std::array inference_actions{\n")
string(REPLACE "${opening}" "${opening}${row}" added "${content}")
if(added STREQUAL content)
  message(FATAL_ERROR "${table}: has no line '${opening}' to add a row below")
endif()
include(${CMAKE_CURRENT_LIST_DIR}/compile.cmake)
file(REMOVE_RECURSE ${SCRATCH})
must_not_compile(action.cpp "no row of the catalogue has this name")
file(WRITE ${SCRATCH}/${table} "${added}")
must_compile(action.cpp "one row is not enough for an action")
