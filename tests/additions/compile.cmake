# SPDX-License-Identifier: Apache-2.0
# For the scripts of this folder, which set COMPILER, LIB and SCRATCH: what lies in SCRATCH is found before the library's
# own.
set(ENV{LC_ALL} C)  # messages in English

function(compile_with_addition file)
  execute_process(COMMAND ${COMPILER} -std=c++20 -fsyntax-only -DVLMEST_COMPILED -I${SCRATCH} -I${LIB}
                          ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${file}
                  RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
  set(result ${result} PARENT_SCOPE)
  set(said "${said}" PARENT_SCOPE)
endfunction()

# must_compile(FILE OTHERWISE): OTHERWISE is what it means that it does not.
function(must_compile file otherwise)
  compile_with_addition(${file})
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${otherwise}:\n${said}")
  endif()
endfunction()

# must_not_compile(FILE WHY): the compiler's message matches the regular expression WHY.
function(must_not_compile file why)
  compile_with_addition(${file})
  if(result EQUAL 0)
    message(FATAL_ERROR "${file} compiles without what is to be added: it shows nothing")
  elseif(NOT said MATCHES "${why}")
    message(FATAL_ERROR "without the addition another message was expected than\n${said}")
  endif()
endfunction()
