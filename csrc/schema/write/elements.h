// Objects whose members are written as elements: the form in which some models write the arguments of a
// call.
//
//     <parameter=city>Porto</parameter><parameter=count>3</parameter>      city = "Porto", count = 3
//
// In: marks as regexes, and what keys and strings cannot contain. Out: a layout for JsonProductions. A
// member of the outermost object is `before KEY middle after VALUE close`; `between` and blanks stand
// between members. In the example `before` is `<parameter=`, `middle` is `>`, and `close` is
// `</parameter>`. The value of a string is its text; any other value is JSON. In a nested layout inner
// objects and arrays are elements, too, and an item is `item after VALUE item_close`. Between a value and
// its `close` stands `ends`. Both `after` and `ends` depend on the kind of the value: Gemma 4 writes
// {city:<|"|>Porto<|"|>,days:[1,2]}, with the mark <|"|> around texts only. Calls in
// Python, f(a="x", b=1), have this form as well, with quoted strings. Cost: none here; see elements.cc.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/ids.h"
#include "regex/spelling.h"

namespace structgen {

// The kinds of values that a layout may tell apart by the mark behind the key, such as `type="number">`.
enum class Written : uint8_t { kText, kNull, kBoolean, kNumber, kArray, kObject };
constexpr std::size_t kWritten = 6;

// The marks of a layout: the texts around keys, values and items. `Mark` is a RegexId, or the number of a
// node of a grammar.
template <class Mark>
struct ElementMarks {
  Mark before{}, middle{}, close{};
  // The marks in front of an item and behind it. Only a nested layout has them.
  Mark item{}, item_close{};
  std::array<Mark, kWritten> after{};
  // ends[kind] stands behind a value of this kind, in front of the mark that closes its member or item.
  std::array<Mark, kWritten> ends{};
  // The blanks that may stand between elements, and around values that are JSON.
  Mark blank{};
  // Separates members, and items.
  Mark between{};

  template <class F>
  void for_each(F&& f) {
    for (Mark* m : {&before, &middle, &close, &item, &item_close, &blank, &between}) f(*m);
    for (Mark& m : after) f(m);
    for (Mark& m : ends) f(m);
  }
};

struct ElementText {
  // What ends a key (`middle`) and a string (`close`).
  std::string middle, close;
  // Texts that may not occur in a key.
  std::vector<std::string> key_never;
  const Spelling* keys = &kUtf8;
  // True if a reader removes one newline in front of a string and one behind it.
  bool newlines = false;
  // True if strings are written as JSON, like other values.
  bool quoted = false;
  // An ECMA regex that must match somewhere in every key; empty if any key is allowed.
  std::string key_pattern{};
  // True if arrays and objects inside of the outermost object are written as elements, too, and not as JSON.
  bool nested = false;
  // True if the key is repeated behind `close`, followed by `middle`.
  bool named_end = false;
  // For a nested layout: true if blanks may stand between elements and nowhere else.
  bool bare = false;
};

// A layout whose marks have been lowered to regexes.
struct ElementLayout {
  ElementMarks<RegexId> marks;
  ElementText text;
};

}  // namespace structgen
