// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/context.hpp>

namespace vlmest {

/// torch.nn.functional.dropout with a probability above zero: nothing at inference.
inline Value dropout(Context& c, Value arg) { return c.plan.dropout ? eager::native_dropout(std::move(arg)) : arg; }

}  // namespace vlmest
