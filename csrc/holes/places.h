// Places: where a text with holes stands between two symbols of a grammar.
//
// In: a spot of the path (holes/path.h) and a pending restriction (parse/alive.h): the bytes that may not
// follow the lexeme read last. Out: a number for both. Cost: a look-up.
//
// Example: a hole may end behind a name, which no letter may follow, or behind a comma, which any byte may
// follow. These are two places of one spot.
//
// A place is *assumed* if it is reached only under the assumption that two captured texts which are not known
// differ (Alternatives::assumed). proved() returns the place with the same spot and the same restriction that
// needs no assumption.
//
// Places outlive the facts that are found over them: when an exception ends a search, the facts are made
// anew, but rules that a parser has already got still hold the numbers of places.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/flat_map.h"
#include "base/ids.h"
#include "holes/path.h"
#include "parse/alive.h"

namespace structgen {

using PlaceId = Id<struct PlaceTag>;

inline void add_once(std::vector<PlaceId>& list, PlaceId a) {
  if (std::ranges::find(list, a) == list.end()) list.push_back(a);
}

class Places {
 public:
  // With `unrestricted`, other text (blanks, comments) may stand between any two lexemes. In the last hole
  // every byte may then come next, so a place there needs no pending. The text behind the hole may still
  // begin with a byte that the lexeme forbids; the parser finds that out.
  Places(const Path& path, Alive& alive, bool unrestricted)
      : path_(path), alive_(alive), unrestricted_(unrestricted) {}
  PlaceId of(Path::Spot spot, Alive::Pending pending, bool assumed = false) {
    if (pending != Alive::kClear && unrestricted_ && path_.loops(spot) && path_.text_behind(spot))
      pending = alive_.without_follow(pending);
    const uint64_t at = static_cast<uint64_t>(spot) << 32 | pending | uint64_t{assumed} << 63;
    return index_.remember(at, [&] {
      places_.push_back({spot, pending, assumed});
      return PlaceId{static_cast<uint32_t>(places_.size() - 1)};
    });
  }
  Path::Spot spot(PlaceId a) const { return places_[a.v].spot; }
  Alive::Pending pending(PlaceId a) const { return places_[a.v].pending; }
  bool assumed(PlaceId a) const { return places_[a.v].assumed; }
  // Returns the place with the same spot and the same pending that rests on no assumption.
  PlaceId proved(PlaceId a) { return assumed(a) ? of(spot(a), pending(a)) : a; }
  // Returns the place `exit`. If `before` is assumed, returns the assumed place with the spot and pending of
  // `exit`, because an exit behind an assumed place rests on the same assumption.
  PlaceId behind(PlaceId before, PlaceId exit) {
    return assumed(before) && !assumed(exit) ? of(spot(exit), pending(exit), true) : exit;
  }
  std::size_t byte_size() const { return places_.capacity() * sizeof(Place) + index_.byte_size(); }

 private:
  struct Place {
    Path::Spot spot;
    Alive::Pending pending;
    bool assumed;
  };
  const Path& path_;
  Alive& alive_;
  const bool unrestricted_;
  std::vector<Place> places_;
  FlatMap<uint64_t, PlaceId> index_;
};

}  // namespace structgen
