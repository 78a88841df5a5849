// Matchers and masks of include/structgen.h; docs/c_api.md describes the calls.
#include <algorithm>
#include <cstring>
#include <span>
#include <thread>

#include "capi/handles.h"
#include "engine/batch.h"
#include "mask/apply.h"

using namespace structgen;
using namespace structgen::capi;

namespace {

// Throws unless the row has a bit for each token. It may have more words, because models pad their logits.
void check_row(const Matcher& matcher, const int32_t* row, std::size_t words) {
  const std::size_t needed = matcher.grammar().vocabulary().words();
  if (!row) bad_argument("the row is NULL");
  if (words < needed)
    throw Error(ErrorKind::kValue,
                "a row needs " + std::to_string(needed) + " words and has " + std::to_string(words));
}

// Clears the words of the row beyond the vocabulary, and returns the row.
uint32_t* cleared(const Matcher& matcher, int32_t* row, std::size_t words) {
  std::fill(row + matcher.grammar().vocabulary().words(), row + words, 0);
  return reinterpret_cast<uint32_t*>(row);
}

std::span<const TokenId> ids(const int32_t* tokens, std::size_t n) {
  if (!tokens && n) bad_argument("tokens at NULL");
  return {tokens, n};
}

// Copies as much of the text as fits into the buffer. Sets *size to the length of the whole text, so that the
// caller can ask again with a larger buffer.
void put(std::string_view text, char* buffer, std::size_t capacity, std::size_t* size) {
  if (!buffer && capacity) bad_argument("the buffer is NULL");
  given(size, "size is NULL");
  std::copy_n(text.data(), std::min(capacity, text.size()), buffer);
  *size = text.size();
}

// Returns f(), which cannot fail; -1 if the handle is NULL or in use.
template <class F>
auto asked(structgen_matcher* matcher, F&& f) noexcept -> decltype(f(matcher->matcher)) {
  try {
    const Held use(matcher);
    return f(*use);
  } catch (...) {
    return -1;
  }
}

}  // namespace

structgen_status structgen_matcher_new(const structgen_grammar* grammar, const structgen_request* request,
                                       structgen_matcher** out, structgen_error** error) {
  return guarded(error, [&] {
    given(out, "out is NULL");
    const structgen_grammar& g = given(grammar, "the grammar is NULL");
    const structgen_request wanted = options_of(request);
    Request r;
    if (wanted.end_token_ids) {
      const std::span<const TokenId> ends = ids(wanted.end_token_ids, wanted.n_end_token_ids);
      if (ends.empty()) bad_argument("end_token_ids is empty, so no text could end; NULL: the vocabulary's");
      r.ends.assign(ends.begin(), ends.end());
    }
    if (wanted.max_tokens < 0) bad_argument("max_tokens is negative; 0: no limit");
    if (wanted.max_tokens > 0) r.tokens = static_cast<std::size_t>(wanted.max_tokens);
    r.goes_on_after_end = wanted.ignore_after_end != 0;
    *out = new structgen_matcher{Sole<Matcher>(g.grammar, std::move(r))};
  });
}

structgen_status structgen_matcher_fork(structgen_matcher* matcher, structgen_matcher** out,
                                        structgen_error** error) {
  return guarded(error, [&] {
    given(out, "out is NULL");
    const Held use(matcher);
    *out = new structgen_matcher{Sole<Matcher>(*use)};
  });
}

void structgen_matcher_free(structgen_matcher* matcher) { delete matcher; }

structgen_status structgen_matcher_fill(structgen_matcher* matcher, int32_t* row, size_t words,
                                        structgen_error** error) {
  return guarded(error, [&] {
    const Held use(matcher);
    check_row(*use, row, words);
    uint32_t* const at = cleared(*use, row, words);
    // On an error the row is cleared: a caller that ignores the status must not sample from an old mask.
    try {
      if (!use->fill_row_fast(at)) use->fill_row(at);
    } catch (...) {
      std::fill_n(at, words, 0u);
      throw;
    }
  });
}

structgen_status structgen_matcher_fill_batch(structgen_matcher* const* matchers, int32_t* const* rows,
                                              size_t n, size_t words, unsigned threads,
                                              structgen_status* statuses, structgen_error** error) {
  std::vector<std::exception_ptr> failures;
  const structgen_status status = guarded(error, [&] {
    if (n && (!matchers || !rows)) bad_argument("matchers or rows at NULL");
    std::vector<const structgen_matcher*> sorted(matchers, matchers + n);
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) != sorted.end())
      bad_argument("the same matcher stands twice in the batch; fork it");
    // All arguments are checked before any row is written. So a wrong argument leaves all rows unchanged.
    for (std::size_t i = 0; i < n; ++i)
      check_row(given(matchers[i], "a matcher is NULL").matcher, rows[i], words);
    std::vector<Sole<Matcher>*> all;
    std::vector<uint32_t*> pointers;
    for (std::size_t i = 0; i < n; ++i) {
      all.push_back(&matchers[i]->matcher);
      pointers.push_back(cleared(*all[i], rows[i], words));
    }
    if (threads == 0) threads = n < 16 ? 1 : std::clamp(std::thread::hardware_concurrency(), 1u, 8u);
    failures = fill_rows(all, pointers, threads);
    failures.resize(n);
  });
  if (status != STRUCTGEN_OK) {
    if (statuses) std::fill_n(statuses, n, status);
    return status;
  }
  structgen_status worst = STRUCTGEN_OK;
  for (std::size_t i = 0; i < n; ++i) {
    const structgen_status one = failures[i] ? guarded(worst == STRUCTGEN_OK ? error : nullptr,
                                                       [&] { std::rethrow_exception(failures[i]); })
                                             : STRUCTGEN_OK;
    if (worst == STRUCTGEN_OK) worst = one;
    if (statuses) statuses[i] = one;
  }
  return worst;
}

structgen_status structgen_matcher_accept(structgen_matcher* matcher, int32_t token,
                                          structgen_error** error) {
  return guarded(error, [&] { return Held(matcher)->accept_token(token); });
}

structgen_status structgen_matcher_accept_tokens(structgen_matcher* matcher, const int32_t* tokens, size_t n,
                                                 structgen_error** error) {
  return guarded(error, [&] { return Held(matcher)->accept_tokens(ids(tokens, n)); });
}

structgen_status structgen_matcher_accept_bytes(structgen_matcher* matcher, structgen_bytes text,
                                                structgen_error** error) {
  return guarded(error, [&] { return Held(matcher)->accept_bytes(bytes(text)); });
}

structgen_status structgen_matcher_validate_tokens(structgen_matcher* matcher, const int32_t* tokens,
                                                   size_t n, size_t* out, structgen_error** error) {
  return guarded(error, [&] {
    size_t& taken = given(out, "out is NULL");
    taken = Held(matcher)->validate_tokens(ids(tokens, n));
  });
}

structgen_status structgen_matcher_validate_bytes(structgen_matcher* matcher, structgen_bytes text,
                                                  size_t* out, structgen_error** error) {
  return guarded(error, [&] {
    size_t& taken = given(out, "out is NULL");
    taken = Held(matcher)->validate_bytes(bytes(text));
  });
}

structgen_status structgen_matcher_rollback(structgen_matcher* matcher, size_t n, structgen_error** error) {
  return guarded(error, [&] { Held(matcher)->rollback(n); });
}

structgen_status structgen_matcher_reset(structgen_matcher* matcher, structgen_error** error) {
  return guarded(error, [&] { Held(matcher)->reset(); });
}

int structgen_matcher_is_accepting(structgen_matcher* matcher) {
  return asked(matcher, [](const Matcher& m) { return static_cast<int>(m.is_accepting()); });
}
int structgen_matcher_is_terminated(structgen_matcher* matcher) {
  return asked(matcher, [](const Matcher& m) { return static_cast<int>(m.is_terminated()); });
}
int structgen_matcher_mask_exact(structgen_matcher* matcher) {
  return asked(matcher, [](const Matcher& m) { return static_cast<int>(m.mask_exact()); });
}
int64_t structgen_matcher_num_steps(structgen_matcher* matcher) {
  return asked(matcher, [](const Matcher& m) { return static_cast<int64_t>(m.history()); });
}

structgen_status structgen_matcher_forced_bytes(structgen_matcher* matcher, char* buffer, size_t capacity,
                                                size_t* size, structgen_error** error) {
  return guarded(error, [&] { put(Held(matcher)->forced_bytes(), buffer, capacity, size); });
}

structgen_status structgen_matcher_shortest_completion(structgen_matcher* matcher, char* buffer,
                                                       size_t capacity, size_t* size,
                                                       structgen_error** error) {
  return guarded(error, [&] { put(Held(matcher)->shortest_completion(), buffer, capacity, size); });
}

structgen_status structgen_matcher_tokens_needed(structgen_matcher* matcher, size_t* least, size_t* enough,
                                                 structgen_error** error) {
  return guarded(error, [&] {
    const Matcher::Bounds b = Held(matcher)->tokens_needed(true);
    if (b.least >= Matcher::kFar)
      throw Error(ErrorKind::kUnsatisfiableBudget, "no tokens of the vocabulary complete the text");
    if (b.enough >= Matcher::kFar)
      throw Error(ErrorKind::kBudgetExceeded, "no tokens of the vocabulary were found to complete the text");
    if (least) *least = b.least;
    if (enough) *enough = b.enough;
  });
}

void structgen_apply(float* logits, size_t width, const int32_t* row, size_t words) {
  if (!logits || !row || width == 0) return;
  const LogitRows in{logits, Element::kFloat32, 1, width, static_cast<std::ptrdiff_t>(width)};
  const MaskRows mask{reinterpret_cast<const uint32_t*>(row), 0, words};
  mask_logits(logits, static_cast<std::ptrdiff_t>(width), in, mask, nullptr, 0, 1);
}
