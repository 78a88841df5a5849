// The pipeline on one screen: text -> productions -> grammar.
//
// In: a schema, a pattern or literals, and options. Out: a shared Grammar. Cost: parsing and one scan
// of the schema, then the work of the first parse state; other states and masks are made when matchers
// ask for them. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fork.h"
#include "base/work.h"
#include "engine/grammar.h"
#include "engine/recent.h"
#include "grammar/source.h"
#include "mask/cache_policy.h"
#include "schema/write/productions.h"

namespace structgen {

// The work that one call may take, in units (base/work.h).
struct WorkLimits {
  int64_t compile = Meter::kEndless;
  // For a mask and every other call of a matcher.
  int64_t mask = Meter::kEndless;
};

// Recipe, option 2: a field, which the compiler's worlds or productions read.
struct JsonOptions {
  SchemaOptions schema;
  JsonLayout layout;
  PropertyOrder order = PropertyOrder::kSchema;
  NumberSpelling numbers = NumberSpelling::kAny;
  // Strings are written without escapes that JSON does not need (strings/json_literals.h). Such grammars have
  // worlds of their own.
  bool plain_strings = false;
};

// The layout with a name of `whitespace`; any other text is a pattern.
JsonLayout layout_of(std::string_view whitespace);
// The draft with a number: 4, 6, 7, 2019 or 2020; throws kValue for another one.
Draft draft_of(int64_t number);

// One JSON Schema inside a grammar, with its options.
struct JsonPart {
  std::string schema;
  SchemaSet::Documents registry;
  JsonOptions options;
  // For JSON inside a markup of elements: nodes of the grammar for the texts around values; `text`
  // holds the other texts.
  std::optional<ElementMarks<uint32_t>> marks;
  ElementText text;
  // A regular node of the grammar that the whole text of the value has to match.
  std::optional<uint32_t> condition;
};

// Compiles grammars over one vocabulary, and keeps the worlds in which they live.
class Compiler {
 public:
  Compiler(std::shared_ptr<const Vocabulary> vocabulary, bool cache, std::size_t cache_bytes,
           WorkLimits limits = {});
  // `subset`: a text or value is left out, here and in masks, where it takes too much work to decide
  // whether it can be completed. Without `subset` such a case is an error.
  std::shared_ptr<Grammar> json_schema(std::string_view schema, const SchemaSet::Documents& registry,
                                       const JsonOptions& options, bool subset = false);
  std::shared_ptr<Grammar> regex(std::string_view pattern, bool subset = false);
  // `start`: a rule of the source. schemas[i] is its part i.
  std::shared_ptr<Grammar> grammar(GrammarSource source, uint32_t start, const std::vector<JsonPart>& schemas,
                                   bool subset = false);
  std::shared_ptr<Grammar> choice(const std::vector<std::string>& texts, bool subset = false);
  // The limits of all calls from here on. Called while nobody else has the compiler.
  void set_limits(WorkLimits limits) { limits_ = limits; }
  const Vocabulary& vocabulary() const { return *vocabulary_; }
  // Bytes of every world that a grammar still needs, with its grammars, as last published. It takes no
  // world's lock.
  std::size_t byte_size();

  // Grammars that are kept by their text, or by any other key that the caller looks them up by
  // (mask/cache_policy.h). The caller tells which grammar it made or found, and is told which ones go.
  using Grammars = std::vector<std::shared_ptr<Grammar>>;
  // Keeps a grammar as the newest. Returns those that go now: the caller lets go of them, then calls
  // reap().
  Grammars keep(std::shared_ptr<Grammar> grammar);
  // Notes that a grammar was found again, as the newest. False: it is no longer kept and must be made
  // anew, because its world is full, or was lost in a forked child.
  bool found(Grammar& grammar);
  // Frees the grammars on another thread, unless somebody else still holds them.
  void reap(Grammars gone);
  // The number of grammars and epochs of all compilers that wait to be freed.
  std::size_t retiring() const;

 private:
  // A world that no other thread is in, with its lock held: a compile of one thread need not wait for a
  // mask of another.
  struct Entered {
    std::shared_ptr<World> world;
    std::unique_lock<Mutex> hold;
  };
  Entered enter(bool plain_strings, bool subset);
  static void check_start(Grammar& grammar);
  std::size_t total() const;
  std::size_t retire(Grammar& grammar);
  std::shared_ptr<Grammar> terminal(std::shared_ptr<World> world, RegexId r);

  std::shared_ptr<const Vocabulary> vocabulary_;
  const bool cache_;
  const CachePolicy policy_;
  WorkLimits limits_;
  Mutex lock_;
  struct Worlds {
    std::vector<std::shared_ptr<World>> open;
    // The index of the next world to wait for where all are busy.
    std::size_t turn = 0;
  };
  // One for each pair of a spelling of strings and "exact" or "subset".
  Worlds current_[4];
  // The worlds that were full. They stay as long as some grammar needs them.
  std::vector<std::weak_ptr<World>> worlds_;
  Recent recent_;
};

}  // namespace structgen
