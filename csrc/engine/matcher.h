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
  // Accepts all bytes or none; together they are one step of the history.
  bool accept_bytes(std::string_view bytes);
  // Returns how many of the tokens the masks of fill_row() allow one after the other. Changes nothing.
  std::size_t validate_tokens(std::span<const TokenId> tokens);
  // Returns the length of the longest beginning of `bytes` that could be accepted.
  std::size_t validate_bytes(std::string_view bytes);
  // Returns true if all steps that read these tokens are known, so that reading them takes no lock.
  bool known(std::span<const TokenId> tokens) const;
  bool known(std::string_view bytes) const;
  // Takes back the last n steps of the history; throws kValue if there are fewer.
  void rollback(std::size_t n);
  void reset();
  std::size_t history() const { return sequence_.size(); }
  bool is_accepting() const;
  bool is_terminated() const { return terminated_ > 0; }
  // Returns true if the request limits its tokens. validate_tokens() may then take a lock even if all steps
  // are known.
  bool has_budget() const { return request_tokens_ != Request::kAny; }
  // Writes the mask, words() words of 32 bits. If the request has a limit of tokens, the mask allows only
  // tokens after which the text can be completed within it. Throws kUnsatisfiableBudget if it is proved that
  // no token is left, and kBudgetExceeded if none is found but nothing is proved.
  void fill_row(uint32_t* row);
  // Allows only tokens after which the text can be completed within `budget` tokens and within the limit of
  // the request. Both numbers count the next token and the end token. Returns false if it is proved that no
  // token is left; throws kBudgetExceeded if none is found but nothing is proved.
  bool fill_row_within(uint32_t* row, std::size_t budget);
  // Returns bounds of the number of tokens that complete the text, the end token included: at least `least`
  // tokens are needed, and `enough` tokens suffice. With `search` it also looks for completions that take
  // fewer tokens although they have more bytes. Both bounds are kFar if no tokens complete the text.
  using Bounds = Budget::Bounds;
  static constexpr std::size_t kFar = Budget::kFar;
  Bounds tokens_needed(bool search);
  // Returns whether fill_row_within() would have allowed the last token with `budget` tokens behind it; no
  // value if only the mask can tell.
  std::optional<bool> fits(std::size_t budget);
  // Returns a text of the fewest bytes that completes the text. In a grammar with limits on tokens, it
  // returns a text that can be written within these limits.
  std::string shortest_completion();
  // Fills the row and returns true if the mask is known and `budget` tokens forbid none of its tokens;
  // returns false otherwise. Takes no lock.
  bool fill_row_fast(uint32_t* row, std::size_t budget = Request::kAny);
  // Reads a text from here on, and stores the mask in front of each token: token i has the row of[i] of
  // `rows`; a row has words() words. Equal masks are one row. The call ends in front of the first token that
  // is refused, which has the index of.size(). A new state makes a mask and hashes it; any other token costs
  // a step and a look-up. Throws the errors of fill_row(), and kBudgetExceeded if the rows exceed `most`
  // bytes; history() then tells how far it came.
  struct Replay {
    std::vector<uint32_t> rows;
    std::vector<int32_t> of;
  };
  Replay replay(std::span<const TokenId> tokens, std::size_t most);
  // Returns false if the last mask may lack tokens, because some took too much work to judge.
  bool mask_exact() const { return exact_ && !grammar_->partial(); }
  // Returns the longest text, of at most `limit` bytes, with which every completion begins: `"name":` after
  // `{`, if that key is required and first, and the layout has no blanks.
  std::string forced_bytes(std::size_t limit = 4096);
  // Returns the last tokens of text, at most `most` of them. The list goes back no further than the last step
  // without a token of text: bytes, a special token or an end token.
  std::vector<TokenId> tail(std::size_t most) const;
  // Returns offsets in `text` at which the tokenizer could begin another token than it did. Such a token goes
  // beyond the end of `text`, in some way that the grammar allows. `text` ends with the `forced` bytes that
  // come next. Each offset costs a walk over such tokens until one is found.
  std::vector<std::size_t> open_places(std::string_view text, std::string_view forced);
  // Returns the captures of the text that was read, by begin, longer ones first; see parse/spans.h. Offsets
  // count bytes of text, and a special token has none. Indices of tokens count steps of the history. Throws
  // kBudgetExceeded.
  std::vector<Capture> captures();
  // Returns the bytes with which the next token may begin. With `inside`, returns the bytes that may come
  // next inside of a token.
  ByteSet live(bool inside = false);
  // Returns a number for the state behind the text. Texts with one number have the same continuations; texts
  // with the same continuations may have different numbers.
  uint64_t state();
  // Returns the states behind one more byte, each with the bytes that lead to it. With unproven productions
  // (parse/productions.h) a state may have no completion. Throws kGrammar if tokens are limited, because the
  // state behind a byte then depends on where tokens begin.
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
  // Does what accept_token() does, and also refuses a token behind which the budget cannot complete the text.
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
  // The text that was read, and the offset at which each step ended; empty if the grammar has no captures.
  std::string text_;
  std::vector<std::size_t> ends_;
  // The end tokens of the request; null if it has those of the vocabulary.
  std::shared_ptr<const Ends> own_ends_;
  std::size_t request_tokens_ = Request::kAny;
  bool goes_on_after_end_ = false;
  // How many steps at the end of the history are end tokens or padding.
  std::size_t terminated_ = 0;
  bool exact_ = true;  // see mask_exact()
};

}  // namespace structgen
