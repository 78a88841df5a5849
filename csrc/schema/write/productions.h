// Formulas as productions: how a value that satisfies a formula is written.
//
// In: a schema with its documents, and options. Out: the alternatives of a rule, when the parser asks
// for them (parse/productions.h). Cost: an expansion is a few steps of the solver. Nothing is expanded
// before a text reaches it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/flat_map.h"
#include "parse/productions.h"
#include "schema/decide/object.h"
#include "schema/decide/solve.h"
#include "schema/lower/lower.h"
#include "schema/values/numbers.h"
#include "schema/values/texts.h"
#include "schema/write/elements.h"

namespace structgen {

// At most this many branches of one object are kept apart because they order keys in different ways.
constexpr uint32_t kOrderBranches = 16;

// The layout of JSON: what may stand between its lexemes, and which texts no string may contain.
struct JsonLayout {
  enum Mode : uint8_t {
    // Every gap is at most kMostBlanks characters of " \n\r\t".
    kFlexible,
    kCompact,   // nothing in a gap
    kOneBlank,  // at most one blank after "," and ":", nothing elsewhere
    kSpaced,    // one blank after "," and ":", nothing elsewhere
    // Each member or item stands on a line of its own, indented by two spaces a level. ": " stands behind
    // keys. An empty array or object is [] or {}.
    kPretty,
    kPattern,  // `pattern` in every gap
  } mode = kFlexible;
  std::string pattern;
  // Texts that no string and no key contains in its written form.
  std::vector<std::string> excludes;
  // True if the constants are written as in Python: None, True and False. Strings then have the spelling
  // kPlainJson.
  bool python = false;
  // Says how the outermost object is written as elements; null if it is written as JSON.
  std::shared_ptr<const ElementLayout> elements;
};

// The productions of one schema. Callers hold the lock of its world.
class JsonProductions : public Productions {
 public:
  // Throws kUnsatisfiableSchema if no value satisfies the schema, and kSchemaTooComplex if that takes too
  // much work to tell.
  JsonProductions(RegexArena& regexes, std::unique_ptr<SchemaSet> schemas, const JsonLayout& layout,
                  PropertyOrder order, NumberSpelling numbers);
  // The functions below that are overridden are described in parse/productions.h.
  RuleId root() const { return root_; }
  void expand(RuleId rule, const Reading& reading, Alternatives& out) override;
  GrammarTraits traits() const override;
  RuleTraits traits_of(RuleId rule) const override;
  bool compared_with(RuleId reader, std::size_t most, std::vector<std::string>& out) override;
  bool narrow(RuleId rule, const Choice& choice, RuleId& out, bool& any) override;
  bool values(RuleId rule, uint32_t most, std::vector<std::string>& out) override;
  void start_search() override { solver_.refill(); }
  void expand_shortest(RuleId rule, const Reading& reading, Alternatives& out) override;
  bool expand_shared(RuleId rule, Alternatives& out) override;
  bool bound(RuleId rule, Bound& out) override;
  uint64_t omitted() const override { return solver_.omitted(); }
  const SchemaSet& schemas() const { return *schemas_; }
  RuleId lenient(RuleId start) override;
  std::size_t most_keys() const override { return solver_.objects().most_written(); }
  RegexId choices(RuleId rule) override;
  std::size_t byte_size() const override {
    return sizeof(JsonProductions) + schemas_->byte_size() + formulas_.byte_size() + solver_.byte_size() +
           rules_.byte_size() + rule_index_.byte_size() + symbols_.byte_size();
  }

 private:
  // The kinds of rules, each with its subject and with what was just read. "Of an object" means that the
  // subject is a state of an object; "of an array", a formula of arrays; "of a value", a formula of any
  // value. A reader is told the captured text or the label. Readers stand behind kNamed, because call()
  // compares kinds with it.
  enum RuleKind : uint32_t {
    kValue,       // of a value
    kArrayFirst,  // of an array
    kArrayNext,
    kObjectFirst,  // of an object
    kObjectNext,
    kKeys,           // of an object: after the opening quote of a key
    kArguments,      // of a value: an object of elements
    kFirstMembers,   // of an object: the elements
    kMembers,        // of an object: the elements that are left, one being written
    kNamedElement,   // of an object and a name: after the key of the element
    kElement,        // of a value: with the mark behind it, which may name the key
    kItemElement,    // of a value: an item with its marks
    kFirstItems,     // of an array: the items as elements
    kItems,          // of an array: the items that are left, as elements
    kChosen,         // of an object and a name: after the name
    kFreeRepeating,  // of an object and a class: after a free key, which may repeat an earlier one
    kNamed,          // reader, of an object: a known name was written
    kFree,           // reader, of an object and a class: a free key was written
    kItem,           // reader, of an array: an item was written
    kRead,           // reader, of an object and a key: the value of the key was written
    kFreeElement,    // reader, of an object and a class: the key of an element was written
    kListedElement,  // reader, of an object: the known key of an element was written
  };
  // How a rule of an array treats uniqueItems. kAsAsked: the rule's formula has the condition. kAllowed: the
  // grammar lets items repeat, and a table beside the states refuses repeated items (engine/distinct.h).
  // kAmongNumbers: as kAllowed, but an earlier item was a number; further numbers have the lexemes of numbers
  // with a condition (numbers/number.h).
  enum Repeats : uint32_t { kAsAsked, kAllowed, kAmongNumbers };
  // A rule. Equal rules have one number, so that equal stacks of the parser are equal.
  struct Rule {
    Rule(RuleKind k, ValueId value, NameId key = {}) : kind(k), a(value.v), b(key.v) {}
    Rule(RuleKind k, TypedId array, Repeats repeats = kAsAsked) : kind(k), a(array.v), b(repeats) {}
    Rule(RuleKind k, ObjectId object) : kind(k), a(object.v) {}
    Rule(RuleKind k, ObjectId object, PlanNameId name) : kind(k), a(object.v), b(name.v) {}
    Rule(RuleKind k, ObjectId object, KeyClassId cls) : kind(k), a(object.v), b(cls.v) {}
    Rule(RuleKind k, ObjectId object, NameId key) : kind(k), a(object.v), b(key.v) {}
    ValueId value() const { return ValueId{a}; }
    NameId key() const { return NameId{b}; }
    TypedId array() const { return TypedId{a}; }
    ObjectId object() const { return ObjectId{a}; }
    PlanNameId name() const { return PlanNameId{b}; }
    KeyClassId cls() const { return KeyClassId{b}; }
    RuleKind kind;
    // The number of the subject: an object, an array, a value or a key. The functions above return it as its
    // type.
    uint32_t a, b = 0;
    // The levels of indentation, in pretty layout; 0 in all others.
    uint32_t depth = 0;
    // How many JSON strings the text of the rule stands in, one inside of the other.
    uint32_t inside = 0;
    // True if items of lasting arrays, and lasting keys (Unique::lasting), may repeat; see
    // Productions::lenient.
    bool lenient = false;
    friend bool operator==(const Rule&, const Rule&) = default;
  };
  // Returns f(). An error of f() that names no schema gets the innermost schema that was being processed.
  template <class F>
  auto located(F&& f);
  // Returns the number of the rule `r` at this depth. It stands in as many JSON strings as the rule that is
  // being expanded.
  RuleId rule(Rule r, uint32_t depth);
  // Returns a symbol for the rule. If the rule is a reader, the symbol is a Symbol::reader, which is told the
  // captured text or the label.
  Symbol call(const Rule& r, uint32_t depth = 0) {
    return r.kind >= kNamed ? Symbol::reader(rule(r, depth)) : Symbol::rule(rule(r, depth));
  }
  template <class F>
  void at_level(const Rule& r, const Reading& reading, Alternatives& out, F&& f);
  Symbol content(ValueId v);
  void read_gaps();
  void expand_value(const Rule& r, Alternatives& out);
  void add_arrays(const Rule& r, Alternatives& out);
  void add_objects(const Rule& r, Alternatives& out);
  void add_brackets(std::string_view brackets, const Rule& inside, uint32_t depth, bool empty, bool more,
                    Alternatives& out);
  void expand_shortest_rule(RuleId rule, const Reading& reading, Alternatives& out);
  void expand_array(const Rule& r, Alternatives& out, bool nearest);
  void add_item(const Rule& r, ValueId value, Symbol rest, bool capture, Alternatives& out);
  void expand_lenient(const Rule& r, Alternatives& out);
  TypedId restricted(ValueId v, Kind kind);
  bool leads_on(TypedId p);
  void expand_object(const Rule& r, Alternatives& out);
  bool may_repeat(const Rule& r, RegexId language);
  void add_keys(const Rule& r, const Offers& offers, Alternatives& out);
  void expand_item(const Rule& r, const Reading& reading, Alternatives& out);
  void expand_rule(RuleId rule, const Reading& reading, Alternatives& out, bool nearest);
  void expand_member(const Rule& r, std::string_view key, const std::vector<Objects::Step>& steps,
                     Alternatives& out, bool nearest);
  void expand_read(const Rule& r, const Reading& reading, Alternatives& out);
  void expand_key(const Rule& r, const Reading& reading, Alternatives& out, bool nearest);
  // Returns the steps behind the key just read, and sets `key` if its text is known. Returns nothing if the
  // steps depend on the text and a mask does not know it.
  std::optional<std::vector<Objects::Step>> read_key(const Rule& r, const Reading& reading, std::string& key);
  std::vector<Objects::Step> nearest_steps(const std::vector<Objects::Step>& steps, bool nearest);
  // Returns a lower bound of the bytes of a member without its value.
  uint64_t shown_bytes(const Rule& r);
  uint64_t member_bytes(const Plan& plan, PlanNameId name, uint32_t depth);
  // to_json() replaces the words for null, false and true of the layout (`None`) by those of JSON (`null`);
  // from_json() does the opposite.
  std::string to_json(std::string_view written) const { return renamed(written, 1, 0); }
  std::string from_json(std::string_view json) const { return renamed(json, 0, 1); }
  std::string renamed(std::string_view text, std::size_t from, std::size_t to) const;
  void refuse_unwritten();
  // Returns those spellings in `body` that contain none of JsonLayout::excludes.
  RegexId clean(RegexId body);
  RegexId spelled(const Plan& plan, PlanNameId name);
  // Returns the names with some spelling that contains a text of JsonLayout::excludes.
  Bits unclean(const Plan& plan, PlanId id);
  ValueId arguments(ValueId root, bool keys = true, bool values = true);
  [[noreturn]] void unwritable(ValueId root);
  bool may_end(const Rule& r);
  void add_elements(const Rule& r, const Offers& offers, Alternatives& out);
  void add_members(const std::vector<Objects::Step>& steps, std::string_view key, bool nearest,
                   Alternatives& out);
  void add_inside(RegexId begin, Symbol inside, bool closes, bool more, RegexId end, Alternatives& out);
  void add_object(TypedId objects, RegexId begin, RegexId end, Alternatives& out);
  void add_array(TypedId arrays, RegexId begin, RegexId end, Alternatives& out);
  void expand_items(const Rule& r, Alternatives& out);
  RegexId behind(const Rule& r, Written kind);
  void expand_element(const Rule& r, Alternatives& out);
  std::string key_of(std::string_view read) const;
  void for_each_object(TypedId p, uint32_t& more, const std::function<void(TypedId)>& f);
  // Each returns a terminal: a bracket, comma or colon with the gaps around it.
  Symbol open(char bracket);
  Symbol close(char bracket, uint32_t depth, bool nothing_inside);
  Symbol comma(uint32_t depth, bool before_key);
  Symbol colon();
  static Symbol poison() { return Symbol::terminal(RegexArena::poison()); }
  Symbol text(std::string_view s) { return Symbol::terminal(regexes_.literal(s)); }
  std::string indent(uint32_t depth) const { return "\n" + std::string(2 * depth, ' '); }

  RegexArena& regexes_;
  std::unique_ptr<SchemaSet> schemas_;
  JsonLayout layout_;
  FormulaSpace formulas_;
  Lowering lowering_;
  Texts texts_;
  Numbers numbers_;
  Solver solver_;
  RegexId gap_;
  // The blanks that may stand behind a comma and a colon.
  RegexId after_;
  // All texts that contain none of JsonLayout::excludes; empty() if nothing is excluded.
  RegexId clean_ = RegexArena::empty();
  FlatMap<uint32_t, RegexId> cleaned_;
  // By plan: the index of its names in unclean_names_.
  FlatMap<uint32_t, uint32_t> unclean_;
  std::vector<Bits> unclean_names_;
  // Turns formulas of strings, and of keys, into regexes as elements write them.
  std::unique_ptr<Texts> strings_, keys_;
  // The formula of the strings that the layout can write as elements.
  TypedId free_;
  StableVector<Rule> rules_;
  InternTable rule_index_;
  uint32_t inside_ = 0;
  // True if the rule that is being expanded is lenient.
  bool lenient_ = false;
  FlatMap<uint32_t, Symbol> symbols_;
  RuleId root_;
};

}  // namespace structgen
