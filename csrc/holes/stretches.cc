// How the texts of a regex are read along a path; stretches.h says what is answered.
//
// The problem. A regex and a path have infinitely many texts in common, such as [a-z]+ and a hole. Facts need
// to know where these texts end, readers need the few texts that two spots may have between them, and a proof
// needs one text that a person can read.
//
// The idea. The pairs (derivative, spot) are the states of the product of two automata, and there are
// finitely many. Two searches go over them: ExitSearch asks where texts end and keeps no way; TextGraph keeps
// the bytes between the pairs. For the regex a*b and the path HOLE `b`, spots 0 (the hole), 1 (before b), 2
// (the end):
//
//     (a*b, 0)     `a` in the hole: (a*b, 0) again. `b` in the hole: (empty rest, 0). `b` behind it:
//                  (empty rest, 2)
//     exits        spot 0 with 1 byte, and spot 2 with 1 byte
//     texts to 2   the graph has an edge `a` from (a*b, 0) to itself and an edge `b` to (empty rest, 2),
//                  which needs no more bytes: `b`, `ab`, `aab`, ...: endless
//     shortest     `b`: the search for it ends with the first pair that ends
//
// The regex of a date-time and the path of `without("lamps")` have 81,458 pairs, and all texts end at one
// spot. An image is the set of spots behind the texts of a regex, computed from pairs (node of the regex's
// structure, spot); in this example there are a few hundred such pairs. An image may contain a spot that no
// text reaches. So ExitSearch takes an image only as a sign that all exits are found and the search may stop.
//
// Invariants.
// - A pair is met once, behind the fewest bytes. So the length of an exit is that of a shortest text. It is a
//   lower bound in the hole in front of the last text, and once kNearestPairs pairs were met.
// - Exits belong to texts of one byte or more. The caller itself asks whether the regex has the empty text.
//
// Rejected. A search from the end backwards: the quotient of a regex by a text has derivatives of its own.
// One graph for exits and texts: its edges cost ten times the search for exits, and few stretches are ever
// written.
#include "holes/stretches.h"

#include <algorithm>
#include <optional>
#include <queue>
#include <set>

#include "base/depth.h"
#include "base/told.h"
#include "base/undo.h"
#include "holes/anywhere.h"
#include "parse/productions.h"

namespace structgen {

namespace {
// texts() gives up after kTextSteps steps, and 64 more steps for each text and each byte that is asked for.
constexpr std::size_t kTextSteps = 4096;
// If a search has met this many pairs, it computes the image of the regex, to know which exits it still
// lacks.
constexpr std::size_t kManyPairs = 32;
// If a search has met this many pairs, it takes the pairs nearest to an end first.
constexpr std::size_t kNearestPairs = 4096;
// An image has at most this many spots, and is computed from at most this many images.
constexpr std::size_t kManySpots = 64, kManyImages = 4096;
constexpr uint64_t pair_of(RegexId r, Path::Spot s) { return static_cast<uint64_t>(r.v) << 32 | s; }

// The sort key of a byte in texts that people read: letters and digits come before other bytes.
std::pair<bool, uint8_t> readable(uint8_t c) {
  const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return {!plain, c};
}

}  // namespace

std::size_t Stretches::byte_size() const {
  return index_.byte_size() + found_.size() * sizeof(Found) + bytes_;
}

// Computes images: the spots behind the texts of a regex, read off the regex's structure. A search byte by
// byte would meet many derivatives.
class Stretches::Images {
 public:
  // `spots` contains every spot behind a text of the regex, and maybe more; it is sorted. `whole` says that
  // the path reads every text.
  struct Image {
    std::vector<Spot> spots;
    bool whole = true;
  };
  Images(RegexArena& regexes, Path& path) : regexes_(regexes), path_(path) {}
  std::optional<Image> of(RegexId r, Spot from) {
    Image out = image(r, from);
    return many_ ? std::nullopt : std::optional(std::move(out));
  }

 private:
  const Image& image(RegexId r, Spot from) {
    check_depth();
    const auto [at, made] = known_.try_emplace({r.v, from});
    if (made && !many_) {
      at->second = make(r, from);
      many_ = many_ || at->second.spots.size() > kManySpots || known_.size() > kManyImages;
    }
    return at->second;
  }

  Image make(RegexId r, Spot from) {
    const RegexNode& n = regexes_.node(r);
    switch (n.kind) {
      case RegexKind::kEmpty: return {};
      case RegexKind::kEpsilon: return {{from}};
      case RegexKind::kBytes: return behind(regexes_.byte_set(n.a), {{from}});
      case RegexKind::kLiteral: {
        Image out{{from}};
        for (uint32_t i = 0; i < n.n; ++i) out = behind(ByteSet::of(static_cast<uint8_t>(n.text[i])), out);
        return out;
      }
      case RegexKind::kCat: return behind(RegexId{n.b}, image(RegexId{n.a}, from));
      case RegexKind::kRepeat: {
        Image out{{from}};
        const uint32_t least = std::min<uint32_t>(n.min, kManySpots);
        for (uint32_t i = 0; i < least && !many_; ++i) out = behind(RegexId{n.a}, out);
        for (uint32_t i = least; i < n.max && grow(out, behind(RegexId{n.a}, out)); ++i) {
        }
        return out;
      }
      case RegexKind::kAlt:
      case RegexKind::kAnd: {
        Image out = image(RegexId{n.kids[0]}, from);
        for (uint32_t i = 1; i < n.n; ++i) {
          const Image& kid = image(RegexId{n.kids[i]}, from);
          if (n.kind == RegexKind::kAlt) {
            grow(out, kid);
            continue;
          }
          std::erase_if(out.spots, [&](Spot s) { return !std::ranges::binary_search(kid.spots, s); });
          out.whole = out.whole || kid.whole;
        }
        return out;
      }
      default: {
        Image out{{from}};
        while (grow(out, behind(ByteSet::all(), out))) {
        }
        if (n.inside != RegexNode::kBody) return out;
        return behind(ByteSet::of(static_cast<uint8_t>(regexes_.spelling().end)), out);
      }
    }
  }

  Image behind(RegexId r, const Image& from) {
    Image out{{}, from.whole};
    for (Spot s : from.spots) grow(out, image(r, s));
    return out;
  }

  Image behind(const ByteSet& set, const Image& from) {
    Image out{{}, from.whole};
    for (Spot s : from.spots) {
      const ByteSet there = path_.bytes(s) & set;
      Image one{{}, there == set};
      const ClassMap& alike = regexes_.classes(path_.state(s));
      bool met[256] = {};
      there.for_each([&](uint8_t b) {
        if (std::exchange(met[alike.of[b]], true)) return;
        charge();
        one.spots.push_back(path_.next(s, b));
      });
      std::ranges::sort(one.spots);
      grow(out, one);
    }
    return out;
  }

  // Adds the spots of `more`. Returns true if the image changed, so that it may grow further.
  bool grow(Image& out, const Image& more) {
    const Image before = out;
    out.spots.clear();
    std::ranges::set_union(before.spots, more.spots, std::back_inserter(out.spots));
    out.whole = before.whole && more.whole;
    many_ = many_ || out.spots.size() > kManySpots;
    return !many_ && (out.spots.size() > before.spots.size() || out.whole != before.whole);
  }

  RegexArena& regexes_;
  Path& path_;
  // True once an image had too many spots. All images made since then are wrong.
  bool many_ = false;
  std::map<std::pair<uint32_t, Spot>, Image> known_;
};

// Searches pairs (derivative, spot) breadth first, so that each exit is first reached by a shortest text.
class Stretches::ExitSearch {
 public:
  ExitSearch(Stretches& of, RegexId r, Spot from)
      : of_(of), regexes_(of.regexes_), path_(of.path_), regex_(r), from_(from) {}

  Found run() {
    if (path_.loops(from_) && path_.text_behind(from_))
      begin_behind_hole();
    else
      next_.push_back({regex_, from_});
    while (!next_.empty() && !(ended_ = all_found())) {
      if (image_ && seen_.size() > kNearestPairs) {
        search_nearest();
        break;
      }
      todo_.swap(next_);
      ++bytes_;
      for (; !todo_.empty();) {
        const Pair pair = todo_.back();
        todo_.pop_back();
        read(pair);
      }
    }
    // Several exits may have one spot and label. The one with the shortest text stays.
    std::ranges::sort(found_, {}, [](const Exit& x) { return std::tuple(x.spot, x.label, x.length); });
    const auto same = [](const Exit& x, const Exit& y) { return x.spot == y.spot && x.label == y.label; };
    found_.erase(std::unique(found_.begin(), found_.end(), same), found_.end());
    return {std::move(found_), reads_all()};
  }

 private:
  struct Pair {
    RegexId regex;
    Spot spot;
  };

  // Begins in the last hole and goes on behind it. In the hole the regex may read any text, so anywhere()
  // gives all derivatives that may be left at its end; each of them reads on behind the hole. A search
  // through the hole byte by byte would meet all of them, too, but slowly.
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

  // Takes the pairs first that seem nearest to an end, until each spot of the image is an exit. The order is
  // no longer breadth first, so lengths are lower bounds from here on.
  void search_nearest() {
    using Entry = std::tuple<uint32_t, std::size_t, Pair>;
    const auto later = [](const Entry& x, const Entry& y) {
      return std::tie(std::get<0>(x), std::get<1>(x)) > std::tie(std::get<0>(y), std::get<1>(y));
    };
    std::priority_queue<Entry, std::vector<Entry>, decltype(later)> open(later);
    std::size_t met = 0;
    bytes_ = std::max(regexes_.least_length(regex_), 1u);
    while (!(ended_ = all_found())) {
      for (const Pair& p : next_) open.emplace(regexes_.node(p.regex).shortest, met++, p);
      next_.clear();
      if (open.empty()) return;
      const Pair nearest = std::get<2>(open.top());
      open.pop();
      read(nearest);
    }
  }

  void read(Pair at) {
    if (path_.single(at.spot)) return step(at.regex, at.spot);
    once_ = false;
    const RegexId whole = path_.loops(at.spot) ? without_exceptions(regexes_, at.regex) : at.regex;
    path_.for_each_here(at.spot, [&](Spot here) {
      if (path_.single(here)) return step(whole, here);
      all_ &= of_.steps(whole, here, [&](uint8_t, RegexId behind, Spot to, bool first) {
        if (first) meet(behind, to);
      });
    });
  }

  // Steps over one byte of fixed text.
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

  // Notes the furthest spot on the path. Spots inside tokens are numbered behind all nodes, so they are left
  // out.
  void reach(Spot s) {
    if (s < path_.nodes()) of_.furthest_ = std::max(of_.furthest_, s);
  }

  // Tells whether all exits are found, so that the search may stop. From kManyPairs pairs on it compares them
  // with the image. If the path reads every text and all texts end at one spot, the length of a shortest text
  // is known without the search.
  bool all_found() {
    const RegexNode& n = regexes_.node(regex_);
    if (seen_.size() < kManyPairs || !path_.of_regex() || n.labelled) return false;
    if (!asked_) {
      asked_ = true;
      image_ = Images(regexes_, path_).of(regex_, from_);
      std::string text;
      if (image_ && image_->whole && image_->spots.size() == 1 && left_.empty() && !n.nullable &&
          told([&] { return regexes_.witness(regex_, text); }).value_or(false))
        leave(image_->spots[0], 0, static_cast<uint32_t>(text.size()));
    }
    return image_ && left_.size() == image_->spots.size();
  }

  std::optional<bool> reads_all() const {
    if (image_ && image_->whole) return true;
    return all_ && ended_ ? std::nullopt : std::optional(all_);
  }

  Stretches& of_;
  RegexArena& regexes_;
  Path& path_;
  const RegexId regex_;
  const Spot from_;
  std::vector<Pair> todo_, next_;
  uint32_t bytes_ = 0;
  FlatMap<uint64_t, bool> seen_;
  // True if no pair can be met twice, so that the search need not remember pairs.
  bool once_ = true;
  // all_: at every pair so far, the path could read each byte that the regex reads. ended_: the search
  // stopped with pairs left to read.
  bool all_ = true, ended_ = false;
  std::set<Spot> left_;
  bool asked_ = false;
  std::optional<Images::Image> image_;
  std::vector<Exit> found_;
};

Stretches::Found& Stretches::find(RegexId r, Spot from) {
  return found_[index_.remember(pair_of(r, from), [&] {
    found_.push_back(ExitSearch(*this, r, from).run());
    bytes_ += found_.back().exits.capacity() * sizeof(Exit);
    return static_cast<uint32_t>(found_.size() - 1);
  })];
}

std::span<const Stretches::Exit> Stretches::exits(RegexId r, Spot from) { return find(r, from).exits; }
std::optional<bool> Stretches::reads_all(RegexId r, Spot from) { return find(r, from).all; }

// The graph of the pairs (derivative, spot) that texts of a regex reach from a spot. An edge is a byte.
class Stretches::TextGraph {
 public:
  // Which texts the graph is made for: all, a shortest one, or one of at most Stretch::length bytes.
  enum Aim { kAll, kShortest, kWithinLength };
  TextGraph(Stretches& of, const Stretch& stretch, Aim aim) {
    node(stretch.regex, stretch.from, 0);
    uint32_t deepest = kFar;
    for (uint32_t i = 0; i < nodes_.size() && nodes_[i].depth < deepest; ++i) {
      const auto [d, s] = pairs_[i];
      const uint32_t depth = nodes_[i].depth + 1;
      if (aim == kWithinLength && nodes_[i].depth + of.regexes_.least_length(d) > stretch.length) continue;
      of.path_.for_each_here(s, [&](Spot here) {
        of.steps(d, here, [&](uint8_t b, RegexId behind, Spot next, bool first) {
          const uint32_t k = node(behind, next, depth);
          nodes_[i].bytes.push_back({b, k});
          if (!first) return;
          charge(2);
          nodes_[i].after.push_back(k);
          nodes_[k].before.push_back(i);
          if (aim != kAll && of.ends(behind, next, stretch.to, stretch.label)) deepest = depth;
        });
      });
      charge(static_cast<int64_t>(nodes_[i].bytes.size() / kEdgesAUnit));
    }
    measure(of, stretch.to, stretch.label);
  }

  // Returns a shortest text, or an empty text if none leads to the end. Letters and digits come before other
  // bytes.
  std::string first() const {
    std::string out;
    for (uint32_t at = 0; out.empty() || nodes_[at].left > 0;) {
      const auto best = std::ranges::min_element(nodes_[at].bytes, {}, [&](const Edge& e) {
        return std::pair(nodes_[e.to].left, readable(e.byte));
      });
      if (best == nodes_[at].bytes.end() || nodes_[best->to].left == kFar) return {};
      out.push_back(static_cast<char>(best->byte));
      at = best->to;
    }
    return out;
  }

  bool none() const { return nodes_[0].left == kFar; }

  // Tells whether the graph has a cycle, and so infinitely many texts. endless() starts at the end and
  // removes each node whose edges all lead to removed nodes. The nodes of a cycle stay.
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

  // Writes all texts of one length, then those of the next length, and so on. For each length it searches
  // depth first. Returns true if all texts were written.
  bool write(bool endless, std::size_t most, std::vector<std::string>& out) {
    for (Node& n : nodes_)
      std::ranges::stable_sort(n.bytes, {}, [](const Edge& e) { return readable(e.byte); });
    std::set<std::string> found;
    std::size_t taken = 0;
    const std::size_t longest = endless ? nodes_.size() + most : nodes_.size();
    for (std::size_t length = std::max<std::size_t>(nodes_[0].left, 1); length <= longest; ++length) {
      std::string text;
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
  // This many edges cost one unit of work.
  static constexpr std::size_t kEdgesAUnit = 8;
  struct Edge {
    uint8_t byte;
    uint32_t to;
  };
  struct Node {
    std::vector<Edge> bytes;
    // The nodes with an edge to this one, and the nodes to which this one has an edge. Several bytes between
    // two nodes count as one edge.
    std::vector<uint32_t> before, after;
    // The least number of bytes from the start to here, and from here to the end; kFar if there is no path.
    uint32_t depth = 0, left = kFar;
  };

  uint32_t node(RegexId d, Spot s, uint32_t depth) {
    return number_.remember(pair_of(d, s), [&] {
      pairs_.push_back({d, s});
      nodes_.emplace_back().depth = depth;
      return static_cast<uint32_t>(nodes_.size() - 1);
    });
  }

  // Computes the distance of each node to the end, breadth first from the end backwards.
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
  TextGraph graph(*this, {r, from, to, label, 0}, TextGraph::kAll);
  if (graph.none()) return true;
  const bool endless = graph.endless();
  return !(endless && finite) && graph.write(endless, most, out);
}

// If a part of the text lies in a hole, Stretch::length is only a lower bound, and no text may be that short.
// A second graph is then made without a bound.
const std::string& Stretches::shortest(const Stretch& s) {
  return remember(shortest_, {s.regex.v, s.from, s.to, s.label}, [&] {
    std::string out = TextGraph(*this, s, TextGraph::kWithinLength).first();
    if (out.empty()) out = TextGraph(*this, s, TextGraph::kShortest).first();
    bytes_ += out.capacity() + 96;
    return out;
  });
}

}  // namespace structgen
