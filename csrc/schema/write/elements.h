// Objects whose members are elements around their values: how models write the arguments of a tool call.
//
// In: marks as regexes, what a key and a string cannot hold. Out: a layout for JsonProductions; the members
// of the outermost object are `before KEY middle after VALUE close`, with `between` and blanks between them.
// A string's value is the text itself, any other value is JSON. In a nested layout the objects and arrays
// inside are elements as well, and an item is `item after VALUE item_close`. Calls of Python, f(a="x", b=1),
// are such members, too: their strings are quoted. Cost: none; see elements.cc.
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
  Mark item{}, item_close{};  // nested layouts
  std::array<Mark, kWritten> after{};
  Mark blank{};    // between elements, and around values that are JSON
  Mark between{};  // from the second element on, in front of it
};

struct ElementText {
  std::string middle, close;           // the texts that end keys and strings
  std::vector<std::string> key_never;  // what no key contains
  const Spelling* keys = &kUtf8;
  bool newlines = false;      // one in front of a string and one behind it are no part of it
  bool quoted = false;        // strings are values like any other
  std::string key_pattern{};  // what a key has to match (ECMA, searched); empty: nothing
  bool nested = false;        // objects and arrays inside are elements, too
  bool named_end = false;     // behind `close` the key stands once more, and `middle`
  bool bare = false;          // nested: blanks stand between elements, and nowhere else
};

struct ElementLayout {
  ElementMarks<RegexId> marks;
  ElementText text;
};

}  // namespace structgen
