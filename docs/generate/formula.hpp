// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cctype>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>

/// Formulas of the reference are text; this evaluates them, so that each can be held against the code it describes.
namespace reference {

using Values = std::map<std::string, double>;

/// Sums, differences, products, quotients, brackets, numbers, names, floor(x) and log2(x).
class Formula {
 public:
  Formula(const std::string& text, const Values& values) : text_(text), values_(values) {}

  double value() {
    const double v = sum();
    if (skip() != '\0') throw std::runtime_error("cannot read '" + text_ + "' at " + std::to_string(at_));
    return v;
  }

 private:
  char skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  double sum() {
    double v = product();
    for (char c = skip(); c == '+' || c == '-'; c = skip()) {
      ++at_;
      const double w = product();
      v = c == '+' ? v + w : v - w;
    }
    return v;
  }
  double product() {
    double v = factor();
    for (char c = skip(); c == '*' || c == '/'; c = skip()) {
      ++at_;
      const double w = factor();
      v = c == '*' ? v * w : v / w;
    }
    return v;
  }
  double bracket() {
    if (skip() != '(') throw std::runtime_error("no bracket in '" + text_ + "'");
    ++at_;
    const double v = sum();
    if (skip() != ')') throw std::runtime_error("an open bracket in '" + text_ + "'");
    ++at_;
    return v;
  }
  double factor() {
    const char c = skip();
    if (c == '(') return bracket();
    std::size_t end = at_;
    while (end < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '_' || text_[end] == '.'))
      ++end;
    const std::string word = text_.substr(at_, end - at_);
    if (word.empty()) throw std::runtime_error("cannot read '" + text_ + "'");
    at_ = end;
    if (std::isdigit(static_cast<unsigned char>(c))) return std::stod(word);
    if (word == "floor") return std::floor(bracket());
    if (word == "log2") return std::log2(bracket());
    const auto v = values_.find(word);
    if (v == values_.end()) throw std::runtime_error("'" + word + "' in '" + text_ + "' is no field");
    return v->second;
  }

  const std::string& text_;
  const Values& values_;
  std::size_t at_ = 0;
};

}  // namespace reference
