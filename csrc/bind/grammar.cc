// GrammarBuilder: how the front ends in Python write a grammar, one node per call.
//
// In: numbers of nodes, and texts. Out: numbers of nodes (grammar/source.h says what each kind means).
// Cost: one node per call. Patterns are parsed here, so that the caller can say where in its text a
// broken one stands.
//
// A call may come from any thread, and a number may be wrong: each number is checked before it is used,
// because lowering trusts them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "bind/grammar.h"
#include "bind/released.h"
#include "grammar/lower.h"
#include "regex/regex.h"
#include "regex/syntax.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace structgen;

namespace {

// Adds a node. Throws if a node, rule or lexeme that it names does not exist.
uint32_t add(BoundGrammar& self, GrammarNode node) {
  if (const char* why = fault(self.source, node, self.source.nodes.size()))
    throw Error(ErrorKind::kValue, why);
  return self.source.add(std::move(node));
}

// Throws if one of the nodes in `kids` does not exist.
template <class Kids>
void check(const BoundGrammar& self, const Kids& kids) {
  for (uint32_t k : kids)
    if (k >= self.source.nodes.size()) throw Error(ErrorKind::kValue, "node out of range");
}

// Binds a method. In free-threaded Python a lock lets only one thread at a time run it.
struct Locked {
  nb::class_<BoundGrammar>& bound;
  template <class... Parts>
  Locked& def(Parts&&... parts) {
    bound.def(std::forward<Parts>(parts)..., nb::lock_self());
    return *this;
  }
};

}  // namespace

void bind_grammar(nb::module_& m) {
  nb::class_<BoundGrammar> builder(m, "GrammarBuilder", "The nodes and rules of a grammar; for front ends.");
  builder.def(nb::init<>());
  Locked locked{builder};
  locked
      .def(
          "warn",
          [](BoundGrammar& self, std::string text) { self.source.warnings.push_back(std::move(text)); },
          "text"_a, "Something that the grammar's warnings are to say.")
      .def("never", [](BoundGrammar& self) { return add(self, {.op = NodeOp::kNever}); })
      .def(
          "literal",
          [](BoundGrammar& self, const nb::bytes& text) {
            return add(self, {.op = text.size() ? NodeOp::kBytes : NodeOp::kEmpty,
                              .text = {text.c_str(), text.size()}});
          },
          "text"_a)
      .def(
          "byte",
          [](BoundGrammar& self, const nb::bytes& any_of) {
            return add(self, {.op = NodeOp::kByte, .text = {any_of.c_str(), any_of.size()}});
          },
          "any_of"_a)
      .def(
          "chars",
          [](BoundGrammar& self, const std::vector<std::pair<uint32_t, uint32_t>>& ranges, bool negated) {
            std::vector<CodepointRange> all;
            for (const auto& [lo, hi] : ranges) all.push_back({lo, std::min(hi, kMaxCodepoint)});
            CodepointSet set(std::move(all));
            return add(self, {.op = NodeOp::kChars, .ranges = (negated ? set.complement() : set).ranges()});
          },
          "ranges"_a, "negated"_a = false)
      .def(
          "pattern",
          [](BoundGrammar& self, std::string_view text, bool ascii) {
            // Lowering parses the pattern again. It is parsed here to raise its error at once.
            released([&] { parse_pattern(text, Flavor::kPython, ascii); });
            return add(self, {.op = NodeOp::kPattern, .text = (ascii ? "(?a)" : "") + std::string(text)});
          },
          "text"_a, "ascii"_a = false);
  for (const auto& [name, op] : {std::pair{"sequence", NodeOp::kSequence},
                                 std::pair{"choice", NodeOp::kChoice}, std::pair{"both", NodeOp::kBoth}})
    locked.def(
        name,
        [op](BoundGrammar& self, std::vector<uint32_t> kids) {
          return add(self, {.op = op, .kids = std::move(kids)});
        },
        "kids"_a);
  for (const auto& [name, op] : {std::pair{"negate", NodeOp::kNot}, std::pair{"shortest", NodeOp::kShortest}})
    locked.def(
        name, [op](BoundGrammar& self, uint32_t kid) { return add(self, {.op = op, .kids = {kid}}); },
        "kid"_a);
  locked
      .def(
          "repeat",
          [](BoundGrammar& self, uint32_t kid, uint32_t least, int64_t most) {
            const auto end = static_cast<uint32_t>(std::min<int64_t>(most, kUnbounded - 1));
            return add(self,
                       {.op = NodeOp::kRepeat, .a = least, .b = most < 0 ? kUnbounded : end, .kids = {kid}});
          },
          "kid"_a, "least"_a, "most"_a = -1)
      .def(
          "tokens",
          [](BoundGrammar& self, std::vector<int32_t> ids) {
            return add(self, {.op = NodeOp::kTokens, .ids = std::move(ids)});
          },
          "ids"_a)
      .def(
          "edge",
          [](BoundGrammar& self) {
            self.source.edged = true;
            return add(self, {.op = NodeOp::kBytes, .text = {static_cast<char>(kEdge)}});
          },
          "Where a token ends and another begins; the text in between needs a limit.")
      .def(
          "substring",
          [](BoundGrammar& self, std::vector<std::string> units, uint32_t least) {
            return add(self, {.op = NodeOp::kSubstring, .a = least, .units = std::move(units)});
          },
          "units"_a, "least"_a)
      .def(
          "rule",
          [](BoundGrammar& self, std::string name) {
            self.source.rules.push_back({std::move(name), 0, false});
            return static_cast<uint32_t>(self.source.rules.size() - 1);
          },
          "name"_a, "A new rule, to be defined; its number.")
      .def(
          "define",
          [](BoundGrammar& self, uint32_t rule, uint32_t node) {
            if (rule >= self.source.rules.size()) throw Error(ErrorKind::kValue, "rule out of range");
            check(self, std::array{node});
            self.source.rules[rule].node = node;
            self.source.rules[rule].defined = true;
          },
          "rule"_a, "node"_a)
      .def(
          "call",
          [](BoundGrammar& self, uint32_t rule) { return add(self, {.op = NodeOp::kRule, .a = rule}); },
          "rule"_a)
      .def(
          "lexeme",
          [](BoundGrammar& self, std::string name, uint32_t node, int32_t priority, bool literal, bool alone,
             bool lazy, std::optional<uint32_t> whole, bool inside) {
            check(self, std::array{node, whole.value_or(node)});
            self.source.lexemes.push_back({std::move(name), node, priority, literal, alone, lazy,
                                           whole ? int64_t{*whole} : -1, inside});
            return add(self,
                       {.op = NodeOp::kLexeme, .a = static_cast<uint32_t>(self.source.lexemes.size() - 1)});
          },
          "name"_a, "node"_a, "priority"_a = 0, "literal"_a = false, "alone"_a = false, "lazy"_a = false,
          "whole"_a = nb::none(), "inside"_a = false,
          "`inside`: as the inside of a JSON string holds its texts.")
      .def(
          "gap",
          [](BoundGrammar& self, const std::vector<uint32_t>& lexemes) {
            check(self, lexemes);
            std::vector<uint32_t> numbers;
            for (uint32_t l : lexemes) {
              if (self.source.nodes[l].op != NodeOp::kLexeme)
                throw Error(ErrorKind::kValue, "a gap is made of lexemes");
              numbers.push_back(self.source.nodes[l].a);
            }
            self.source.gaps.push_back(std::move(numbers));
            return add(self, {.op = NodeOp::kGap, .a = static_cast<uint32_t>(self.source.gaps.size() - 1)});
          },
          "lexemes"_a, "What may stand between lexemes: any number of these.")
      .def(
          "capture",
          [](BoundGrammar& self, std::string name, uint32_t kid) {
            return add(self, {.op = NodeOp::kCapture, .a = self.source.capture(name), .kids = {kid}});
          },
          "name"_a, "kid"_a)
      .def(
          "split",
          [](BoundGrammar& self, std::string name, uint32_t first, std::string end_name, uint32_t end) {
            return add(self, {.op = NodeOp::kSplit,
                              .a = self.source.capture(name),
                              .b = self.source.capture(end_name),
                              .kids = {first, end}});
          },
          "name"_a, "first"_a, "end_name"_a, "end"_a,
          "Two nodes one behind the other, both captured; where the text can be cut in several ways, the "
          "second "
          "is as long as it can be.")
      .def(
          "limit",
          [](BoundGrammar& self, uint32_t kid, uint32_t tokens, std::string name, int64_t place) {
            return add(
                self,
                {.op = NodeOp::kLimit, .a = tokens, .text = std::move(name), .kids = {kid}, .place = place});
          },
          "kid"_a, "tokens"_a, "name"_a, "place"_a = -1,
          "The texts of a node in which at most so many tokens begin. Errors tell the name and the place, a "
          "byte offset.")
      .def(
          "json",
          [](BoundGrammar& self, std::string schema,
             std::vector<std::pair<std::string, std::string>> registry, const std::string& whitespace,
             bool any_order, const std::string& numbers, bool plain_strings, bool enforce_formats, int draft,
             std::vector<std::string> excludes, bool python) {
            JsonOptions o =
                json_options(whitespace, any_order, numbers, plain_strings, enforce_formats, draft);
            o.layout.excludes = std::move(excludes);
            o.layout.python = python;
            self.schemas.push_back({std::move(schema), std::move(registry), std::move(o), {}, {}, {}});
            return add(self, {.op = NodeOp::kPart, .a = self.source.parts++});
          },
          "schema"_a, "registry"_a, "whitespace"_a, "any_order"_a, "numbers"_a, "plain_strings"_a,
          "enforce_formats"_a, "draft"_a, "excludes"_a = std::vector<std::string>(), "python"_a = false)
      .def(
          "require",
          [](BoundGrammar& self, uint32_t part, uint32_t condition) {
            if (part >= self.source.nodes.size() || self.source.nodes[part].op != NodeOp::kPart)
              throw Error(ErrorKind::kValue, "not a schema");
            check(self, std::array{condition});
            self.schemas[self.source.nodes[part].a].condition = condition;
            return part;
          },
          "part"_a, "condition"_a, "Leaves those values of a schema whose text matches a regular node.")
      .def(
          "elements",
          [](BoundGrammar& self, uint32_t part, uint32_t before, uint32_t middle,
             const std::vector<uint32_t>& after, const std::vector<uint32_t>& ends, uint32_t close,
             uint32_t item, uint32_t item_close, uint32_t blank, uint32_t between, std::string middle_text,
             std::string close_text, std::vector<std::string> key_never, const std::string& entities,
             bool newlines, bool quoted, std::string key_pattern, bool nested, bool named_end, bool bare) {
            if (part >= self.source.nodes.size() || self.source.nodes[part].op != NodeOp::kPart ||
                after.size() != kWritten || ends.size() != kWritten)
              throw Error(ErrorKind::kValue, "not a schema, or not a mark a kind");
            JsonPart& p = self.schemas[self.source.nodes[part].a];
            ElementMarks<uint32_t> marks{before, middle, close, item, item_close, {}, {}, blank, between};
            // `after` and `ends` have an entry for each kind of value, in the order of `Written`.
            std::ranges::copy(after, marks.after.begin());
            std::ranges::copy(ends, marks.ends.begin());
            marks.for_each([&](uint32_t mark) { check(self, std::array{mark}); });
            p.marks = marks;
            p.text = {std::move(middle_text),
                      std::move(close_text),
                      std::move(key_never),
                      entities.empty()    ? &kUtf8
                      : entities == "&\"" ? &kQuotedEntities
                                          : &kMarkupEntities,
                      newlines,
                      quoted,
                      std::move(key_pattern),
                      nested,
                      named_end,
                      bare};
            return part;
          },
          "part"_a, "before"_a, "middle"_a, "after"_a, "ends"_a, "close"_a, "item"_a, "item_close"_a,
          "blank"_a, "between"_a, "middle_text"_a, "close_text"_a, "key_never"_a, "entities"_a, "newlines"_a,
          "quoted"_a, "key_pattern"_a, "nested"_a, "named_end"_a, "bare"_a,
          "Makes the members of a schema's objects elements: before KEY middle after VALUE ends close. "
          "`after` and `ends` have a node for texts, null, booleans, numbers, arrays and objects each. "
          "`middle_text` and `close_text` "
          "are what ends keys and strings. `entities` has the characters of keys that are written as "
          "entities: "
          "none, &\" or &<>\". For the others see csrc/schema/write/elements.h.")
      .def(
          "is_empty",
          [](const BoundGrammar& self, uint32_t node) {
            check(self, std::array{node});
            return released([&] {
              RegexArena regexes;
              return regexes.is_empty(lower_regular(regexes, self.source, {&node, 1})[0]);
            });
          },
          "node"_a, "Whether no text matches a regular node. Tokens in it match nothing.")
      .def("__len__", [](const BoundGrammar& self) { return self.source.nodes.size(); });
}
