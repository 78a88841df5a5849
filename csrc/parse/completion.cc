#include "parse/completion.h"

#include <algorithm>

#include "base/error.h"

namespace structgen {

namespace {
constexpr uint32_t kMaxDepth = 1'500;
constexpr uint64_t kMaxSteps = 2'000;
constexpr uint32_t kMaxText = 200'000;
constexpr uint32_t kClean = 0xFFFFFFFFu;
}  // namespace

void Completion::keep(Text& best, Text candidate) {
  if (candidate && (!best || candidate->size() < best->size())) best = std::move(candidate);
}

const std::string& Completion::shortest(RegexId r) {
  const auto [it, fresh] = regexes_.try_emplace(r.v);
  if (fresh) {
    if (parser_.regexes().node(r).shortest > kMaxText)
      throw Error(ErrorKind::kBudgetExceeded, "the shortest completion is too long to compute");
    parser_.regexes().witness(r, it->second);
  }
  return it->second;
}

// A set of literals and the reader of its label: the choice of the literal decides what follows.
Completion::Text Completion::labelled(RegexId r, RuleId reader) {
  RegexArena& regexes = parser_.regexes();
  Text best;
  Reading reading;
  reading.kind = Reading::kLabel;
  const RegexNode node = regexes.node(r);
  if (node.kind != RegexKind::kJsonSet || regexes.json_set_of(r).escape != 0) {
    const std::string text = shortest(r);
    const RegexNode& end = regexes.node(regexes.run(r, text));
    if (end.kind != RegexKind::kDone) return {};
    reading.label = end.min;
    if (Text rest = rule(reader, reading)) best = text + *rest;
    return best;
  }
  const JsonSet set = regexes.json_set_of(r);
  const LiteralTable& table = regexes.tables().table(set.table);
  for (uint32_t i = set.lo; i < set.hi; ++i) {
    if (!regexes.tables().any_allowed(set.subset, i, i + 1)) continue;
    std::string text;
    for (std::size_t at = set.depth; at < table.texts[i].size(); ++at) {
      const char c = table.texts[i][at];
      const uint8_t b = static_cast<uint8_t>(c);
      if (c == '"' || c == '\\') {
        text += '\\';
        text += c;
      } else if (b < 0x20) {
        static const char* hex = "0123456789abcdef";
        text += "\\u00";
        text += hex[b >> 4];
        text += hex[b & 15];
      } else {
        text += c;
      }
    }
    text += '"';
    if (best && text.size() >= best->size()) continue;
    reading.label = table.labels[i];
    if (const Text rest = rule(reader, reading)) keep(best, text + *rest);
  }
  return best;
}

void Completion::capture(CaptureId& c, std::string_view text) {
  if (c.v <= 1) return;
  for (char b : text) c = parser_.captures().append(c, static_cast<uint8_t>(b));
}

// `c` is the capture that is open where the symbols begin, and afterwards where they end.
Completion::Text Completion::sequence(std::span<const Symbol> symbols, CaptureId& c) {
  std::string out;
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    const Symbol s = symbols[i];
    Text part;
    switch (s.kind()) {
      case Symbol::kCapture:
        c = parser_.captures().start(c);
        continue;
      case Symbol::kTerminal:
        if (s.regex() == RegexArena::poison()) return {};
        if (parser_.regexes().node(s.regex()).labelled && i + 1 < symbols.size())
          part = labelled(s.regex(), symbols[++i].rule_id());
        else
          part = shortest(s.regex());
        break;
      case Symbol::kRule: part = rule(s.rule_id(), Reading{}); break;
      case Symbol::kReader: part = read(s.rule_id(), c); break;
    }
    if (!part) return {};
    out += *part;
    capture(c, *part);
    if (out.size() > kMaxText) return {};
  }
  return out;
}

// The reader of the text of the innermost capture, which ends here.
Completion::Text Completion::read(RuleId reader, CaptureId& c) {
  Reading reading;
  reading.kind = Reading::kUnknown;
  if (c.v > 1) {
    CaptureId outer;
    reading.kind = Reading::kText;
    reading.text = parser_.captures().finish(c, outer);
    c = outer;
  }
  return rule(reader, reading);
}

Completion::Text Completion::rule(RuleId r, const Reading& reading) {
  const bool memo = reading.kind == Reading::kNone || reading.kind == Reading::kLabel;
  const uint64_t key = (static_cast<uint64_t>(r.v) << 32) | (reading.kind == Reading::kLabel ? reading.label + 1 : 0);
  if (memo) {
    if (const auto it = rules_.find(key); it != rules_.end()) return it->second;
    if (const auto it = open_.find(key); it != open_.end()) {
      low_ = std::min(low_, it->second);
      return {};
    }
  }
  if (depth_ >= kMaxDepth || ++steps_ > 10 * kMaxSteps)
    throw Error(ErrorKind::kBudgetExceeded, "the shortest completion takes too long to find");
  const uint32_t before = low_, mine = depth_++;
  low_ = kClean;
  if (memo) open_.emplace(key, mine);
  Alternatives alts;
  productions_.expand_shortest(r, reading, alts);
  // Short alternatives first: closing an object is found before another member is tried.
  std::vector<std::pair<uint64_t, std::span<const Symbol>>> order;
  uint32_t begin = 0;
  for (uint32_t end : alts.ends) {
    uint64_t least = 0;
    const std::span<const Symbol> symbols(alts.symbols.data() + begin, end - begin);
    for (Symbol s : symbols)
      if (s.kind() == Symbol::kTerminal) least += parser_.regexes().node(s.regex()).shortest;
      else if (s.kind() != Symbol::kCapture) ++least;
    order.emplace_back(least, symbols);
    begin = end;
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  Text best;
  for (const auto& [least, symbols] : order) {
    // Past the budget the first way found is good enough.
    if (best && (least >= best->size() || steps_ > kMaxSteps)) break;
    CaptureId none;
    keep(best, sequence(symbols, none));
  }
  if (memo) open_.erase(key);
  depth_ = mine;
  if (memo && best && low_ >= mine) rules_.emplace(key, *best);
  low_ = low_ >= mine ? before : std::min(low_, before);
  return best;
}

// Down a stack; only where stacks join is there a choice. What follows an open capture depends on its text.
Completion::Text Completion::stack(StackId s, CaptureId c) {
  std::string out;
  while (true) {
    if (parser_.stacks().has_end(s)) break;
    if (const auto it = stacks_.find(s.v); it != stacks_.end() && c.v <= 1) {
      out += it->second;
      break;
    }
    const auto entries = parser_.stacks().entries(s);
    if (entries.empty()) return {};
    if (entries.size() > 1) {
      Text best;
      for (const StackEntry& e : std::vector<StackEntry>(entries.begin(), entries.end())) {
        const Symbol top = e.top;
        CaptureId here = c;
        const Text first = sequence({&top, 1}, here);
        if (!first) continue;
        if (const Text rest = stack(e.rest, here)) keep(best, *first + *rest);
      }
      if (!best) return {};
      if (best->size() < 4096 && c.v <= 1) stacks_.emplace(s.v, *best);
      out += *best;
      break;
    }
    const StackEntry e = entries[0];
    const Symbol top = e.top;
    const Text part = sequence({&top, 1}, c);
    if (!part) return {};
    out += *part;
    if (out.size() > 64u * kMaxText) throw Error(ErrorKind::kBudgetExceeded, "the shortest completion is too long");
    s = e.rest;
  }
  return out;
}

Completion::Text Completion::item(const Item& i) {
  if (i.regex == RegexArena::poison()) return {};
  CaptureId c = i.capture;
  if (!parser_.regexes().node(i.regex).labelled) {
    const std::string text = shortest(i.regex);
    capture(c, text);
    if (const Text rest = stack(i.stack, c)) return text + *rest;
    return {};
  }
  Text best;
  const auto entries = parser_.stacks().entries(i.stack);
  for (const StackEntry& e : std::vector<StackEntry>(entries.begin(), entries.end())) {
    const Text first = labelled(i.regex, e.top.rule_id());
    if (!first) continue;
    CaptureId here = c;
    capture(here, *first);
    if (const Text rest = stack(e.rest, here)) keep(best, *first + *rest);
  }
  return best;
}

const std::string& Completion::of(StateId s) {
  const auto [it, fresh] = states_.try_emplace(s.v);
  if (!fresh || parser_.state(s).accepting) return it->second;
  steps_ = 0;
  depth_ = 0;
  low_ = kClean;
  open_.clear();
  productions_.start_search();
  try {
    Text best;
    for (const Item& i : parser_.items(s)) keep(best, item(i));
    if (!best) throw Error(ErrorKind::kBudgetExceeded, "no completion was found");
    return states_[s.v] = std::move(*best);
  } catch (...) {
    states_.erase(s.v);
    throw;
  }
}

}  // namespace structgen
