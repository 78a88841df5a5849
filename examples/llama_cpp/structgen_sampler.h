/* structgen as a sampler of llama.cpp's own sampler chain, over the C API (docs/c_api.md).
 *
 * Enters: a model's GGUF table; a grammar; the tokens that the chain accepts. Leaves: candidates with -inf
 * where a token is not allowed. Cost: a mask, and a pass over the candidates.
 *
 * Put it first in the chain, before samplers that drop candidates. The chain must not be shown the prompt:
 * a text begins where the sampler is made, and again after llama_sampler_reset(). A text that cannot go on
 * ends: its candidates are the end tokens alone, and structgen_sampler_error() says why.
 */
#ifndef STRUCTGEN_SAMPLER_H
#define STRUCTGEN_SAMPLER_H

#include <llama.h>
#include <structgen.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The bytes of every token of the model, its control tokens as special ones, all its end-of-generation
 * tokens. */
structgen_status structgen_llama_vocabulary(const struct llama_vocab* vocab, structgen_vocabulary** out,
                                            structgen_error** error);

/* A sampler for llama_sampler_chain_add(), which frees it. `max_tokens` 0: no limit. NULL on an error. */
struct llama_sampler* structgen_sampler_init(const struct llama_vocab* vocab,
                                             const structgen_grammar* grammar, int64_t max_tokens,
                                             structgen_error** error);

/* Why the text of a sampler ended before its time; NULL: it did not. It lives as long as the sampler. */
const char* structgen_sampler_error(const struct llama_sampler* sampler);

#ifdef __cplusplus
}
#endif

#endif
