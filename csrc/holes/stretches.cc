#include "holes/stretches.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/depth.h"
#include "base/undo.h"
#include "holes/anywhere.h"
#include "parse/productions.h"

namespace structgen {

namespace {
// texts() takes at most so many steps, and 64 for each text and byte that is asked for.
constexpr std::size_t kTextSteps = 4096;
// A search for exits that has met kManyPairs pairs asks how many exits there can be.
constexpr std::size_t kManyPairs = 256;
// More bytes than any shortest text has.
constexpr uint64_t kAnyLength = ~uint64_t{0};
constexpr uint64_t pair_of(RegexId r, Path::Spot s) { return static_cast<uint64_t>(r.v) << 32 | s; }

// The order of bytes in texts that people may read: letters and digits come first.
bool readable(uint8_t a, uint8_t b) {
  const auto odd = [](uint8_t c) {
    return !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'));
  };
  return std::pair(odd(a), a) < std::pair(odd(b), b);
}

// The bytes with which texts of the regex may end; all bytes if the form of the regex does not tell.
ByteSet last_bytes(const RegexArena& regexes, RegexId r) {
  check_depth();
  const RegexNode& n = regexes.node(r);
  switch (n.kind) {
    case RegexKind::kBytes: return regexes.byte_set(n.a);
    case RegexKind::kLiteral: return ByteSet::of(static_cast<uint8_t>(n.text[n.n - 1]));
    case RegexKind::kCat: {
      const RegexId tail{n.b};
      return regexes.node(tail).nullable ? ByteSet::all() : last_bytes(regexes, tail);
    }
    case RegexKind::kAnd:
    case RegexKind::kAlt: {
      const bool every = n.kind == RegexKind::kAnd;
      ByteSet out = every ? ByteSet::all() : ByteSet{};
      for (uint32_t i = 0; i < n.n; ++i) {
        const ByteSet one = last_bytes(regexes, RegexId{n.kids[i]});
        out = every ? out & one : out | one;
      }
      return out;
    }
    default: return ByteSet::all();
  }
}
}  // namespace

std::size_t Stretches::byte_size() const {
  return index_.byte_size() + found_.size() * sizeof(std::vector<Exit>) + bytes_;
}

// ---- where texts end ----

// A search in breadth over pairs (derivative, spot), so that the first way to an exit is a shortest one.
class Stretches::ExitSearch {
 public:
  ExitSearch(Stretches& of, RegexId r, Spot from)
      : of_(of), regexes_(of.regexes_), path_(of.path_), regex_(r), from_(from) {}

  std::vector<Exit> run() {
    if (path_.loops(from_) && path_.text_behind(from_))
      begin_behind_hole();
    else
      next_.push_back({regex_, from_});
    while (!next_.empty() && !all_found()) {
      todo_.swap(next_);
      ++bytes_;
      for (; !todo_.empty();) {
        const Pair pair = todo_.back();
        todo_.pop_back();
        read(pair);
      }
    }
    // A regex that ends in several ways at one spot ends there once.
    std::ranges::sort(found_, {}, [](const Exit& x) { return std::tuple(x.spot, x.label, x.length); });
    const auto same = [](const Exit& x, const Exit& y) { return x.spot == y.spot && x.label == y.label; };
    found_.erase(std::unique(found_.begin(), found_.end(), same), found_.end());
    return std::move(found_);
  }

 private:
  struct Pair {
    RegexId regex;
    Spot spot;
  };

  // A regex that begins in the last hole may read any text first. Each derivative by some text
  // (holes/anywhere.h) steps into the text behind the hole, so the search does not go round the hole.
  void begin_behind_hole() {
    once_ = false;
    bytes_ = 1;
    const Anywhere& all = anywhere(regexes_, regex_);
    const uint32_t least = regexes_.least_length(regex_);
    for (uint32_t label : all.labels) leave(from_, label, least);
    for (RegexId left : all.left) step(left, from_ + 1);
    if (all.sets.empty()) return;
    const std::string rest = path_.text(from_ + 1, path_.last());
    for (RegexId set : all.sets) {
      const Endings ends = ending_in(regexes_, set, rest);
      for (uint32_t label : ends.plain) leave(from_ + 2 + static_cast<Spot>(rest.find('"')), label, least);
      for (RegexId other : ends.others)
        for (RegexId left : anywhere(regexes_, other).left) step(left, from_ + 1);
    }
  }

  // Takes one byte from a pair, in all ways that the regex and the path have in common.
  void read(Pair at) {
    if (path_.single(at.spot)) return step(at.regex, at.spot);
    once_ = false;
    const RegexId whole = path_.loops(at.spot) ? without_exceptions(regexes_, at.regex) : at.regex;
    path_.for_each_here(at.spot, [&](Spot here) {
      if (path_.single(here)) return step(whole, here);
      of_.steps(whole, here, [&](uint8_t, RegexId behind, Spot to, bool first) {
        if (first) meet(behind, to);
      });
    });
  }

  // Takes the byte of a fixed text.
  void step(RegexId d, Spot s) {
    charge();
    if (path_.byte(s) < kEdge) meet(regexes_.step(d, path_.byte(s)), s + 1);
  }

  void meet(RegexId d, Spot s) {
    if (d == RegexArena::empty()) return;
    if (!once_ && !seen_.emplace(pair_of(d, s), true).second) return;
    const RegexNode& n = regexes_.node(d);
    if (n.nullable)
      leave(s, n.label(), bytes_);
    else
      reach(s);
    if (!n.only_ends()) next_.push_back({d, s});
  }

  void leave(Spot s, uint32_t label, uint32_t length) {
    reach(s);
    left_.insert(s);
    found_.push_back({s, label, length});
  }

  // Spots inside tokens count for nothing: they are numbered behind the nodes.
  void reach(Spot s) {
    if (s < path_.nodes()) of_.furthest_ = std::max(of_.furthest_, s);
  }

  // A search of many pairs asks once how many exits there can be, and ends with the last of them.
  bool all_found() {
    if (seen_.size() < kManyPairs || regexes_.node(regex_).labelled) return false;
    if (!most_) most_ = path_.spots_behind(from_, last_bytes(regexes_, regex_));
    return left_.size() == *most_;
  }

  Stretches& of_;
  RegexArena& regexes_;
  Path& path_;
  const RegexId regex_;
  const Spot from_;
  // The pairs behind one byte less than those of next_.
  std::vector<Pair> todo_, next_;
  // The bytes that were read up to the pairs of next_.
  uint32_t bytes_ = 0;
  FlatMap<uint64_t, bool> seen_;
  // True: no pair can be met twice, so none is remembered.
  bool once_ = true;
  std::set<Spot> left_;
  std::optional<std::size_t> most_;
  std::vector<Exit> found_;
};

std::span<const Stretches::Exit> Stretches::exits(RegexId r, Spot from) {
  return found_[index_.remember(pair_of(r, from), [&] {
    found_.push_back(ExitSearch(*this, r, from).run());
    bytes_ += found_.back().capacity() * sizeof(Exit);
    return static_cast<uint32_t>(found_.size() - 1);
  })];
}

// ---- the texts between two spots ----

// The pairs (derivative, spot) behind the texts of a regex from a spot, as a graph whose edges are bytes.
class Stretches::TextGraph {
 public:
  TextGraph(Stretches& of, RegexId r, Spot from, Spot to, uint32_t label) {
    node(r, from);
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      const auto [d, s] = pairs_[i];
      of.path_.for_each_here(s, [&](Spot here) {
        of.steps(d, here, [&](uint8_t b, RegexId behind, Spot next, bool first) {
          charge(2);  // an edge is kept in three lists
          const uint32_t k = node(behind, next);
          nodes_[i].bytes.push_back({b, k});
          if (!first) return;
          nodes_[i].after.push_back(k);
          nodes_[k].before.push_back(i);
        });
      });
    }
    measure(of, to, label);
  }

  bool none() const { return nodes_[0].left == kFar; }

  // Whether some text goes round: then there are infinitely many. Nodes that lead to the end are taken away
  // from the end on, each behind all that it leads to; those of a cycle stay.
  bool endless() const {
    std::vector<uint32_t> open(nodes_.size(), 0), ready;
    std::size_t alive = 0, done = 0;
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].left == kFar) continue;
      ++alive;
      for (uint32_t k : nodes_[i].after) open[i] += nodes_[k].left != kFar;
      if (open[i] == 0) ready.push_back(i);
    }
    while (!ready.empty()) {
      const uint32_t i = ready.back();
      ready.pop_back();
      ++done;
      for (uint32_t p : nodes_[i].before)
        if (nodes_[p].left != kFar && --open[p] == 0) ready.push_back(p);
    }
    return done < alive;
  }

  // Writes all texts of one length, then those of the next, each length by a search in depth. True: all were
  // written.
  bool write(bool endless, std::size_t most, std::vector<std::string>& out) {
    for (Node& n : nodes_)
      std::ranges::stable_sort(n.bytes,
                               [](const Edge& x, const Edge& y) { return readable(x.byte, y.byte); });
    std::set<std::string> found;
    std::size_t taken = 0;
    const std::size_t longest = endless ? nodes_.size() + most : nodes_.size();
    for (std::size_t length = std::max<std::size_t>(nodes_[0].left, 1); length <= longest; ++length) {
      std::string text;
      // Each node of the way with the number of its edges that were taken.
      std::vector<std::pair<uint32_t, std::size_t>> way{{0, 0}};
      while (!way.empty()) {
        charge();
        if (++taken > kTextSteps + 64 * (most + length)) return false;
        auto& [i, next] = way.back();
        const std::size_t more = length - text.size();
        if (next == 0 && more == 0 && nodes_[i].left == 0 && found.insert(text).second) {
          out.push_back(text);
          if (out.size() >= most) return false;
        }
        if (more == 0 || next == nodes_[i].bytes.size()) {
          way.pop_back();
          if (!text.empty()) text.pop_back();
          continue;
        }
        const Edge edge = nodes_[i].bytes[next++];
        if (nodes_[edge.to].left > more - 1) continue;
        text.push_back(static_cast<char>(edge.byte));
        way.push_back({edge.to, 0});
      }
    }
    return !endless;
  }

 private:
  static constexpr uint32_t kFar = 0xFFFFFFFFu;
  struct Edge {
    uint8_t byte;
    uint32_t to;
  };
  struct Node {
    std::vector<Edge> bytes;
    // The nodes at the two ends of its edges; one of the bytes that lead to a node counts.
    std::vector<uint32_t> before, after;
    // The least number of bytes to the end; kFar: no way leads there.
    uint32_t left = kFar;
  };

  uint32_t node(RegexId d, Spot s) {
    const auto [n, fresh] = number_.emplace(pair_of(d, s), static_cast<uint32_t>(nodes_.size()));
    const uint32_t id = n;
    if (fresh) {
      pairs_.push_back({d, s});
      nodes_.emplace_back();
    }
    return id;
  }

  // Breadth first from the end, backwards.
  void measure(const Stretches& of, Spot to, uint32_t label) {
    std::vector<uint32_t> todo;
    for (uint32_t i = 0; i < nodes_.size(); ++i)
      if (of.ends(pairs_[i].first, pairs_[i].second, to, label)) {
        nodes_[i].left = 0;
        todo.push_back(i);
      }
    for (std::size_t k = 0; k < todo.size(); ++k)
      for (uint32_t p : nodes_[todo[k]].before)
        if (nodes_[p].left == kFar) {
          nodes_[p].left = nodes_[todo[k]].left + 1;
          todo.push_back(p);
        }
  }

  std::vector<std::pair<RegexId, Spot>> pairs_;
  std::vector<Node> nodes_;
  FlatMap<uint64_t, uint32_t> number_;
};

bool Stretches::texts(RegexId r, Spot from, Spot to, std::size_t most, std::vector<std::string>& out,
                      uint32_t label, bool finite) {
  if (path_.fixed(from, to)) {
    out.push_back(path_.text(from, to));
    return true;
  }
  TextGraph graph(*this, r, from, to, label);
  if (graph.none()) return true;
  const bool endless = graph.endless();
  return !(endless && finite) && graph.write(endless, most, out);
}

// The search goes in breadth, with one byte for each class. Pairs that need more bytes than the stretch is
// long are left out. If its length is a mere lower bound, as in a hole, a second search has no bound.
const std::string& Stretches::shortest(const Stretch& s) {
  const auto [it, fresh] = shortest_.try_emplace({s.regex.v, s.from, s.to, s.label});
  std::string& out = it->second;
  if (!fresh) return out;
  Undo forget([&] { shortest_.erase(it); });
  constexpr uint32_t kFirst = 0xFFFFFFFFu;
  struct Met {
    RegexId regex;
    Spot spot;
    uint32_t before, bytes;
    uint8_t byte;
  };
  for (const uint64_t most : {uint64_t{s.length}, kAnyLength}) {
    std::vector<Met> met{{s.regex, s.from, kFirst, 0, 0}}, next;
    FlatMap<uint64_t, bool> seen;
    for (uint32_t i = 0; i < met.size() && out.empty(); ++i) {
      next.clear();
      path_.for_each_here(met[i].spot, [&](Spot here) {
        steps(met[i].regex, here, [&](uint8_t b, RegexId behind, Spot to, bool) {
          const auto known = std::find_if(next.begin(), next.end(),
                                          [&](const Met& m) { return m.regex == behind && m.spot == to; });
          if (known == next.end())
            next.push_back({behind, to, i, met[i].bytes + 1, b});
          else if (readable(b, known->byte))
            known->byte = b;
        });
      });
      std::sort(next.begin(), next.end(),
                [](const Met& x, const Met& y) { return readable(x.byte, y.byte); });
      for (const Met& m : next) {
        if (ends(m.regex, m.spot, s.to, s.label)) {
          for (const Met* at = &m; at->before != kFirst; at = &met[at->before])
            out.push_back(static_cast<char>(at->byte));
          std::reverse(out.begin(), out.end());
          break;
        }
        if (m.bytes + uint64_t{regexes_.least_length(m.regex)} <= most &&
            seen.emplace(pair_of(m.regex, m.spot), true).second)
          met.push_back(m);
      }
    }
    if (!out.empty()) break;
  }
  forget.keep();
  bytes_ += out.capacity() + 96;
  return out;
}

}  // namespace structgen
