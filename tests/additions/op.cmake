# SPDX-License-Identifier: Apache-2.0
cmake_minimum_required(VERSION 3.25)
# cmake -DCOMPILER= -DLIB=<sources> -DSCRATCH=<empty folder> -P op.cmake
# Adds the file of a toy op, and in copies of three headers the lines of it: its word in the variant, its time, its line in
# the readers of `vlmest op`. With all of them op.cpp must compile, and without the time it must not.
set(files op/op.hpp analysis/impl/op_time.hpp json/op.hpp)
# addition(FILE BEFORE TEXT): TEXT, put before BEFORE, makes added_<FILE> of content_<FILE>.
function(addition file before text)
  if(NOT DEFINED content_${file})
    file(READ ${LIB}/vlmest/${file} content)
    set(content_${file} "${content}" PARENT_SCOPE)
  else()
    set(content "${added_${file}}")
  endif()
  string(REPLACE "${before}" "${text}${before}" added "${content}")
  if(added STREQUAL content)
    message(FATAL_ERROR "${file}: has no '${before}' to add something before")
  endif()
  set(added_${file} "${added}" PARENT_SCOPE)
endfunction()
addition(op/op.hpp "#include <vlmest/op/triangular_solve.hpp>\n" "#include <vlmest/op/toy.hpp>\n")
addition(op/op.hpp "CollectiveOp>;" "Toy, ")
addition(analysis/impl/op_time.hpp "}  // namespace op_times\n" [[
inline OpTime time(const Toy& o, const Device& d) {
  const Cost c = cost(o);
  return memory_time(c.read, c.written, Elements(o.elements), 1, d, d.efficiency.memory.fused);
}

]])
addition(json/op.hpp "    Entry{\"rope\", rope},\n" [[
    Entry{"toy", [](const Reader& r) -> SingleOp {
            const Toy o{.elements = size(r, "elements"), .dtype = dtype(r, "bf16")};
            return {o, cost(o).read, cost(o).written, {}};
          }},
]])

include(${CMAKE_CURRENT_LIST_DIR}/compile.cmake)
foreach(left_out IN ITEMS analysis/impl/op_time.hpp none)
  file(REMOVE_RECURSE ${SCRATCH})
  file(COPY ${CMAKE_CURRENT_LIST_DIR}/op/toy.hpp DESTINATION ${SCRATCH}/vlmest/op)
  foreach(file IN LISTS files)
    if(NOT file STREQUAL left_out)
      file(WRITE ${SCRATCH}/vlmest/${file} "${added_${file}}")
    endif()
  endforeach()
  if(left_out STREQUAL "none")
    must_compile(op.cpp "a file and three lines are not enough for an op")
  else()
    must_not_compile(op.cpp "no matching function for call to .time")
  endif()
endforeach()
