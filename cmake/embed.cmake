# SPDX-License-Identifier: Apache-2.0
# vlmest_embed(TARGET FILE...): for each FILE a header <embedded/NAME.inc>, its content as one string literal:
#   constexpr std::string_view style =
#   #include <embedded/style.css.inc>
#       ;
function(vlmest_embed target)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/embed)
  foreach(file IN LISTS ARGN)
    cmake_path(GET file FILENAME name)
    file(READ ${file} content)
    file(CONFIGURE OUTPUT ${folder}/embedded/${name}.inc CONTENT "R\"embedded(@content@)embedded\"\n" @ONLY)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endforeach()
  target_include_directories(${target} PRIVATE ${folder})
endfunction()
