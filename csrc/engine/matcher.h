// One text of one request: the states that its tokens lead to (engine/sequence.h), and the tokens that
// may come next.
//
// In: tokens or bytes. Out: accept or refuse, masks (engine/row_source.h), forced text. Cost: accepting
// walks the token's bytes through memoised steps (about 0.1 us); a known mask is one copy. A matcher
// belongs to one thread at a time. A call that throws leaves the matcher as it was.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "budget/budget.h"
#include "engine/captures.h"
#include "engine/grammar.h"
#include "engine/request.h"
#include "engine/row_source.h"
#include "engine/sequence.h"

namespace structgen {

class Matcher {
 public:
  explicit Matcher(std::shared_ptr<Grammar> grammar, Request request = {});

  // Returns false, and changes nothing, if the token is not allowed.
  bool accept_token(TokenId t);
  // Accepts all tokens; returns false, and accepts none, if one is not allowed.
  bool accept_tokens(std::span<const TokenId> tokens);
  // Accepts all bytes or none. The accepted bytes make one step of the history.
  bool accept_bytes(std::string_view bytes);
  // Returns how many of the tokens, in this order, the masks of fill_row() would allow. Changes nothing.
  std::size_t validate_tokens(std::span<const TokenId> tokens);
  // Returns the length of the longest beginning of `bytes` that could be accepted.
  std::size_t validate_bytes(std::string_view bytes);
  // Returns true if the states behind these tokens are all known, so that reading them takes no lock.
  bool known(std::span<const TokenId> tokens) const;
  bool known(std::string_view bytes) const;
  void rollback(std::size_t n);
  void reset();
  std::size_t history() const { return sequence_.size(); }
  bool is_accepting() const;
  bool is_terminated() const { return terminated_ > 0; }
  // Returns true if the request limits its tokens. Then validate_tokens() may take a lock even where known()
  // is true.
  bool has_budget() const { return request_tokens_ != Request::kAny; }
  // Writes the mask, words() words of 32 bits. If the request limits its tokens, the mask allows a token only
  // if the text can be completed within this limit behind it. Throws kUnsatisfiableBudget if it is proved
  // that no token is left, and kBudgetExceeded if no token was found and nothing is proved.
  void fill_row(uint32_t* row);
  // Writes the mask of the tokens behind which the text can be completed within `budget` tokens and within
  // the limit of the request. Both numbers include the next token and the end token. Returns false if it is
  // proved that no token is left. Throws kBudgetExceeded if no token was found and nothing is proved.
  bool fill_row_within(uint32_t* row, std::size_t budget);
  // Bounds of the number of tokens that complete the text, including the end token: it takes at least `least`
  // tokens, and `enough` tokens suffice. `search` also looks for completions of more bytes but fewer tokens.
  // Both bounds are kFar if no tokens complete the text.
  using Bounds = Budget::Bounds;
  static constexpr std::size_t kFar = Budget::kFar;
  Bounds tokens_needed(bool search);
  // Returns whether fill_row_within() would have allowed the last token with `budget` tokens behind it.
  // Returns nothing if only the mask can tell.
  std::optional<bool> fits(std::size_t budget);
  // Returns the text of the fewest bytes that completes what was written. In a grammar with limits on tokens,
  // this text can be written within these limits.
  std::string shortest_completion();
  // Fills the row, without a lock, if the mask is known and a budget of `budget` tokens refuses none of its
  // tokens. Otherwise returns false.
  bool fill_row_fast(uint32_t* row, std::size_t budget = Request::kAny);
  // Reads tokens from here on, and stores the mask in front of each token: the mask in front of token i is
  // row of[i] of `rows`. A row has words() words, and equal masks share one row. The call stops in front of
  // the first token that is refused; the index of this token is of.size(). A state met for the first time
  // costs a mask and its hash; every other token costs a step and a look-up. Throws the errors of fill_row(),
  // and kBudgetExceeded if the rows exceed `most` bytes; after an exception, history() tells how many tokens
  // were read.
  struct Replay {
    std::vector<uint32_t> rows;
    std::vector<int32_t> of;
  };
  Replay replay(std::span<const TokenId> tokens, std::size_t most);
  // Returns false if the last mask may lack tokens that took too much work to judge.
  bool mask_exact() const { return exact_ && !grammar_->partial(); }
  // Returns the longest text of at most `limit` bytes with which all completions begin. Behind `{` it is
  // `"name":` if this key is required and first and the layout has no blanks.
  std::string forced_bytes(std::size_t limit = 4096);
  // Returns the last tokens of text, at most `most`. The list begins behind the last step that is no token of
  // text: bytes, a special token or an end token.
  std::vector<TokenId> tail(std::size_t most) const;
  // `text` ends with the `forced` bytes that come next. Returns the offsets in it at which the tokenizer
  // might begin another token than the caller's: one that reaches beyond the end of `text`, in a way that the
  // grammar allows. Each offset costs a walk over such tokens until one is found.
  std::vector<std::size_t> open_places(std::string_view text, std::string_view forced);
  // Returns the captures of the text so far, by begin; of equal begins, longer ones come first
  // (parse/spans.h). Offsets count bytes of text; a special token has no text. Token indices count steps of
  // the history. Throws kBudgetExceeded.
  std::vector<Capture> captures();
  // Returns the bytes with which the next token may begin. With `inside`, returns those that may come next
  // within a token.
  ByteSet live(bool inside = false);
  // Returns a number for the state behind the text. Texts with equal numbers have the same continuations.
  // Texts with the same continuations may have different numbers.
  uint64_t state();
  // Returns the states behind one more byte, each with all bytes that lead to it. With unproven productions
  // (parse/productions.h) such a state may have no completion. Throws kGrammar if tokens are limited, because
  // the state then depends on where tokens begin.
  std::vector<std::pair<std::string, uint64_t>> successors();
  const Grammar& grammar() const { return *grammar_; }

 private:
  uint64_t number(StateId s, std::size_t bytes);
  ByteSet live_at(StateId s, std::size_t bytes);
  bool ends(TokenId t) const { return own_ends_ ? own_ends_->has(t) : grammar_->vocabulary().is_eos(t); }
  std::size_t left() const { return request_tokens_ - std::min(request_tokens_, history()); }
  StateId current() const { return sequence_.current(); }
  Epoch& epoch() const { return *sequence_.epoch(); }
  void ended_row(uint32_t* row) const;
  // Accepts a token as accept_token() does, but also refuses a token behind which the request's limit of
  // tokens does not suffice.
  bool accept_in_time(TokenId t);
  StateId behind_text(StateId s, std::string_view bytes);
  template <class F>
  bool take(std::string_view text, const F& push);
  bool take(StateId s, TokenId t, std::string_view text);
  // Returns the Budget of one call. The caller holds the world's lock.
  Budget budget();

  std::shared_ptr<Grammar> grammar_;
  const RowSource* rows_;
  Sequence sequence_;
  // The text so far, and the offset behind each step; both stay empty if the grammar has no captures.
  std::string text_;
  std::vector<std::size_t> ends_;
  // The end tokens of the request; null if the request uses the end tokens of the vocabulary.
  std::shared_ptr<const Ends> own_ends_;
  std::size_t request_tokens_ = Request::kAny;
  bool goes_on_after_end_ = false;
  // The number of steps at the end of the history that are end tokens or padding.
  std::size_t terminated_ = 0;
  bool exact_ = true;  // see mask_exact()
};

}  // namespace structgen
