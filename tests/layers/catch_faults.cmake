# SPDX-License-Identifier: Apache-2.0
cmake_minimum_required(VERSION 3.25)
# cmake -DSCRATCH=<empty folder> -P catch_faults.cmake
# Writes small trees that break one rule each and expects layers.cmake to name the file, the line and the reason.
set(opening "// SPDX-License-Identifier: Apache-2.0\n#pragma once\n")
string(REPEAT "// a line\n" 299 long)

# tree(EXPECTED PATH CONTENT): EXPECTED is a regular expression of the report, or "pass".
function(tree expected path content)
  file(REMOVE_RECURSE ${SCRATCH})
  foreach(folder IN ITEMS unit op nn nn/stack/a family/a analysis json)
    file(WRITE ${SCRATCH}/lib/vlmest/${folder}/base.hpp "${opening}")
  endforeach()
  foreach(folder IN ITEMS evidence failure verdict)
    file(WRITE ${SCRATCH}/lib/vlmest/diagnose/${folder}/base.hpp "${opening}")
  endforeach()
  file(WRITE ${SCRATCH}/lib/vlmest/diagnose/verdict/with_model.hpp "${opening}#include <vlmest/nn/base.hpp>\n")
  file(WRITE ${SCRATCH}/${path} "${content}")
  execute_process(COMMAND ${CMAKE_COMMAND} -DROOT=${SCRATCH} -P ${CMAKE_CURRENT_LIST_DIR}/layers.cmake
                  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(expected STREQUAL "pass")
    if(NOT status EQUAL 0)
      message(SEND_ERROR "${path} breaks no rule, but:\n${output}")
    endif()
  elseif(status EQUAL 0)
    message(SEND_ERROR "${path}: nothing was found, expected '${expected}'")
  elseif(NOT output MATCHES "${expected}")
    message(SEND_ERROR "${path}: expected '${expected}' in\n${output}")
  endif()
endfunction()

tree(pass lib/vlmest/op/a.hpp "${opening}#include <vector>\n#include <vlmest/unit/base.hpp>\n#include <vlmest/op/base.hpp>\n")
tree(pass lib/vlmest/json/hf/a.hpp "${opening}#include <nlohmann/json.hpp>\n#include <vlmest/nn/base.hpp>\n")
tree(pass lib/vlmest/json/b.hpp "${opening}#include <vlmest/analysis/base.hpp>\n#include <vlmest/nn/base.hpp>\n")
tree("lib/vlmest/unit/a.hpp:4: .*unit stands below op" lib/vlmest/unit/a.hpp "${opening}\n#include <vlmest/op/base.hpp>\n")
tree("lib/vlmest/op/x/a.hpp:3: .*op stands below nn" lib/vlmest/op/x/a.hpp "${opening}  #  include <vlmest/nn/base.hpp>\n")
tree("lib/vlmest/analysis/a.hpp:3: .*do not know" lib/vlmest/analysis/a.hpp "${opening}#include <vlmest/nn/base.hpp>\n")
tree("lib/vlmest/nn/a.hpp:3: .*nn stands below analysis" lib/vlmest/nn/a.hpp "${opening}#include <vlmest/analysis/base.hpp>\n")
tree("lib/vlmest/op/a.hpp:3: .*no such header" lib/vlmest/op/a.hpp "${opening}#include <vlmest/unit/gone.hpp>\n")
tree("lib/vlmest/nn/a.hpp:3: .*only json" lib/vlmest/nn/a.hpp "${opening}#include <nlohmann/json.hpp>\n")
tree("lib/vlmest/nn/a.hpp:4: .*standard library" lib/vlmest/nn/a.hpp "${opening}#include <string>\n#include <fmt/core.h>\n")
tree("lib/vlmest/json/a.hpp:3: .*standard library" lib/vlmest/json/a.hpp "${opening}#include <CLI/CLI.hpp>\n")
tree("lib/vlmest/nn/a.hpp:3: .*standard library" lib/vlmest/nn/a.hpp "${opening}#include \"base.hpp\"\n")
tree("lib/vlmest/misc/a.hpp:1: .*is no .hpp in one of" lib/vlmest/misc/a.hpp "${opening}")
tree("lib/vlmest/op/a.h:1: .*is no .hpp in one of" lib/vlmest/op/a.h "${opening}")
tree("lib/vlmest/op/a.hpp:1: does not begin" lib/vlmest/op/a.hpp "#pragma once\n")
tree("lib/vlmest/op/a.hpp:301: has 301 lines" lib/vlmest/op/a.hpp "${opening}${long}")
tree("lib/vlmest/nn/a.hpp:3: names runtime_id.\"fused\".: ask for a trait" lib/vlmest/nn/a.hpp
     "${opening}bool b(Runtime r) { return r == runtime_id(\"fused\"); }\n")
tree("lib/vlmest/nn/a.hpp:3: .*known to nn/stack alone" lib/vlmest/nn/a.hpp
     "${opening}#include <vlmest/nn/stack/a/base.hpp>\n")
tree(pass lib/vlmest/nn/stack/registry.hpp "${opening}#include <vlmest/nn/stack/a/base.hpp>\n")
tree("lib/vlmest/nn/stack/b/stack.hpp:1: has no row .*&b::stack" lib/vlmest/nn/stack/b/stack.hpp "${opening}")

foreach(folder IN ITEMS evidence failure verdict)
  string(APPEND below "#include <vlmest/diagnose/${folder}/base.hpp>\n")
endforeach()
tree(pass lib/vlmest/diagnose/verdict/a.hpp "${opening}${below}")
tree(pass lib/vlmest/diagnose/advise/action/a.hpp "${opening}${below}#include <vlmest/nn/base.hpp>\n")
tree("lib/vlmest/diagnose/evidence/a.hpp:3: .*diagnose/evidence stands below diagnose/failure"
     lib/vlmest/diagnose/evidence/a.hpp "${opening}#include <vlmest/diagnose/failure/base.hpp>\n")
tree("lib/vlmest/diagnose/failure/impl/a.hpp:3: .*diagnose/failure stands below diagnose/verdict"
     lib/vlmest/diagnose/failure/impl/a.hpp "${opening}#include <vlmest/diagnose/verdict/base.hpp>\n")
tree("lib/vlmest/diagnose/a.hpp:1: stands in none of the folders of diagnose" lib/vlmest/diagnose/a.hpp "${opening}")
tree("evidence/a.hpp: judges without a model, but reaches one: diagnose/evidence/a.hpp -> nn/base.hpp"
     lib/vlmest/diagnose/evidence/a.hpp "${opening}#include <vlmest/nn/base.hpp>\n")
# By a header that may include a model itself.
tree("judge.hpp -> diagnose/verdict/with_model.hpp -> nn/base.hpp" lib/vlmest/diagnose/verdict/judge.hpp
     "${opening}#include <vlmest/diagnose/verdict/with_model.hpp>\n")

tree(pass lib/vlmest/family/a/family.hpp "${opening}#include <vlmest/nn/base.hpp>\n#include <vlmest/family/a/base.hpp>\n")
tree(pass lib/vlmest/family/a/read.hpp "${opening}#include <nlohmann/json.hpp>\n#include <vlmest/json/base.hpp>\n")
tree(pass lib/vlmest/family/a/schema.json "{}\n")
tree("lib/vlmest/nn/a.hpp:3: .*nn stands below family" lib/vlmest/nn/a.hpp "${opening}#include <vlmest/family/a/base.hpp>\n")
tree("lib/vlmest/family/a/rule.hpp:3: .*family stands below json" lib/vlmest/family/a/rule.hpp "${opening}#include <vlmest/json/base.hpp>\n")
tree("lib/vlmest/family/a/rule.hpp:3: .*only json" lib/vlmest/family/a/rule.hpp "${opening}#include <nlohmann/json.hpp>\n")
tree("lib/vlmest/family/b/rule.hpp:3: .*families share" lib/vlmest/family/b/rule.hpp "${opening}#include <vlmest/family/a/base.hpp>\n")
tree(pass kernels/matmul/a.cu "#include <vlmest/op/base.hpp>\n")
tree("kernels/matmul/a.cu:2: .*kernels know nn not" kernels/matmul/a.cu "\n#include <vlmest/nn/base.hpp>\n")
