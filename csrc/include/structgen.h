/* The C interface of structgen: a schema, a pattern or a list of texts in; masks over a model's tokens out.
 *
 * Enters: the bytes of every token id; constraints as text; the tokens that were sampled.
 * Leaves: masks, verdicts on tokens, forced text, errors as objects with a text.
 * Cost: a mask seen before is a copy of V/8 bytes, accepting a token takes a tenth of a microsecond; see
 * docs/c_api.md.
 *
 *     structgen_error *error = NULL;
 *     structgen_vocabulary *vocabulary;
 *     if (structgen_vocabulary_new(tokens, n, &eos, 1, NULL, 0, &vocabulary, &error) != STRUCTGEN_OK) {
 *       fprintf(stderr, "%s\n", structgen_error_message(error));
 *       structgen_error_free(error);
 *     }
 *
 * Handles. Each `..._new`, `structgen_compile_...` and `structgen_matcher_fork` gives a handle that the
 * matching `..._free` gives back; freeing NULL does nothing. A handle keeps what it was made from, so they
 * may be freed in any order.
 *
 * Status. A function that can fail returns a `structgen_status`. STRUCTGEN_REFUSED is an answer, no error.
 * For every greater status `*error` is an object that the caller frees, if `error` is not NULL; else it is
 * set to NULL. Output arguments are written only on STRUCTGEN_OK, unless the function says otherwise.
 *
 * Threads. Vocabularies, compilers and grammars may be used by any number of threads at once. A matcher
 * belongs to one thread at a time: a call that meets another's is refused with STRUCTGEN_ERROR_VALUE and
 * changes nothing. Calls may wait for each other's locks, never for anything else of the host's. After
 * fork() a child may go on using all handles, but those that threads of its parent were using then.
 *
 * Versions. STRUCTGEN_API_VERSION is the number of this interface: within one number functions are added,
 * never changed. Structs of options begin with their size, so later fields do not disturb older callers.
 */
#ifndef STRUCTGEN_H
#define STRUCTGEN_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define STRUCTGEN_API __declspec(dllexport)
#elif defined(__GNUC__)
#define STRUCTGEN_API __attribute__((visibility("default")))
#else
#define STRUCTGEN_API
#endif

#define STRUCTGEN_API_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

typedef struct structgen_vocabulary structgen_vocabulary;
typedef struct structgen_compiler structgen_compiler;
typedef struct structgen_grammar structgen_grammar;
typedef struct structgen_matcher structgen_matcher;
typedef struct structgen_error structgen_error;

typedef int32_t structgen_status;
enum {
  STRUCTGEN_OK = 0,
  STRUCTGEN_REFUSED = 1,                    /* the grammar does not take it; nothing has changed */
  STRUCTGEN_ERROR_GRAMMAR = 2,              /* text that is no schema or pattern */
  STRUCTGEN_ERROR_UNSUPPORTED_SCHEMA = 3,   /* a keyword that is not enforced, an unknown reference */
  STRUCTGEN_ERROR_TOO_COMPLEX = 4,          /* a schema or regex beyond its budget */
  STRUCTGEN_ERROR_UNSATISFIABLE_SCHEMA = 5, /* no value satisfies it */
  STRUCTGEN_ERROR_VOCABULARY = 6,           /* a vocabulary or its file cannot be used */
  STRUCTGEN_ERROR_BUDGET_EXCEEDED = 7,      /* a limit of work or memory was met */
  STRUCTGEN_ERROR_UNSATISFIABLE_BUDGET = 8, /* proved: no text fits the tokens that are left */
  STRUCTGEN_ERROR_VALUE = 9,                /* an argument out of range, or a matcher that is in use */
  STRUCTGEN_ERROR_MEMORY = 10,              /* the system gives no memory */
  STRUCTGEN_ERROR_INTERNAL = 11             /* a fault of structgen's own: please report it */
};

/* Bytes that need not end with a zero. */
typedef struct structgen_bytes {
  const void* data;
  size_t size;
} structgen_bytes;

/* STRUCTGEN_API_VERSION of the library that is loaded, and its release, such as "0.3.0". */
STRUCTGEN_API uint32_t structgen_api_version(void);
STRUCTGEN_API const char* structgen_version(void);

/* ---- errors ---- */

/* Never NULL, UTF-8. The place is a JSON pointer of a schema and the keyword at fault ("" where there is
 * none), or a byte offset into the constraint's text (-1). They live as long as the error. */
STRUCTGEN_API const char* structgen_error_message(const structgen_error* error);
STRUCTGEN_API const char* structgen_error_pointer(const structgen_error* error);
STRUCTGEN_API const char* structgen_error_keyword(const structgen_error* error);
STRUCTGEN_API int64_t structgen_error_offset(const structgen_error* error);
STRUCTGEN_API structgen_status structgen_error_status(const structgen_error* error);
STRUCTGEN_API void structgen_error_free(structgen_error* error);

/* ---- vocabulary ---- */

/* tokens[id] is what token `id` adds to a text, which need not be whole characters; no bytes: never text.
 * Bytes of end tokens and special tokens are not looked at. `n_tokens` is the width of the model's logits.
 * Every text ends with one of `end_ids`, of which there is at least one. Everything is copied. */
STRUCTGEN_API structgen_status structgen_vocabulary_new(const structgen_bytes* tokens, size_t n_tokens,
                                                        const int32_t* end_ids, size_t n_end_ids,
                                                        const int32_t* special_ids, size_t n_special_ids,
                                                        structgen_vocabulary** out, structgen_error** error);
/* A file that Vocabulary.save() of this release wrote in Python. It is mapped, so it must not be changed. */
STRUCTGEN_API structgen_status structgen_vocabulary_load(const char* path, structgen_vocabulary** out,
                                                         structgen_error** error);
STRUCTGEN_API size_t structgen_vocabulary_size(const structgen_vocabulary* vocabulary);
/* 32-bit words of a row of a mask: ceil(size / 32). */
STRUCTGEN_API size_t structgen_vocabulary_words(const structgen_vocabulary* vocabulary);
STRUCTGEN_API void structgen_vocabulary_free(structgen_vocabulary* vocabulary);

/* ---- compiler ---- */

/* Zero means the default of each. Work is counted in units of about 0.1 microseconds (docs/limits.md). */
typedef struct structgen_limits {
  size_t size;            /* sizeof(structgen_limits) */
  int64_t compile;        /* units of one compile; default 10,000,000; negative: no limit */
  int64_t mask;           /* units of one mask and every other call of a matcher; default 200,000; ditto */
  int64_t memory;         /* bytes of automata and masks that are kept; default 256 MB */
  int32_t error_on_limit; /* 0: what is too much to tell is left out of masks; 1: it is an error */
} structgen_limits;
#define STRUCTGEN_LIMITS_INIT {sizeof(structgen_limits), 0, 0, 0, 0}

/* `limits` may be NULL. */
STRUCTGEN_API structgen_status structgen_compiler_new(const structgen_vocabulary* vocabulary,
                                                      const structgen_limits* limits,
                                                      structgen_compiler** out, structgen_error** error);
/* Bytes of automata and masks of all its grammars, as last looked at. */
STRUCTGEN_API size_t structgen_compiler_byte_size(structgen_compiler* compiler);
STRUCTGEN_API void structgen_compiler_free(structgen_compiler* compiler);

typedef struct structgen_document {
  const char* uri; /* what `$ref` names */
  structgen_bytes schema;
} structgen_document;

/* How JSON is written. Zero and NULL mean the defaults, which are those of a server: numbers without
 * exponents, no escapes where a plain character does, one blank at most. */
/* Recipe, option 4, of the C interface: a field; csrc/capi/grammars.cc reads it. */
typedef struct structgen_json_options {
  size_t size;                /* sizeof(structgen_json_options) */
  const char* whitespace;     /* "one-blank", "compact", "spaced", "flexible", "pretty", or a regex */
  int32_t any_property_order; /* 1: keys in any order; 0: in the schema's */
  int32_t any_numbers;        /* 0: no exponents; a fraction of up to six digits may end in zeros (3.50).
                                 1: every spelling of JSON. 2: no zeros at the end of a fraction either */
  int32_t any_strings;        /* 1: every spelling of JSON */
  int32_t annotate_formats;   /* 1: `format` constrains nothing */
  int32_t draft;              /* 4, 6, 7, 2019 or 2020; 0: the schema's `$schema`, else 2020 */
  const structgen_document* documents; /* other schemas that references name */
  size_t n_documents;
} structgen_json_options;
#define STRUCTGEN_JSON_OPTIONS_INIT {sizeof(structgen_json_options), NULL, 0, 0, 0, 0, 0, NULL, 0}

/* A JSON Schema as JSON text. `options` may be NULL. References to the schemas of JSON Schema itself need
 * them among the documents. */
STRUCTGEN_API structgen_status structgen_compile_json_schema(structgen_compiler* compiler,
                                                             structgen_bytes schema,
                                                             const structgen_json_options* options,
                                                             structgen_grammar** out,
                                                             structgen_error** error);
/* Any JSON object. */
STRUCTGEN_API structgen_status structgen_compile_json_object(structgen_compiler* compiler,
                                                             const structgen_json_options* options,
                                                             structgen_grammar** out,
                                                             structgen_error** error);
/* Texts that match the whole pattern, in the syntax of Python's `re` without back-references. */
STRUCTGEN_API structgen_status structgen_compile_regex(structgen_compiler* compiler, structgen_bytes pattern,
                                                       structgen_grammar** out, structgen_error** error);
/* Exactly one of the texts. */
STRUCTGEN_API structgen_status structgen_compile_choice(structgen_compiler* compiler,
                                                        const structgen_bytes* texts, size_t n_texts,
                                                        structgen_grammar** out, structgen_error** error);
/* What CompiledGrammar.serialize() wrote in Python: GBNF, Lark, structural tags, tools, templates. The bytes
 * are checked, and fit every vocabulary unless the grammar names tokens by their ids: then it must be the
 * same (STRUCTGEN_ERROR_VOCABULARY). */
STRUCTGEN_API structgen_status structgen_compile_serialized(structgen_compiler* compiler,
                                                            structgen_bytes serialized,
                                                            structgen_grammar** out, structgen_error** error);

/* ---- grammar ---- */

/* Makes the first mask, for a host's compile thread. */
STRUCTGEN_API structgen_status structgen_grammar_prepare(const structgen_grammar* grammar,
                                                         structgen_error** error);
/* Keywords of a schema that constrain nothing: how many, and each by number. STRUCTGEN_REFUSED: no such
 * number. The texts live as long as the grammar's handle. */
STRUCTGEN_API size_t structgen_grammar_report_size(const structgen_grammar* grammar);
STRUCTGEN_API structgen_status structgen_grammar_report(const structgen_grammar* grammar, size_t number,
                                                        const char** pointer, const char** keyword,
                                                        const char** reason);
STRUCTGEN_API void structgen_grammar_free(structgen_grammar* grammar);

/* ---- matcher: one sequence ---- */

typedef struct structgen_request {
  size_t size;                  /* sizeof(structgen_request) */
  const int32_t* end_token_ids; /* end this text in place of the vocabulary's; NULL: the vocabulary's */
  size_t n_end_token_ids;
  int64_t max_tokens;       /* of the whole text, its end included: masks keep to it; 0: no limit */
  int32_t ignore_after_end; /* 1: tokens after the end are taken as steps that change nothing */
} structgen_request;
#define STRUCTGEN_REQUEST_INIT {sizeof(structgen_request), NULL, 0, 0, 0}

/* At the start of a text. `request` may be NULL. */
STRUCTGEN_API structgen_status structgen_matcher_new(const structgen_grammar* grammar,
                                                     const structgen_request* request,
                                                     structgen_matcher** out, structgen_error** error);
/* An independent one at the same place. */
STRUCTGEN_API structgen_status structgen_matcher_fork(structgen_matcher* matcher, structgen_matcher** out,
                                                      structgen_error** error);
STRUCTGEN_API void structgen_matcher_free(structgen_matcher* matcher);

/* Whether token `id` may come next: bit id % 32 of word id / 32. */
#define STRUCTGEN_ALLOWS(row, id) ((((const uint32_t*)(row))[(size_t)(id) >> 5] >> ((id) & 31)) & 1u)

/* Writes all `words` of a row, at least structgen_vocabulary_words(); those beyond allow nothing. On an
 * error that is not about the arguments the row is all zero. */
STRUCTGEN_API structgen_status structgen_matcher_fill(structgen_matcher* matcher, int32_t* row, size_t words,
                                                      structgen_error** error);
/* The same for a batch: rows[i], of `words` words, from matchers[i]. What befalls one row stays with it: its
 * status is statuses[i], if that is not NULL, and the status and error of the call are those of the first
 * row that failed. `threads`: 0 chooses by size. Matchers that stand twice are refused. */
STRUCTGEN_API structgen_status structgen_matcher_fill_batch(structgen_matcher* const* matchers,
                                                            int32_t* const* rows, size_t n, size_t words,
                                                            unsigned threads, structgen_status* statuses,
                                                            structgen_error** error);

/* Appends a token, all tokens or none, or text whatever its tokens (one step). STRUCTGEN_REFUSED where the
 * grammar does not take it: nothing has changed. */
STRUCTGEN_API structgen_status structgen_matcher_accept(structgen_matcher* matcher, int32_t token,
                                                        structgen_error** error);
STRUCTGEN_API structgen_status structgen_matcher_accept_tokens(structgen_matcher* matcher,
                                                               const int32_t* tokens, size_t n,
                                                               structgen_error** error);
STRUCTGEN_API structgen_status structgen_matcher_accept_bytes(structgen_matcher* matcher,
                                                              structgen_bytes text, structgen_error** error);
/* How many tokens of a draft, or bytes, would be taken; nothing changes. Tokens count as far as the masks
 * within the request's max_tokens allow them. */
STRUCTGEN_API structgen_status structgen_matcher_validate_tokens(structgen_matcher* matcher,
                                                                 const int32_t* tokens, size_t n, size_t* out,
                                                                 structgen_error** error);
STRUCTGEN_API structgen_status structgen_matcher_validate_bytes(structgen_matcher* matcher,
                                                                structgen_bytes text, size_t* out,
                                                                structgen_error** error);
/* Takes back the last n steps, the end included. STRUCTGEN_ERROR_VALUE: there were fewer. */
STRUCTGEN_API structgen_status structgen_matcher_rollback(structgen_matcher* matcher, size_t n,
                                                          structgen_error** error);
STRUCTGEN_API structgen_status structgen_matcher_reset(structgen_matcher* matcher, structgen_error** error);

/* 1 or 0, and -1 where another thread is using the matcher. */
STRUCTGEN_API int structgen_matcher_is_accepting(structgen_matcher* matcher);  /* the text may end here */
STRUCTGEN_API int structgen_matcher_is_terminated(structgen_matcher* matcher); /* an end token was taken */
STRUCTGEN_API int structgen_matcher_mask_exact(structgen_matcher* matcher); /* the last mask lacks nothing */
STRUCTGEN_API int64_t structgen_matcher_num_steps(structgen_matcher* matcher);

/* Text that must come next ("" where there is a choice), and a shortest text that ends it from here. `*size`
 * is its length; the first `capacity` bytes of it are written, with no zero behind them. */
STRUCTGEN_API structgen_status structgen_matcher_forced_bytes(structgen_matcher* matcher, char* buffer,
                                                              size_t capacity, size_t* size,
                                                              structgen_error** error);
STRUCTGEN_API structgen_status structgen_matcher_shortest_completion(structgen_matcher* matcher, char* buffer,
                                                                     size_t capacity, size_t* size,
                                                                     structgen_error** error);
/* Tokens that complete the text from here, the end included: fewer than `*least` never do, `*enough` do.
 * STRUCTGEN_ERROR_UNSATISFIABLE_BUDGET: none do. */
STRUCTGEN_API structgen_status structgen_matcher_tokens_needed(structgen_matcher* matcher, size_t* least,
                                                               size_t* enough, structgen_error** error);

/* ---- logits ---- */

/* Sets to -infinity what the row does not allow, columns beyond its words included. */
STRUCTGEN_API void structgen_apply(float* logits, size_t width, const int32_t* row, size_t words);

#ifdef __cplusplus
}
#endif

#endif /* STRUCTGEN_H */
