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

  // Returns false and changes nothing if the token is not allowed.
  bool accept_token(TokenId t);
  // Accepts all tokens, or none if one of them is not allowed.
  bool accept_tokens(std::span<const TokenId> tokens);
  // Accepts all bytes or none. They are one step of the history.
  bool accept_bytes(std::string_view bytes);
  // Returns how many of the tokens are allowed one after the other. Changes nothing.
  std::size_t validate_tokens(std::span<const TokenId> tokens);
  // Returns how many bytes from the beginning could be accepted.
  std::size_t validate_bytes(std::string_view bytes);
  // Returns true if reading these tokens takes no lock, because all their steps are known.
  bool known(std::span<const TokenId> tokens) const;
  bool known(std::string_view bytes) const;
  // Takes back n steps of the history. Throws kValue if there are fewer.
  void rollback(std::size_t n);
  void reset();
  std::size_t history() const { return sequence_.size(); }
  bool is_accepting() const;
  bool is_terminated() const { return terminated_ > 0; }
  // Returns true if the request limits its tokens. validate_tokens() may then lock even if all steps are
  // known.
  bool has_budget() const { return request_tokens_ != Request::kAny; }
  // Writes the mask, words() words of 32 bits. With a limit of the request, only tokens are allowed after
  // which the text can be completed within it. Throws kUnsatisfiableBudget if it is proved that there is
  // none, and kBudgetExceeded if none is found and nothing is proved.
  void fill_row(uint32_t* row);
  // Allows only tokens after which the text can be completed within `budget` tokens and within the limit of
  // the request; both count the next token and the end token. Returns false if it is proved that there is
  // none. Throws kBudgetExceeded if none is found and nothing is proved.
  bool fill_row_within(uint32_t* row, std::size_t budget);
  // Bounds the tokens that complete the text, the end token included: at least `least`, and `enough` suffice.
  // With `search` it looks for completions of fewer tokens and more bytes. Both are kFar if no tokens
  // complete the text.
  using Bounds = Budget::Bounds;
  static constexpr std::size_t kFar = Budget::kFar;
  Bounds tokens_needed(bool search);
  // Returns whether fill_row_within() would have allowed the last token with `budget` tokens behind it; no
  // value if only the mask can tell.
  std::optional<bool> fits(std::size_t budget);
  // Returns a text of the fewest bytes that completes the text, within the grammar's limits on tokens.
  std::string shortest_completion();
  // Fills the row if the mask is known and `budget` tokens forbid none of its tokens; otherwise returns
  // false. Takes no lock.
  bool fill_row_fast(uint32_t* row, std::size_t budget = Request::kAny);
  // Reads a text, and keeps the mask in front of each token: row of[i] of `rows`, words() words. Equal masks
  // are one row. The call ends at the first token that is refused, number of.size(). A new state costs a mask
  // and a hash, any other token a step and a look-up. Throws the errors of fill_row(), and kBudgetExceeded if
  // the rows exceed `most` bytes; history() then tells how far it came.
  struct Replay {
    std::vector<uint32_t> rows;
    std::vector<int32_t> of;
  };
  Replay replay(std::span<const TokenId> tokens, std::size_t most);
  // Returns false if the last mask may lack tokens that took too much work to judge.
  bool mask_exact() const { return exact_ && !grammar_->partial(); }
  // Returns the longest text, up to `limit` bytes, with which every completion begins: `"name":` behind `{`,
  // if this key is required and first and no blanks are allowed.
  std::string forced_bytes(std::size_t limit = 4096);
  // Returns the last tokens of the text, at most `most`. The list stops at a step without a token of text:
  // bytes, a special token or an end token.
  std::vector<TokenId> tail(std::size_t most) const;
  // Returns offsets in `text` at which the tokenizer could have begun a longer token, which the grammar
  // allows to go beyond the end of `text`. `text` ends with `forced`, the bytes that come next. Each offset
  // costs a walk over such tokens.
  std::vector<std::size_t> open_places(std::string_view text, std::string_view forced);
  // Returns the captures of the text (parse/spans.h), by begin, longer ones first. Offsets count bytes; a
  // special token has none. Indices count steps of the history. Throws kBudgetExceeded.
  std::vector<Capture> captures();
  // Returns the bytes with which the next token may begin; with `inside`, those that may come next inside of
  // a token.
  ByteSet live(bool inside = false);
  // Returns a number for the state behind the text. Texts with one number have the same continuations, but
  // not the other way round.
  uint64_t state();
  // Returns the states behind one more byte, each with the bytes that lead there. With unproven productions
  // (parse/productions.h) one may have no completion. Throws kGrammar if tokens are limited, because the
  // state then depends on where tokens begin.
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
  // The same as accept_token(), but refuses a token behind which the budget cannot complete the text.
  bool accept_in_time(TokenId t);
  StateId walk_text(StateId s, std::string_view bytes);
  template <class F>
  bool take(std::string_view text, const F& push);
  bool take(StateId s, TokenId t, std::string_view text);
  // Returns the Budget of one call. The caller holds the world's lock.
  Budget budget();

  std::shared_ptr<Grammar> grammar_;
  const RowSource* rows_;
  Sequence sequence_;
  // The text, and the offset at which each step ended; empty if the grammar has no captures.
  std::string text_;
  std::vector<std::size_t> ends_;
  // The end tokens of the request; null if they are the vocabulary's.
  std::shared_ptr<const Ends> own_ends_;
  std::size_t request_tokens_ = Request::kAny;
  bool goes_on_after_end_ = false;
  // How many steps at the end of the history are end tokens or padding.
  std::size_t terminated_ = 0;
  bool exact_ = true;  // see mask_exact()
};

}  // namespace structgen
