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

  // False: the token is not allowed, and the matcher is as it was.
  bool accept_token(TokenId t);
  // Accepts all tokens or none.
  bool accept_tokens(std::span<const TokenId> tokens);
  // The bytes are one entry of the history.
  bool accept_bytes(std::string_view bytes);
  // How many of the tokens the masks of fill_row() allow one after the other; nothing changes.
  std::size_t validate_tokens(std::span<const TokenId> tokens);
  // The length of the longest prefix of `bytes` that could be accepted.
  std::size_t validate_bytes(std::string_view bytes);
  // Whether reading these takes only steps that somebody took before, and so no lock.
  bool known(std::span<const TokenId> tokens) const;
  bool known(std::string_view bytes) const;
  // Takes back n entries; throws kValue beyond the history.
  void rollback(std::size_t n);
  void reset();
  std::size_t history() const { return sequence_.size(); }
  bool is_accepting() const;
  bool is_terminated() const { return terminated_ > 0; }
  // Whether the request limits its tokens; validate_tokens() may then take a lock where all steps are known.
  bool has_budget() const { return request_tokens_ != Request::kAny; }
  // Writes words() int32 words, within the rest of the request's tokens. Throws kUnsatisfiableBudget
  // where it is proved that nothing fits, and kBudgetExceeded where nothing is found and nothing is
  // proved.
  void fill_row(uint32_t* row);
  // Allows only tokens after which the text can be completed within `budget` tokens and within the
  // request's; both count the next token and the end token. False where it is proved that nothing fits;
  // throws kBudgetExceeded where nothing is found and nothing is proved.
  bool fill_row_within(uint32_t* row, std::size_t budget);
  // Bounds of the number of tokens that complete the text from here, the end token included: at least
  // `least` are needed, and `enough` suffice. With `search`, ways of fewer tokens than the
  // shortest text takes are looked for. Both numbers are kFar if no tokens complete the text.
  using Bounds = Budget::Bounds;
  static constexpr std::size_t kFar = Budget::kFar;
  Bounds tokens_needed(bool search);
  // Whether fill_row_within() would have allowed the last token with `budget` tokens left after it; no
  // value: only the mask could tell.
  std::optional<bool> fits(std::size_t budget);
  // A shortest text in bytes that completes the text; with limits on tokens, the text of a way that
  // keeps them.
  std::string shortest_completion();
  // Fills the row if the mask is known and a budget of `budget` tokens forbids none of its tokens; else
  // returns false. Takes no lock.
  bool fill_row_fast(uint32_t* row, std::size_t budget = Request::kAny);
  // Reads a text from here on and tells the mask in front of each token: row of[i] of `rows`, words()
  // words each. Equal masks are one row. It ends in front of the first token that is refused, so that
  // of.size() is its place. Cost: a new state makes a mask and hashes it; any other token takes a step
  // and a look into a table. Throws the errors of fill_row(), and kBudgetExceeded where the rows would
  // take more than `most` bytes; history() is the place.
  struct Replay {
    std::vector<uint32_t> rows;
    std::vector<int32_t> of;
  };
  Replay replay(std::span<const TokenId> tokens, std::size_t most);
  // False if tokens may be missing from the mask filled last, because it took too much work to judge
  // some of them.
  bool mask_exact() const { return exact_ && !grammar_->partial(); }
  // The bytes that must come next in every completion, at most `limit`: `"name":` after `{`, in a
  // layout without blanks, if that key is required and first.
  std::string forced_bytes(std::size_t limit = 4096);
  // The last tokens of text, at most `most`; they end before the last step that was bytes, a special
  // token or an end token.
  std::vector<TokenId> tail(std::size_t most) const;
  // The places in `text` at which a token could begin that goes beyond its end, in some way that the
  // grammar allows. `text` ends with the `forced` bytes that come next. Cost: for each place a walk
  // over such tokens until one is found.
  std::vector<std::size_t> open_places(std::string_view text, std::string_view forced);
  // The named parts of the text that was read, by begin, longer ones first; see parse/spans.h. Bytes
  // count text only: a special token has none. Tokens count steps of the history. Throws
  // kBudgetExceeded.
  std::vector<Capture> captures();
  // The bytes that the next token may begin with; `inside`: the bytes that may come next within a token
  // that is begun.
  ByteSet live(bool inside = false);
  // A number of the state behind the text. Texts with one number have the same continuations; texts with
  // the same continuations may have several numbers.
  uint64_t state();
  // The states behind one byte more, each with the bytes that lead there. A state may have no completion
  // where productions are unproven (parse/productions.h). Throws kGrammar where tokens are limited:
  // the state behind a byte then depends on where tokens begin.
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
  // accept_token(), and false for a token behind which the budget no longer completes the text.
  bool accept_in_time(TokenId t);
  StateId walk_text(StateId s, std::string_view bytes);
  template <class F>
  bool take(std::string_view text, const F& push);
  bool take(StateId s, TokenId t, std::string_view text);
  // The Budget of one call. Needs the lock.
  Budget budget();

  std::shared_ptr<Grammar> grammar_;
  const RowSource* rows_;
  Sequence sequence_;
  // The text that was read, and the offset at which each step ended; kept only where there are
  // captures.
  std::string text_;
  std::vector<std::size_t> ends_;
  // The request's end tokens; null: the vocabulary's.
  std::shared_ptr<const Ends> own_ends_;
  std::size_t request_tokens_ = Request::kAny;
  bool goes_on_after_end_ = false;
  // The number of entries at the end of the history that are end tokens or padding.
  std::size_t terminated_ = 0;
  bool exact_ = true;  // see mask_exact()
};

}  // namespace structgen
