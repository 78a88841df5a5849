// Places: where a text with holes stands between two symbols of a grammar.
//
// In: a spot of the path (holes/path.h) and a pending restriction (parse/alive.h): the bytes that may not
// follow the lexeme read last. Out: a number for both. Cost: a look-up.
//
// Example: a hole may end behind a name, which no letter may follow, or behind a comma, which any byte may
// follow. These are two places of one spot.
//
// A place may also be *assumed*: reached only if two captured texts differ that are not known
// (Alternatives::assumed). The place of the same spot and restriction that needs no assumption is proved().
//
// Places outlive the facts that are found over them. Rules that were given to a parser hold their numbers,
// and facts that threw are made anew.
#pragma once

#include <cstdint>
#include <vector>

#include "base/flat_map.h"
#include "holes/path.h"
#include "parse/alive.h"

namespace structgen {

class Places {
 public:
  using Id = uint32_t;
  // `unrestricted`: other text can stand between any two lexemes. Inside the last hole the pending
  // restriction is then dropped, because every byte may come next. A lexeme that begins with the text behind
  // the hole is the exception, which the parser checks again.
  Places(const Path& path, Alive& alive, bool unrestricted)
      : path_(path), alive_(alive), unrestricted_(unrestricted) {}
  Id of(Path::Spot spot, Alive::Pending pending, bool assumed = false) {
    if (pending != Alive::kClear && unrestricted_ && path_.loops(spot) && path_.text_behind(spot))
      pending = alive_.without_follow(pending);
    const uint64_t at = static_cast<uint64_t>(spot) << 32 | pending | uint64_t{assumed} << 63;
    return index_.remember(at, [&] {
      places_.push_back({spot, pending, assumed});
      return static_cast<Id>(places_.size() - 1);
    });
  }
  Path::Spot spot(Id a) const { return places_[a].spot; }
  Alive::Pending pending(Id a) const { return places_[a].pending; }
  bool assumed(Id a) const { return places_[a].assumed; }
  Id proved(Id a) { return assumed(a) ? of(spot(a), pending(a)) : a; }
  // The place `exit`; assumed if it was reached from an assumed place.
  Id behind(Id before, Id exit) {
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
  FlatMap<uint64_t, Id> index_;
};

}  // namespace structgen
