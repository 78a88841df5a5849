// A canvas of a compiled grammar: the slots of holes/canvas.h under the grammar's lock and its limits.
//
// In: slots and tokens. Out: verdicts, rows, fillings. Cost: that of holes/canvas.h, within the work that a
// mask may take; what takes more is not known. What is known of clouds is kept with the grammar for all its
// canvases, up to a limit.
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
  // Throws kValue for too many slots, kGrammar where the grammar limits tokens, kUnsatisfiableInfill where
  // the prefix does not begin a text (pointer "prefix").
  GrammarCanvas(std::shared_ptr<Grammar> grammar, std::size_t slots, std::string_view prefix, bool open,
                TokenId pad);
  GrammarCanvas(const GrammarCanvas& o);
  ~GrammarCanvas();
  std::size_t size() const { return canvas_->size(); }
  const std::vector<TokenId>& slots() const { return canvas_->slots(); }
  Verdict possible();
  Verdict allows(int64_t slot, TokenId t);
  Verdict set(int64_t slot, TokenId t, bool force);
  void clear(int64_t slot);
  bool fill_row(int64_t slot, uint32_t* row);
  Verdict complete(std::vector<TokenId>& out);
  uint64_t asked() const { return asked_; }      // tokens that allows() and set() were asked about
  uint64_t unknown() const { return unknown_; }  // and those of which it was not known
  const Vocabulary& vocabulary() const { return grammar_->vocabulary(); }

 private:
  template <class F>
  Verdict told(F&& f);
  std::size_t checked(int64_t slot) const;
  void checked_token(TokenId t) const;
  std::shared_ptr<Grammar> grammar_;
  std::unique_ptr<Canvas> canvas_;
  uint64_t asked_ = 0, unknown_ = 0;
};

}  // namespace structgen
