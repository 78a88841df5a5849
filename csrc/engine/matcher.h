// One text of one request: what its tokens lead to (engine/sequence.h), and what may come next.
//
// In: tokens or bytes. Out: accept or refuse, masks (engine/row_source.h), forced text. Cost: accepting walks
// the token's bytes through memoised steps (about 0.1 us); a known mask is one copy. A matcher belongs to one
// thread at a time. What throws leaves the matcher as it was.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

  bool accept_token(TokenId t);
  bool accept_tokens(std::span<const TokenId> tokens);  // all or nothing
  bool accept_bytes(std::string_view bytes);            // one history entry
  std::size_t validate_tokens(std::span<const TokenId> tokens);
  // Length of the longest prefix of `bytes` that is a prefix of the language from here.
  std::size_t validate_bytes(std::string_view bytes);
  // Whether these need no step that nobody took before, and so no lock.
  bool known(std::span<const TokenId> tokens) const;
  bool known(std::string_view bytes) const;
  void rollback(std::size_t n);  // throws kValue beyond the history
  void reset();
  std::size_t history() const { return sequence_.size(); }
  bool is_accepting() const;
  bool is_terminated() const { return terminated_ > 0; }
  // words() int32 words; within what is left of the request's tokens. Throws kUnsatisfiableBudget where it is
  // proved that nothing fits, kBudgetExceeded where nothing is found and nothing proved.
  void fill_row(uint32_t* row);
  // Only tokens after which the text can be completed, end-of-sequence token included, within `budget`
  // tokens (the one to come included) and the request's. False where it is proved that nothing fits; throws
  // kBudgetExceeded where nothing is found and nothing proved.
  bool fill_row_within(uint32_t* row, std::size_t budget);
  // The least number of tokens that complete the text from here, end-of-sequence token included: no fewer
  // than `least`, and `enough` do. `search`: look for fewer than a shortest text takes. Both kFar: none do.
  using Bounds = Budget::Bounds;
  static constexpr std::size_t kFar = Budget::kFar;
  Bounds tokens_needed(bool search);
  // Whether fill_row_within() allows the last token where it leaves `budget` tokens; none: only the mask
  // tells.
  std::optional<bool> fits(std::size_t budget);
  std::string shortest_completion();
  bool fill_row_fast(uint32_t* row);  // only when the mask is known: takes no lock
  // Of the mask filled last: false where tokens may be missing, because it was too much to tell of some.
  bool mask_exact() const { return exact_ && !grammar_->partial(); }
  std::string forced_bytes(std::size_t limit = 4096);
  // The last tokens, at most `most`, back to the last step that was none of text.
  std::vector<TokenId> tail(std::size_t most) const;
  // Where in `text`, which ends with the `forced` bytes that come next, a token could begin that goes beyond
  // its end, in every way the grammar allows. Cost: a walk over such tokens until one is found.
  std::vector<std::size_t> open_places(std::string_view text, std::string_view forced);
  // The named parts of what was read, by begin, longer ones first; see parse/spans.h. Bytes count text only:
  // a special token has none. Tokens count steps of the history. Throws kBudgetExceeded.
  std::vector<Capture> captures();
  // Bytes that a token may begin with; `inside`: that may come next in a token begun.
  ByteSet live(bool inside = false);
  const Grammar& grammar() const { return *grammar_; }

 private:
  bool ends(TokenId t) const { return own_ends_ ? own_ends_->has(t) : grammar_->vocabulary().is_eos(t); }
  std::size_t left() const { return request_tokens_ - std::min(request_tokens_, history()); }
  StateId current() const { return sequence_.current(); }
  Epoch& epoch() const { return *sequence_.epoch(); }
  void ended_row(uint32_t* row) const;
  StateId walk_text(StateId s, std::string_view bytes);
  bool completable(StateId s);  // within the limits on tokens, if there are any
  template <class F>
  bool take(std::string_view text, const F& push);
  bool take(StateId s, TokenId t, std::string_view text);
  Budget budget();  // the object of one call; under the lock

  std::shared_ptr<Grammar> grammar_;
  const RowSource* rows_;
  Sequence sequence_;
  std::string text_;  // what was read, and where each step ended: only where there are captures
  std::vector<std::size_t> ends_;
  std::shared_ptr<const Ends> own_ends_;  // the request's; null: the vocabulary's
  std::size_t request_tokens_ = Request::kAny;
  bool goes_on_after_end_ = false;
  std::size_t terminated_ = 0;  // entries at the end that are EOS or padding
  bool exact_ = true;           // see mask_exact()
};

}  // namespace structgen
