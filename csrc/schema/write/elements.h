// Objects whose members are written as elements: the form in which some models write the arguments of a
// call.
//
//     <parameter=city>Porto</parameter><parameter=count>3</parameter>      city = "Porto", count = 3
//
// In: marks as regexes, and what keys and strings cannot contain. Out: a layout for JsonProductions. A
// member of the outermost object is `before KEY middle after VALUE close`; `between` and blanks stand
// between members. In the example `before` is `<parameter=`, `middle` is `>`, and `close` is
// `</parameter>`. The value of a string is its text; any other value is JSON. In a nested layout inner
// objects and arrays are elements, too, and an item is `item after VALUE item_close`. Behind a value stands
// `ends`, which like `after` depends on the kind: Gemma 4 writes {city:<|"|>Porto<|"|>,days:[1,2]}. Calls in
// Python, f(a="x", b=1), have this form as well, with quoted strings. Cost: none here; see elements.cc.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/ids.h"
#include "regex/spelling.h"

namespace structgen {

// The kinds of values that a layout may distinguish by the mark behind the key, such as
// `type="number">`.
enum class Written : uint8_t { kText, kNull, kBoolean, kNumber, kArray, kObject };
constexpr std::size_t kWritten = 6;

// The marks of a layout. `Mark` is a RegexId, or a node of a grammar.
template <class Mark>
struct ElementMarks {
  Mark before{}, middle{}, close{};
  // The marks around an item. Nested layouts alone have them.
  Mark item{}, item_close{};
  std::array<Mark, kWritten> after{};
  // The mark between a value and the mark that closes its member or item.
  std::array<Mark, kWritten> ends{};
  // Blanks between elements, and around values that are JSON.
  Mark blank{};
  // The mark in front of every member and item but the first.
  Mark between{};

  // Calls f(mark) for all marks. The order does not depend on the type of mark.
  template <class F>
  void for_each(F&& f) {
    for (Mark* m : {&before, &middle, &close, &item, &item_close, &blank, &between}) f(*m);
    for (Mark& m : after) f(m);
    for (Mark& m : ends) f(m);
  }
};

// The form of keys and strings in a layout.
struct ElementText {
  // The texts that end a key and a string.
  std::string middle, close;
  // Texts that no key contains.
  std::vector<std::string> key_never;
  const Spelling* keys = &kUtf8;
  // True: a newline in front of a string, and a newline behind it, are not part of the string.
  bool newlines = false;
  // True: strings are written as JSON, like any other value.
  bool quoted = false;
  // A regex that every key must match (ECMA, searched); empty: none.
  std::string key_pattern{};
  // True: objects and arrays inside of the object are elements, too.
  bool nested = false;
  // True: behind `close` the key stands once more, followed by `middle`.
  bool named_end = false;
  // True, in a nested layout: blanks stand between elements and nowhere else.
  bool bare = false;
};

// A layout whose marks have been lowered to regexes.
struct ElementLayout {
  ElementMarks<RegexId> marks;
  ElementText text;
};

}  // namespace structgen
