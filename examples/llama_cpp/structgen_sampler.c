#include "structgen_sampler.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct state {
  const struct llama_vocab* vocab;
  structgen_matcher* matcher;
  int32_t* row;
  size_t words;
  char problem[512]; /* why the text must end; "" while it can go on */
};

static void note(struct state* s, structgen_error* error) {
  snprintf(s->problem, sizeof s->problem, "%s", structgen_error_message(error));
  structgen_error_free(error);
}

structgen_status structgen_llama_vocabulary(const struct llama_vocab* vocab, structgen_vocabulary** out,
                                            structgen_error** error) {
  const int32_t n = llama_vocab_n_tokens(vocab);
  const int never = LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN | LLAMA_TOKEN_ATTR_UNUSED;
  structgen_bytes* tokens = calloc((size_t)n + 1, sizeof *tokens);
  int32_t *ends = calloc((size_t)n + 1, sizeof *ends), *special = calloc((size_t)n + 1, sizeof *special);
  char** pieces = calloc((size_t)n + 1, sizeof *pieces);
  structgen_status status = STRUCTGEN_ERROR_MEMORY;
  size_t n_ends = 0, n_special = 0;
  int32_t id, length, size;
  if (error) *error = NULL;
  if (!tokens || !ends || !special || !pieces) goto done;
  for (id = 0; id < n; ++id) {
    if (llama_vocab_is_eog(vocab, id))
      ends[n_ends++] = id;
    else if (llama_vocab_get_attr(vocab, id) & never)
      special[n_special++] = id;
    for (size = 64;; size = -length) {
      char* larger = realloc(pieces[id], (size_t)size);
      if (!larger) goto done;
      pieces[id] = larger;
      length = llama_token_to_piece(vocab, id, pieces[id], size, 0, true);
      if (length >= 0) break;
    }
    tokens[id].data = pieces[id];
    tokens[id].size = (size_t)length;
  }
  status = structgen_vocabulary_new(tokens, (size_t)n, ends, n_ends, special, n_special, out, error);
done:
  for (id = 0; pieces && id < n; ++id) free(pieces[id]);
  free(pieces);
  free(tokens);
  free(ends);
  free(special);
  return status;
}

static const char* name(const struct llama_sampler* sampler) {
  (void)sampler;
  return "structgen";
}

static void accept(struct llama_sampler* sampler, llama_token token) {
  struct state* s = sampler->ctx;
  structgen_error* error;
  structgen_status status;
  if (s->problem[0] || structgen_matcher_is_terminated(s->matcher) == 1) return;
  status = structgen_matcher_accept(s->matcher, token, &error);
  if (status == STRUCTGEN_REFUSED)
    snprintf(s->problem, sizeof s->problem, "token %d was chosen, which the mask did not allow", (int)token);
  else if (status != STRUCTGEN_OK)
    note(s, error);
}

static void apply(struct llama_sampler* sampler, llama_token_data_array* candidates) {
  struct state* s = sampler->ctx;
  structgen_error* error;
  size_t i;
  if (!s->problem[0] && structgen_matcher_fill(s->matcher, s->row, s->words, &error) != STRUCTGEN_OK)
    note(s, error);
  for (i = 0; i < candidates->size; ++i) {
    const llama_token id = candidates->data[i].id;
    const int allowed = s->problem[0] ? llama_vocab_is_eog(s->vocab, id) : (int)STRUCTGEN_ALLOWS(s->row, id);
    if (!allowed) candidates->data[i].logit = -INFINITY;
  }
  candidates->sorted = false;
}

static void reset(struct llama_sampler* sampler) {
  struct state* s = sampler->ctx;
  structgen_error* error;
  s->problem[0] = 0;
  if (structgen_matcher_reset(s->matcher, &error) != STRUCTGEN_OK) note(s, error);
}

static void release(struct llama_sampler* sampler) {
  struct state* s = sampler->ctx;
  if (!s) return;
  structgen_matcher_free(s->matcher);
  free(s->row);
  free(s);
}

static struct llama_sampler* clone(const struct llama_sampler* sampler);
static struct llama_sampler_i interface = {
    .name = name, .accept = accept, .apply = apply, .reset = reset, .clone = clone, .free = release};

static struct state* new_state(const struct llama_vocab* vocab) {
  struct state* s = calloc(1, sizeof *s);
  if (!s) return NULL;
  s->vocab = vocab;
  s->words = ((size_t)llama_vocab_n_tokens(vocab) + 31) / 32;
  s->row = calloc(s->words, sizeof *s->row);
  if (s->row) return s;
  free(s);
  return NULL;
}

/* NULL on an error, which a chain cannot be told: llama.cpp has no other way to say that a copy failed. */
static struct llama_sampler* clone(const struct llama_sampler* sampler) {
  const struct state* from = sampler->ctx;
  struct state* s = new_state(from->vocab);
  if (s && structgen_matcher_fork(from->matcher, &s->matcher, NULL) == STRUCTGEN_OK) {
    memcpy(s->problem, from->problem, sizeof s->problem);
    return llama_sampler_init(&interface, s);
  }
  if (s) free(s->row);
  free(s);
  return NULL;
}

struct llama_sampler* structgen_sampler_init(const struct llama_vocab* vocab,
                                             const structgen_grammar* grammar, int64_t max_tokens,
                                             structgen_error** error) {
  structgen_request request = STRUCTGEN_REQUEST_INIT;
  struct state* s = new_state(vocab);
  if (error) *error = NULL;
  if (!s) return NULL;
  request.max_tokens = max_tokens;
  if (structgen_matcher_new(grammar, &request, &s->matcher, error) == STRUCTGEN_OK)
    return llama_sampler_init(&interface, s);
  free(s->row);
  free(s);
  return NULL;
}

const char* structgen_sampler_error(const struct llama_sampler* sampler) {
  const struct state* s = sampler->ctx;
  return s->problem[0] ? s->problem : NULL;
}
