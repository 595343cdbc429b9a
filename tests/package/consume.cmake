# SPDX-License-Identifier: Apache-2.0
cmake_minimum_required(VERSION 3.25)
# cmake -DWAY= -DSTAGE= -DBUILD= -DSOURCES= -DSCRATCH= -DGENERATOR= -DCOMPILER= -DCONSUMER= -DJSON= -P consume.cmake
# Builds the project in consumer/ from nothing, runs it and compares what it prints.
file(REMOVE_RECURSE ${SCRATCH})
file(MAKE_DIRECTORY ${SCRATCH})
set(program ${SCRATCH}/consumer)
if(WAY STREQUAL "pkg_config")
  set(ENV{PKG_CONFIG_PATH} ${STAGE}/share/pkgconfig)
  execute_process(COMMAND pkg-config --cflags --libs vlmest OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  execute_process(COMMAND ${COMPILER} ${CONSUMER}/main.cpp -o ${program} ${flags} COMMAND_ERROR_IS_FATAL ANY)
else()
  set(from -DFETCHCONTENT_SOURCE_DIR_VLMEST=${SOURCES})
  if(WAY STREQUAL "build_tree")
    set(from -Dvlmest_DIR=${BUILD})
  elseif(WAY STREQUAL "install_tree")
    set(from -DCMAKE_PREFIX_PATH=${STAGE})
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${CONSUMER} -B ${SCRATCH} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER}
                          -DWAY=${WAY} -DJSON=${JSON} ${from} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${SCRATCH} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endif()
execute_process(COMMAND ${program} OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
if(NOT output STREQUAL "2x576x1024 in bf16: 2359296 bytes\n")
  message(FATAL_ERROR "the consumer printed '${output}'")
endif()
