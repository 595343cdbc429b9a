# SPDX-License-Identifier: Apache-2.0
# vlmest_unity(TARGET [SOURCES_PER_UNIT]): compiles the sources of a target a few at a time, as one. The library is all
# headers, so each source compiles what it uses of it anew, and together they do it once. Sources of a target therefore
# keep to names of their own, a test to its namespace: what is anonymous in one is seen by the next, and Clang says that
# the next one's variables shadow it.
option(VLMEST_UNITY_BUILD "Compile several sources of a program as one: fewer seconds, coarser rebuilds" ON)
mark_as_advanced(VLMEST_UNITY_BUILD)
function(vlmest_unity target)
  set(sources_per_unit 0)
  if(ARGC GREATER 1)
    set(sources_per_unit ${ARGV1})
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${VLMEST_UNITY_BUILD} UNITY_BUILD_BATCH_SIZE ${sources_per_unit})
  if(VLMEST_UNITY_BUILD)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,Clang,AppleClang>:-Wno-shadow>)
  endif()
endfunction()
