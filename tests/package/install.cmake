# SPDX-License-Identifier: Apache-2.0
cmake_minimum_required(VERSION 3.25)
# cmake -DBUILD= -DCONFIG= -DSTAGE= -DSOURCES= -DPROGRAM= -P install.cmake
# Installs to a prefix and moves it: nothing may depend on where it was installed to.
file(REMOVE_RECURSE ${STAGE} ${STAGE}.first)
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --config ${CONFIG} --prefix ${STAGE}.first
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(RENAME ${STAGE}.first ${STAGE})

# expect_same(FROM TO PATTERN): each file of FROM that matches is in TO.
function(expect_same from to pattern)
  file(GLOB_RECURSE there RELATIVE ${from} ${from}/${pattern})
  file(GLOB_RECURSE here RELATIVE ${to} ${to}/${pattern})
  if(NOT there STREQUAL here)
    message(FATAL_ERROR "${to} holds\n  ${here}\ninstead of\n  ${there}")
  endif()
endfunction()
expect_same(${SOURCES}/lib ${STAGE}/include *.hpp)
if(NOT PROGRAM STREQUAL "")
  expect_same(${SOURCES}/models ${STAGE}/share/vlmest/models *.json)
  execute_process(COMMAND ${STAGE}/bin/vlmest --version OUTPUT_VARIABLE version COMMAND_ERROR_IS_FATAL ANY)
  if(NOT version MATCHES "^vlmest [0-9]+\\.[0-9]+\\.[0-9]+\n$")
    message(FATAL_ERROR "vlmest --version printed '${version}'")
  endif()
endif()
