// Objects whose members are elements around their values: how models write the arguments of a tool call.
//
// In: marks as regexes, what a key and a string cannot hold. Out: a layout for JsonProductions; the members
// of the outermost object are `before KEY middle after VALUE close`, blanks between them. A string's value is
// the text itself, any other value is JSON. Cost: none; see elements.cc.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/ids.h"
#include "regex/spelling.h"

namespace structgen {

// The kinds of values that a layout may tell apart by what stands after the key.
enum class Written : uint8_t { kText, kNull, kBoolean, kNumber, kArray, kObject };
constexpr std::size_t kWritten = 6;

template <class Mark>  // a RegexId, or a node of a grammar
struct ElementMarks {
  Mark before{}, middle{}, close{};
  std::array<Mark, kWritten> after{};
  Mark blank{};  // between elements, and around values that are JSON
};

struct ElementText {
  std::string middle, close;           // the marks' texts, which end keys and values
  std::vector<std::string> key_never;  // what no key contains
  const Spelling* keys = &kUtf8;
  bool newlines = false;  // one in front of a string and one behind it are no part of it
};

struct ElementLayout {
  ElementMarks<RegexId> marks;
  ElementText text;
};

}  // namespace structgen
