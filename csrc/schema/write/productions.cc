// Productions of JSON; see productions.h.
//
// The problem. The parser asks for the alternatives of a rule: terminals and rules. A grammar that is written
// out in advance would need a rule for each set of keys that an object may still need, and the number of
// these sets is exponential.
//
// The idea. A rule is a formula, or a state of an object, and a place: before the first member, behind a
// member, behind the quote of a key. The alternatives of a rule are computed when a text reaches the rule,
// from the cells of the solver and the offers of the object:
//
//     value(F)          null | true | number | '"' string | '[' first(F) | '{' first(state)
//     keys(state)       the names on offer, as one literal set; its label tells which was read: named(state)
//                       the free keys of each class, captured: free(state, class)
//     named(state)      is told the label:   ':' value(V) next(state behind it)
//
// So an object with a thousand names has one terminal, and the symbols behind a name are computed after the
// name was read. A captured key or item is passed to a reader as a text. A mask that does not know the text
// gets the alternatives that hold for every text, and poison (RegexArena::poison) in place of all others.
//
// A string that holds the JSON text of a V is '"' value(V) '"', with all of value(V) one level further in:
// at_level() escapes the alternatives of a rule once for each string around the rule.
//
// Invariants.
// - Every alternative can be completed: the solver drops cells without a value or a rest.
// - Equal rules have one number, so equal stacks of the parser are equal.
// - The layout decides gaps and words (JSON's or Python's), never values.
//
// Rejected: an alternative for each name. Every step of a parse state costs time for each of its
// alternatives.
#include "schema/write/productions.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/depth.h"
#include "base/error.h"
#include "base/undo.h"
#include "regex/charset.h"
#include "regex/syntax.h"
#include "schema/decide/domain.h"
#include "schema/decide/unique.h"
#include "schema/values/witness.h"
#include "schema/write/diagnosis.h"
#include "strings/json_inside.h"

namespace structgen {

namespace {
// A flexible gap has at most this many blanks; a model that may write any number can go on until its budget
// is used up. It is enough for indentation a dozen levels deep.
constexpr uint32_t kMostBlanks = 32;
// A text may stand in at most this many strings, one inside of the other: a quote inside of five strings
// takes 32 bytes.
constexpr uint32_t kMostInside = 5;
// Inside of a string, this many names of an object or fewer get an alternative each.
constexpr std::size_t kApartInString = 64;
constexpr std::size_t kQuotedBytes = 80;
// How `null`, `false` and `true` are written in JSON and in Python.
constexpr std::pair<Kind, std::array<std::string_view, 2>> kConstants[] = {
    {Kind::kNull, {"null", "None"}}, {Kind::kTrue, {"true", "True"}}, {Kind::kFalse, {"false", "False"}}};
}  // namespace

template <class F>
auto JsonProductions::located(F&& f) {
  try {
    return f();
  } catch (Error& e) {
    locate(e, *schemas_, lowering_);
    throw;
  }
}

// Prepares the gaps and the excluded texts. Then decides whether some value exists, so that a schema without
// a value is refused here and not at the first mask.
JsonProductions::JsonProductions(RegexArena& regexes, std::unique_ptr<SchemaSet> schemas,
                                 const JsonLayout& layout, PropertyOrder order, NumberSpelling numbers)
    : regexes_(regexes),
      schemas_(std::move(schemas)),
      layout_(layout),
      lowering_(*schemas_, formulas_, order),
      texts_(formulas_, regexes_, regexes_.spelling()),
      numbers_(formulas_, regexes_, numbers),
      solver_(lowering_, formulas_, regexes_, texts_, numbers_) {
  read_gaps();
  if (!layout_.excludes.empty()) refuse_unwritten();
  std::vector<std::string> never = layout_.excludes;
  if (layout_.elements && !layout_.elements->text.quoted) never.push_back(layout_.elements->text.close);
  if (!never.empty()) {
    std::vector<RegexId> texts;
    for (const std::string& t : never) texts.push_back(regexes_.literal(t));
    const RegexId some[] = {RegexArena::anything(), regexes_.alt(std::span<const RegexId>(texts)),
                            RegexArena::anything()};
    clean_ = regexes_.negate(regexes_.cat(std::span<const RegexId>(some)));
  }
  const ValueId schema = lowering_.root();
  ValueId root = schema;
  if (layout_.elements) {
    root = arguments(schema);
    strings_ = std::make_unique<Texts>(formulas_, regexes_, kUtf8);
    keys_ = std::make_unique<Texts>(formulas_, regexes_, *layout_.elements->text.keys);
  }
  // A broken reference is the likely reason that there is no value, so its error comes first.
  located([&] {
    const Omissions omissions(solver_.omitted());
    if (solver_.nonempty(root)) return;
    if (omissions.any())
      throw Error(ErrorKind::kSchemaTooComplex,
                  "whether any value satisfies this schema takes too much work to tell");
    if (lowering_.any_broken()) lowering_.raise_broken();
    if (layout_.elements && solver_.nonempty(schema)) unwritable(schema);
    raise_unsatisfiable(*schemas_, lowering_, solver_);
  });
  root_ = rule({layout_.elements ? kArguments : kValue, root}, 0);
}

// Prepares the regexes of the blanks in gaps, behind commas and behind colons.
void JsonProductions::read_gaps() {
  ByteSet blank;
  for (char c : {' ', '\n', '\r', '\t'}) blank.add(static_cast<uint8_t>(c));
  const RegexId blanks = regexes_.bytes(blank);
  gap_ = RegexArena::epsilon();
  if (layout_.mode == JsonLayout::kFlexible) gap_ = regexes_.repeat(blanks, 0, kMostBlanks);
  if (layout_.mode == JsonLayout::kPattern) {
    const std::string shown = "whitespace '" + layout_.pattern.substr(0, kQuotedBytes) + "'";
    try {
      gap_ = lower(regexes_, parse_pattern(layout_.pattern), Match::kFull);
    } catch (const Error& e) {
      throw Error(e.kind(), shown + ": " + e.what()).at(e.offset());
    }
    // Other text would not be JSON.
    if (!regexes_.is_empty(regexes_.minus(gap_, regexes_.star(blanks))))
      throw Error(ErrorKind::kValue,
                  shown +
                      " is none of flexible, compact, one-blank, spaced and pretty, and as a pattern it " +
                      "matches text that is not JSON whitespace");
    if (regexes_.is_empty(gap_)) throw Error(ErrorKind::kValue, shown + ": the pattern matches nothing");
  }
  after_ = gap_;
  if (layout_.mode == JsonLayout::kOneBlank) after_ = regexes_.repeat(regexes_.byte(' '), 0, 1);
  if (layout_.mode == JsonLayout::kSpaced) after_ = regexes_.byte(' ');
}

RuleId JsonProductions::rule(Rule r, uint32_t depth) {
  r.depth = depth;
  r.inside = inside_;
  r.lenient = lenient_;
  const uint64_t place = depth + (uint64_t{inside_} << 32) + (uint64_t{lenient_} << 63);
  return RuleId{rule_index_.number(mix(mix(mix(r.kind, r.a), r.b), place), rules_, r)};
}

RuleId JsonProductions::lenient(RuleId start) {
  if (start != root_ || layout_.elements || layout_.python || !layout_.excludes.empty()) return start;
  lenient_ = true;
  const Undo leave([&] { lenient_ = false; });
  return rule({kValue, rules_[start.v].value()}, 0);
}

RegexId JsonProductions::choices(RuleId id) {
  solver_.refill();
  return rules_[id.v].kind == kArrayFirst ? solver_.unique().listed(rules_[id.v].array())
                                          : RegexArena::empty();
}

void JsonProductions::expand(RuleId id, const Reading& reading, Alternatives& out) {
  solver_.refill();
  located([&] {
    try {
      at_level(rules_[id.v], reading, out, [&](const Reading& told) { expand_rule(id, told, out, false); });
    } catch (Error& e) {
      const Rule r = rules_[id.v];
      if (const auto at = r.kind == kValue ? solver_.schema_of(r.value(), 3) : std::nullopt) e.in_schema(*at);
      throw;
    }
  });
}

// Runs f(), which adds the alternatives of a rule as they stand outside strings, and is told texts without
// escapes. If the rule stands in JSON strings, the alternatives are then escaped, once for each string. In
// one string the terminal `"a"` becomes `\"a\"`, in all spellings that JSON has for this.
template <class F>
void JsonProductions::at_level(const Rule& r, const Reading& reading, Alternatives& out, F&& f) {
  lenient_ = r.lenient;
  const Undo strict([&] { lenient_ = false; });
  if (r.inside == 0) return f(reading);
  if (r.inside > kMostInside)
    throw Error(ErrorKind::kSchemaTooComplex,
                "more than " + std::to_string(kMostInside) + " JSON texts in strings, each in the next");
  Reading told = reading;
  if (told.kind == Reading::kText)
    for (uint32_t i = 0; i < r.inside; ++i) told.text = Json::parse('"' + told.text + '"').text(0);
  const std::size_t first = out.symbols.size();
  {
    inside_ = r.inside;
    const Undo leave([&] { inside_ = 0; });
    f(told);
  }
  for (std::size_t i = first; i < out.symbols.size(); ++i) {
    if (out.symbols[i].kind() != Symbol::kTerminal) continue;
    RegexId text = out.symbols[i].regex();
    if (text == RegexArena::poison()) continue;
    for (uint32_t k = 0; k < r.inside; ++k) text = inside_json(regexes_, text);
    out.symbols[i] = Symbol::terminal(clean_ == RegexArena::empty() ? text : regexes_.both(text, clean_));
  }
}

// Returns a symbol for a string that holds the JSON text of a value, without its opening quote.
Symbol JsonProductions::content(ValueId v) {
  // Excluded texts are removed from each terminal on its own, so none may reach over two terminals. This is
  // certain only of texts that do not occur in JSON outside strings.
  for (const std::string& t : layout_.excludes)
    if (t.find_first_of("\"\\") != std::string::npos ||
        t.find_first_not_of("{}[],: \t\r\n0123456789+-.eEtrufalsn") == std::string::npos)
      content_too_complex();
  ++inside_;
  const Undo leave([&, before = std::exchange(lenient_, false)] {
    --inside_;
    lenient_ = before;
  });
  return call({kValue, v});
}

// Adds the alternatives of a rule. With `nearest` it adds only those that lead to the end with the fewest
// bytes, which suffices for a shortest text.
void JsonProductions::expand_rule(RuleId id, const Reading& reading, Alternatives& out, bool nearest) {
  const Rule r = rules_[id.v];
  switch (r.kind) {
    case kValue: expand_value(r, out); break;
    case kArrayFirst:
    case kArrayNext: expand_array(r, out, nearest); break;
    case kObjectFirst:
    case kObjectNext: expand_object(r, out); break;
    case kKeys: add_keys(r, solver_.objects().offers(r.object()), out); break;
    case kArguments:
      add_object(solver_.restrict(r.value(), Kind::kObject), RegexArena::epsilon(), RegexArena::epsilon(),
                 out);
      break;
    case kFirstMembers:
    case kMembers: add_elements(r, solver_.objects().offers(r.object()), out); break;
    case kElement:
    case kItemElement: expand_element(r, out); break;
    case kFirstItems:
    case kItems: expand_items(r, out); break;
    case kNamedElement:
    case kListedElement:
    case kFreeElement:
    case kChosen:
    case kFreeRepeating:
    case kNamed:
    case kFree: expand_key(r, reading, out, nearest); break;
    case kItem: expand_item(r, reading, out); break;
    case kRead: expand_read(r, reading, out); break;
  }
}

// Adds what may follow a key. Where this depends on a key that a mask does not know, it adds poison.
void JsonProductions::expand_key(const Rule& r, const Reading& reading, Alternatives& out, bool nearest) {
  std::string key;
  const std::optional<std::vector<Objects::Step>> steps = read_key(r, reading, key);
  if (!steps)
    out.add({poison()});
  else if (r.kind == kNamedElement || r.kind == kListedElement || r.kind == kFreeElement)
    add_members(*steps, key, nearest, out);
  else
    expand_member(r, key, *steps, out, nearest);
}

// The text of a key matters if the key is looked up in a list of names, or if the mark behind the value
// repeats it. For a free key it also matters in three cases: an unknown key came before, and this one may
// repeat it; the object must differ from captured values; the class has one key left, and this one may be it.
std::optional<std::vector<Objects::Step>> JsonProductions::read_key(const Rule& r, const Reading& reading,
                                                                    std::string& key) {
  Objects& objects = solver_.objects();
  const ObjectState& s = objects.state(r.object());
  const bool known = reading.kind == Reading::kText;
  if (!known && (r.kind == kListedElement || (r.kind == kFreeElement && layout_.elements->text.named_end)))
    return {};
  if (r.kind == kFreeRepeating) return objects.take_free(r.object(), r.cls(), nullptr, true);
  if (r.kind != kFree && r.kind != kFreeElement) {
    const Plan& plan = objects.plan(s.plan);
    const PlanNameId name = r.kind == kNamed           ? PlanNameId{reading.label}
                            : r.kind == kListedElement ? plan.find(key_of(reading.text))
                                                       : r.name();
    key = plan.texts[name.v];
    return objects.take_name(r.object(), name);
  }
  if (reading.kind == Reading::kFresh) return objects.take_free(r.object(), r.cls(), nullptr, true);
  // This key may repeat an earlier one whose text is not known.
  if (s.unknown_key || (!known && (s.outside.v != 0 || objects.free_keys(r.object(), r.cls()) < 2)))
    return {};
  if (known) key = r.kind == kFree ? Json::parse("\"" + reading.text).text(0) : key_of(reading.text);
  return objects.take_free(r.object(), r.cls(), known ? &key : nullptr);
}

// Adds some of the alternatives; one of them leads to a shortest text. An object gets the fewest members
// behind which it may close. start_search() has set the steps that the whole search may take.
void JsonProductions::expand_shortest(RuleId id, const Reading& reading, Alternatives& out) {
  at_level(rules_[id.v], reading, out, [&](const Reading& told) { expand_shortest_rule(id, told, out); });
}

void JsonProductions::expand_shortest_rule(RuleId id, const Reading& reading, Alternatives& out) {
  const Rule r = rules_[id.v];
  if (r.kind != kKeys && r.kind != kMembers && r.kind != kFirstMembers)
    return expand_rule(id, reading, out, true);
  if (r.kind != kKeys && may_end(r)) return out.add({});
  const auto add = r.kind == kKeys ? &JsonProductions::add_keys : &JsonProductions::add_elements;
  (this->*add)(r, solver_.objects().useful(r.object()), out);
  // A member must follow although none brings the object nearer to its end.
  if (out.ends.empty()) (this->*add)(r, solver_.objects().offers(r.object()), out);
}

// Where keys have an order, most keys of this object may also follow its first key. So the alternatives are
// the first key, and the keys of the object behind it. n such objects then hold n keys together, not n keys
// each.
bool JsonProductions::expand_shared(RuleId id, Alternatives& out) {
  const Rule r = rules_[id.v];
  if (r.kind != kKeys) return false;
  solver_.refill();
  Offers own = solver_.objects().offers(r.object());
  const std::vector<ObjectId> behind = solver_.objects().later(r.object(), own.names);
  if (behind.empty()) return false;
  located([&] {
    at_level(r, {}, out, [&](const Reading&) {
      for (ObjectId s : behind) out.add({call({kKeys, s}, r.depth)});
      add_keys(r, own, out);
    });
  });
  return true;
}

// Returns a lower bound of the bytes of a name with its quotes, escapes, comma and colon.
uint64_t JsonProductions::member_bytes(const Plan& plan, PlanNameId name, uint32_t depth) {
  uint64_t out = 1;
  for (char c : plan.texts[name.v]) out += c == '"' || c == '\\' ? 2 : static_cast<uint8_t>(c) < 0x20 ? 6 : 1;
  return out + regexes_.node(comma(depth, true).regex()).shortest + regexes_.node(colon().regex()).shortest;
}

// Returns the bytes of a value that a look at the atoms shows: a number, a string, an empty array, an empty
// object or a constant, the first of these kinds that has one. Returns 0 if none has. No language is made.
uint64_t JsonProductions::shown_bytes(const Rule& r) {
  const auto of = [&](Kind kind) { return restricted(r.value(), kind); };
  for (const auto& [kind, bytes] : {std::pair(Kind::kNumber, 1), std::pair(Kind::kString, 2)})
    if (const TypedId p = of(kind); p == FormulaSpace::yes())
      return static_cast<uint64_t>(bytes);
    else if (const uint64_t some = plain_bytes(formulas_, p); some > 0)
      return some;
  for (const auto& [kind, bracket] : {std::pair(Kind::kArray, '['), std::pair(Kind::kObject, '{')})
    if (solver_.closes(of(kind))) return regexes_.node(open(bracket).regex()).shortest + 1;
  for (const auto& [kind, names] : kConstants)
    if (of(kind) == FormulaSpace::yes()) return names[layout_.python].size();
  return 0;
}

// Sets an upper bound of the bytes that complete a plain value (shown_bytes()), or an object, if nothing but
// the names of its plan is asked for. For an object it counts a member for each required name that is
// missing, and the closing bracket. The missing names can be written in some order, whatever was written
// before. If a key must come although no name is missing, some name on offer is added.
bool JsonProductions::bound(RuleId id, Bound& out) {
  const Rule r = rules_[id.v];
  if (r.inside > 0 || clean_ != RegexArena::empty()) return false;
  switch (r.kind) {
    case kObjectFirst:
    case kObjectNext:
    case kKeys:
    case kNamed:
    case kFree: break;
    case kValue: out.bytes = shown_bytes(r); return out.bytes > 0;
    default: return false;
  }
  const ObjectState st = solver_.objects().state(r.object());
  if (st.rest != FormulaSpace::yes() || st.outside.v != 0) return false;
  Plan& plan = solver_.objects().plan_of(r.object());
  const Bits& used = solver_.objects().used(r.object());
  const auto value = [&](PlanNameId name) { return call({kValue, plan.value[name.v]}, r.depth); };
  out.bytes = regexes_.node(close('}', r.depth, false).regex()).shortest;
  const std::vector<PlanNameId> missing = names_without(plan.required, used);
  for (PlanNameId i : missing) {
    out.bytes += member_bytes(plan, i, r.depth);
    out.all.push_back(value(i));
  }
  if (r.kind == kFree) {
    if (st.unknown_key || solver_.objects().free_keys(r.object(), r.cls()) < 2) return false;
    out.bytes += regexes_.node(colon().regex()).shortest;
    out.any.push_back(call({kValue, solver_.objects().class_value(r.object(), r.cls())}, r.depth));
  } else if (r.kind == kNamed || (r.kind == kKeys && missing.empty())) {
    const Offers& offers = solver_.objects().offers(r.object());
    uint64_t most = 0;
    for (PlanNameId i : names_in(offers.names)) {
      most = std::max(most, member_bytes(plan, i, r.depth));
      out.any.push_back(value(i));
    }
    if (out.any.empty()) return false;
    out.bytes += most;
  }
  return true;
}

// Calls f for each branch of a formula of objects. If a union in a conjunction has branches that order keys,
// the order of one must not bind the others, so each branch becomes an object of its own. `more` is how many
// branches may still be split off. A union with more is not split, and loses its order of keys.
void JsonProductions::for_each_object(TypedId p, uint32_t& more, const std::function<void(TypedId)>& f) {
  check_depth();
  for (TypedId q : formulas_.disjuncts(p)) {
    TypedId choice = FormulaSpace::no();
    std::vector<TypedId> others;
    for (TypedId kid : formulas_.conjuncts(q)) {
      const Formula& k = formulas_[kid];
      if (choice == FormulaSpace::no() && k.op == Op::kOr && (k.has & kHasOrder))
        choice = kid;
      else
        others.push_back(kid);
    }
    if (choice == FormulaSpace::no()) {
      f(q);
      continue;
    }
    const TypedId rest = formulas_.all_of(others);
    const auto kids = formulas_.kids(choice);
    if (kids.size() > more) {
      for_each_object(formulas_.both(rest, solver_.objects().without_order(choice)), more, f);
      continue;
    }
    more -= static_cast<uint32_t>(kids.size());
    for (TypedId k : kids) for_each_object(formulas_.both(rest, k), more, f);
  }
}

// Adds the alternatives of a value, one kind after the other: words, numbers, strings, JSON texts in strings,
// arrays, objects. In a world that omits (base/effort.h), alternatives that take too much work to decide are
// left out.
void JsonProductions::expand_value(const Rule& r, Alternatives& out) {
  const ValueId v = r.value();
  std::vector<RegexId> words;
  for (const auto& [kind, names] : kConstants)
    if (restricted(v, kind) == FormulaSpace::yes())
      words.push_back(regexes_.literal(names[layout_.python && inside_ == 0]));
  if (!words.empty()) out.add({Symbol::terminal(regexes_.alt(std::span<const RegexId>(words)))});
  const auto decided = [&](auto&& language) {
    return solver_.attempt(RegexArena::empty(), [&] {
      const RegexId r = language();
      if (regexes_.undecided(r)) regexes_.is_empty(r);  // throws
      return r;
    });
  };
  if (const RegexId n = decided([&] { return solver_.numbers(v); }); n != RegexArena::empty())
    out.add({Symbol::terminal(n)});
  const Contents held =
      solver_.attempt(Contents(), [&] { return solver_.contents(solver_.restrict(v, Kind::kString)); });
  if (const RegexId s = decided([&] { return clean(texts_.decided(held.texts)); }); s != RegexArena::empty())
    out.add({Symbol::terminal(regexes_.cat(regexes_.end(), s))});
  for (ValueId value : held.values)
    if (solver_.attempt(false, [&] { return solver_.nonempty(value); }))
      out.add({text("\""), content(value), text("\"")});
  add_arrays(r, out);
  add_objects(r, out);
}

// Adds the opening bracket of an array or object and a call of `inside`. In pretty layout an empty one is
// written "[]", and any other has a line break behind its bracket, so there are two alternatives.
void JsonProductions::add_brackets(std::string_view brackets, const Rule& inside, uint32_t depth, bool empty,
                                   bool more, Alternatives& out) {
  if (layout_.mode != JsonLayout::kPretty) return out.add({open(brackets[0]), call(inside)});
  if (empty) out.add({text(brackets)});
  if (more) out.add({text(brackets.substr(0, 1)), call(inside, depth + 1)});
}

void JsonProductions::add_arrays(const Rule& r, Alternatives& out) {
  const TypedId arrays = restricted(r.value(), Kind::kArray);
  for (TypedId p : formulas_.disjuncts(arrays)) {
    if (!leads_on(p)) continue;
    const Repeats repeats = lenient_ && solver_.unique().lasting(p) ? kAllowed : kAsAsked;
    if (repeats != kAsAsked) p = solver_.unique().behind_fresh(p, true);
    const bool more = layout_.mode != JsonLayout::kPretty ||
                      solver_.attempt(false, [&] { return !solver_.item_cells(p).empty(); });
    add_brackets("[]", {kArrayFirst, p, repeats}, r.depth, solver_.closes(p), more, out);
  }
}

void JsonProductions::add_objects(const Rule& r, Alternatives& out) {
  Objects& objects = solver_.objects();
  const bool pretty = layout_.mode == JsonLayout::kPretty;
  uint32_t more = kOrderBranches;
  for_each_object(restricted(r.value(), Kind::kObject), more, [&](TypedId p) {
    constexpr ObjectId kNone{0xFFFFFFFFu};
    const ObjectId s = solver_.attempt(kNone, [&] {
      if (!objects.productive(p)) return kNone;
      const ObjectId start = objects.start(p);
      if (solver_.effort().omits()) objects.offers(start);
      return start;
    });
    // If the members take too much work to decide, the object may still be written empty.
    if (s == kNone && solver_.effort().omits() && solver_.closes(p))
      out.add({pretty ? text("{") : open('{'), text("}")});
    if (s == kNone) return;
    const bool empty = pretty && objects.offers(s).close, any = pretty && objects.offers(s).any_key();
    add_brackets("{}", {kObjectFirst, s}, r.depth, empty, any, out);
  });
}

TypedId JsonProductions::restricted(ValueId v, Kind kind) {
  return solver_.attempt(TypedId(FormulaSpace::no()), [&] { return solver_.restrict(v, kind); });
}

// Returns true if the array can be completed item by item. array_productive() may say yes without a next
// item. So in a world that omits, the array must also be able to close, or have a next item.
bool JsonProductions::leads_on(TypedId p) {
  return solver_.attempt(false, [&] {
    return solver_.array_productive(p) &&
           (!solver_.effort().omits() || solver_.closes(p) || !solver_.item_cells(p).empty());
  });
}

// Adds the closing bracket, and an alternative for each cell of the next item. If the rest depends on the
// item's text, the item is captured.
void JsonProductions::expand_array(const Rule& r, Alternatives& out, bool nearest) {
  const TypedId p = r.array();
  const bool first = r.kind == kArrayFirst, pretty = layout_.mode == JsonLayout::kPretty;
  if (solver_.closes(p) && !(first && pretty)) out.add({close(']', r.depth, first)});
  if (r.b != kAsAsked) return expand_lenient(r, out);
  std::vector<ItemCell> cells =
      solver_.attempt(std::vector<ItemCell>(), [&] { return solver_.item_cells(p); });
  // A search tries one shortest item of each cell. If a captured array has this item, the rest may become
  // longer. So each such cell is added a second time, with only the items that no captured array has at this
  // point.
  for (std::size_t i = 0, n = nearest ? cells.size() : 0; i < n; ++i)
    if (formulas_[cells[i].rest].has & kHasOutside)
      if (const ItemCell c = solver_.unique().fresh(cells[i]); solver_.nonempty(c.value)) cells.push_back(c);
  for (const ItemCell& c : cells)
    for (TypedId rest : formulas_.disjuncts(c.rest))
      if (c.capture || leads_on(rest))
        add_item(r, c.value, call({c.capture ? kItem : kArrayNext, rest}, r.depth), c.capture, out);
}

// Adds an item with the text in front of it, and the rest of its array. If the item is captured, what follows
// depends on its text, so the rules inside of the item are not lenient.
void JsonProductions::add_item(const Rule& r, ValueId value, Symbol rest, bool capture, Alternatives& out) {
  std::vector<Symbol> sequence;
  if (r.kind != kArrayFirst)
    sequence.push_back(comma(r.depth, false));
  else if (layout_.mode == JsonLayout::kPretty)
    sequence.push_back(text(indent(r.depth)));
  if (capture) sequence.push_back(Symbol::capture());
  const Undo leave([&, before = std::exchange(lenient_, lenient_ && !capture)] { lenient_ = before; });
  sequence.push_back(call({kValue, value}, r.depth));
  sequence.push_back(rest);
  out.add(sequence);
}

// Adds the next item of a lasting array; in this lenient grammar it may repeat an earlier one. Behind a first
// number, numbers have the lexemes of numbers with a condition, because in the exact grammar they have one:
// they must differ from it.
void JsonProductions::expand_lenient(const Rule& r, Alternatives& out) {
  const TextId zero = formulas_.intern_text("0");
  const TypedId any_number =
      formulas_.either(formulas_.atom(Op::kAtLeast, zero), formulas_.atom(Op::kAtMost, zero));
  const ValueId numbers = formulas_.types(kind_bit(Kind::kNumber));
  for (const Cell& c : solver_.array_cells(r.array()))
    for (TypedId rest : formulas_.disjuncts(c.rest)) {
      if (!leads_on(rest)) continue;
      const auto add = [&](ValueId value, Repeats behind) {
        if (solver_.nonempty(value))
          add_item(r, value, call({kArrayNext, rest, behind}, r.depth), false, out);
      };
      const TypedId number = restricted(c.value, Kind::kNumber);
      if (number == FormulaSpace::no()) {
        add(c.value, Repeats{r.b});
      } else if (r.b == kAmongNumbers) {
        add(number == FormulaSpace::yes()
                ? formulas_.both(c.value, formulas_.literal(Kind::kNumber, any_number))
                : c.value,
            kAmongNumbers);
      } else {
        add(formulas_.both(c.value, numbers), kAmongNumbers);
        add(formulas_.both(c.value, formulas_.deny(numbers)), kAllowed);
      }
    }
}

// Finds the rule of those values of `id` that `choice` selects (Productions::narrow).
bool JsonProductions::narrow(RuleId id, const Choice& choice, RuleId& out, bool& any) {
  const Rule r = rules_[id.v];
  if (r.kind != kValue || r.inside > 0) return false;
  solver_.refill();
  const ValueId value = r.value();
  std::vector<ValueId> some;
  const auto add = [&](ValueId f) {
    if (solver_.nonempty(formulas_.both(value, f))) some.push_back(f);
  };
  for (const std::string& t : choice.texts) add(lowering_.values(Json::parse("[" + to_json(t) + "]"), 0));
  for (const RuleId other : choice.rules) {
    if (rules_[other.v].kind != kValue) return false;
    add(rules_[other.v].value());
  }
  ValueId chosen = formulas_.any_of(some);
  if (!choice.others && !solver_.nonempty(formulas_.both(value, formulas_.deny(chosen))))
    chosen = FormulaSpace::yes();
  const ValueId left = formulas_.both(value, choice.others ? formulas_.deny(chosen) : chosen);
  any = solver_.nonempty(left);
  out = rule({kValue, left}, r.depth);
  return true;
}

// Appends the texts of all values of a rule. Returns false if there are `most` values or more.
bool JsonProductions::values(RuleId id, uint32_t most, std::vector<std::string>& out) {
  const Rule r = rules_[id.v];
  if (r.kind != kValue || r.inside > 0) return false;
  solver_.refill();
  if (!solver_.domains().few(r.value(), most, out)) return false;
  for (std::string& text : out) text = from_json(text);
  return true;
}

bool JsonProductions::compared_with(RuleId id, std::size_t most, std::vector<std::string>& out) {
  const Rule r = rules_[id.v];
  if (r.kind != kRead && r.kind != kItem) return true;
  const CapturedId values = r.kind == kRead ? solver_.objects().values_of(r.object(), formulas_.text(r.key()))
                                            : solver_.unique().first_items(r.array());
  if (solver_.captured().size(values) >= most) return false;
  for (const std::string& text : solver_.captured().texts(values)) out.push_back(from_json(text));
  return true;
}

GrammarTraits JsonProductions::traits() const {
  return {.asks_alike = solver_.unique().asked_alike(), .asks_distinct = schemas_->asks_distinct()};
}

RuleTraits JsonProductions::traits_of(RuleId rule) const {
  using Items = RuleTraits::Items;
  const Rule& r = rules_[rule.v];
  RuleTraits out{.compared = r.kind == kValue, .compares = r.kind == kItem || r.kind == kRead};
  if (r.kind == kObjectFirst) out.items = r.lenient ? Items::kDistinct : Items::kAny;
  if (r.kind == kArrayFirst) out.items = r.b != kAsAsked ? Items::kDistinct : Items::kAny;
  // In pretty layout each open level has a closing bracket and a line break to come.
  out.needed_behind = 2 * uint64_t{r.depth};
  return out;
}

// Expands the reader of an item whose text decides about the rest. In a mask the text is not known: it then
// adds the alternatives that hold for every text, and poison for the others.
void JsonProductions::expand_item(const Rule& r, const Reading& reading, Alternatives& out) {
  const TypedId rest = r.array();
  if (reading.kind == Reading::kText) {
    out.add({call({kArrayNext, solver_.unique().extend(rest, to_json(reading.text))}, r.depth)});
    return;
  }
  if (reading.kind == Reading::kFresh) {
    // The item is fresh: it differs from all items with which it could be compared. If items must differ, its
    // text excludes one value for later items. If two items must be equal, its text adds a value that may be
    // repeated. So the alternatives for the real text are at least those that need no text, and at most those
    // of the array without the condition.
    const bool apart = solver_.unique().asks_apart(rest);
    const TypedId free = solver_.unique().behind_fresh(rest, !apart);
    if (!apart) out.add({call({kArrayNext, solver_.unique().behind_fresh(rest, false)}, r.depth)});
    if (!leads_on(free)) return;
    out.assumed.push_back(static_cast<uint32_t>(out.ends.size()));
    return out.add({call({kArrayNext, free}, r.depth)});
  }
  if (!solver_.unique().surely_more(rest)) return out.add({poison()});
  if (solver_.closes(rest)) out.add({close(']', r.depth, false)});
  out.add({comma(r.depth, false), poison()});
}

// Expands the reader of a member's value. Of the captured objects that the object may still equal, those with
// this value for this key are left. A fresh value is in none of them, so the object differs from all.
void JsonProductions::expand_read(const Rule& r, const Reading& reading, Alternatives& out) {
  if (reading.kind == Reading::kText) {
    const std::string value = Captured::canonical(to_json(reading.text));
    const ObjectId next = solver_.objects().read(r.object(), formulas_.text(r.key()), value);
    out.add({call({kObjectNext, next}, r.depth)});
  } else if (reading.kind == Reading::kFresh) {
    out.assumed.push_back(static_cast<uint32_t>(out.ends.size()));
    out.add({call({kObjectNext, solver_.objects().read_fresh(r.object())}, r.depth)});
  } else {
    out.add({poison()});
  }
}

// Adds the closing bracket, and the quote that opens a key. The keys themselves are in a rule behind the
// quote, so a state behind `{` need not know them.
void JsonProductions::expand_object(const Rule& r, Alternatives& out) {
  const bool first = r.kind == kObjectFirst, pretty = layout_.mode == JsonLayout::kPretty;
  const Offers& offers = solver_.objects().offers(r.object());
  if (offers.close && !(first && pretty)) out.add({close('}', r.depth, first)});
  if (!offers.any_key()) return;
  const Symbol keys = call({kKeys, r.object()}, r.depth);
  if (!first)
    out.add({comma(r.depth, true), keys});
  else
    out.add({text(pretty ? indent(r.depth) + "\"" : "\""), keys});
}

// Returns true if an earlier key whose text is not known may leave no key to write. Suppose keys have one
// character and `{"a":1,"` was read: no further key begins with `a`, and a mask does not know the first key.
bool JsonProductions::may_repeat(const Rule& r, RegexId language) {
  return solver_.objects().state(r.object()).unknown_key && !solver_.unique().lasting(language);
}

// Adds the keys: the names on offer as one literal set, and a captured terminal for each class.
void JsonProductions::add_keys(const Rule& r, const Offers& offers, Alternatives& out) {
  const Plan& plan = solver_.objects().plan_of(r.object());
  Bits names = offers.names;
  if (clean_ != RegexArena::empty() || (inside_ > 0 && plan.names.size() <= kApartInString)) {
    // Some names get a terminal of their own. A name with an excluded spelling does, because a literal set
    // allows all spellings of its names. Inside a string each name does: an escaped literal set is no literal
    // set any more, and holes/ relies on literal sets.
    const Bits apart = inside_ > 0 ? names : unclean(plan, solver_.objects().state(r.object()).plan);
    for (PlanNameId i : names_in(offers.names)) {
      if (!has_bit(apart, i)) continue;
      take_bit(names, i);
      out.add({Symbol::terminal(clean(spelled(plan, i))), call({kChosen, r.object(), i}, r.depth)});
    }
  }
  if (!names_in(names).empty())
    out.add({Symbol::terminal(regexes_.literal_set(plan.table, names, true)),
             call({kNamed, r.object()}, r.depth)});
  for (KeyClassId c : offers.classes) {
    if (may_repeat(r, plan.classes[c.v].language)) {
      out.add({poison()});
      continue;
    }
    const Symbol key = Symbol::terminal(clean(solver_.objects().free_language(r.object(), c)));
    if (lenient_ && solver_.unique().lasting(plan.classes[c.v].language))
      out.add({key, call({kFreeRepeating, r.object(), c}, r.depth)});
    else
      out.add({Symbol::capture(), key, call({kFree, r.object(), c}, r.depth)});
  }
}

void JsonProductions::expand_member(const Rule& r, std::string_view key,
                                    const std::vector<Objects::Step>& steps, Alternatives& out,
                                    bool nearest) {
  for (const Objects::Step& step : nearest_steps(steps, nearest)) {
    const Symbol value = call({kValue, step.value}, r.depth);
    if (step.capture)
      out.add(
          {colon(), Symbol::capture(), value, call({kRead, step.next, formulas_.intern_name(key)}, r.depth)});
    // A search tries one shortest value of each step. If a captured object has this value, the rest may
    // become longer. So another alternative has only the values that no captured object has here.
    if (step.capture && nearest) {
      Captured& captured = solver_.captured();
      const ValueId fresh =
          formulas_.both(step.value, captured.outside(solver_.objects().values_of(step.next, key)));
      if (solver_.nonempty(fresh))
        out.add({colon(), call({kValue, fresh}, r.depth),
                 call({kObjectNext, solver_.objects().read_fresh(step.next)}, r.depth)});
    }
    if (!step.capture) out.add({colon(), value, call({kObjectNext, step.next}, r.depth)});
  }
}

// With `nearest`, returns the steps behind which the object needs the fewest further members; otherwise
// returns all steps.
std::vector<Objects::Step> JsonProductions::nearest_steps(const std::vector<Objects::Step>& steps,
                                                          bool nearest) {
  uint32_t least = Objects::kFar;
  // If the object must differ from captured objects, the fewest members may not suffice. So every step is
  // kept.
  if (std::ranges::any_of(steps, &Objects::Step::capture)) return steps;
  if (nearest && steps.size() > 1)
    for (const Objects::Step& step : steps)
      least = std::min(least, solver_.objects().members_needed(step.next));
  if (least == Objects::kFar) return steps;
  std::vector<Objects::Step> out;
  for (const Objects::Step& step : steps)
    if (solver_.objects().members_needed(step.next) <= least) out.push_back(step);
  return out;
}

// Replaces the words names[from] by names[to] outside of strings: `[null, "null"]` becomes `[None, "null"]`.
std::string JsonProductions::renamed(std::string_view text, std::size_t from, std::size_t to) const {
  if (!layout_.python || inside_ > 0) return std::string(text);
  std::string out;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t length = 1;
    std::string_view written = text.substr(i, 1);
    if (quoted && text[i] == '\\') written = text.substr(i, length = 2);
    if (text[i] == '"') quoted = !quoted;
    if (!quoted)
      for (const auto& [kind, names] : kConstants)
        if (text.substr(i).starts_with(names[from])) {
          length = names[from].size();
          written = names[to];
        }
    out += written;
    i += length;
  }
  return out;
}

// Refuses an excluded text that could leave a string without any spelling. Each character can be written as
// \uXXXX, with digits in lower or in upper case. If the excluded text occurs in at most one of these
// spellings, the other one is left.
void JsonProductions::refuse_unwritten() {
  for (const std::string& t : layout_.excludes) {
    const RegexId parts[] = {RegexArena::anything(), regexes_.literal(t), RegexArena::anything()};
    const RegexId holds = regexes_.cat(std::span<const RegexId>(parts));
    bool both = true;
    for (char a : {'a', 'A'}) {
      const RegexId digit = regexes_.alt(
          regexes_.range('0', '9'), regexes_.range(static_cast<uint8_t>(a), static_cast<uint8_t>(a + 5)));
      const RegexId escape = regexes_.cat(regexes_.literal("\\u"), regexes_.repeat(digit, 4, 4));
      both = both && !regexes_.is_empty(regexes_.both(regexes_.star(escape), holds));
    }
    if (both)
      throw Error(ErrorKind::kGrammar,
                  "'" + t + "' cannot be excluded: it occurs in escapes, and a text may need those");
  }
}

// Returns the spellings of `body` without excluded texts, and remembers them. Inside of a string at_level()
// does this later, on the escaped terminals.
RegexId JsonProductions::clean(RegexId body) {
  if (clean_ == RegexArena::empty() || inside_ > 0) return body;
  return cleaned_.remember(body.v, [&] { return regexes_.both(body, clean_); });
}

RegexId JsonProductions::spelled(const Plan& plan, PlanNameId name) {
  Bits one(plan.words(), 0);
  add_bit(one, name);
  return regexes_.literal_set(plan.table, one, false);
}

// Returns the names of a plan of which some spelling contains an excluded text, and remembers them.
Bits JsonProductions::unclean(const Plan& plan, PlanId id) {
  return unclean_names_[unclean_.remember(id.v, [&] {
    Bits out(plan.words(), 0);
    for (PlanNameId i; i.v < plan.names.size(); ++i.v)
      if (!regexes_.is_empty(regexes_.minus(spelled(plan, i), clean_))) add_bit(out, i);
    unclean_names_.push_back(std::move(out));
    return static_cast<uint32_t>(unclean_names_.size() - 1);
  })];
}

Symbol JsonProductions::open(char bracket) {
  return Symbol::terminal(regexes_.cat(regexes_.byte(static_cast<uint8_t>(bracket)), gap_));
}

Symbol JsonProductions::close(char bracket, uint32_t depth, bool nothing_inside) {
  const RegexId end = regexes_.byte(static_cast<uint8_t>(bracket));
  if (layout_.mode == JsonLayout::kPretty) return text(indent(depth - 1) + bracket);
  // The gap inside of an empty array or object was already read by the terminal of open().
  return Symbol::terminal(nothing_inside ? end : regexes_.cat(gap_, end));
}

// Returns a comma with its gaps, and with the opening quote of a key if `before_key` is true. It is
// remembered, because in pretty layout each depth has another one.
Symbol JsonProductions::comma(uint32_t depth, bool before_key) {
  return symbols_.remember(2 * depth + before_key, [&] {
    if (layout_.mode == JsonLayout::kPretty) return text("," + indent(depth) + (before_key ? "\"" : ""));
    const RegexId r = regexes_.cat(gap_, regexes_.cat(regexes_.byte(','), after_));
    return Symbol::terminal(before_key ? regexes_.cat(r, regexes_.byte('"')) : r);
  });
}

Symbol JsonProductions::colon() {
  if (layout_.mode == JsonLayout::kPretty) return text(": ");
  return Symbol::terminal(regexes_.cat(gap_, regexes_.cat(regexes_.byte(':'), after_)));
}

}  // namespace structgen
