// How the places of an outline are found and gone through; outline.h has the problem, the idea and the
// rules.
//
// An example: an object of two optional strings, behind `{"a":"x`, with 4 tokens left. Only this part
// of the state counts:
//
//     places(s)        one place: a string above the stack `,"b":... }`. What was read of the string is left
//                      out
//     expand_string    the text of any token behind a quote: `"`, `",`, `"}`, `","`, ... stepped from the
//                      state behind the quote; those that the grammar takes lead to the places before `,`, in
//                      the key "b", at the end
//     too_few          by breadth: `"}` reaches the end in 1 token, and the end token is the second
//
// So 4 tokens are not proved to be too few. For a string that must be followed by `"b":"...",
// "c":"..."` the breadth-first pass finds no way to the end within 4 tokens, and then the state has
// none either.
//
// Steps. places() maps a state to places, once for each state. expand() finds the places that one token
// leads to: from a string over the texts behind a quote, from elsewhere over the trie. A pass by
// breadth goes through them until the end is met or the number of tokens is used up.
//
// Invariants.
// - A place allows at least what its states allow. So "too few there" is proved for the state, and
//   nothing else is.
// - `Place::to` and `cost` are functions of the place. `call`, `paid`, `least` and `most` belong to one
//   call.
// - kUnsure (poison, a token whose text matters) counts as an end one token away, so nothing is proved
//   by a path that meets it.
//
// Rejected. States instead of places: a gap of 32 blanks has 32 states, and a string has a state for
// each byte of a character.
#include "budget/outline.h"

#include <algorithm>
#include <utility>

#include "base/depth.h"
#include "base/work.h"

namespace structgen {

namespace {
// A string with at least so many characters keeps its length.
constexpr uint32_t kLong = 8;
// Work of a look at a text behind a quote.
constexpr uint64_t kTail = 8;
}  // namespace

// Whether r is one blank.
bool Outline::blank(RegexId r) const {
  const RegexNode& n = parser_.regexes().node(r);
  if (n.kind != RegexKind::kBytes) return false;
  ByteSet others = parser_.regexes().byte_set(n.a);
  for (const char b : {' ', '\n', '\r', '\t'}) others.remove(static_cast<uint8_t>(b));
  return others.none();
}

// Whether r may be replaced by "any bytes, then a quote": every text of r ends with the quote that
// closes a string, and no repetition in it requires kLong elements.
bool Outline::in_string(RegexId r) {
  check_depth();
  RegexArena& regexes = parser_.regexes();
  const RegexNode n = regexes.node(r);
  if (n.labelled) return false;
  if (n.kind == RegexKind::kAnd)
    return std::ranges::any_of(std::span(n.kids, n.n), [&](uint32_t kid) { return in_string(RegexId{kid}); });
  bool runs = false;
  RegexId at = r;
  while (regexes.node(at).kind == RegexKind::kCat) {
    const RegexNode part = regexes.node(RegexId{regexes.node(at).a});
    if (part.kind == RegexKind::kRepeat) {
      if (part.min >= kLong) return false;
      runs = runs || (part.max > kLong && !blank(RegexId{part.a}));
    }
    at = RegexId{regexes.node(at).b};
  }
  return runs && at == regexes.byte('"');
}

// r with any number of blanks, if some more blanks may come first: ` {0,17}:` becomes ` *:`.
RegexId Outline::loose(RegexId r) {
  RegexArena& regexes = parser_.regexes();
  RegexId element, tail;
  uint32_t min, max;
  if (!as_run(regexes, r, element, min, max, tail) || min != 0 || max == kUnbounded) return r;
  return blank(element) ? regexes.cat(regexes.star(element), tail) : r;
}

// The place with a key, new or known.
Outline::PlaceId Outline::find(uint64_t key, StateId s, bool string) {
  if (const uint32_t* known = of_key_.find(key)) return *known;
  Place p;
  p.state = s;
  p.string = string;
  // The place comes before its key: if memory runs out, no key leads to a place that is missing.
  all_.push_back(std::move(p));
  bytes_ += sizeof(Place);
  return of_key_.emplace(key, static_cast<uint32_t>(all_.size() - 1)).first;
}

// The places of one item: each branch of a choice by itself; a string by its stack alone. What is
// neither goes into `others`, which become one place together.
void Outline::place(Item item, std::vector<Item>& others, std::vector<PlaceId>& out) {
  RegexArena& regexes = parser_.regexes();
  if (item.regex == RegexArena::poison()) {
    out.push_back(kUnsure);
    return;
  }
  if (!in_string(item.regex)) {
    const RegexNode n = regexes.node(item.regex);
    if (n.kind == RegexKind::kAlt) {
      for (uint32_t i = 0; i < n.n; ++i) place({RegexId{n.kids[i]}, item.stack, item.capture}, others, out);
      return;
    }
    item.regex = loose(item.regex);
    others.push_back(item);
    return;
  }
  const uint64_t key =
      (uint64_t{1} << 63) | (static_cast<uint64_t>(item.stack.v) << 31) | (item.capture.v & 0x7FFFFFFF);
  if (const uint32_t* known = of_key_.find(key)) {
    out.push_back(*known);
    return;
  }
  const Item quote{regexes.byte('"'), item.stack, item.capture};
  const StateId before = parser_.make({&quote, 1}, false);
  out.push_back(find(key, masks_.blind(parser_.step(before, '"')), true));
}

// The places of s: it can be completed only where one of them can.
const std::vector<Outline::PlaceId>& Outline::places(StateId s) {
  if (const uint32_t* known = of_state_.find(s.v)) return lists_[*known];
  if (all_.empty()) all_.resize(2);
  std::vector<PlaceId> out;
  if (parser_.state(s).accepting) {
    out.push_back(kEnd);
  } else {
    std::vector<Item> others;
    const std::vector<Item> items(parser_.items(s).begin(), parser_.items(s).end());
    for (const Item& i : items) place(i, others, out);
    if (!others.empty()) {
      std::sort(others.begin(), others.end());
      others.erase(std::unique(others.begin(), others.end()), others.end());
      const StateId rest = parser_.of_items(std::move(others), false);
      out.push_back(find(rest.v, rest, false));
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  bytes_ += 32 + 4 * out.size();
  lists_.push_back(std::move(out));
  of_state_.emplace(s.v, static_cast<uint32_t>(lists_.size() - 1));
  return lists_.back();
}

// Steps the bytes that tokens hold behind a quote, in depth-first order, with the state of each depth
// at hand.
void Outline::expand_string(StateId left, Place& out) {
  if (left == Parser::dead()) return;
  const Suffixes& texts = world_.tails().texts;
  const auto reach = [&](StateId s, uint32_t node) {
    for (const PlaceId p : places(s)) {
      out.to.push_back(p);
      out.tails.emplace_back(p, node);
    }
  };
  if (parser_.state(left).poisoned) out.to.push_back(kUnsure);
  reach(left, kQuote);
  std::vector<StateId> at(texts.depth + 1, left);
  for (uint32_t i = 0; i + 1 < texts.nodes.size();) {
    charge();
    out.cost += kTail;
    const Suffixes::Node& node = texts.nodes[i];
    const StateId before = at[node.depth - 1];
    StateId next = parser_.step(before, node.byte);
    if (next == Parser::dead()) {
      i = node.end;
      continue;
    }
    if (next != before) next = masks_.blind(next);
    at[node.depth] = next;
    if (parser_.state(next).poisoned) out.to.push_back(kUnsure);
    if (node.first < texts.nodes[i + 1].first) reach(next, i);
    ++i;
  }
}

// The same for any other place, over the trie. False: it takes more work than there is.
bool Outline::expand_state(StateId from, Place& out) {
  const TokenTrie& trie = world_.vocabulary->trie();
  StateId last = Parser::unknown();
  return SearchCost::walk(parser_, trie, from, work_, out.cost,
                          [&](uint32_t node, StateId before, StateId next) {
                            if (next != before) next = masks_.blind(next);
                            if (parser_.state(next).poisoned)
                              // Longer tokens lead on from here, where the text decides.
                              out.to.push_back(kUnsure);
                            if (next != last && !trie.tokens(node).empty()) {
                              last = next;
                              const std::vector<PlaceId>& there = places(next);
                              out.to.insert(out.to.end(), there.begin(), there.end());
                            }
                            return next;
                          });
}

void Outline::begin() {
  work_ = 0;
  off_ = true;
  ++calls_;
  if (bytes_ <= world_.policy.outline()) return;
  all_.clear();
  lists_.clear();
  of_state_ = {};
  of_key_ = {};
  bytes_ = 0;
}

// The place with the fields of this call, which are reset at the first look.
Outline::Place& Outline::now(PlaceId p) {
  Place& out = all_[p];
  if (out.call == calls_) return out;
  out.call = calls_;
  out.paid = false;
  out.least = p <= kUnsure ? 1 : 2;
  out.most = p <= kUnsure ? 1 : kMany;
  return out;
}

// Finds the places that one token leads to, and pays for them. False: the work does not suffice, and
// none is left then.
bool Outline::expand(PlaceId p) {
  const Place& known = now(p);
  if (known.paid) return true;
  const auto refuse = [&] {
    work_ = 0;
    return false;
  };
  if (work_ < SearchCost::kLeast) return refuse();
  if (!known.expanded) {
    if (work_ <= known.too_dear) return refuse();
    // all_ may grow meanwhile, so this is a copy.
    Place found = known;
    if (found.string)
      expand_string(found.state, found);
    else if (!expand_state(found.state, found)) {
      all_[p].too_dear = work_;
      return refuse();
    }
    std::sort(found.to.begin(), found.to.end());
    found.to.erase(std::unique(found.to.begin(), found.to.end()), found.to.end());
    // A token that changes nothing is no step.
    std::erase(found.to, p);
    found.to.shrink_to_fit();
    found.cost += found.to.size();
    found.expanded = true;
    bytes_ += 4 * found.to.size() + 8 * found.tails.capacity();
    all_[p] = std::move(found);
  }
  Place& out = all_[p];
  if (out.cost > work_) return refuse();
  work_ -= out.cost;
  return out.paid = true;
}

// A breadth-first pass from all of the places: a level holds the places that so many tokens lead to.
// All places of a level are paid or the pass fails, so the answer does not depend on their order, which
// is the order of discovery and differs between epochs.
bool Outline::too_few(std::span<const PlaceId> any, uint32_t tokens) {
  if (tokens == 0) return true;
  ++questions_;
  std::vector<PlaceId> level, next;
  for (const PlaceId p : any) {
    Place& at = now(p);
    if (at.most <= tokens) return false;
    at.seen = questions_;
    if (at.least <= tokens) level.push_back(p);
  }
  const std::vector<PlaceId> asked = level;
  for (uint32_t left = tokens - 1; left > 0 && !level.empty(); --left) {
    for (const PlaceId p : level)
      if (!expand(p)) return false;
    next.clear();
    for (const PlaceId p : level)
      for (const PlaceId to : all_[p].to) {
        Place& at = now(to);
        if (at.most <= left) {
          if (asked.size() == 1) all_[asked[0]].most = tokens;
          return false;
        }
        if (std::exchange(at.seen, questions_) != questions_ && at.least <= left) next.push_back(to);
      }
    level.swap(next);
  }
  for (const PlaceId p : asked) all_[p].least = tokens + 1;
  return true;
}

bool Outline::too_few(StateId s, std::size_t tokens) {
  if (off_ || tokens > kDeep) return false;
  const std::vector<PlaceId> any = places(s);
  return too_few(any, static_cast<uint32_t>(tokens));
}

bool Outline::known_too_few(StateId s, std::size_t tokens) {
  const uint32_t* known = off_ ? nullptr : of_state_.find(s.v);
  return known && std::ranges::all_of(lists_[*known], [&](PlaceId p) { return now(p).least > tokens; });
}

// A token that stays in the string leads back to the same places, so if one token less is too few
// there, such a token cannot be the first.
bool Outline::leaving(StateId s, std::size_t tokens, std::vector<TokenId>& out) {
  if (off_) return false;
  const auto behind = static_cast<uint32_t>(tokens - 1);
  const std::vector<PlaceId> any = places(s);
  if (!std::ranges::all_of(any, [&](PlaceId p) { return all_[p].string; }) || !too_few(any, behind))
    return false;
  for (const PlaceId p : any)
    if (!expand(p)) return false;
  if (std::ranges::any_of(
          any, [&](PlaceId p) { return std::ranges::binary_search(all_[p].to, PlaceId{kUnsure}); }))
    return false;
  const World::Tails& tails = world_.tails();
  std::vector<PlaceId> there;
  for (const PlaceId p : any)
    for (std::size_t i = 0; i < all_[p].tails.size();) {
      const uint32_t node = all_[p].tails[i].second;
      there.clear();
      for (; i < all_[p].tails.size() && all_[p].tails[i].second == node; ++i)
        there.push_back(all_[p].tails[i].first);
      if (too_few(there, behind)) continue;
      if (node == kQuote) {
        out.insert(out.end(), tails.ends.begin(), tails.ends.end());
        continue;
      }
      const auto& nodes = tails.texts.nodes;
      for (uint32_t e = nodes[node].first; e < nodes[node + 1].first; ++e)
        out.push_back(tails.texts.entries[e].token);
    }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return true;
}

}  // namespace structgen
