// How a state's mask is put together.
//
// The problem. A state is a set of items: a regex that is being read, above a set of stacks. A token is
// allowed if some item reads all of its bytes. A token may end several terminals on its way. Stepping 131k
// tokens takes milliseconds, and a text meets many new states.
//
// The idea. An item is narrow if few bytes may follow in its regex; then few tokens fit, and all narrow items
// are walked together, down the trie of the vocabulary. An item is wide if many bytes may follow, at once or
// behind a byte with which many tokens begin. Most tokens that a wide item allows stay inside its regex.
// Which tokens stay inside does not depend on the stack, so they are a row that all states share
// (mask/slices.h). Only the tokens that leave the regex are walked. For the state after `["ab` of an array of
// strings:
//
//     item            any character*, then a quote; below it the rest of the array
//     base            the row of all tokens made of such characters: shared by every string of the world
//     exits           the tokens that hold a quote, sorted by what follows it: `"`, `",`, `"]`, `", "`, ...
//     ending()        walks what follows the quote once, from the state after it: `,` and `]` fit, `x` not
//     mask            base plus the tokens of that walk; states with the same ending share the list
//
// A walk goes from terminal to terminal (fill_walks.cc): what one regex reads below a set of nodes does not
// depend on the stack, so the world keeps it, and no state is made on the way.
//
// Captured text (keys of objects, items of uniqueItems) would make each token a state of its own. So the walk
// drops the captured text (blind states): a production that depends on the text answers with poison(), and
// tokens that lead to poison are `unsure`. Each unsure token is stepped by itself, with its text.
//
// Invariants.
// - mask(s) allows t exactly if accepting t from s leads to a live state. If the grammar tries texts
//   (GrammarTraits::tries_texts), the parser may refuse some tokens of the mask that end a captured text;
//   engine/rows.cc removes them. uncached() is the plain walk, and tests compare the two.
// - An item's part depends on (regex, stack, captured or not) alone, never on its neighbours, so it is
//   kept.
// - In a row, `removed` is applied first and added tokens last: no item takes away a token that another
//   item allows.
// - Rows, parts and endings stay where they are once a mask points to them.
//
// Costs. A known mask: one copy of V/8 bytes, without a lock. A new mask: a few microseconds where its
// parts are known, up to a walk of the trie for a regex that is met first.
//
// Rejected.
// - One state for a gap of up to 32 blanks, counted beside the walk: the masks were equal and no
//   faster.
// - A row of V bits for each state: it takes memory, and nothing is shared. Masks hold pointers and
//   short lists.
// - Counters in the walk: a string of at most 5000 characters would have 5000 states. Read as a run, such a
//   string has one row for each length (split(), `counted`).
#include "mask/fill.h"

#include <algorithm>
#include <cstring>

#include "base/depth.h"
#include "base/error.h"
#include "base/told.h"
#include "base/work.h"

namespace structgen {

namespace {
// An item is wide if at least this many different bytes may follow in its regex.
constexpr int kWideBytes = 24;
// split() treats a counter as a run if its maximum is at least kCountedRun, and an element may begin with
// more than kFewBytes different bytes.
constexpr uint32_t kCountedRun = 8;
constexpr int kFewBytes = 4;
// few_exits() returns false if at least this many bytes may leave a run and their exits are not known yet.
constexpr uint32_t kManyExits = 7;
// cover() considers no intersection of more kids than this.
constexpr uint32_t kSimple = 3;
// A mask with a longer list of tokens than this is stored as a row.
constexpr std::size_t kLongestList = 6'000;
}  // namespace

void write_row(const Mask& mask, const Vocabulary& vocabulary, uint32_t* row) {
  const std::size_t bytes = vocabulary.words() * 4ull;
  if (mask.dense)
    std::memcpy(row, mask.dense, bytes);
  else
    std::memset(row, 0, bytes);
  for (uint32_t i = 0; i < mask.n_removed; ++i) clear_bit(row, mask.removed[i]);
  for (uint32_t i = 0; i < mask.n_added; ++i) set_bit(row, mask.added[i]);
  for (uint32_t i = 0; i < mask.n_shared; ++i) set_bit(row, mask.shared[i]);
  if (mask.accepting)
    for (TokenId t : vocabulary.eos()) set_bit(row, t);
}

bool allows(const Mask& mask, const Vocabulary& vocabulary, TokenId t) {
  std::vector<uint32_t> row(vocabulary.words());
  write_row(mask, vocabulary, row.data());
  return get_bit(row, t);
}

bool MaskBuilder::wide(RegexId r) { return parser_.regexes().live(r).count() >= kWideBytes; }

// Tells whether many tokens begin with one byte of the regex, such as a blank, behind which many bytes may
// follow. A walk would list all these tokens.
bool MaskBuilder::opens(RegexId r) {
  RegexArena& regexes = parser_.regexes();
  const RegexNode& n = regexes.node(r);
  // Behind a byte of a gap the gap goes on.
  const bool gap = n.kind == RegexKind::kRepeat && regexes.node(RegexId{n.a}).kind == RegexKind::kBytes;
  bool found = false;
  if (!gap)
    (slices_.frequent() & regexes.live(r)).for_each([&](uint8_t b) {
      found = found || wide(regexes.step(r, b));
    });
  return found;
}

// Puts an item into `narrow` or into `wide_items`. Each wide kid of a union is an item of its own, but those
// that are intersections stay together, because each of them would take a walk of the trie. For
// `{"type": ["string", "integer"]}` the item in front of the value is narrow: `"`, `-` or a digit may come.
// Behind the quote the item of the string is wide.
void MaskBuilder::split(const Item& item, std::vector<Item>& narrow, std::vector<Item>& wide_items) {
  RegexArena& regexes = parser_.regexes();
  const RegexNode& n = regexes.node(item.regex);
  const bool set = n.kind == RegexKind::kLiteralSet;
  const bool narrow_item = item.regex == RegexArena::poison() || n.labelled;
  // A walk would make a state for every number of elements; a run makes no states. Blanks stay narrow,
  // because few tokens consist of blanks.
  const RegexArena::Counter c = regexes.counter(item.regex);
  const bool counted = !narrow_item && c.counted && c.max >= kCountedRun && c.max != kUnbounded &&
                       (wide(item.regex) || regexes.live(c.element).count() > kFewBytes);
  // While the item's captured text is known, a walk would make a state for each byte of this text. So the
  // item is wide.
  if (set || counted || ((item.capture.v > 1 || (!wide(item.regex) && opens(item.regex))) && !narrow_item)) {
    wide_items.push_back(item);
  } else if (narrow_item || !wide(item.regex)) {
    narrow.push_back(item);
  } else if (n.kind == RegexKind::kAlt) {
    std::vector<RegexId> rest, intersections;
    for (uint32_t i = 0; i < n.n; ++i) {
      const RegexId kid{n.kids[i]};
      if (!wide(kid))
        rest.push_back(kid);
      else if (regexes.node(kid).kind == RegexKind::kAnd)
        intersections.push_back(kid);
      else
        wide_items.push_back({kid, item.stack, item.capture});
    }
    if (!rest.empty())
      narrow.push_back({regexes.alt(std::span<const RegexId>(rest)), item.stack, item.capture});
    if (!intersections.empty())
      wide_items.push_back({regexes.alt(std::span<const RegexId>(intersections)), item.stack, item.capture});
  } else {
    wide_items.push_back(item);
  }
}

// Returns a regex that no single token can tell from r. More states then share their parts. A counter that no
// token reads to its end loses its maximum; below & and ~ the counter keeps its maximum, because the maximum
// may decide whether there is a text. An excluded literal is dropped if no token completes it.
//     longest token 128 bytes    [a-z]{0,5000}" -> [a-z]*"     [a-z]{200} -> [a-z]{129}[a-z]*
//     no token ends with `me"`   any*" & ~(`ame"`) -> any*"
RegexId MaskBuilder::clamp(RegexId r) {
  check_depth();
  RegexArena& regexes = parser_.regexes();
  const RegexNode n = regexes.node(r);
  if (n.kind == RegexKind::kAnd) {
    if (const auto* known = clamped_.find(r.v)) return RegexId{*known};
    const RegexId out = slices_.visible(r);
    clamped_.emplace(r.v, out.v);
    return out;
  }
  if (n.boolean || (n.kind != RegexKind::kCat && n.kind != RegexKind::kRepeat && n.kind != RegexKind::kAlt))
    return r;
  if (const auto* known = clamped_.find(r.v)) return RegexId{*known};
  const uint32_t limit = vocabulary_.longest() + 1;
  RegexId out = r;
  if (n.kind == RegexKind::kRepeat) {
    const uint32_t max = n.max > limit ? kUnbounded : n.max;
    out = regexes.repeat(RegexId{n.a}, std::min(n.min, limit), max);
  } else if (n.kind == RegexKind::kCat) {
    out =
        regexes.cat(clamp(RegexId{n.a}), regexes.nullable(RegexId{n.a}) ? clamp(RegexId{n.b}) : RegexId{n.b});
  } else {
    std::vector<RegexId> kids;
    for (uint32_t i = 0; i < n.n; ++i) kids.push_back(clamp(RegexId{n.kids[i]}));
    out = regexes.alt(std::span<const RegexId>(kids));
  }
  clamped_.emplace(r.v, out.v);
  return out;
}

// Tells whether the regex is any characters of a JSON string, followed by its closing quote.
bool MaskBuilder::plain_string(RegexId r) const {
  const RegexArena& regexes = parser_.regexes();
  if (regexes.node(r).kind != RegexKind::kCat || regexes.any_character() == RegexArena::empty()) return false;
  const RegexArena::Counter c = regexes.counter(r);
  if (!c.star() || c.element != regexes.any_character()) return false;
  const RegexNode& tail = regexes.node(c.tail);
  return tail.kind == RegexKind::kBytes && regexes.byte_set(tail.a) == ByteSet::of('"');
}

// Makes the part of an item that reads one of many literals (keys of an object, values of an enum). Tokens
// inside the literals make no states: they are compared with the table of literals. At the start of a set,
// the whole vocabulary is compared with the table, once for all states. Only tokens that complete a literal
// and go on are walked, from the state behind the literal.
//     enum ["red", "green"] after `"`    inside: `r`, `re`, `gre`; done: `red"`; `red",` goes on
void MaskBuilder::set_part(const Item& item, bool covered, Part& out) {
  RegexArena& regexes = parser_.regexes();
  const LiteralSet set = regexes.literal_set_of(item.regex);
  const LiteralTables& tables = regexes.tables();
  const TokenTrie& trie = vocabulary_.trie();
  const CaptureId capture = item.capture.v == 0 ? item.capture : CaptureArena::unknown();
  Collected found;
  const auto take = [&](const TableMask::Done& d) {
    const auto tokens = trie.tokens(d.node);
    const bool goes_on = !trie.leaf(d.node), unproven = parser_.unproven();
    if (!goes_on && !unproven) {
      found.sure.insert(found.sure.end(), tokens.begin(), tokens.end());
      return;
    }
    const RegexId end =
        set.labelled ? regexes.done(tables.table(set.table).labels[d.index]) : RegexArena::epsilon();
    const Item after{end, item.stack, capture};
    const StateId left = parser_.make(after);
    std::vector<TokenId>& to = unproven && !sure(left) ? found.unsure : found.sure;
    if (left != Parser::dead() || !unproven) to.insert(to.end(), tokens.begin(), tokens.end());
    if (goes_on) walk(d.node, left, found);
  };
  if (covered) {
    for (const TableMask::Done& d : slices_.completed(set)) take(d);
  } else if (set.depth == 0 && set.escape == 0) {
    const TableMask& mask = slices_.table(set.table);
    for (const TableMask::Inside& t : mask.inside) {
      const uint32_t lo = std::max(t.lo, set.lo), hi = std::min(t.hi, set.hi);
      if (tables.any_allowed(set.subset, lo, hi)) (t.exact ? found.sure : found.unsure).push_back(t.token);
    }
    for (const TableMask::Done& d : mask.done)
      if (d.index >= set.lo && d.index < set.hi && tables.any_allowed(set.subset, d.index, d.index + 1))
        take(d);
  } else {
    TableMask rest;
    slices_.read_literals(set, rest);
    for (const TableMask::Inside& t : rest.inside) found.sure.push_back(t.token);
    for (const TableMask::Done& d : rest.done) take(d);
  }
  out.added = std::move(found.sure);
  out.unsure = std::move(found.unsure);
  out.worst = found.worst;
}

// Makes the part of a run that ends with one byte and excludes some literals: the characters of a key up to
// its quote, without the keys that were written. Its tokens are the run's row and one list. Tokens that
// complete an excluded literal, or go on behind it, are removed. Returns false if the regex has another form.
bool MaskBuilder::string_part(const Item& item, Part& out) {
  RegexArena& regexes = parser_.regexes();
  Collected found;
  std::vector<LiteralSet> sets;
  RegexId base = item.regex;
  if (const std::vector<RegexId> kept = regexes.without_words(item.regex); !kept.empty()) {
    base = regexes.both(std::span<const RegexId>(kept));
    if (base != item.regex && !regexes.excluded_literals(item.regex, sets)) return false;
  }
  const RunExits* const exits = slices_.exits(base);
  const CaptureId capture = item.capture.v == 0 ? item.capture : CaptureArena::unknown();
  if (!exits) return false;
  const Behind next = behind({RegexArena::epsilon(), item.stack, capture});
  if (!next.any || !next.is_sure) return false;
  std::vector<uint32_t> completed;
  for (const LiteralSet& set : sets)
    for (const TableMask::Done& d : slices_.completed(set)) completed.push_back(d.node);
  std::sort(completed.begin(), completed.end());
  const NodeSetId from = slices_.walks().exits(*exits, completed);
  if (!by_terminals(next.items, from, found, nullptr)) return false;
  const TokenTrie& trie = vocabulary_.trie();
  for (uint32_t node : completed)
    out.removed.insert(out.removed.end(), trie.tokens(node).begin(), trie.tokens(node).end());
  out.base = &exits->unbounded;
  out.left = std::move(found.sure);
  out.shared = &out.left;
  out.unsure = std::move(found.unsure);
  out.worst = found.worst;
  return true;
}

// Makes the part of E{min,max} followed by `tail`. The part has the tokens of the run and, for each byte with
// which `tail` may begin, the tokens that leave the run by this byte.
void MaskBuilder::run_part(const Item& item, RunClass& run, uint32_t min, uint32_t max, RegexId tail,
                           Part& out) {
  const CaptureId capture = item.capture.v == 0 ? item.capture : CaptureArena::unknown();
  const Item after{tail, item.stack, capture};
  const StateId left = parser_.make(after);
  const ByteSet next = parser_.live(left);
  if (const std::vector<TokenId>* few = run.list_up_to(max))
    out.added = *few;
  else
    out.base = &run.up_to(max);
  out.worst = {};
  next.for_each([&](uint8_t b) {
    const StateId into = blind(parser_.step(left, b));
    if (into == Parser::dead()) return;
    note(into, out.worst);
    const RunExits& exits = run.exits(b);
    const auto in_range = [&](uint32_t count) { return count >= min && count <= max; };
    for (const Suffixes::Entry& e : exits.ends)
      if (in_range(e.count)) (sure(into) ? out.added : out.unsure).push_back(e.token);
    const Ending& end = ending(exits.suffixes, into);
    out.worst.add(end.worst);
    for (std::size_t i = 0; i < end.sure.size(); ++i)
      if (in_range(end.sure_counts[i])) out.added.push_back(end.sure[i]);
    for (std::size_t i = 0; i < end.unsure.size(); ++i)
      if (in_range(end.unsure_counts[i])) out.unsure.push_back(end.unsure[i]);
  });
}

// Makes the part of a regex from its TerminalMask. The part has the tokens inside the regex, and the tokens
// that leave the regex where it may end and are then read from the state behind it.
void MaskBuilder::terminal_part(const Item& item, const TerminalMask& t, Part& out) {
  out.base = t.base;
  out.added = t.added;
  out.removed = t.removed;
  out.worst = {};
  const CaptureId capture = item.capture.v == 0 ? item.capture : CaptureArena::unknown();
  const StateId left = parser_.continuation(item.stack, capture);
  Collected found;
  if (parser_.unproven() &&
      // What follows may depend on the text with which the terminal ended. Shared lists cannot tell such
      // texts apart, so the tokens of this item are walked.
      (left == Parser::dead() || !sure(left))) {
    const Item whole{item.regex, item.stack, capture};
    out = {};
    found.plain = true;
    walk(0, parser_.make(whole), found);
    out.added = std::move(found.sure);
    out.unsure = std::move(found.unsure);
    out.worst = found.worst;
    return;
  }
  if (left == Parser::dead()) return;
  if (!by_terminals(parser_.items(left), t.exit_set, found, nullptr)) {
    const ByteSet next = parser_.live(left);
    const TokenTrie& trie = vocabulary_.trie();
    for (uint32_t node : t.exits)
      if ((trie.kids(node).set & next).any()) walk(node, left, found);
  }
  if (!t.open.empty()) leave_open(t, left, found);
  if (t.left) {
    const Ending& end = ending(t.left->suffixes, left);
    found.worst.add(end.worst);
    const auto blocked = [&](TokenId id) {
      return std::binary_search(t.blocked.begin(), t.blocked.end(), id);
    };
    if (t.blocked.empty())
      out.shared = &end.sure;
    else
      std::remove_copy_if(end.sure.begin(), end.sure.end(), std::back_inserter(found.sure), blocked);
    std::remove_copy_if(end.unsure.begin(), end.unsure.end(), std::back_inserter(found.unsure), blocked);
  }
  out.added.insert(out.added.end(), found.sure.begin(), found.sure.end());
  out.unsure = std::move(found.unsure);
  out.worst = found.worst;
}

// Raises `worst` to the bounds of a text inside the item, which are those of its regex and of its stack
// together.
void MaskBuilder::note(const Item& item, Worst& worst) {
  if (!measures(worst)) return;
  const uint32_t begun = lengths_->begun(item.regex);
  const Growth::LengthRange some = growth_ ? growth_->parts(item.stack).widest : Growth::LengthRange{};
  worst.add({Lengths::sum(begun, lengths_->stack(item.stack)), Lengths::sum(begun, some.from), some.to()});
}

// Tells whether to take the tokens that leave a run from its exits, byte by byte. A walk of the trie is
// cheaper in three cases. First: many bytes may leave the run, and their exits are not known yet; few states
// would share these exits. Second: a byte that leaves the run may also begin an element, so that tokens may
// leave the run behind every element. The backslash is an exception, because few tokens have one. Third: many
// tokens leave the run by one byte, and free text follows it (opens()).
bool MaskBuilder::few_exits(const RunClass& run, RegexId of, const Item& item, RegexId tail) {
  if (opens(tail)) return false;
  const Item after{tail, item.stack, item.capture.v == 0 ? item.capture : CaptureArena::unknown()};
  const ByteSet& element = parser_.regexes().live(of);
  uint32_t n = 0;
  parser_.live(parser_.make(after)).for_each([&](uint8_t b) {
    if (!run.has_exits(b)) n += element.has(b) && b != '\\' ? kManyExits : 1;
  });
  return n < kManyExits;
}

// Returns an item for which every text of string characters can lead to an end, or null. This item allows all
// tokens inside strings, so of every other item only the tokens that leave it are needed. Items overlap in
// this way while an object tells keys apart: keys with `foo` and keys without `foo`, or a known key and any
// other key.
const Item* MaskBuilder::cover(const std::vector<Item>& wide_items) {
  if (wide_items.size() < 2) return nullptr;
  RegexArena& regexes = parser_.regexes();
  // The form of a regex. kPattern: an intersection of runs alone, or with a kid that is neither a run nor the
  // complement of a finite set. kLess: a set of literals, or runs without some literals; their masks are
  // cheap by other means. kOther: anything else.
  enum Form { kPattern, kLess, kOther };
  const auto form = [&](RegexId r) {
    const RegexNode n = regexes.node(r);
    if (n.kind != RegexKind::kAnd) return n.kind == RegexKind::kLiteralSet ? kLess : kOther;
    bool literals = false;
    for (uint32_t i = 0; i < n.n; ++i) {
      const RegexNode& k = regexes.node(RegexId{n.kids[i]});
      if (k.kind == RegexKind::kNot && regexes.node(RegexId{k.a}).finite)
        literals = true;
      else if (!regexes.counter(RegexId{n.kids[i]}).counted)
        return kPattern;
    }
    return literals ? kLess : kPattern;
  };
  bool patterns = false, literals = false;
  for (const Item& i : wide_items) {
    patterns = patterns || form(i.regex) == kPattern;
    literals = literals || regexes.node(i.regex).kind == RegexKind::kLiteralSet;
  }
  if (literals && !parser_.unproven())
    for (const Item& i : wide_items)
      if (plain_string(clamp(i.regex))) return &i;
  if (!patterns) return nullptr;
  // Tells whether the intersection has so few kids that covers() may be asked.
  const auto simple = [&](RegexId r) {
    const RegexNode n = regexes.node(r);
    return !n.boolean || (n.kind == RegexKind::kAnd && n.n <= kSimple);
  };
  for (const Item& i : wide_items)
    if (simple(i.regex) && form(i.regex) != kLess && slices_.covers(i.regex)) return &i;
  return nullptr;
}

// Returns the part of a wide item, by the form of its regex: literals, a run, or any other terminal. For
// literals the result is `scratch`, because few other states have the same item. Other parts are remembered
// by regex and stack.
const MaskBuilder::Part& MaskBuilder::part(const Item& item, bool covered, Part& scratch) {
  const RegexId clamped = clamp(item.regex);
  const RegexKind kind = parser_.regexes().node(clamped).kind;
  if (kind == RegexKind::kLiteralSet) {
    set_part(item, covered, scratch);
    return scratch;
  }
  covered = covered && kind == RegexKind::kAnd;
  auto& memo = parts_[2 * covered + (item.capture.v != 0)];
  std::unique_ptr<Part>& slot = memo[(static_cast<uint64_t>(clamped.v) << 32) | item.stack.v];
  if (slot && measured(slot->worst)) return *slot;
  auto out = std::make_unique<Part>();
  const auto done = [&]() -> const Part& {
    out->worst = as_measured(out->worst);
    // This part was made before bounds were measured. Only its bounds are set; the rest stays, because masks
    // point to it.
    if (slot) {
      slot->worst = out->worst;
      return *slot;
    }
    bytes_ += 200 + 4 * (out->added.capacity() + out->removed.capacity() + out->left.capacity() +
                         out->unsure.capacity());
    slot = std::move(out);
    return *slot;
  };
  const Item clamped_item{clamped, item.stack, item.capture};
  if (string_part({clamped, item.stack, item.capture}, *out)) return done();
  const RegexArena::Counter c = parser_.regexes().counter(clamped);
  RunClass* const run = c.counted ? slices_.run(c.element) : nullptr;
  const TerminalMask* leaving = covered ? slices_.leaving(clamped) : nullptr;
  if (run && few_exits(*run, c.element, item, c.tail))
    run_part(clamped_item, *run, c.min, c.max, c.tail, *out);
  else
    terminal_part(clamped_item, leaving ? *leaving : slices_.terminal(clamped), *out);
  return done();
}

const TokenId* MaskBuilder::keep(std::vector<TokenId>& tokens, uint32_t& n) {
  n = static_cast<uint32_t>(tokens.size());
  return pool_.copy(std::span<const TokenId>(tokens)).data();
}

// Stores and publishes the mask of a state. A list of more than kLongestList tokens becomes a row. If a mask
// is only a list, all states with an equal list share one mask: states at different depths of nesting have
// equal lists.
const Mask* MaskBuilder::finish(StateId s, const Words* base, const std::vector<TokenId>* shared,
                                std::vector<TokenId>& removed, std::vector<TokenId>& added, bool runs) {
  Mask m;
  const auto publish_list = [&] {
    const std::span<const TokenId> list(added);
    const bool accepting = parser_.state(s).accepting;
    uint64_t hash = accepting;
    for (const TokenId t : list) hash = mix(hash, static_cast<uint64_t>(t));
    const uint32_t n = list_index_.find_or_add(
        hash,
        [&](uint32_t i) {
          return lists_[i]->accepting == accepting &&
                 std::ranges::equal(std::span(lists_[i]->added, lists_[i]->n_added), list);
        },
        [&] {
          m.added = keep(added, m.n_added);
          return lists_.emplace_back(publish(s, m));
        });
    parser_.state(s).mask.store(lists_[n], std::memory_order_release);
    return lists_[n];
  };
  if (!base && !shared && removed.empty() && added.size() <= kLongestList) return publish_list();
  if (added.size() + removed.size() > kLongestList) {
    uint32_t* row = pool_.allocate<uint32_t>(vocabulary_.words());
    Mask plain;
    plain.dense = base ? base->data() : nullptr;
    plain.added = added.data();
    plain.n_added = static_cast<uint32_t>(added.size());
    plain.removed = removed.data();
    plain.n_removed = static_cast<uint32_t>(removed.size());
    write_row(plain, vocabulary_, row);
    m.dense = row;
  } else {
    m.dense = base ? base->data() : nullptr;
    m.added = keep(added, m.n_added);
    m.removed = keep(removed, m.n_removed);
  }
  if (shared) {
    m.shared = shared->data();
    m.n_shared = static_cast<uint32_t>(shared->size());
  }
  m.inside_run = runs && base && m.dense == base->data();
  return publish(s, m);
}

// Stores a mask with its state, where other threads read it without a lock.
const Mask* MaskBuilder::publish(StateId s, Mask mask) {
  mask.accepting = parser_.state(s).accepting;
  Mask* out = pool_.allocate<Mask>(1);
  *out = mask;
  parser_.state(s).mask.store(out, std::memory_order_release);
  return out;
}

const Mask* MaskBuilder::mask(StateId s) {
  if (const Mask* known = peek(s)) return known;
  return make(s, true);
}

void MaskBuilder::measure(StateId s) { make(s, !peek(s)); }

// Sets State::loose and State::grows from `worst`, the bounds behind the token that is worst for them. A
// budget refuses no token if it has room for the token, a token for each byte that completes the text, and
// the end token.
void MaskBuilder::set_loose(StateId s, const Worst& worst) {
  if (!lengths_) return;
  State& st = parser_.state(s);
  if (growth_) {
    st.grows_to.store(worst.to, std::memory_order_relaxed);
    st.grows.store(worst.from + 1, std::memory_order_release);
  }
  st.loose.store(worst.bytes + 2, std::memory_order_release);
}

// Makes the mask of a state and measures its bounds. With keep = false the mask must be known, and only the
// bounds are measured.
const Mask* MaskBuilder::make(StateId s, bool keep) {
  if (lexed(s)) {
    set_loose(s, kNoBound);
    return keep ? gathered(s) : nullptr;
  }
  const RegexArena& regexes = parser_.regexes();
  std::vector<Item> narrow, wide_items;
  for (const Item& i : parser_.items(s)) split(i, narrow, wide_items);
  Collected found;
  Union all;
  if (!vocabulary_.trie().leaf(0)) {
    if (wide_items.empty())
      walk(0, s, found);
    else if (!narrow.empty())
      walk(0, narrow, found);
  }
  if (keep) try_out(s, found.unsure, found.sure);
  // True while `inside_run` may be set. A narrow item forbids `inside_run`, because its texts may be the
  // shortest completions, and a token of the run may exclude these texts.
  bool runs = narrow.empty();
  const Item* const by = cover(wide_items);
  for (const Item& item : wide_items) {
    const bool covered = by && by != &item;
    // The item `by` allows all tokens inside this item's literals, and no token completes one of them. So
    // this item adds no token.
    if (covered && regexes.node(item.regex).kind == RegexKind::kLiteralSet &&
        slices_.completed(regexes.literal_set_of(item.regex)).empty()) {
      runs = false;
      continue;
    }
    Part scratch;
    const Part& p = part(item, covered, scratch);
    note(item, found.worst);
    if (lengths_) found.worst.add(p.worst);
    if (!keep) continue;
    const RegexArena::Counter c = regexes.counter(item.regex);
    runs = runs && p.base && c.counted && c.min == 0 && regexes.is_character(c.element);
    if (p.base) add_row(p, all);
    if (p.shared && !all.shared)
      all.shared = p.shared;
    else if (p.shared && p.shared != all.shared)
      found.sure.insert(found.sure.end(), p.shared->begin(), p.shared->end());
    found.sure.insert(found.sure.end(), p.added.begin(), p.added.end());
    try_out(s, p.unsure, found.sure);
  }
  set_loose(s, found.worst);
  if (!keep) return nullptr;
  if (!all.joined) return finish(s, all.base, all.shared, all.removed, found.sure, runs);
  for (TokenId t : found.sure) set_bit(all.joined, t);
  if (all.shared)
    for (TokenId t : *all.shared) set_bit(all.joined, t);
  return publish(s, {.dense = all.joined});
}

// Adds to `sure` those of the tokens that the parser reads with the captured text.
void MaskBuilder::try_out(StateId s, std::span<const TokenId> unsure, std::vector<TokenId>& sure) {
  for (TokenId t : unsure)
    if (accepts(s, vocabulary_.bytes(t))) sure.push_back(t);
}

// Joins the row of a part to the rows of earlier parts. The first row is shared; from the second row on the
// union has a row of its own. A token that an earlier part allows stays, even if this part lacks it.
void MaskBuilder::add_row(const Part& p, Union& all) {
  if (!all.base) {
    all.base = p.base;
    all.removed = p.removed;
    return;
  }
  const std::size_t words = vocabulary_.words();
  if (!all.joined) {
    all.joined = pool_.allocate<uint32_t>(words);
    std::ranges::copy(*all.base, all.joined);
    for (TokenId t : all.removed) clear_bit(all.joined, t);
  }
  std::vector<TokenId> absent;
  for (TokenId t : p.removed)
    if (!has_bit(all.joined, t)) absent.push_back(t);
  for (std::size_t i = 0; i < words; ++i) all.joined[i] |= (*p.base)[i];
  for (TokenId t : absent) clear_bit(all.joined, t);
}

// Finds tokens by a breadth-first search of the trie, so that short tokens come first. The search takes the
// steps that the parser takes when a token is accepted, so every token that it finds can be accepted.
void MaskBuilder::some(StateId s, uint32_t* row) {
  std::fill_n(row, vocabulary_.words(), 0u);
  bool any = false;
  if (parser_.state(s).accepting)
    for (TokenId t : vocabulary_.eos()) {
      set_bit(row, t);
      any = true;
    }
  const TokenTrie& trie = vocabulary_.trie();
  std::vector<std::pair<uint32_t, StateId>> level{{0, s}}, next;
  FirstLimit limit;
  // Calls f() with a share of the work that is left. Returns false if the share does not suffice.
  const auto within = [&](auto&& f) {
    const WorkScope part(meter.task(), share_of_work());
    return limit.otherwise(false, [&] {
      f();
      return true;
    });
  };
  while (!level.empty() && !(any && meter.exhausted())) {
    next.clear();
    for (const auto& [node, state] : level) {
      if (any && meter.left() <= 0) break;
      if (trie.leaf(node)) continue;
      ByteSet bytes;
      const TokenTrie::Kids& kids = trie.kids(node);
      if (!within([&] { bytes = kids.set & parser_.live(state); })) bytes = kids.set;
      bytes.for_each([&](uint8_t b) {
        if (any && meter.left() <= 0) return;
        StateId to = Parser::dead();
        if (!within([&] { to = parser_.step(state, b); }) || to == Parser::dead()) return;
        const uint32_t child = trie.child(kids, b);
        for (TokenId t : trie.tokens(child)) {
          set_bit(row, t);
          any = true;
        }
        if (!trie.leaf(child)) next.emplace_back(child, to);
      });
    }
    std::swap(level, next);
  }
  if (any) return;
  limit.rethrow();
  throw Error(ErrorKind::kBudgetExceeded,
              "no allowed token was found within the limit; raise Limits(mask=...)");
}

void MaskBuilder::uncached(StateId s, std::vector<TokenId>& scratch, Mask& out) {
  Collected found;
  found.plain = true;
  if (!vocabulary_.trie().leaf(0)) walk(0, s, found);
  scratch = std::move(found.sure);
  for (TokenId t : found.unsure)
    if (accepts(s, vocabulary_.bytes(t))) scratch.push_back(t);
  out = Mask{};
  out.added = scratch.data();
  out.n_added = static_cast<uint32_t>(scratch.size());
  out.accepting = parser_.state(s).accepting;
}

}  // namespace structgen
