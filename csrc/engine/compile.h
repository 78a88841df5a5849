// The pipeline on one screen: text -> productions -> grammar.
//
// In: a schema, a pattern or literals, and options. Out: a shared Grammar. Cost: parsing and one scan of the
// schema, then whatever the first parse state needs. Thread-safe.
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
#include "engine/reaper.h"
#include "engine/recent.h"
#include "grammar/source.h"
#include "mask/cache_policy.h"
#include "schema/write/productions.h"

namespace structgen {

// What one call may take, in units of work (base/work.h).
struct WorkLimits {
  int64_t compile = Meter::kEndless;
  int64_t mask = Meter::kEndless;  // and every other call of a matcher
};

// Recipe, option 2: a field, which the compiler's worlds or productions read.
struct JsonOptions {
  SchemaOptions schema;
  JsonLayout layout;
  PropertyOrder order = PropertyOrder::kSchema;
  NumberSpelling numbers = NumberSpelling::kAny;
  bool plain_strings = false;  // see RegexArena: such grammars have worlds of their own
};

struct JsonPart {
  std::string schema;
  SchemaSet::Documents registry;
  JsonOptions options;
  std::optional<ElementMarks<uint32_t>> marks;  // nodes of the grammar, where `text` says the rest
  ElementText text;
};

class Compiler {
 public:
  Compiler(std::shared_ptr<const Vocabulary> vocabulary, bool cache, std::size_t cache_bytes,
           WorkLimits limits = {});
  // `subset`: texts and values of which it is too much to tell whether they can be completed are left out,
  // here and in masks. Else they are an error.
  std::shared_ptr<Grammar> json_schema(std::string_view schema, const SchemaSet::Documents& registry,
                                       const JsonOptions& options, bool subset = false);
  std::shared_ptr<Grammar> regex(std::string_view pattern, bool subset = false);
  // `start`: a rule of the source; schemas[i] is its part i.
  std::shared_ptr<Grammar> grammar(GrammarSource source, uint32_t start, const std::vector<JsonPart>& schemas,
                                   bool subset = false);
  std::shared_ptr<Grammar> choice(const std::vector<std::string>& texts, bool subset = false);
  // From here on; while nobody else has the compiler.
  void set_limits(WorkLimits limits) { limits_ = limits; }
  const Vocabulary& vocabulary() const { return *vocabulary_; }
  // Bytes of every world that a grammar still needs, with its grammars, as last published. Takes no world's
  // lock.
  std::size_t byte_size();

  // Grammars that are kept by their text, or whatever else the caller looks them up by
  // (mask/cache_policy.h). It tells which one it made or found, and is told which ones go.
  using Grammars = std::vector<std::shared_ptr<Grammar>>;
  // Keeps one, the last to go. Returns those that go now: the caller lets go of them, then calls reap().
  Grammars keep(std::shared_ptr<Grammar> grammar);
  // It was found again: the last to go. False: it is to be made anew, because its world is full, or lost in a
  // forked child. It is not kept any more then.
  bool found(Grammar& grammar);
  // Frees them on another thread, if their other holders have let go of them: they free them else.
  void reap(Grammars gone);
  std::size_t retiring();  // grammars that reap() has not freed yet

 private:
  // A world that nobody is in, and its lock: what one thread compiles waits for no mask of another.
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
    std::size_t turn = 0;  // whose turn it is where all are busy
  };
  Worlds current_[4];                         // by spelling of strings, and exact or subset
  std::vector<std::weak_ptr<World>> worlds_;  // the older ones
  Recent recent_;
  Reaper reaper_;  // last: its thread ends before the rest goes
};

}  // namespace structgen
