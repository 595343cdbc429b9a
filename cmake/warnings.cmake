# SPDX-License-Identifier: Apache-2.0
# vlmest_warnings(TARGET): the warnings every target of this project is compiled with. Never part of the interface.
# Descriptions are aggregates: naming some members and leaving the others at their defaults is how they are written.
# nvcc hands its host code to the host compiler after a rewriting that -Wpedantic, -Wshadow and -Wparentheses complain of;
# a variable called module, at the beginning of a line, is to it an odd module declaration (3189).
# GCC 12 sees overlapping copies in every "text" + std::string (gcc.gnu.org/PR105651, mended in 13).
# Clang takes a loop whose variables a lambda changes for one that nothing changes.
function(vlmest_warnings target)
  target_compile_options(
    ${target}
    PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang,AppleClang>:-Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers>
            $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
            $<$<COMPILE_LANG_AND_ID:CXX,Clang,AppleClang>:-Wno-missing-braces -Wno-for-loop-analysis>
            $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${VLMEST_WARNINGS_AS_ERRORS}>>:-Werror>
            $<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers,-Wno-parentheses
            -diag-suppress=3189>
            $<$<AND:$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>,$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Xcompiler=-Wno-restrict>
            $<$<AND:$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>,$<BOOL:${VLMEST_WARNINGS_AS_ERRORS}>>:-Xcompiler=-Werror
            --Werror=all-warnings>)
endfunction()
