// A canvas of a compiled grammar: the slots of holes/canvas.h under the grammar's lock and its limits.
//
// In: slots and tokens. Out: verdicts, rows, fillings. Cost: that of holes/canvas.h, within the work
// that one mask may take; a question that takes more has the answer "not known". The clouds that a
// canvas learns are kept with the grammar for all its canvases, up to a limit.
//
// Models that fill slots in any order (masked diffusion) use a canvas. With 3 slots behind the prefix
// `{"a":`, the canvas tells which tokens each slot may still take, whichever slots are filled.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/grammar.h"
#include "holes/canvas.h"

namespace structgen {

class GrammarCanvas {
 public:
  // Throws kValue for too many slots or a padding token that is text, kGrammar if the grammar limits tokens,
  // and kUnsatisfiableInfill (pointer "prefix") if no text begins with the prefix.
  GrammarCanvas(std::shared_ptr<Grammar> grammar, std::size_t slots, std::string_view prefix, bool open,
                TokenId pad);
  GrammarCanvas(const GrammarCanvas& o);
  ~GrammarCanvas();
  std::size_t size() const { return canvas_->size(); }
  const std::vector<TokenId>& slots() const { return canvas_->slots(); }
  // Tells whether some filling of the open slots is a text of the grammar.
  Verdict possible();
  Verdict allows(int64_t slot, TokenId t);
  // Sets a slot if allows() says yes. With `force` it sets the slot in any case. Returns the verdict.
  Verdict set(int64_t slot, TokenId t, bool force);
  void clear(int64_t slot);
  bool fill_row(int64_t slot, uint32_t* row);
  // Writes tokens for all open slots if possible() says yes. Returns its verdict.
  Verdict complete(std::vector<TokenId>& out);
  uint64_t asked() const { return asked_; }
  uint64_t unknown() const { return unknown_; }
  const Vocabulary& vocabulary() const { return grammar_->vocabulary(); }

 private:
  void begin(std::size_t slots);
  bool outgrown() const;
  void renew();
  template <class T, class F>
  T limited(T unknown, F&& f);
  template <class F>
  Verdict told(F&& f);
  std::size_t checked(int64_t slot) const;
  void checked_token(TokenId t) const;
  std::shared_ptr<Grammar> grammar_;
  const std::string prefix_;
  const bool open_;
  const TokenId pad_;
  std::unique_ptr<Canvas> canvas_;
  uint64_t asked_ = 0, unknown_ = 0;
};

}  // namespace structgen
