/* The C interface as a program in C, and the same file as C++: every function, errors, threads, order of
 * freeing. tests/test_c_api.py compiles and runs it, and compares masks with Python's. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "structgen.h"

#define CHECK(what)                                              \
  do {                                                           \
    if (!(what)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what); \
      exit(1);                                                   \
    }                                                            \
  } while (0)

enum { BYTES = 256, YES = 256, AB = 257, SPECIAL = 258, END = 259, IDS = 260, WORDS = (IDS + 31) / 32 };

static structgen_bytes text(const char* s) {
  structgen_bytes out;
  out.data = s;
  out.size = strlen(s);
  return out;
}

static void expect_ok(structgen_status status, structgen_error* const* error, int line) {
  if (status != STRUCTGEN_OK) fprintf(stderr, "line %d: %s\n", line, structgen_error_message(*error));
  CHECK(status == STRUCTGEN_OK && *error == NULL);
}
#define OK(call) expect_ok((call), &error, __LINE__)

static structgen_vocabulary* vocabulary(void) {
  static char letters[BYTES];
  static structgen_bytes tokens[IDS];
  const int32_t end = END, special = SPECIAL;
  structgen_vocabulary* out = NULL;
  structgen_error* error = NULL;
  int i;
  for (i = 0; i < BYTES; ++i) {
    letters[i] = (char)i;
    tokens[i].data = &letters[i];
    tokens[i].size = 1;
  }
  tokens[YES] = text("yes");
  tokens[AB] = text("ab");
  tokens[SPECIAL] = text("<s>");
  tokens[END] = text("</s>"); /* not looked at */
  OK(structgen_vocabulary_new(tokens, IDS, &end, 1, &special, 1, &out, &error));
  CHECK(structgen_vocabulary_size(out) == IDS && structgen_vocabulary_words(out) == WORDS);
  return out;
}

/* What Python wrote of the GBNF `root ::= "ab" | "yes"`. A new form needs it written again:
 * compiler.gbnf(...).serialize(). */
static const unsigned char serialized[] = {
    115, 116, 114, 117, 99, 116, 103, 101, 110, 71, 5, 0, 3, 4, 0, 0, 2, 97, 98, 0, 0, 0, 0, 1, 4, 0,
    0, 3, 121, 101, 115, 0, 0, 0, 0, 1, 14, 0, 0, 0, 2, 0, 2, 0, 0, 0, 1, 1, 4, 114, 111, 111,
    116, 4, 2, 0, 0, 0, 0, 0, 0, 0, 177, 191, 246, 207, 209, 124, 223, 69};

static int count(const int32_t* row) {
  int i, n = 0;
  for (i = 0; i < IDS; ++i) n += (int)STRUCTGEN_ALLOWS(row, i);
  return n;
}

static void errors(structgen_compiler* compiler) {
  structgen_error* error = NULL;
  structgen_grammar* grammar = NULL;
  structgen_matcher* matcher = NULL;
  structgen_vocabulary* other = NULL;
  structgen_json_options options = STRUCTGEN_JSON_OPTIONS_INIT;
  const int32_t beyond = 1000;
  structgen_bytes token = text("a");
  CHECK(structgen_compile_json_schema(compiler, text("{"), NULL, &grammar, &error) ==
        STRUCTGEN_ERROR_GRAMMAR);
  CHECK(error && structgen_error_status(error) == STRUCTGEN_ERROR_GRAMMAR && !grammar);
  CHECK(strlen(structgen_error_message(error)) > 0 && structgen_error_offset(error) == 1);
  structgen_error_free(error);
  CHECK(structgen_compile_json_schema(compiler,
                                      text("{\"properties\":{\"a\":{\"minimum\":2,\"maximum\":1}},"
                                           "\"required\":[\"a\"],\"type\":\"object\","
                                           "\"additionalProperties\":{\"$ref\":\"http://x/y\"}}"),
                                      NULL, &grammar, &error) == STRUCTGEN_ERROR_UNSUPPORTED_SCHEMA);
  CHECK(strstr(structgen_error_pointer(error), "/additionalProperties") != NULL);
  CHECK(strcmp(structgen_error_keyword(error), "$ref") == 0);
  structgen_error_free(error);
  CHECK(structgen_compile_json_schema(compiler, text("false"), NULL, &grammar, &error) ==
        STRUCTGEN_ERROR_UNSATISFIABLE_SCHEMA);
  structgen_error_free(error);
  CHECK(structgen_compile_regex(compiler, text("a("), &grammar, NULL) == STRUCTGEN_ERROR_GRAMMAR);
  CHECK(structgen_compile_regex(compiler, text("a\xff"), &grammar, &error) == STRUCTGEN_ERROR_GRAMMAR);
  CHECK(structgen_error_offset(error) == 1);
  structgen_error_free(error);
  CHECK(structgen_compile_choice(compiler, NULL, 0, &grammar, NULL) == STRUCTGEN_ERROR_GRAMMAR);
  CHECK(structgen_compile_choice(compiler, NULL, 3, &grammar, NULL) == STRUCTGEN_ERROR_VALUE);
  CHECK(structgen_compile_regex(NULL, text("a"), &grammar, NULL) == STRUCTGEN_ERROR_VALUE);
  CHECK(structgen_compile_regex(compiler, text("a"), NULL, NULL) == STRUCTGEN_ERROR_VALUE);
  options.draft = 5;
  CHECK(structgen_compile_json_object(compiler, &options, &grammar, NULL) == STRUCTGEN_ERROR_VALUE);
  options.draft = 7;
  options.size = 0;
  CHECK(structgen_compile_json_object(compiler, &options, &grammar, NULL) == STRUCTGEN_ERROR_VALUE);
  CHECK(structgen_vocabulary_new(&token, 1, &beyond, 1, NULL, 0, &other, &error) ==
        STRUCTGEN_ERROR_VOCABULARY);
  structgen_error_free(error);
  CHECK(structgen_vocabulary_new(&token, 1, NULL, 0, NULL, 0, &other, NULL) == STRUCTGEN_ERROR_VOCABULARY);
  CHECK(structgen_vocabulary_load("/nothing/there", &other, NULL) == STRUCTGEN_ERROR_VOCABULARY);
  CHECK(structgen_matcher_new(NULL, NULL, &matcher, NULL) == STRUCTGEN_ERROR_VALUE);
  CHECK(structgen_matcher_accept(NULL, 1, NULL) == STRUCTGEN_ERROR_VALUE);
  CHECK(structgen_matcher_is_accepting(NULL) == -1);
  CHECK(!grammar && !matcher && !other);
  structgen_error_free(NULL);
  CHECK(strcmp(structgen_error_message(NULL), "") == 0 && structgen_error_offset(NULL) == -1);
}

static void one_text(structgen_compiler* compiler) {
  int32_t row[WORDS + 2];
  const int32_t draft[3] = {'b', 'c', 'x'};
  structgen_error* error = NULL;
  structgen_grammar* grammar;
  structgen_matcher *matcher, *twin;
  structgen_request request = STRUCTGEN_REQUEST_INIT;
  size_t n = 0, least = 0, enough = 0;
  char buffer[8];
  float logits[IDS + 40];
  int i;
  OK(structgen_compile_regex(compiler, text("(ab|yes)c*d"), &grammar, &error));
  OK(structgen_grammar_prepare(grammar, &error));
  OK(structgen_matcher_new(grammar, NULL, &matcher, &error));
  memset(row, 0x5a, sizeof row);
  OK(structgen_matcher_fill(matcher, row, WORDS + 2, &error));
  CHECK(count(row) == 4 && STRUCTGEN_ALLOWS(row, 'a') && STRUCTGEN_ALLOWS(row, AB));
  CHECK(STRUCTGEN_ALLOWS(row, 'y') && STRUCTGEN_ALLOWS(row, YES) && row[WORDS] == 0 && row[WORDS + 1] == 0);
  CHECK(structgen_matcher_fill(matcher, row, WORDS - 1, NULL) == STRUCTGEN_ERROR_VALUE);
  CHECK(structgen_matcher_mask_exact(matcher) == 1);
  for (i = 0; i < IDS + 40; ++i) logits[i] = 1.0f;
  structgen_apply(logits, IDS + 40, row, WORDS);
  for (i = 0; i < IDS + 40; ++i) CHECK((logits[i] == 1.0f) == (i == 'a' || i == 'y' || i == AB || i == YES));

  CHECK(structgen_matcher_accept(matcher, 'b', NULL) == STRUCTGEN_REFUSED);
  OK(structgen_matcher_accept(matcher, 'a', &error));
  OK(structgen_matcher_validate_tokens(matcher, draft, 3, &n, &error));
  CHECK(n == 2);
  CHECK(structgen_matcher_accept_tokens(matcher, draft, 3, NULL) == STRUCTGEN_REFUSED);
  OK(structgen_matcher_forced_bytes(matcher, buffer, sizeof buffer, &n, &error));
  CHECK(n == 1 && buffer[0] == 'b');
  OK(structgen_matcher_shortest_completion(matcher, buffer, 1, &n, &error));
  CHECK(n == 2 && buffer[0] == 'b');
  OK(structgen_matcher_tokens_needed(matcher, &least, &enough, &error));
  CHECK(least == 3 && enough == 3);
  OK(structgen_matcher_fork(matcher, &twin, &error));
  OK(structgen_matcher_accept_bytes(twin, text("bccd"), &error));
  CHECK(structgen_matcher_is_accepting(twin) == 1 && structgen_matcher_is_accepting(matcher) == 0);
  OK(structgen_matcher_accept(twin, END, &error));
  CHECK(structgen_matcher_is_terminated(twin) == 1 && structgen_matcher_num_steps(twin) == 3);
  OK(structgen_matcher_rollback(twin, 2, &error));
  CHECK(structgen_matcher_is_terminated(twin) == 0 && structgen_matcher_num_steps(twin) == 1);
  CHECK(structgen_matcher_rollback(twin, 2, NULL) == STRUCTGEN_ERROR_VALUE);
  OK(structgen_matcher_validate_bytes(twin, text("bcx"), &n, &error));
  CHECK(n == 2);
  OK(structgen_matcher_reset(twin, &error));
  CHECK(structgen_matcher_num_steps(twin) == 0);
  structgen_matcher_free(twin);

  { /* what a request asks for; handles freed in any order */
    const int32_t end = 'd';
    structgen_grammar* digits;
    OK(structgen_compile_regex(compiler, text("[0-9]+"), &digits, &error));
    request.end_token_ids = &end;
    request.n_end_token_ids = 1;
    request.max_tokens = 3;
    request.ignore_after_end = 1;
    OK(structgen_matcher_new(digits, &request, &twin, &error));
    structgen_grammar_free(digits);
    OK(structgen_matcher_accept(twin, '1', &error));
    OK(structgen_matcher_accept(twin, '2', &error));
    OK(structgen_matcher_fill(twin, row, WORDS, &error));
    CHECK(count(row) == 1 && STRUCTGEN_ALLOWS(row, 'd'));
    OK(structgen_matcher_accept(twin, 'd', &error));
    OK(structgen_matcher_accept(twin, 'x', &error));
    CHECK(structgen_matcher_num_steps(twin) == 4);
    structgen_matcher_free(twin);
  }
  structgen_matcher_free(matcher);
  structgen_grammar_free(grammar);
}

static void batches(structgen_compiler* compiler) {
  enum { N = 40 };
  int32_t memory[N][WORDS], alone[WORDS];
  int32_t* rows[N];
  structgen_matcher* matchers[N];
  structgen_status statuses[N];
  structgen_grammar* grammar;
  structgen_request request = STRUCTGEN_REQUEST_INIT;
  structgen_error* error = NULL;
  int i;
  OK(structgen_compile_json_object(compiler, NULL, &grammar, &error));
  for (i = 0; i < N; ++i) {
    request.max_tokens = i == 7 || i == 9 ? 1 : 0; /* no object has room in one token */
    OK(structgen_matcher_new(grammar, &request, &matchers[i], &error));
    if (i % 3 == 0) OK(structgen_matcher_accept(matchers[i], '{', &error));
    rows[i] = memory[N - 1 - i];
  }
  memset(memory, 0x5a, sizeof memory);
  CHECK(structgen_matcher_fill_batch(matchers, rows, N, WORDS, 0, statuses, &error) ==
        STRUCTGEN_ERROR_UNSATISFIABLE_BUDGET);
  CHECK(error && strstr(structgen_error_message(error), "max_tokens=1") != NULL);
  structgen_error_free(error);
  for (i = 0; i < N; ++i) {
    const structgen_status status = structgen_matcher_fill(matchers[i], alone, WORDS, NULL);
    CHECK(status == statuses[i] && (status != STRUCTGEN_OK) == (i == 7 || i == 9));
    CHECK(memcmp(alone, rows[i], sizeof alone) == 0);
    CHECK((count(alone) == 0) == (status != STRUCTGEN_OK));
  }
  memset(memory, 0x5a, sizeof memory);
  structgen_matcher_free(matchers[1]);
  matchers[1] = matchers[0];
  CHECK(structgen_matcher_fill_batch(matchers, rows, N, WORDS, 2, statuses, NULL) == STRUCTGEN_ERROR_VALUE);
  CHECK(statuses[0] == STRUCTGEN_ERROR_VALUE && memory[3][0] == 0x5a5a5a5a);
  OK(structgen_matcher_fill_batch(NULL, NULL, 0, WORDS, 0, NULL, &error));
  for (i = 0; i < N; ++i)
    if (i != 1) structgen_matcher_free(matchers[i]);
  structgen_grammar_free(grammar);
}

static structgen_compiler* shared;

static void* worker(void* argument) {
  const long seed = *(const long*)argument;
  char schema[64];
  int32_t row[WORDS];
  int i;
  for (i = 0; i < 30; ++i) {
    structgen_error* error = NULL;
    structgen_grammar* grammar;
    structgen_matcher* matcher;
    sprintf(schema, "{\"type\":\"string\",\"minLength\":%ld}", (seed * 7 + i) % 11);
    OK(structgen_compile_json_schema(shared, text(schema), NULL, &grammar, &error));
    OK(structgen_matcher_new(grammar, NULL, &matcher, &error));
    structgen_grammar_free(grammar);
    OK(structgen_matcher_fill(matcher, row, WORDS, &error));
    CHECK(count(row) == 1);
    OK(structgen_matcher_accept(matcher, '"', &error));
    OK(structgen_matcher_fill(matcher, row, WORDS, &error));
    CHECK(STRUCTGEN_ALLOWS(row, YES) && STRUCTGEN_ALLOWS(row, '"') == ((seed * 7 + i) % 11 == 0));
    structgen_matcher_free(matcher);
  }
  return NULL;
}

int main(void) {
  structgen_vocabulary* v = vocabulary();
  structgen_compiler* compiler;
  structgen_error* error = NULL;
  structgen_limits limits = STRUCTGEN_LIMITS_INIT;
  structgen_grammar* grammar;
  pthread_t threads[4];
  long seeds[4];
  const char *pointer, *keyword, *reason;
  int i;
  CHECK(structgen_api_version() == STRUCTGEN_API_VERSION && strlen(structgen_version()) > 2);
  limits.memory = 64 << 20;
  OK(structgen_compiler_new(v, &limits, &compiler, &error));
  structgen_vocabulary_free(v);
  errors(compiler);
  one_text(compiler);
  batches(compiler);
  OK(structgen_compile_json_schema(compiler, text("{\"type\":\"string\",\"format\":\"ship\"}"), NULL,
                                   &grammar, &error));
  CHECK(structgen_grammar_report_size(grammar) == 1);
  CHECK(structgen_grammar_report(grammar, 0, &pointer, &keyword, &reason) == STRUCTGEN_OK);
  CHECK(strcmp(keyword, "format") == 0 && strlen(reason) > 0 && pointer != NULL);
  CHECK(structgen_grammar_report(grammar, 1, NULL, NULL, NULL) == STRUCTGEN_REFUSED);
  structgen_grammar_free(grammar);
  {
    structgen_bytes written;
    structgen_matcher* matcher;
    int32_t row[WORDS];
    written.data = serialized;
    written.size = sizeof(serialized);
    OK(structgen_compile_serialized(compiler, written, &grammar, &error));
    OK(structgen_matcher_new(grammar, NULL, &matcher, &error));
    OK(structgen_matcher_fill(matcher, row, WORDS, &error));
    CHECK(count(row) == 4 && STRUCTGEN_ALLOWS(row, YES) && STRUCTGEN_ALLOWS(row, AB));
    structgen_matcher_free(matcher);
    structgen_grammar_free(grammar);
    --written.size;
    CHECK(structgen_compile_serialized(compiler, written, &grammar, NULL) == STRUCTGEN_ERROR_GRAMMAR);
    CHECK(structgen_compile_serialized(compiler, text(""), &grammar, NULL) == STRUCTGEN_ERROR_GRAMMAR);
    CHECK(structgen_compile_serialized(NULL, written, &grammar, NULL) == STRUCTGEN_ERROR_VALUE);
  }
  shared = compiler;
  for (i = 0; i < 4; ++i) {
    seeds[i] = i;
    CHECK(pthread_create(&threads[i], NULL, worker, &seeds[i]) == 0);
  }
  for (i = 0; i < 4; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  CHECK(structgen_compiler_byte_size(compiler) > 0);
  { /* a child goes on with what its parent had */
    int status = 1;
    const pid_t child = fork();
    if (child == 0) {
      worker(&seeds[0]);
      _exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  }
  structgen_compiler_free(compiler);
  puts("ok");
  return 0;
}
