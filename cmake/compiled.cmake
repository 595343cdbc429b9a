# SPDX-License-Identifier: Apache-2.0
# vlmest::compiled: the library as vlmest::json, with its large functions compiled once (lib/vlmest/unit/compiled.hpp).
# What is built here links it; with VLMEST_COMPILED off, and for everybody else, the library stays headers alone.
if(NOT TARGET vlmest::json)
  return()
endif()
option(VLMEST_COMPILED "Compile the library's large functions once for programs, tests and benchmarks" ${PROJECT_IS_TOP_LEVEL})
mark_as_advanced(VLMEST_COMPILED)
if(NOT VLMEST_COMPILED)
  if(NOT VLMEST_BUILD_TOOLS AND NOT VLMEST_BUILD_TESTS AND NOT VLMEST_BUILD_BENCH)
    return()
  endif()
  add_library(vlmest_compiled INTERFACE)
  target_link_libraries(vlmest_compiled INTERFACE vlmest::json)
else()
  file(GLOB_RECURSE impl CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/lib ${PROJECT_SOURCE_DIR}/lib/vlmest/*.hpp)
  list(FILTER impl INCLUDE REGEX "/impl/")
  set(sources "")
  # In the order in which the linker takes copies of inline functions (vlmest_library_first): the replay's first.
  foreach(part IN ITEMS library json diagnose)
    set(headers ${impl})
    if(part STREQUAL "library")
      list(FILTER headers EXCLUDE REGEX "^vlmest/(diagnose|json)/")
    else()
      list(FILTER headers INCLUDE REGEX "^vlmest/${part}/")
    endif()
    list(TRANSFORM headers REPLACE "(.+)" "#include <\\1>\n")
    list(JOIN headers "" includes)
    set(source ${PROJECT_BINARY_DIR}/compiled/${part}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "${includes}")
    list(APPEND sources ${source})
  endforeach()
  add_library(vlmest_compiled STATIC EXCLUDE_FROM_ALL ${sources})
  target_link_libraries(vlmest_compiled PUBLIC vlmest::json)
  target_compile_definitions(vlmest_compiled PUBLIC VLMEST_COMPILED)
  # With the program's sources (tools.cmake) a fourth less to compile. What estimates run comes from `library`, which is
  # optimised: they and a plan take as long as before, a log of 50 MB 3 % longer.
  set_source_files_properties(${PROJECT_BINARY_DIR}/compiled/json.cpp ${PROJECT_BINARY_DIR}/compiled/diagnose.cpp
                              PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O1>)
  # Tests run this part of the library, so that in a debug build too it pays to optimise it: under the sanitizers they
  # take a third of the time that they would take. What estimates run Clang compiles as fast by -O2 as by -O1. Not so
  # the readers, which are half of the time that Clang then takes, and whose tests wait for what the estimates of their
  # models take.
  set_property(SOURCE ${PROJECT_BINARY_DIR}/compiled/library.cpp APPEND
               PROPERTY COMPILE_OPTIONS $<$<CONFIG:Debug>:$<IF:$<CXX_COMPILER_ID:Clang>,-O2,-O1>>)
  set_property(SOURCE ${PROJECT_BINARY_DIR}/compiled/diagnose.cpp APPEND PROPERTY COMPILE_OPTIONS $<$<CONFIG:Debug>:-O1>)
  vlmest_warnings(vlmest_compiled)
endif()
add_library(vlmest::compiled ALIAS vlmest_compiled)

# vlmest_library_first(TARGET): of an inline function that several sources compile, the linker takes the first. Where a
# program's own sources are not optimised, the library's copies come first, and it runs in a third of the time.
function(vlmest_library_first target)
  if(VLMEST_COMPILED AND CMAKE_SYSTEM_NAME STREQUAL "Linux")
    target_link_options(${target} PRIVATE LINKER:--whole-archive,$<TARGET_FILE:vlmest_compiled>,--no-whole-archive)
  endif()
endfunction()
