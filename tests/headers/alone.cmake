# SPDX-License-Identifier: Apache-2.0
# headers.alone: every one of `headers` would compile alone (alone.cpp); headers.lacking: what would not is found.
string(REGEX MATCH "^[0-9]+" major "${CMAKE_CXX_COMPILER_VERSION}")
find_path(VLMEST_LIBCLANG_INCLUDE clang-c/Index.h HINTS /usr/lib/llvm-${major}/include)
find_library(VLMEST_LIBCLANG NAMES clang clang-${major} HINTS /usr/lib/llvm-${major}/lib)
mark_as_advanced(VLMEST_LIBCLANG_INCLUDE VLMEST_LIBCLANG)
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR NOT VLMEST_LIBCLANG_INCLUDE OR NOT VLMEST_LIBCLANG)
  message(FATAL_ERROR "VLMEST_CHECK_HEADERS reads headers by Clang's library: compile with clang++ and install libclang-${major}-dev")
endif()
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-resource-dir OUTPUT_VARIABLE resources OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)

# The program is no part of what the sanitizers look at: it waits for a library that is not compiled with them.
add_executable(vlmest_headers_alone ${CMAKE_CURRENT_SOURCE_DIR}/alone.cpp)
target_compile_features(vlmest_headers_alone PRIVATE cxx_std_20)
target_compile_definitions(vlmest_headers_alone PRIVATE VLMEST_CLANG_RESOURCES="${resources}")
target_include_directories(vlmest_headers_alone SYSTEM PRIVATE ${VLMEST_LIBCLANG_INCLUDE})
target_link_libraries(vlmest_headers_alone PRIVATE ${VLMEST_LIBCLANG})
target_compile_options(vlmest_headers_alone PRIVATE -fno-sanitize=all)
target_link_options(vlmest_headers_alone PRIVATE -fno-sanitize=all)
vlmest_warnings(vlmest_headers_alone)

# vlmest_headers_in_one(NAME LIB HEADER...): NAME.cpp includes each of them. It is there for its compile command, as which
# its headers are read; nothing compiles it.
function(vlmest_headers_in_one name lib)
  set(headers ${ARGN})
  list(TRANSFORM headers REPLACE "(.+)" "#include <\\1>\n")
  list(JOIN headers "" includes)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/in_one/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "${includes}")
  set(target vlmest_headers_of_${name})
  add_library(${target} OBJECT EXCLUDE_FROM_ALL ${source})
  target_compile_features(${target} PRIVATE cxx_std_20)
  vlmest_warnings(${target})
  set_target_properties(${target} PROPERTIES EXPORT_COMPILE_COMMANDS ON)
  add_test(NAME headers.${name} COMMAND vlmest_headers_alone ${lib} ${PROJECT_BINARY_DIR} ${source})
  set_tests_properties(headers.${name} PROPERTIES LABELS headers TIMEOUT 1200)
endfunction()

vlmest_headers_in_one(alone ${PROJECT_SOURCE_DIR}/lib ${headers})
target_link_libraries(vlmest_headers_of_alone PRIVATE vlmest::vlmest $<TARGET_NAME_IF_EXISTS:vlmest::json>)
target_compile_definitions(vlmest_headers_of_alone PRIVATE VLMEST_COMPILED)
# Early, since it takes as long as any other here.
set_tests_properties(headers.alone PROPERTIES COST 1000)

# Headers of which each lacks something else: base.hpp, which has it, comes first.
file(GLOB lacking CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/lacking ${CMAKE_CURRENT_SOURCE_DIR}/lacking/*.hpp)
list(REMOVE_ITEM lacking base.hpp)
vlmest_headers_in_one(lacking ${CMAKE_CURRENT_SOURCE_DIR}/lacking base.hpp ${lacking})
target_include_directories(vlmest_headers_of_lacking PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/lacking)
file(READ ${CMAKE_CURRENT_SOURCE_DIR}/lacking/found.txt found)
string(REGEX REPLACE "([][.+*?^$()|\\])" "\\\\\\1" found "${found}")
set_tests_properties(headers.lacking PROPERTIES PASS_REGULAR_EXPRESSION "^${found}$")
