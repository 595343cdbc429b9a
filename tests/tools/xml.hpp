// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cctype>
#include <map>
#include <string>
#include <string_view>
#include <vector>

/// A reader of XML 1.0 for tests: elements, attributes and text, without document types and namespaces.
namespace xml {

struct Element {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;  ///< without that of its children
  std::vector<Element> children;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : s_(text) {}

  /// The document's element; `fault` says what is wrong with it, and is empty where nothing is.
  Element document() {
    Element e = element();
    space();
    if (fault.empty() && at_ < s_.size()) fail("text behind the document");
    return e;
  }
  std::string fault;

 private:
  void fail(const std::string& what) {
    if (fault.empty()) fault = what + " at " + std::string(s_.substr(at_ > 20 ? at_ - 20 : 0, 60));
    at_ = s_.size();
  }
  bool next(std::string_view word) {
    if (!s_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void space() {
    while (at_ < s_.size() && std::isspace(static_cast<unsigned char>(s_[at_]))) ++at_;
  }
  std::string name() {
    const std::size_t begin = at_;
    while (at_ < s_.size() && (std::isalnum(static_cast<unsigned char>(s_[at_])) || s_[at_] == '-' || s_[at_] == ':'))
      ++at_;
    if (begin == at_) fail("no name");
    return std::string(s_.substr(begin, at_ - begin));
  }
  /// Up to `end`, with references replaced.
  std::string characters(char end) {
    static const std::map<std::string, std::string, std::less<>> known{
        {"amp", "&"}, {"lt", "<"}, {"gt", ">"}, {"quot", "\""}, {"#39", "'"}};
    std::string r;
    while (at_ < s_.size() && s_[at_] != end) {
      const char c = s_[at_];
      if (c == '<') fail("a bare <");
      if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') fail("a control character");
      if (c != '&') {
        r += c;
        ++at_;
        continue;
      }
      const auto semicolon = s_.find(';', at_);
      const auto found =
          semicolon == std::string_view::npos ? known.end() : known.find(s_.substr(at_ + 1, semicolon - at_ - 1));
      if (found == known.end()) return fail("an unknown reference"), r;
      r += found->second;
      at_ = semicolon + 1;
    }
    return r;
  }
  Element element() {
    Element e;
    space();
    if (!next("<")) return fail("no element"), e;
    e.name = name();
    for (space(); at_ < s_.size() && s_[at_] != '>' && s_[at_] != '/'; space()) {
      const std::string key = name();
      if (!next("=\"")) return fail("an attribute without a value"), e;
      if (!e.attributes.emplace(key, characters('"')).second) fail("the attribute " + key + " twice");
      if (!next("\"")) fail("an open attribute");
    }
    if (next("/>")) return e;
    if (!next(">")) fail("an open tag");
    while (fault.empty()) {
      e.text += characters('<');
      if (next("</")) {
        if (const std::string closed = name(); closed != e.name) fail(e.name + " closed by " + closed);
        if (!next(">")) fail("an open end tag");
        return e;
      }
      if (at_ >= s_.size()) fail("the end inside of " + e.name);
      if (fault.empty()) e.children.push_back(element());
    }
    return e;
  }

  std::string_view s_;
  std::size_t at_ = 0;
};

/// Calls f for an element and all below it.
template <class F>
void each(const Element& e, const F& f) {
  f(e);
  for (const auto& child : e.children) each(child, f);
}

}  // namespace xml
