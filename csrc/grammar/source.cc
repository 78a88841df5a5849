// The rules of a grammar as written; source.h has the form. Whoever makes nodes (the binding of
// GrammarBuilder, the reader of written grammars) asks fault(), so that lowering may trust them.
//
// Cost: linear in the node.
#include "grammar/source.h"

#include <algorithm>

#include "base/utf8.h"
#include "parse/productions.h"
#include "regex/regex.h"

namespace structgen {

uint32_t GrammarSource::capture(const std::string& name) {
  const auto at = std::ranges::find(captures, name);
  const auto number = static_cast<uint32_t>(at - captures.begin());
  if (at == captures.end()) captures.push_back(name);
  return number;
}

const char* fault(const GrammarSource& s, const GrammarNode& n, std::size_t before) {
  constexpr uint32_t kMostRepeats = 1u << 30;
  constexpr const char* kOutside = "a reference lies outside its list";
  constexpr const char* kParts = "a node has parts that its kind does not allow";
  std::size_t kids = 0;
  // `a` must be smaller than the number of things (rules, parts, ...) that it may name.
  std::size_t named = std::size_t{kUnbounded} + 1;
  switch (n.op) {
    case NodeOp::kSequence:
    case NodeOp::kChoice:
    case NodeOp::kBoth: kids = n.kids.size(); break;
    case NodeOp::kRepeat:
      kids = 1;
      if (n.b < n.a) return "a repetition's bounds are the wrong way round";
      if (n.a > kMostRepeats || (n.b != kUnbounded && n.b > kMostRepeats))
        return "a repetition's bound is too large";
      break;
    case NodeOp::kNot:
    case NodeOp::kShortest: kids = 1; break;
    case NodeOp::kCapture:
      kids = 1;
      named = s.captures.size();
      break;
    case NodeOp::kSplit:
      kids = 2;
      named = s.captures.size();
      if (n.b >= named) return kOutside;
      break;
    case NodeOp::kLimit:
      kids = 1;
      if (n.a > kMaxNumber) return "a limit of tokens is out of range";
      break;
    case NodeOp::kByte:
      if (n.text.empty()) return "no byte to choose from";
      break;
    case NodeOp::kChars:
      for (const CodepointRange& r : n.ranges)
        if (r.lo > r.hi || r.hi > kMaxCodepoint)
          return "a class of characters has a range out of order or beyond Unicode";
      break;
    case NodeOp::kRule: named = s.rules.size(); break;
    case NodeOp::kLexeme:
      named = s.lexemes.size();
      if (n.a < named &&
          (s.lexemes[n.a].node >= before || s.lexemes[n.a].whole >= static_cast<int64_t>(before)))
        return kOutside;
      break;
    case NodeOp::kGap: named = s.gaps.size(); break;
    case NodeOp::kPart: named = s.parts; break;
    case NodeOp::kPattern:
      if (!valid_utf8(n.text)) return "a pattern that is not UTF-8";
      break;
    case NodeOp::kEmpty:
    case NodeOp::kNever:
    case NodeOp::kBytes:
    case NodeOp::kTokens:
    case NodeOp::kSubstring: break;
  }
  if (n.a >= named || std::ranges::any_of(n.kids, [&](uint32_t k) { return k >= before; })) return kOutside;
  if (n.kids.size() != kids || (n.op != NodeOp::kTokens && !n.ids.empty()) ||
      (n.op != NodeOp::kSubstring && !n.units.empty()))
    return kParts;
  return nullptr;
}

}  // namespace structgen
