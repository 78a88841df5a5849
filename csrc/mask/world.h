// What all grammars of one compiler share: the vocabulary, the regex arena, the slices, and one lock.
//
// Threads: whatever creates (a derivative, a state, a mask) holds `lock`; whatever was created is read
// without it. A grammar keeps its world alive. The compiler opens a new world when the old one has
// grown past its share (cache_policy.h), so memory stays bounded over any number of schemas.
#pragma once

#include <atomic>
#include <memory>

#include "base/fork.h"
#include "mask/cache_policy.h"
#include "mask/item_ends.h"
#include "mask/slices.h"
#include "mask/vocabulary.h"
#include "regex/regex.h"
#include "strings/json_spelling.h"

namespace structgen {

struct World {
  // Makes a world. If another thread held its lock at a fork, the child's copy may be half changed, so the
  // child never frees it.
  static std::shared_ptr<World> make(std::shared_ptr<const Vocabulary> v, std::size_t bytes, bool cache_masks,
                                     bool plain_strings, bool subset) {
    return {new World(std::move(v), bytes, cache_masks, plain_strings, subset), [](World* w) {
              if (!w->lock.lost()) delete w;
            }};
  }
  World(std::shared_ptr<const Vocabulary> v, std::size_t bytes, bool cache_masks, bool plain_strings,
        bool subset)
      : vocabulary(std::move(v)),
        regexes(plain_strings ? kPlainJson : kJson, subset),
        slices(regexes, *vocabulary),
        item_ends(*vocabulary),
        policy{bytes},
        cache(cache_masks) {
    regexes.set_most(policy.most());
  }
  std::size_t byte_size() const {
    return regexes.byte_size() + slices.byte_size() + item_ends.byte_size() +
           at_most_.size() * vocabulary->words() * 4;
  }
  // Stores the size of the world where total() reads it without the lock. The caller holds the lock.
  void publish() { published.store(byte_size(), std::memory_order_relaxed); }
  // Returns the bytes of the world, and of the states and masks of all its grammars, as last published. Takes
  // no lock.
  std::size_t total() const {
    return published.load(std::memory_order_relaxed) + grammars.load(std::memory_order_relaxed);
  }

  // Returns a row of the tokens with a byte that may end a key or an item of JSON. The caller holds the lock.
  const Words& ends_of_items() {
    if (!ends_of_items_.empty()) return ends_of_items_;
    ends_of_items_.resize(vocabulary->words());
    for (TokenId t = 0; static_cast<uint32_t>(t) < vocabulary->size(); ++t)
      if (vocabulary->bytes(t).find_first_of("\",]}") != std::string_view::npos)
        set_bit(ends_of_items_.data(), t);
    return ends_of_items_;
  }

  // Returns a row of the tokens of at most n bytes. The first call makes the rows of all lengths. The caller
  // holds the lock.
  const Words& at_most(std::size_t n) {
    if (at_most_.empty()) {
      at_most_.resize(vocabulary->longest() + std::size_t{1}, Words(vocabulary->words()));
      for (TokenId t = 0; static_cast<uint32_t>(t) < vocabulary->size(); ++t)
        set_bit(at_most_[vocabulary->bytes(t).size()].data(), t);
      for (std::size_t i = 1; i < at_most_.size(); ++i)
        for (uint32_t w = 0; w < vocabulary->words(); ++w) at_most_[i][w] |= at_most_[i - 1][w];
    }
    return at_most_[std::min(n, at_most_.size() - 1)];
  }

  std::shared_ptr<const Vocabulary> vocabulary;
  RegexArena regexes;
  Slices slices;
  ItemEnds item_ends;
  const CachePolicy policy;
  // If false, no mask is remembered, and each is made by the plain walk.
  const bool cache;
  Mutex lock;
  // The bytes of regexes made for texts that masks under a budget only tried. Readers hold the lock.
  std::size_t tried = 0;
  std::atomic<std::size_t> published{0};
  // The bytes that the epochs and productions of all grammars take.
  std::atomic<std::size_t> grammars{0};
  // The number of grammars of this world that the compiler still keeps.
  std::atomic<std::size_t> kept{0};

 private:
  Words ends_of_items_;
  std::vector<Words> at_most_;
};

}  // namespace structgen
