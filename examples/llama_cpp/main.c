/* Continues a prompt with a GGUF model under a JSON Schema: llama.cpp and structgen, no Python.
 *
 *     structgen_llama MODEL.gguf SCHEMA.json MAX_TOKENS TEMPERATURE [ID ...] < prompt
 *
 * The prompt is token ids, or standard input. The text goes to standard output, what went wrong to standard
 * error with exit status 1.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "structgen_sampler.h"

static void quiet(enum ggml_log_level level, const char* text, void* data) {
  (void)data;
  if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

static int fail(const char* what, structgen_error* error) {
  fprintf(stderr, "%s%s%s\n", what, error ? ": " : "", structgen_error_message(error));
  structgen_error_free(error);
  return 1;
}

/* The whole of a file, with a zero behind it; NULL where it cannot be read. */
static char* whole(FILE* file, size_t* size) {
  char* text = NULL;
  size_t room = 0;
  *size = 0;
  if (!file) return NULL;
  do {
    char* larger = realloc(text, room += 65536);
    if (!larger) return NULL;
    text = larger;
    *size += fread(text + *size, 1, room - *size - 1, file);
  } while (*size == room - 1);
  text[*size] = 0;
  return text;
}

int main(int argc, char** argv) {
  structgen_error* error = NULL;
  structgen_vocabulary* vocabulary;
  structgen_compiler* compiler;
  structgen_grammar* grammar;
  structgen_bytes schema;
  struct llama_model_params of_model = llama_model_default_params();
  struct llama_context_params of_context = llama_context_default_params();
  struct llama_sampler *chain, *constraint;
  struct llama_model* model;
  struct llama_context* context;
  const struct llama_vocab* vocab;
  llama_token* tokens;
  int32_t n = 0, i, max_tokens;
  char* text;
  size_t size;

  if (argc < 5) return fail("usage: structgen_llama MODEL SCHEMA MAX_TOKENS TEMPERATURE [ID ...]", NULL);
  llama_log_set(quiet, NULL);
  llama_backend_init();
  of_model.n_gpu_layers = 0;
  if (!(model = llama_model_load_from_file(argv[1], of_model))) return fail("no model", NULL);
  vocab = llama_model_get_vocab(model);
  schema.data = text = whole(fopen(argv[2], "rb"), &schema.size);
  if (!text) return fail("no schema", NULL);
  max_tokens = atoi(argv[3]);

  if (structgen_llama_vocabulary(vocab, &vocabulary, &error)) return fail("vocabulary", error);
  if (structgen_compiler_new(vocabulary, NULL, &compiler, &error)) return fail("compiler", error);
  if (structgen_compile_json_schema(compiler, schema, NULL, &grammar, &error)) return fail("schema", error);
  if (!(constraint = structgen_sampler_init(vocab, grammar, max_tokens, &error)))
    return fail("request", error);
  free(text);
  structgen_grammar_free(grammar); /* the sampler keeps what it needs */
  structgen_compiler_free(compiler);
  structgen_vocabulary_free(vocabulary);

  chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
  llama_sampler_chain_add(chain, constraint); /* first: it must see every candidate */
  if (atof(argv[4]) > 0) {
    llama_sampler_chain_add(chain, llama_sampler_init_temp((float)atof(argv[4])));
    llama_sampler_chain_add(chain, llama_sampler_init_dist(7));
  } else {
    llama_sampler_chain_add(chain, llama_sampler_init_greedy());
  }

  if (argc > 5) {
    tokens = calloc((size_t)argc, sizeof *tokens);
    for (i = 5; tokens && i < argc; ++i) tokens[n++] = atoi(argv[i]);
  } else {
    text = whole(stdin, &size);
    tokens = calloc(size + 8, sizeof *tokens);
    if (text && tokens) n = llama_tokenize(vocab, text, (int32_t)size, tokens, (int32_t)size + 8, true, true);
    free(text);
  }
  if (!tokens || n <= 0) return fail("no prompt", NULL);
  of_context.n_ctx = of_context.n_batch = (uint32_t)(n + max_tokens);
  if (!(context = llama_init_from_model(model, of_context))) return fail("no context", NULL);

  for (i = 0; i < max_tokens; ++i) {
    llama_token token;
    char piece[1024];
    int32_t length;
    if (llama_decode(context, i ? llama_batch_get_one(&tokens[n - 1], 1) : llama_batch_get_one(tokens, n)))
      return fail("the model failed", NULL);
    token = llama_sampler_sample(chain, context, -1); /* the chain accepts it, too */
    if (llama_vocab_is_eog(vocab, token)) break;
    tokens[n - 1] = token; /* all that the next call reads */
    length = llama_token_to_piece(vocab, token, piece, sizeof piece, 0, false);
    if (length > 0) fwrite(piece, 1, (size_t)length, stdout);
  }
  free(tokens);
  if (structgen_sampler_error(constraint)) return fail(structgen_sampler_error(constraint), NULL);
  llama_sampler_free(chain);
  llama_free(context);
  llama_model_free(model);
  llama_backend_free();
  return 0;
}
