// SPDX-License-Identifier: Apache-2.0
// What a runtime is good for once its folder and its row are there (runtime.cmake).
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/nn/vlm.hpp>

using namespace vlmest;

constexpr Runtime toy = runtime_id("toy");
// --profile offers and takes its word, and what is printed names it.
static_assert(words_of<Runtime>.back() == "toy" && name(toy) == "toy" && value_of<Runtime>("toy") == toy);
static_assert(runtimes.size() == words_of<Runtime>.size() && runtimes.back() == toy);
// The default is what it was.
static_assert(name(Runtime{}) == "transformers");
// Rules of flags, refusals and hints ask for its traits.
static_assert(traits_of(toy).makes_masks && !traits_of(toy).flash_attention_2);
static_assert(first_with(&StackTraits::attends_by_flash, false) != toy);
// A plan that names it runs its functions.
static_assert(&stack_of(toy) == &stacks::toy::stack);
static_assert(stack_of(toy).words == &stacks::toy::words);
