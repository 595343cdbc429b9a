// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <vlmest/unit/error.hpp>

namespace vlmest::tool {

/// The command line contradicts itself, or names what has no effect: exit code 2.
struct UsageError : Error {
  using Error::Error;
};

/// What was asked for is there and cannot be written: exit code 4.
struct WriteError : Error {
  using Error::Error;
};

/// Opens what of standard input, output and error the caller has closed, so that no file that is opened later takes its
/// place; reading and writing such a stream fail as before.
void keep_standard_streams();

/// Writes all of it to standard output. False, and errno says why, where that fails.
bool put(std::string_view text);

/// The same, as a command's answer. Throws WriteError; where nobody reads any more the process ends as a closed pipe
/// ends it, without a word.
void write_answer(std::string_view text);

/// A piece of a line for standard error.
void say_part(std::string_view text);
/// A line for standard error. Where nobody can read it nothing else happens.
void say(std::string_view line);

}  // namespace vlmest::tool
