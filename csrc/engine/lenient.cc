#include "engine/lenient.h"

#include <algorithm>
#include <bit>
#include <compare>
#include <functional>
#include <string>
#include <vector>

#include "base/work.h"

namespace structgen {

namespace {
// Exponents with this many digits or more all count as one value, kHugeExponent (numbers/decimal.h).
constexpr std::size_t kHugeDigits = 19;
}  // namespace

void Lenient::push(StateId s, bool text) {
  // A step without text keeps the size of the text. distinct_ may hold more text than that, left by a call
  // that threw.
  Place to = places.back();
  if (text) to = {s, static_cast<uint32_t>(distinct_.text().size() % kMostText), distinct_.mode()};
  places.push_back(to);
}

void Lenient::count(World& world) {
  constexpr std::size_t kStep = 64 << 10;
  const std::size_t now = places.size() * sizeof(Place) + distinct_.byte_size();
  if (now < counted_.bytes() + kStep) return;
  const std::size_t most = world.policy.most();
  if (world.total() + now - counted_.bytes() > most) out_of_memory(most);
  counted_.set(world, now);
}

void Lenient::cut(std::size_t places_left) {
  places.resize(places_left);
  cut();
}

// The readings of one `{` may disagree on whether keys must differ. If one reading asks that keys differ, all
// keys must differ, because no reading of a JSON object lets a key repeat.
Lenient::Opens Lenient::opens(const Grammar& grammar, Epoch& epoch, StateId s, char bracket, bool locked) {
  const uint32_t key = 2 * s.v + (bracket == '{');
  if (const auto known = opens_.find(key); known != opens_.end()) return known->second;
  if (!locked) return {};
  Parser& parser = epoch.parser;
  uint8_t out = 0;
  std::optional<RegexId> choices;
  for (const Item& i : parser.items(s)) {
    if (parser.regexes().step(i.regex, static_cast<uint8_t>(bracket)) == RegexArena::empty()) continue;
    for (const StackEntry& e : parser.stacks().entries(i.stack)) {
      if (e.top.kind() != Symbol::kRule) continue;
      const RuleTraits::Items items = grammar.productions().traits_of(e.top.rule_id()).items;
      if (items == RuleTraits::Items::kNone) continue;
      out |= items == RuleTraits::Items::kAny ? kAny : kDistinct;
      if (items == RuleTraits::Items::kAny) continue;
      const RegexId of_rule = grammar.productions().choices(e.top.rule_id());
      if (choices.value_or(of_rule) != of_rule) out = kMixed;
      choices = of_rule;
    }
  }
  if (out == 0) out = kAny;
  if (bracket == '{' && out == kMixed) out = kDistinct;
  Opens opened{static_cast<Kind>(out)};
  const StateId inside = parser.step(s, static_cast<uint8_t>(bracket));
  parser.live(inside).for_each([&](uint8_t b) {
    if (b == ']' || b == '}') return;
    const uint32_t bytes = Lengths::sum(2, epoch.lengths.of(parser.step(inside, b)));
    opened.more = std::max(opened.more, bytes);
  });
  if (opened.kind == kDistinct && choices.value_or(RegexArena::empty()) != RegexArena::empty()) {
    const LiteralTables& tables = parser.regexes().tables();
    const LiteralSet& set = parser.regexes().literal_set_of(*choices);
    const LiteralTable& table = tables.table(set.table);
    opened.list = distinct_.number({&table, tables.subset(set.subset)});
    // JSON spells a byte of text with at most six bytes, as in `\u0001`.
    constexpr std::size_t kLongest = 6;
    opened.more +=
        static_cast<uint32_t>(kLongest * std::ranges::max(table.texts, {}, &std::string::size).size());
  }
  return opens_.emplace(key, opened).first->second;
}

// Returns true if the number that is being read can only go on with zeros, so that its value is fixed. s is
// the state behind it. `nonzero` says that it has a digit other than 0, `exponent` that its exponent has
// begun. The caller holds the world's lock.
bool Lenient::one_value(Parser& parser, StateId s, bool nonzero, bool exponent) {
  constexpr std::size_t kMost = 64;
  const uint32_t key = 4 * s.v + 2 * nonzero + exponent;
  if (const auto known = one_value_.find(key); known != one_value_.end()) return known->second;
  std::vector<StateId> todo{s};
  const auto only_zeros = [&](StateId at) {
    const ByteSet& live = parser.live(at);
    if (!exponent || nonzero)
      for (char c = '1'; c <= '9'; ++c)
        if (live.has(static_cast<uint8_t>(c))) return false;
    if (nonzero && !exponent && (live.has('e') || live.has('E'))) return false;
    for (char c : {'0', '.', '+', '-'})
      if (const StateId to = parser.step(at, static_cast<uint8_t>(c));
          to != Parser::dead() && std::ranges::find(todo, to) == todo.end())
        todo.push_back(to);
    return true;
  };
  bool out = true;
  for (std::size_t i = 0; i < todo.size() && out; ++i) out = i < kMost && only_zeros(todo[i]);
  one_value_.emplace(key, out);
  return out;
}

// The number `word` has an exponent of `digits` digits so far. Returns true if more digits can make it differ
// from all items. Exponents of kHugeDigits digits all count as one value. Each exponent that is tried in vain
// equals an item, so the loop ends.
bool Lenient::powers_left(std::string_view word, std::size_t digits) {
  std::size_t powers = 1;
  for (std::size_t i = digits; i + 1 < kHugeDigits && powers <= distinct_.items(); ++i) powers *= 10;
  if (powers > distinct_.items()) return true;
  const std::string begun(word);
  if (distinct_.fresh(begun)) return true;
  for (std::size_t ends = 10; digits < kHugeDigits; ends *= 10) {
    if (++digits == kHugeDigits) return distinct_.fresh(begun + std::string(kHugeDigits, '0'));
    for (std::size_t i = 0; i < ends; ++i)
      if (distinct_.fresh(begun + std::to_string(ends + i).substr(1))) return true;
  }
  return false;
}

// Tells whether the item that is being read, or the next one if none has begun, can still become a text of
// the list that is no item yet.
Lenient::Fate Lenient::fate_in_list(Parser& parser, StateId s) {
  const LiteralTables& tables = parser.regexes().tables();
  const LiteralTable* const table = distinct_.list()->table;
  if (distinct_.mode() == Distinct::kBetween)
    return distinct_.left(0, static_cast<uint32_t>(table->texts.size()), [](uint32_t) { return true; })
               ? Fate::kLives
               : Fate::kDies;
  for (const Item& i : parser.items(s)) {
    if (parser.regexes().node(i.regex).kind != RegexKind::kLiteralSet) return Fate::kStates;
    const LiteralSet set = parser.regexes().literal_set_of(i.regex);
    if (&tables.table(set.table) != table) return Fate::kStates;
    // Behind a part of an escape, such as `\u00`, some of the texts from set.lo to set.hi are ruled out by
    // their next character. first_bytes() tells for one text.
    const auto reads = [&](uint32_t n) {
      LiteralSet one = set;
      one.subset = 0;
      one.lo = n;
      one.hi = n + 1;
      return set.escape == 0 || tables.first_bytes(one).any();
    };
    if (distinct_.left(set.lo, set.hi, reads)) return Fate::kLives;
  }
  return Fate::kDies;
}

// Tells whether the item that is being read can still become an item that differs from all earlier items.
// Most items can, because some value is always left. A word such as `tru`, and a number that can only go on
// with zeros, have only one value left; this value is looked up (lasting.cc).
Lenient::Fate Lenient::fate(Parser& parser, StateId s, bool locked) {
  if (distinct_.list() && distinct_.compares() && distinct_.lacks_item()) return fate_in_list(parser, s);
  const std::string_view word = distinct_.word();
  if (word.empty() || !distinct_.compares()) return Fate::kLives;
  const auto judged = [&](std::string_view json) {
    return distinct_.fresh(json) ? Fate::kLives : Fate::kDies;
  };
  if (word[0] >= 'a') return judged(word[0] == 't' ? "true" : word[0] == 'f' ? "false" : "null");
  const std::size_t e = std::min(word.find('e'), word.find('E'));
  const bool exponent = e != word.npos;
  const bool nonzero = std::ranges::any_of(word.substr(0, e), [](char c) { return c >= '1' && c <= '9'; });
  if (nonzero && !exponent && word.find('.') == word.npos) return Fate::kLives;
  const std::size_t power = exponent ? word.find_first_of("123456789", e) : word.npos;
  if (power == word.npos || word.size() - power < kHugeDigits) {
    if (!locked && !one_value_.contains(4 * s.v + 2 * nonzero + exponent)) return Fate::kLock;
    if (!one_value(parser, s, nonzero, exponent))
      return power == word.npos || powers_left(word, word.size() - power) ? Fate::kLives : Fate::kDies;
  }
  const bool whole = word.back() >= '0' && word.back() <= '9';
  return judged(std::string(word) + (whole ? "" : "0"));
}

// Reads the bytes into distinct_, where they stay. Tells what becomes of the text.
Lenient::Fate Lenient::fate(Grammar& grammar, Epoch& epoch, std::string_view bytes, bool locked,
                            StateId& at) {
  Parser& parser = epoch.parser;
  for (char b : bytes) {
    const auto byte = static_cast<uint8_t>(b);
    Opens opened{kAny};
    if ((b == '[' || b == '{') && distinct_.mode() == Distinct::kBetween)
      opened = opens(grammar, epoch, at, b, locked);
    if (opened.kind == kUnknown) return Fate::kLock;
    if (opened.kind == kMixed) return Fate::kStates;
    at = locked ? parser.step(at, byte) : parser.peek(at, byte);
    if (at == Parser::unknown()) return Fate::kLock;
    if (at == Parser::dead() ||
        !distinct_.read(b, opened.kind == kDistinct ? Distinct::kDistinct : Distinct::kPlain, opened.more,
                        opened.list))
      return Fate::kDies;
  }
  return fate(parser, at, locked);
}

Lenient::Fate Lenient::read(Grammar& grammar, Epoch& epoch, std::string_view bytes, bool locked,
                            StateId& at) {
  cut();
  at = places.back().state;
  const Fate out = fate(grammar, epoch, bytes, locked, at);
  if (out != Fate::kLives) cut();
  return out;
}

Lenient::Fate Lenient::keep(Grammar& grammar, Epoch& epoch, uint32_t* row, bool locked) {
  cut();
  const ItemEnds::Place place = distinct_.stands();
  const Vocabulary& v = grammar.vocabulary();
  const bool listed = place.list ? !place.string : place.string || !place.words;
  const bool quotes = !place.list && distinct_.in_item_string();
  const ItemEnds::Bits*& ends = ends_[place.number()];
  if (!locked && ((listed && !ends) || (quotes && !quotes_))) return Fate::kLock;
  if (listed && !ends) ends = &grammar.world().item_ends.at(place);
  if (quotes && !quotes_) quotes_ = &grammar.world().item_ends.quotes();
  Fate found = Fate::kLives;
  const auto judge = [&](TokenId t) {
    StateId at = places.back().state;
    found = fate(grammar, epoch, v.bytes(t), locked, at);
    cut();
    if (found == Fate::kDies) clear_bit(row, t);
    return found != Fate::kLock && found != Fate::kStates;
  };
  const auto judge_all = [&](uint32_t word, uint32_t bits) {
    for (; bits != 0; bits &= bits - 1) {
      const auto t = static_cast<TokenId>(32 * word + static_cast<uint32_t>(std::countr_zero(bits)));
      if ((listed || ItemEnds::may_end(place, v.bytes(t))) && !judge(t)) return false;
    }
    return true;
  };
  if (listed) {
    for (const auto& [word, bits] : *ends)
      if (!judge_all(word, row[word] & bits)) return found;
  } else {
    for (uint32_t word = 0; word < v.words(); ++word)
      if (row[word] != 0 && !judge_all(word, row[word])) return found;
  }
  for (std::size_t i = 0; quotes && i < quotes_->size(); ++i) {
    const ItemEnds::Quote& quote = (*quotes_)[i];
    if (!distinct_.may_repeat(quote.added)) continue;
    for (const TokenId t : quote.tokens)
      if (has_bit(row, t) && !judge(t)) return found;
  }
  return Fate::kLives;
}

// An item can differ from n others if it may have kItem more bytes, and two more for each bit of n. The
// `bound` bytes that are still to be written hold at most bound / 2 items.
std::size_t Lenient::spare(std::size_t bound) const {
  constexpr std::size_t kItem = 16;
  const std::size_t bits = static_cast<std::size_t>(std::bit_width(distinct_.items() + bound));
  return bound * bits / 4 + (distinct_.depth() + 1) * (kItem + 2 * bits + distinct_.more());
}

// Searches for an ending, depth first. At each point it first tries the next byte of the lenient completion.
// If this byte ends a repeated item, or leads to no ending, the other bytes are tried, the byte with the
// smallest bound first. Bytes with equal bounds are ordered by a hash of the point, so that new items rarely
// spell an earlier item.
std::optional<std::string> Lenient::ending(Grammar& grammar, Epoch& epoch) {
  constexpr std::size_t kMostReads = 20'000;
  Parser& parser = epoch.parser;
  struct Choice {
    uint32_t bound;
    uint64_t order;
    uint8_t byte;
    auto operator<=>(const Choice&) const = default;
  };
  struct Node {
    StateId state;
    Distinct::Mode mode;
    // A lenient completion from this node or an earlier one, and how many of its bytes were read up to this
    // node.
    const std::string* way;
    std::size_t gone;
    enum : uint8_t { kNothing, kWay, kOthers } tried = kNothing;
    // The bytes still to be tried; the last one is tried next.
    std::vector<Choice> others = {};
  };
  const auto others = [&](const Node& node, std::size_t at) {
    std::vector<Choice> out;
    parser.live(node.state).for_each([&](uint8_t b) {
      const StateId next = parser.step(node.state, b);
      if (next != Parser::dead() && b != static_cast<uint8_t>((*node.way)[node.gone]))
        out.push_back({epoch.lengths.of(next), mix(at, b), b});
    });
    std::ranges::sort(out, std::greater{});
    return out;
  };
  cut();
  const std::size_t size = distinct_.text().size();
  const StateId from = places.back().state;
  std::vector<Node> nodes{{from, distinct_.mode(), &epoch.completion.of(from), 0}};
  for (std::size_t reads = 0; reads < kMostReads && !nodes.empty(); ++reads) {
    Node& node = nodes.back();
    const std::size_t at = size + nodes.size() - 1;
    distinct_.cut(at, node.mode);
    if (parser.state(node.state).accepting) return distinct_.text().substr(size);
    if (node.tried == Node::kWay) node.others = others(node, at);
    if (node.tried != Node::kNothing && node.others.empty()) {
      nodes.pop_back();
      continue;
    }
    const bool on = node.tried == Node::kNothing;
    const char byte = on ? (*node.way)[node.gone] : static_cast<char>(node.others.back().byte);
    node.tried = on ? Node::kWay : Node::kOthers;
    if (!on) node.others.pop_back();
    StateId to = node.state;
    if (fate(grammar, epoch, {&byte, 1}, true, to) != Fate::kLives) continue;
    nodes.push_back({to, distinct_.mode(), on ? node.way : &epoch.completion.of(to), on ? node.gone + 1 : 0});
  }
  return std::nullopt;
}

}  // namespace structgen
