# SPDX-License-Identifier: Apache-2.0
# vlmest_warnings(TARGET): the warnings every target of this project is compiled with. Never part of the interface.
# Descriptions are aggregates: naming some members and leaving the others at their defaults is how they are written.
function(vlmest_warnings target)
  target_compile_options(
    ${target}
    PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang,AppleClang>:-Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers>
            $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${VLMEST_WARNINGS_AS_ERRORS}>>:-Werror>)
endfunction()
