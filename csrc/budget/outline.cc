#include "budget/outline.h"

#include <algorithm>

#include "base/depth.h"
#include "base/work.h"

namespace structgen {

namespace {
constexpr uint32_t kLong = 8;  // characters from which a string keeps its length
}  // namespace

// Whether r is one blank.
bool Outline::blank(RegexId r) const {
  const RegexNode& n = parser_.regexes().node(r);
  if (n.kind != RegexKind::kBytes) return false;
  ByteSet others = parser_.regexes().byte_set(n.a);
  for (const char b : {' ', '\n', '\r', '\t'}) others.remove(static_cast<uint8_t>(b));
  return others.none();
}

// Whether every text of r ends with the quote that ends a string, and nothing is lost by saying no more.
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

// r, with any number of blanks where some may still come first.
RegexId Outline::loose(RegexId r) {
  RegexArena& regexes = parser_.regexes();
  RegexId element, tail;
  uint32_t min, max;
  if (!as_run(regexes, r, element, min, max, tail) || min != 0 || max == kUnbounded) return r;
  return blank(element) ? regexes.cat(regexes.star(element), tail) : r;
}

Outline::PlaceId Outline::find(uint64_t key, StateId s, bool string) {
  const auto [slot, fresh] = of_key_.emplace(key, static_cast<uint32_t>(all_.size()));
  if (!fresh) return slot;
  Place p;
  p.state = s;
  p.string = string;
  all_.push_back(std::move(p));
  bytes_ += sizeof(Place);
  return static_cast<PlaceId>(all_.size() - 1);
}

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

// Where s is: it is completed where one of these is.
const std::vector<Outline::PlaceId>& Outline::places(StateId s) {
  if (const uint32_t* known = of_state_.find(s.v)) return lists_[*known];
  if (all_.empty()) all_.resize(2);
  all_[kEnd].least = all_[kEnd].most = 1;
  all_[kUnsure].least = all_[kUnsure].most = 1;
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

// What tokens hold behind a quote, in depth-first order, with the state of each depth at hand.
void Outline::expand_string(StateId left, Place& out, uint64_t& spent) {
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
    spent += SearchCost::kUnit;
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

// Over the trie, likewise. False: it takes more work than there is.
bool Outline::expand_state(StateId from, Place& out, uint64_t& spent) {
  const TokenTrie& trie = world_.vocabulary->trie();
  StateId last = Parser::unknown();
  return SearchCost::walk(parser_, trie, from, work_, spent,
                          [&](uint32_t node, StateId before, StateId next) {
                            if (next != before) next = masks_.blind(next);
                            if (parser_.state(next).poisoned)
                              out.to.push_back(kUnsure);  // longer tokens lead on from here
                            if (next != last && !trie.tokens(node).empty()) {
                              last = next;
                              const std::vector<PlaceId>& there = places(next);
                              out.to.insert(out.to.end(), there.begin(), there.end());
                            }
                            return next;
                          });
}

// Finds the places that one token leads to. False: that is too much.
bool Outline::expand(PlaceId p) {
  if (all_[p].expanded) return true;
  if (bytes_ > world_.policy.outline() || work_ < SearchCost::kLeast || work_ <= all_[p].too_little)
    return false;
  Place now = all_[p];  // others are found meanwhile
  uint64_t spent = 0;
  const uint64_t had = work_;
  bool done = true;
  if (now.string)
    expand_string(now.state, now, spent);
  else
    done = expand_state(now.state, now, spent);
  work_ -= std::min(work_, spent);
  if (!done) {
    all_[p].too_little = had;
    return false;
  }
  std::sort(now.to.begin(), now.to.end());
  now.to.erase(std::unique(now.to.begin(), now.to.end()), now.to.end());
  std::erase(now.to, p);  // a token that changes nothing
  now.to.shrink_to_fit();
  now.expanded = true;
  bytes_ += 4 * now.to.size() + 8 * now.tails.capacity();
  all_[p] = std::move(now);
  return true;
}

bool Outline::place_too_few(PlaceId p, uint32_t tokens) {
  check_depth();
  if (all_[p].least > tokens) return true;
  if (all_[p].most <= tokens || !expand(p)) return false;
  const std::size_t n = all_[p].to.size();
  work_ -= std::min<uint64_t>(work_, n);
  for (std::size_t i = 0; i < n; ++i)
    if (const Place& to = all_[all_[p].to[i]]; to.most < tokens) {
      all_[p].most = std::min(all_[p].most, to.most + 1);
      return false;
    }
  for (std::size_t i = 0; i < n; ++i) {
    const PlaceId to = all_[p].to[i];
    if (place_too_few(to, tokens - 1)) continue;
    if (all_[to].most < tokens) all_[p].most = std::min(all_[p].most, tokens);
    return false;
  }
  all_[p].least = std::max(all_[p].least, tokens + 1);
  return true;
}

bool Outline::too_few(std::span<const PlaceId> any, uint32_t tokens) {
  return std::ranges::all_of(any, [&](PlaceId p) { return place_too_few(p, tokens); });
}

bool Outline::too_few(StateId s, std::size_t tokens) {
  if (off_ || tokens > kDeep) return false;
  const std::vector<PlaceId> any = places(s);
  return too_few(any, static_cast<uint32_t>(tokens));
}

bool Outline::known_too_few(StateId s, std::size_t tokens) {
  const uint32_t* known = off_ ? nullptr : of_state_.find(s.v);
  return known && std::ranges::all_of(lists_[*known], [&](PlaceId p) { return all_[p].least > tokens; });
}

bool Outline::leaving(StateId s, std::size_t tokens, std::vector<TokenId>& out) {
  if (off_) return false;
  const std::vector<PlaceId> any = places(s);
  if (!std::ranges::all_of(any, [&](PlaceId p) {
        return all_[p].string && place_too_few(p, static_cast<uint32_t>(tokens - 1)) && all_[p].expanded &&
               !std::ranges::binary_search(all_[p].to, kUnsure);
      }))
    return false;
  const World::Tails& tails = world_.tails();
  for (const PlaceId p : any)
    for (std::size_t i = 0; i < all_[p].tails.size(); ++i) {
      const auto [to, node] = all_[p].tails[i];
      if (place_too_few(to, static_cast<uint32_t>(tokens - 1))) continue;
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
