// SPDX-License-Identifier: Apache-2.0
// What an action is good for once its row stands in a table (action.cmake).
#include <vlmest/diagnose/advise/action/generic_actions.hpp>
#include <vlmest/diagnose/advise/planner/candidates.hpp>

using namespace vlmest::diagnose;

constexpr ActionId toy = action_id("toy-action");
// name(toy), which reports print.
static_assert(catalogue::names[static_cast<std::size_t>(toy)] == "toy-action");
// actions() and with() of the planner take its options, reports its line.
static_assert(action_entry(toy)->title == "one new token" && action_entry(toy)->options && action_entry(toy)->how);
static_assert(id_of(*action_entry(toy)) == toy);
// generic_action() takes what is said of it without a model.
static_assert(action_entry(toy)->general.torch == "max_new_tokens=1" && !action_entry(toy)->general.training);
// Lists of a cause and of the planner may name it.
constexpr generic_actions::Of list{Cause::kv_cache, {"kv-fp8", "toy-action"}};
constexpr PlanKnob knob{"toy-action"};
static_assert(list.ids.count == 2 && knob.ids().front() == toy);
