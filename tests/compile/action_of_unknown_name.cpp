// SPDX-License-Identifier: Apache-2.0
// rejected with: no row of the catalogue has this name
#define VLMEST_COMPILED  // declarations alone
#include <vlmest/diagnose/advise/action/catalogue.hpp>

#ifdef REJECT
constexpr auto action = vlmest::diagnose::action_id("kv-fp9");
#else
constexpr auto action = vlmest::diagnose::action_id("kv-fp8");
#endif
static_assert(vlmest::diagnose::action_entry(action) != nullptr);
