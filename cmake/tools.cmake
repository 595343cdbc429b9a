# SPDX-License-Identifier: Apache-2.0
# The program build/bin/vlmest. Everything but main.cpp is vlmest_tool, so that tests can link it.
if(NOT VLMEST_BUILD_TOOLS)
  return()
endif()
if(NOT TARGET vlmest::json)
  message(FATAL_ERROR "vlmest: the program needs nlohmann_json (Debian: nlohmann-json3-dev); "
                      "the library alone is built with -DVLMEST_BUILD_TOOLS=OFF -DVLMEST_BUILD_TESTS=OFF")
endif()
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(Eigen3 REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
include(GNUInstallDirs)
include(${CMAKE_CURRENT_LIST_DIR}/event.cmake)

file(GLOB_RECURSE vlmest_tool_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/*.cpp)
list(REMOVE_ITEM vlmest_tool_sources ${PROJECT_SOURCE_DIR}/tools/main.cpp)
add_library(vlmest_tool STATIC ${vlmest_tool_sources})
target_include_directories(vlmest_tool PUBLIC ${PROJECT_SOURCE_DIR}/tools)
target_link_libraries(
  vlmest_tool
  PUBLIC vlmest::compiled CLI11::CLI11 fmt::fmt
  PRIVATE Eigen3::Eigen vlmest::event SQLite::SQLite3 Threads::Threads ZLIB::ZLIB ${CMAKE_DL_LIBS})
# bench/fit, which `vlmest calibrate` runs, is included from the root.
target_include_directories(vlmest_tool PRIVATE ${PROJECT_SOURCE_DIR})
# An installed program finds its models relative to itself, one in a build folder in the sources.
file(RELATIVE_PATH vlmest_models_from_bin /prefix/${CMAKE_INSTALL_BINDIR} /prefix/${CMAKE_INSTALL_DATADIR}/vlmest/models)
target_compile_definitions(
  vlmest_tool PRIVATE VLMEST_VERSION="${PROJECT_VERSION}" VLMEST_SOURCE_MODELS="${PROJECT_SOURCE_DIR}/models"
                      VLMEST_INSTALLED_MODELS="${vlmest_models_from_bin}")
# What commands wait for is compiled with the library. Of GCC's levels -Og takes seven tenths of what -O1 takes here, as
# long as -O0, whose program is slower. What it leaves of iterators costs time without -ftree-sra.
target_compile_options(
  vlmest_tool PRIVATE $<$<CONFIG:Release>:$<IF:$<CXX_COMPILER_ID:GNU>,-Og$<SEMICOLON>-ftree-sra,-O1>>)
vlmest_warnings(vlmest_tool)
vlmest_unity(vlmest_tool 38)
include(${CMAKE_CURRENT_LIST_DIR}/embed.cmake)
file(GLOB vlmest_page CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/output/roofline/*.css
     ${PROJECT_SOURCE_DIR}/tools/output/roofline/*.html ${PROJECT_SOURCE_DIR}/tools/output/roofline/*.js)
vlmest_embed(vlmest_tool ${vlmest_page})

add_executable(vlmest_cli ${PROJECT_SOURCE_DIR}/tools/main.cpp)
target_link_libraries(vlmest_cli PRIVATE vlmest_tool)
set_target_properties(vlmest_cli PROPERTIES OUTPUT_NAME vlmest RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
vlmest_library_first(vlmest_cli)
vlmest_warnings(vlmest_cli)
