// Productions of objects whose members are elements; see elements.h.
//
// In: states of objects. Out: alternatives. Cost: one alternative per name on offer, or one for all
// names if there are many. The symbols behind a name are expanded only after the name was read.
//
// A text may be written alike as a string and as another value: `3` is the string "3" and the number 3. This
// file does not choose between the two: the texts of a value are the texts of all its kinds.
#include "schema/write/elements.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "schema/write/productions.h"
#include "strings/json_spelling.h"

namespace structgen {

namespace {

// A reader removes one newline in front of a string and one behind it. Returns the texts that such a reader
// turns into a text of `r`. Where a text of `r` begins or ends with a newline, one more must stand beside it;
// this makes four alternatives.
RegexId within_newlines(RegexArena& regexes, RegexId r) {
  const RegexId newline = regexes.byte('\n');
  const RegexId begins = regexes.cat(newline, RegexArena::anything());
  const RegexId ends = regexes.cat(RegexArena::anything(), newline);
  const RegexId no_front = regexes.minus(r, begins), no_back = regexes.minus(r, ends);
  const RegexId parts[] = {regexes.minus(no_front, ends), regexes.cat(newline, no_back),
                           regexes.cat(no_front, newline), regexes.cat(newline, regexes.cat(r, newline))};
  return regexes.alt(std::span<const RegexId>(parts));
}

// Up to this many names on offer are an alternative each. If there are more, the key is captured and then
// looked up.
constexpr std::size_t kApartInElements = 500;

// Returns an ECMA pattern that matches a text if it contains one of the texts.
std::string found_in(const std::vector<std::string>& texts, const std::vector<std::string>& more) {
  std::string out;
  for (const std::vector<std::string>* some : {&texts, &more})
    for (const std::string& t : *some) {
      if (!out.empty()) out += '|';
      for (char c : t) {
        if (std::string_view("^$\\.*+?()[]{}|/").find(c) != std::string_view::npos) out += '\\';
        out += c;
      }
    }
  return out;
}

uint32_t kinds(std::size_t written) {
  switch (static_cast<Written>(written)) {
    case Written::kText: return kind_bit(Kind::kString);
    case Written::kNull: return kind_bit(Kind::kNull);
    case Written::kBoolean: return kind_bit(Kind::kFalse) | kind_bit(Kind::kTrue);
    case Written::kNumber: return kind_bit(Kind::kNumber);
    case Written::kArray: return kind_bit(Kind::kArray);
    case Written::kObject: return kind_bit(Kind::kObject);
  }
  return 0;
}

void add_mark(RegexId mark, std::vector<Symbol>& to) {
  if (mark != RegexArena::epsilon()) to.push_back(Symbol::terminal(mark));
}

}  // namespace

// Returns the objects of `root` that can be written as elements: no string contains the mark that ends a
// string, and no key the mark that ends a key. In a nested layout this must hold at every depth, which only a
// schema can say, so these conditions are a second schema. `keys` and `values` turn them on; unwritable()
// tries each alone.
ValueId JsonProductions::arguments(ValueId root, bool keys, bool values) {
  const ElementText& text = layout_.elements->text;
  const auto finding = [&](const std::vector<std::string>& texts) {
    return "\"pattern\": \"" + json_body(found_in(texts, layout_.excludes));
  };
  std::string members, value = "\"not\": {\"type\": \"string\"";
  if (keys && !(text.key_never.empty() && layout_.excludes.empty()))
    members = ", \"propertyNames\": {\"not\": {" + finding(text.key_never) + "}";
  if (keys && !text.key_pattern.empty())
    members += (members.empty() ? ", \"propertyNames\": {" : ", ") + std::string("\"pattern\": \"") +
               json_body(text.key_pattern);
  if (!members.empty()) members += "}";
  value += values && !text.quoted ? ", " + finding({text.close}) + "}" : ", \"not\": {}}";
  const std::string every = members + ", \"additionalProperties\": {\"$ref\": \"#/$defs/value\"}";
  if (text.nested) value += every + ", \"items\": {\"$ref\": \"#/$defs/value\"}";
  const Loc written =
      schemas_->add("{\"type\": \"object\"" + every + ", \"$defs\": {\"value\": {" + value + "}}}");
  const Json& json = schemas_->json(written);
  const JsonRef defined = json.find(json.find(written.node, "$defs"), "value");
  free_ = solver_.restrict(lowering_.reference(schemas_->child(written, defined)), Kind::kString);
  solver_.write_without(free_);
  return formulas_.both(root, lowering_.reference(written));
}

// Throws an error that says why the schema has values and none can be written as elements.
void JsonProductions::unwritable(ValueId root) {
  solver_.refill();
  std::string why = "parameters outside JSON need an object schema";
  if (solver_.nonempty(arguments(root, false, false))) {
    const bool keys = !solver_.nonempty(arguments(root, true, false));
    why = keys ? "a key that must be there cannot be written in this style"
               : "a string that must be there holds what ends a value in this style";
  }
  throw Error(ErrorKind::kUnsatisfiableSchema, why).in(schemas_->pointer(schemas_->root()));
}

// Adds the members of an object, or the items of an array, between two marks. In layouts without blanks
// inside (`bare`) an empty object or array is an alternative of its own.
void JsonProductions::add_inside(RegexId begin, Symbol inside, bool closes, bool more, RegexId end,
                                 Alternatives& out) {
  const ElementLayout& layout = *layout_.elements;
  std::vector<Symbol> sequence;
  if (layout.text.bare && closes) {
    add_mark(regexes_.cat(begin, end), sequence);
    out.add(sequence);
    sequence.clear();
  }
  if (layout.text.bare && !more) return;
  add_mark(regexes_.cat(begin, layout.marks.blank), sequence);
  sequence.push_back(inside);
  add_mark(end, sequence);
  out.add(sequence);
}

// Adds the objects of a formula: an alternative for each branch that orders keys in its own way.
void JsonProductions::add_object(TypedId objects, RegexId begin, RegexId end, Alternatives& out) {
  uint32_t more = kOrderBranches;
  for_each_object(objects, more, [&](TypedId p) {
    if (!solver_.objects().productive(p)) return;
    const ObjectId start = solver_.objects().start(p);
    const Offers& offers = solver_.objects().offers(start);
    add_inside(begin, call({kFirstMembers, start}), offers.close, offers.any_key(), end, out);
  });
}

void JsonProductions::add_array(TypedId arrays, RegexId begin, RegexId end, Alternatives& out) {
  for (TypedId p : formulas_.disjuncts(arrays))
    if (leads_on(p))
      add_inside(begin, call({kFirstItems, p}), solver_.closes(p), !solver_.item_cells(p).empty(), end, out);
}

// Adds the items that may come next, each behind its mark.
void JsonProductions::expand_items(const Rule& r, Alternatives& out) {
  const TypedId p = r.array();
  if (may_end(r)) out.add({});
  for (const ItemCell& c : solver_.item_cells(p))
    for (TypedId rest : formulas_.disjuncts(c.rest)) {
      if (!leads_on(rest)) continue;
      std::vector<Symbol> sequence;
      if (r.kind == kItems) add_mark(layout_.elements->marks.between, sequence);
      sequence.insert(sequence.end(), {call({kItemElement, c.value}), call({kItems, rest})});
      out.add(sequence);
    }
}

// Returns true if the object or array may end here. In a `bare` layout it returns false for an empty one,
// which add_inside() writes, because no blanks stand between its marks.
bool JsonProductions::may_end(const Rule& r) {
  const bool first = r.kind == kFirstMembers || r.kind == kFirstItems;
  if (first && layout_.elements->text.bare) return false;
  if (r.kind == kFirstItems || r.kind == kItems) return solver_.closes(r.array());
  return solver_.objects().offers(r.object()).close;
}

// Adds the keys that may come next. Each known name is an alternative. The keys of a class are one
// alternative together, in which the key is captured.
void JsonProductions::add_elements(const Rule& r, const Offers& offers, Alternatives& out) {
  const ElementMarks<RegexId>& marks = layout_.elements->marks;
  const RegexId before = r.kind == kMembers ? regexes_.cat(marks.between, marks.before) : marks.before;
  const auto begin = [&](std::initializer_list<Symbol> rest) {
    std::vector<Symbol> sequence;
    add_mark(before, sequence);
    sequence.insert(sequence.end(), rest);
    out.add(sequence);
  };
  if (may_end(r)) out.add({});
  const Plan& plan = solver_.objects().plan_of(r.object());
  const std::vector<PlanNameId> names = names_in(offers.names);
  // Too many alternatives would slow down every step of the parser. So the key is captured, and the name is
  // looked up once it is read.
  if (names.size() > kApartInElements) {
    std::vector<std::string> texts;
    for (PlanNameId i : names) texts.push_back(plan.texts[i.v]);
    begin({Symbol::capture(), Symbol::terminal(regexes_.cat(keys_->any_of(texts), marks.middle)),
           call({kListedElement, r.object()})});
  } else {
    for (PlanNameId i : names) {
      const RegexId parts[] = {before, keys_->one(plan.texts[i.v]), marks.middle};
      out.add({Symbol::terminal(regexes_.cat(std::span<const RegexId>(parts))),
               call({kNamedElement, r.object(), i})});
    }
  }
  for (KeyClassId c : offers.classes)
    if (may_repeat(r, plan.classes[c.v].language))
      begin({poison()});
    else
      begin(
          {Symbol::capture(),
           Symbol::terminal(regexes_.cat(solver_.objects().free_texts(r.object(), c, *keys_), marks.middle)),
           call({kFreeElement, r.object(), c})});
}

// Returns the key in `read`, which is a key and the mark that ends it.
std::string JsonProductions::key_of(std::string_view read) const {
  const ElementText& text = layout_.elements->text;
  // The mark may also be a special token, which is read as bytes from 0xFF on. No UTF-8 contains 0xFF.
  std::string_view key = read.substr(0, std::min(read.find(text.middle), read.find('\xFF')));
  if (!text.keys->write) return std::string(key);
  std::string out;
  while (!key.empty()) {
    std::size_t length = 1;
    char c = key[0];
    for (char plain : {'&', '"', '<', '>'}) {
      const std::string mark = written(std::string_view(&plain, 1), *text.keys);
      if (mark.size() > 1 && key.starts_with(mark)) {
        c = plain;
        length = mark.size();
      }
    }
    out += c;
    key.remove_prefix(length);
  }
  return out;
}

// Adds what follows a key: the value of the member and the members behind it, for each step.
void JsonProductions::add_members(const std::vector<Objects::Step>& steps, std::string_view key, bool nearest,
                                  Alternatives& out) {
  const NameId name = layout_.elements->text.named_end ? formulas_.intern_name(key) : NameId{};
  for (const Objects::Step& step : nearest_steps(steps, nearest))
    out.add({call({kElement, step.value, name}), call({kMembers, step.next})});
}

// Returns what follows a value: the marks that close the value and its element, then blanks.
RegexId JsonProductions::behind(const Rule& r, Written kind) {
  const ElementMarks<RegexId>& marks = layout_.elements->marks;
  const ElementText& text = layout_.elements->text;
  const RegexId end = marks.ends[static_cast<std::size_t>(kind)], none = RegexArena::epsilon();
  if (r.kind == kItemElement) {
    const RegexId parts[] = {end, marks.item_close, text.bare ? marks.blank : none};
    return regexes_.cat(std::span<const RegexId>(parts));
  }
  const RegexId key = text.named_end ? keys_->one(formulas_.text(r.key())) : none;
  const RegexId parts[] = {end, marks.close, key, text.named_end ? marks.middle : none, marks.blank};
  return regexes_.cat(std::span<const RegexId>(parts));
}

// Adds the value of a member up to the next key, or an item with its marks. Each kind of value has an
// alternative of its own, because the mark in front may name the kind.
void JsonProductions::expand_element(const Rule& r, Alternatives& out) {
  const ElementMarks<RegexId>& marks = layout_.elements->marks;
  const ElementText& text = layout_.elements->text;
  const ValueId v = r.value();
  const RegexId around = text.bare ? RegexArena::epsilon() : marks.blank;
  std::vector<Symbol> sequence;
  const auto end = [&](RegexId mark) {
    add_mark(mark, sequence);
    out.add(sequence);
  };
  if (text.quoted) {
    sequence.push_back(call({kValue, v}));
    return end(behind(r, Written::kText));
  }
  const auto begins = [&](Written kind) {
    const RegexId after = marks.after[static_cast<std::size_t>(kind)];
    return r.kind == kItemElement ? regexes_.cat(marks.item, after) : after;
  };
  const auto begin = [&](RegexId mark) {
    sequence.clear();
    add_mark(mark, sequence);
  };
  const TypedId strings = solver_.restrict(v, Kind::kString);
  if (solver_.nonempty(formulas_.both(v, formulas_.types(kind_bit(Kind::kString))))) {
    const RegexId close = behind(r, Written::kText);
    const Contents held = solver_.contents(strings);
    RegexId texts = strings_->of(held.texts);
    // If any string is allowed, removing newlines leads to no other set of strings.
    if (text.newlines && strings != free_) texts = within_newlines(regexes_, texts);
    begin(begins(Written::kText));
    sequence.push_back(Symbol::terminal(regexes_.cat(texts, close)));
    if (texts != RegexArena::empty()) out.add(sequence);
    for (ValueId value : held.values) {
      if (!solver_.nonempty(value)) continue;
      begin(begins(Written::kText));
      sequence.push_back(call({kValue, value}));
      end(close);
    }
  }
  const auto alike = [&](std::size_t a, std::size_t b) {
    return marks.after[a] == marks.after[b] && marks.ends[a] == marks.ends[b];
  };
  // The kinds of Written behind kText, up to this one, are written as JSON.
  const Written last = text.nested ? Written::kNumber : Written::kObject;
  for (std::size_t i = 1; i <= static_cast<std::size_t>(last); ++i) {
    bool seen = false;
    uint32_t mask = 0;
    for (std::size_t k = 1; k <= static_cast<std::size_t>(last); ++k)
      if (alike(k, i)) {
        seen = seen || k < i;
        mask |= kinds(k);
      }
    if (seen || (strings == free_ && alike(i, 0)))
      // Any string is allowed here, and it may look like a number, so an alternative for numbers adds
      // nothing.
      continue;
    const ValueId value = formulas_.both(v, formulas_.types(mask));
    if (!solver_.nonempty(value)) continue;
    begin(regexes_.cat(begins(static_cast<Written>(i)), around));
    sequence.push_back(call({kValue, value}));
    end(regexes_.cat(around, behind(r, static_cast<Written>(i))));
  }
  if (!text.nested) return;
  add_array(solver_.restrict(v, Kind::kArray), begins(Written::kArray),
            regexes_.cat(around, behind(r, Written::kArray)), out);
  add_object(solver_.restrict(v, Kind::kObject), begins(Written::kObject), behind(r, Written::kObject), out);
}

}  // namespace structgen
