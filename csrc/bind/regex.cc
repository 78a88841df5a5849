// The names that the core knows (formats and keywords), and test hooks: patterns, formats and number
// conditions as languages of their own.
//
// In: text. Out: bool. Cost: a fresh arena per language; meant for tests and for the `check` command.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "base/error.h"
#include "bind/grammar.h"
#include "bind/released.h"
#include "numbers/number.h"
#include "regex/regex.h"
#include "regex/syntax.h"
#include "schema/read/dialect.h"
#include "strings/format.h"
#include "strings/json_spelling.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace structgen;

namespace {

// A language with an arena of its own, so that tests do not influence each other.
struct Language {
  explicit Language(const Spelling& spelling = kUtf8) : arena(spelling) {}
  RegexArena arena;
  RegexId root = RegexArena::empty();
  bool matches(const nb::bytes& text) {
    return released([&] { return arena.matches(root, {text.c_str(), text.size()}); });
  }
  bool is_empty() {
    return released([&] { return arena.is_empty(root); });
  }
  uint32_t size() const { return arena.size(); }
};

}  // namespace

void bind_regex(nb::module_& m) {
  m.def(
      "format_names",
      [] {
        std::vector<std::string> names;
        for (const FormatInfo& f : all_formats()) names.emplace_back(f.name);
        return names;
      },
      "The formats of JSON Schema that constrain strings; every other name is an annotation.");
  m.def(
      "keywords",
      [] {
        std::vector<std::tuple<std::string, std::string, bool, std::string>> rows;
        for (const WordInfo& w : all_words())
          rows.emplace_back(w.text, name_of(w.about), asserts(w), schemas_in(w.form));
        return rows;
      },
      "The keywords of JSON Schema in any draft: (name, about, asserts, schemas).\n\n"
      "`about` is the kind of values it says something of: object, array, string, number or any.\n"
      "`asserts` is whether a value can be invalid because of it; an annotation only tells.\n"
      "`schemas` is where schemas stand in its value: 'schema' (it is one), 'list', 'map' (an object of\n"
      "schemas), 'mixed' (of schemas and lists of names), 'either' (one or a list), '' (nowhere).");
  nb::class_<Language>(m, "Language", "A regular language over bytes; for tests.")
      .def_static(
          "pattern",
          [](std::string_view text, bool python, bool json, bool full) {
            auto l = std::make_unique<Language>(json ? kJson : kUtf8);
            released([&] {
              const Pattern p = parse_pattern(text, python ? Flavor::kPython : Flavor::kEcma);
              const Match how = full ? Match::kFull : Match::kSearch;
              l->root = lower(l->arena, p, how, l->arena.spelling());
            });
            return l;
          },
          "text"_a, "python"_a = false, "json"_a = false, "full"_a = false)
      .def_static(
          "format",
          [](std::string_view name) {
            const FormatInfo* f = find_format(name);
            if (!f) throw Error(ErrorKind::kValue, "unknown format");
            auto l = std::make_unique<Language>(kJson);
            l->root = lower(l->arena, *f, kJson);
            return l;
          },
          "name"_a)
      .def_static(
          "number",
          [](std::string_view condition, std::string_view argument, std::string_view numbers) {
            auto l = std::make_unique<Language>();
            const auto value = [&] { return Decimal::parse(argument); };
            NumberLanguage n(l->arena, number_spelling(numbers),
                             condition == "multipleOf" && NumberLanguage::is_hard(value()),
                             NumberLanguage::kUnlimited);
            if (condition == "any")
              l->root = n.any();
            else if (condition == "integer")
              l->root = n.integers();
            else if (condition == "minimum")
              l->root = n.at_least(value(), false);
            else if (condition == "exclusiveMinimum")
              l->root = n.at_least(value(), true);
            else if (condition == "maximum")
              l->root = n.at_most(value(), false);
            else if (condition == "exclusiveMaximum")
              l->root = n.at_most(value(), true);
            else if (condition == "multipleOf")
              l->root = n.multiple_of(value());
            else if (condition == "const")
              l->root = n.equal_to(value());
            else
              throw Error(ErrorKind::kValue, "unknown condition");
            return l;
          },
          "condition"_a, "argument"_a = "0", "numbers"_a = "any")
      .def("matches", &Language::matches, "text"_a, nb::lock_self())
      .def("is_empty", &Language::is_empty, nb::lock_self())
      .def("__len__", &Language::size, nb::lock_self());
}
