# SPDX-License-Identifier: Apache-2.0
cmake_minimum_required(VERSION 3.25)
# cmake -DCOMPILER= -DLIB=<sources> -DSCRATCH=<empty folder> -P runtime.cmake
# Adds the folder of a toy runtime beside the library's and its row, an include and a name, to a copy of the registry, and
# compiles runtime.cpp: with them it must, without it must not.
set(registry vlmest/nn/stack/registry.hpp)
set(folder vlmest/nn/stack/toy)
file(READ ${LIB}/${registry} content)
string(REPLACE "#include <vlmest/nn/stack/transformers/stack.hpp>\n"
               "#include <${folder}/stack.hpp>\n#include <vlmest/nn/stack/transformers/stack.hpp>\n" added "${content}")
string(REPLACE "&fused::stack}" "&fused::stack, &toy::stack}" added "${added}")
if(NOT added MATCHES "toy/stack.hpp" OR NOT added MATCHES "&toy::stack")
  message(FATAL_ERROR "${registry}: has no place for a row that this test knows")
endif()
include(${CMAKE_CURRENT_LIST_DIR}/compile.cmake)
file(REMOVE_RECURSE ${SCRATCH})
file(COPY ${CMAKE_CURRENT_LIST_DIR}/runtime/stack.hpp DESTINATION ${SCRATCH}/${folder})
must_not_compile(runtime.cpp "no row of the registry has this name")
file(WRITE ${SCRATCH}/${registry} "${added}")
must_compile(runtime.cpp "a folder and a row are not enough for a runtime")
