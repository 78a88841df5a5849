// The pipeline on one screen: text -> productions -> grammar.
//
// In: a schema, a pattern or literals, and options. Out: a shared Grammar. Cost: parsing and one scan of the
// schema, then making the first parse state. All other states and all masks are made when matchers ask for
// them. Thread-safe.
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

// The most units of work (base/work.h): `compile` for one compile, `mask` for one call of a matcher.
struct WorkLimits {
  int64_t compile = Meter::kEndless;
  int64_t mask = Meter::kEndless;
};

// Recipe, option 2: a field, which the compiler's worlds or productions read.
struct JsonOptions {
  SchemaOptions schema;
  JsonLayout layout;
  PropertyOrder order = PropertyOrder::kSchema;
  NumberSpelling numbers = NumberSpelling::kAny;
  // True if strings are written only with escapes that JSON needs (strings/json_literals.h). Such grammars
  // have worlds of their own.
  bool plain_strings = false;
};

// Returns the layout that `whitespace` names. If the text is not the name of a layout, it is read as a
// pattern of blanks.
JsonLayout layout_of(std::string_view whitespace);
// Returns the draft with the number 4, 6, 7, 2019 or 2020. Throws kValue for another number.
Draft draft_of(int64_t number);

struct JsonPart {
  std::string schema;
  SchemaSet::Documents registry;
  JsonOptions options;
  // For JSON inside a markup of elements: `marks` names the nodes of the grammar that stand around values,
  // and `text` says how keys and strings are written.
  std::optional<ElementMarks<uint32_t>> marks;
  ElementText text;
  // A regular node of the grammar; the whole text of the value must match it.
  std::optional<uint32_t> condition;
};

class Compiler {
 public:
  Compiler(std::shared_ptr<const Vocabulary> vocabulary, bool cache, std::size_t cache_bytes,
           WorkLimits limits = {});
  // For some texts it takes too much work to decide whether they can be completed. With `subset`, such texts
  // are left out of the grammar and its masks. Without `subset` they are an error.
  std::shared_ptr<Grammar> json_schema(std::string_view schema, const SchemaSet::Documents& registry,
                                       const JsonOptions& options, bool subset = false);
  std::shared_ptr<Grammar> regex(std::string_view pattern, bool subset = false);
  // Compiles the source from its rule `start`. A rule may name a JSON part by its index in `schemas`.
  std::shared_ptr<Grammar> grammar(GrammarSource source, uint32_t start, const std::vector<JsonPart>& schemas,
                                   bool subset = false);
  std::shared_ptr<Grammar> choice(const std::vector<std::string>& texts, bool subset = false);
  void set_limits(WorkLimits limits) { limits_ = limits; }
  const Vocabulary& vocabulary() const { return *vocabulary_; }
  // Returns the bytes of all worlds that grammars still need, and of these grammars. Each object counts with
  // the number that it last published. The call takes no world's lock.
  std::size_t byte_size();

  // The compiler keeps grammars alive (mask/cache_policy.h), but cannot look them up: its caller has a table
  // of grammars, by text or by another key. The caller tells the compiler which grammars it made (keep()) or
  // found in the table (found()), and is told which to forget.
  using Grammars = std::vector<std::shared_ptr<Grammar>>;
  // Keeps a grammar as the newest. Returns the older grammars that are dropped for this grammar; the caller
  // forgets them and passes them to reap().
  Grammars keep(std::shared_ptr<Grammar> grammar);
  // Makes a kept grammar the newest, because the caller found it in its table. Returns false if the grammar
  // must be compiled anew: it is no longer kept, its world is full, or its world was lost in a forked child.
  bool found(Grammar& grammar);
  // Frees the grammars on another thread, unless someone still holds them.
  void reap(Grammars gone);
  // Returns how many grammars and epochs of the process wait to be freed.
  std::size_t retiring() const;

 private:
  // A world whose lock this thread holds. Threads that compile at the same time enter different worlds, so
  // that none waits for a mask of another thread.
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
    // The index of the world for which a compile waits if all are busy. `turn` then goes up by one, so that
    // the next compile waits for another world.
    std::size_t turn = 0;
  };
  // The worlds by kind: two spellings of strings (any, plain) times two modes ("exact", "subset").
  Worlds current_[4];
  // The worlds that are full; each stays as long as a grammar needs it.
  std::vector<std::weak_ptr<World>> worlds_;
  Recent recent_;
};

}  // namespace structgen
