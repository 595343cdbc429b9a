# SPDX-License-Identifier: Apache-2.0
cmake_minimum_required(VERSION 3.25)
# cmake -DCOMPILER= -DINCLUDE= -DSOURCE= -DSIDE=accept|reject -P compile.cmake
file(STRINGS ${SOURCE} expected REGEX "^// rejected with: ")
string(REGEX REPLACE "^// rejected with: " "" expected "${expected}")
if(expected STREQUAL "")
  message(FATAL_ERROR "${SOURCE}: has no line '// rejected with: REGEX'")
endif()
set(define "")
if(SIDE STREQUAL "reject")
  set(define -DREJECT)
endif()
set(ENV{LC_ALL} C)  # messages in English
execute_process(COMMAND ${COMPILER} -std=c++20 -fsyntax-only -I${INCLUDE} ${define} ${SOURCE}
                RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(SIDE STREQUAL "accept")
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${SOURCE}: should compile, but\n${output}")
  endif()
elseif(status EQUAL 0)
  message(FATAL_ERROR "${SOURCE}: compiles with REJECT defined, it must not")
elseif(NOT output MATCHES "${expected}")
  message(FATAL_ERROR "${SOURCE}: is rejected, but the message does not match '${expected}':\n${output}")
endif()
