// Stretches: the parts of a path that the texts of one regex read.
//
// In: a regex and a spot of a path (holes/path.h). Out: the exits, which are the spots behind the texts of
// the regex that begin there; and the texts between two spots. Cost: a search over pairs (derivative, spot),
// once for each regex and spot; in the hole in front of the last text, such a search is not needed: each
// regex and spot costs one derivative (holes/anywhere.h).
//
// The pairs are the states of the product of two automata: the regex by its derivatives, and the path by its
// spots. A text of the regex leads from one spot to another if it reads both.
//
// Example, `ab` HOLE `c` and the regex [a-z]+ at spot 0: exits 1 (`a`), 2 (`ab`, the hole is empty), 3
// (`abx`, in the hole) and 5 (`abc`, the end).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/flat_map.h"
#include "base/work.h"
#include "holes/path.h"
#include "regex/regex.h"

namespace structgen {

// The texts of a regex that lead from one spot to another.
struct Stretch {
  RegexId regex;
  Path::Spot from, to;
  // 1 + the label with which the text ends, or 0.
  uint32_t label;
  // The number of bytes of a shortest text. It is a lower bound if a part of the text lies in a hole, or if
  // the regex is large.
  uint32_t length;
};

class Stretches {
 public:
  using Spot = Path::Spot;
  // A spot at which texts of at least one byte end. `label` and `length` mean the same as in Stretch.
  struct Exit {
    Spot spot;
    uint32_t label;
    uint32_t length;
  };

  Stretches(RegexArena& regexes, Path& path) : regexes_(regexes), path_(path) {}
  Path& path() const { return path_; }
  // Returns all exits of a regex that begins at a spot. They are sorted by spot; each pair of spot and label
  // stands once. The span stays valid.
  std::span<const Exit> exits(RegexId r, Spot from);
  // Tells whether the path reads every text of the regex that begins at a spot. Returns no value if exits()
  // stopped before it knew.
  std::optional<bool> reads_all(RegexId r, Spot from);
  Spot furthest() const { return furthest_; }
  // Writes at most `most` texts of a regex that lead from one spot to another, shorter ones first. Returns
  // false if there may be more. If `label` is not 0, only texts that end with this label are written (as in
  // Stretch). With `finite` it writes nothing if there are infinitely many texts.
  bool texts(RegexId r, Spot from, Spot to, std::size_t most, std::vector<std::string>& out,
             uint32_t label = 0, bool finite = false);
  // Returns a shortest text of a stretch, or an empty text if the stretch has none. Letters and digits come
  // before other bytes.
  const std::string& shortest(const Stretch& s);
  // Calls f(byte, derivative, spot, first) for every byte that can be read in both the regex and the path.
  // `first` says that no smaller byte leads to the same derivative and spot. Returns true if the path reads
  // every byte that the regex reads. It costs one derivative for each class of bytes.
  template <class F>
  bool steps(RegexId r, Spot here, F&& f) {
    const ByteSet all = regexes_.steps(r), there = path_.bytes(here) & all;
    if (there.none()) return all.none();
    const ClassMap* const alike = path_.alike(regexes_, r, here);
    std::pair<RegexId, Spot> known[256];
    bool met[256] = {};
    there.for_each([&](uint8_t b) {
      const uint8_t n = alike ? alike->of[b] : b;
      const bool first = !std::exchange(met[n], true);
      if (first) {
        charge();
        const RegexId behind = regexes_.step(r, b);
        known[n] = {behind, behind == RegexArena::empty() ? here : path_.next(here, b)};
      }
      if (known[n].first != RegexArena::empty()) f(b, known[n].first, known[n].second, first);
    });
    return there == all;
  }
  std::size_t byte_size() const;

 private:
  class Images;
  class ExitSearch;
  class TextGraph;
  bool ends(RegexId r, Spot here, Spot to, uint32_t label) const {
    const RegexNode& n = regexes_.node(r);
    return here == to && n.nullable && (label == 0 || n.label() == label);
  }

  RegexArena& regexes_;
  Path& path_;
  Spot furthest_ = 0;
  // For each pair of regex and spot, the index of its exits in found_.
  FlatMap<uint64_t, uint32_t> index_;
  struct Found {
    std::vector<Exit> exits;
    std::optional<bool> all;
  };
  Found& find(RegexId r, Spot from);
  std::deque<Found> found_;
  std::map<std::tuple<uint32_t, Spot, Spot, uint32_t>, std::string> shortest_;
  std::size_t bytes_ = 0;
};

}  // namespace structgen
