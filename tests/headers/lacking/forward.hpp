// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace base {
struct Box;
}
