// Errors, vocabularies, compilers and grammars of include/structgen.h; docs/c_api.md describes the
// calls.
#include <algorithm>
#include <cstring>

#include "base/utf8.h"
#include "capi/handles.h"
#include "engine/written_grammar.h"
#include "mask/artefact.h"

using namespace structgen;
using namespace structgen::capi;

namespace {

structgen_status status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kGrammar:
    case ErrorKind::kTerminalsOnly: return STRUCTGEN_ERROR_GRAMMAR;
    case ErrorKind::kUnsupportedSchema: return STRUCTGEN_ERROR_UNSUPPORTED_SCHEMA;
    case ErrorKind::kSchemaTooComplex: return STRUCTGEN_ERROR_TOO_COMPLEX;
    case ErrorKind::kUnsatisfiableSchema: return STRUCTGEN_ERROR_UNSATISFIABLE_SCHEMA;
    case ErrorKind::kVocabulary: return STRUCTGEN_ERROR_VOCABULARY;
    case ErrorKind::kBudgetExceeded: return STRUCTGEN_ERROR_BUDGET_EXCEEDED;
    case ErrorKind::kUnsatisfiableBudget: return STRUCTGEN_ERROR_UNSATISFIABLE_BUDGET;
    case ErrorKind::kValue: return STRUCTGEN_ERROR_VALUE;
    // The C interface offers no infill, so this error cannot occur.
    case ErrorKind::kUnsatisfiableInfill: break;
  }
  return STRUCTGEN_ERROR_INTERNAL;
}

// The error of missing memory. It is made in advance, when there is memory to make it, and never freed.
structgen_error& no_memory() {
  static structgen_error* const error =
      new (std::nothrow) structgen_error{STRUCTGEN_ERROR_MEMORY, "out of memory", {}, {}, -1};
  return *error;
}

// Copies a C array into a vector. `at` may be NULL only if n is 0.
template <class T>
std::vector<T> list(const T* at, std::size_t n, const char* what) {
  if (!at && n) bad_argument(what);
  return n ? std::vector<T>(at, at + n) : std::vector<T>();
}

// Returns the text of `b`. If it is not UTF-8, the error has the offset of the wrong byte.
std::string_view utf8(const structgen_bytes& b, const char* what) {
  const std::string_view text = bytes(b);
  if (valid_utf8(text)) return text;
  std::size_t i = 0;
  for (uint32_t n = 1; i < text.size(); i += n) {
    decode_utf8(text, i, n);
    if (n == 0) break;
  }
  throw Error(ErrorKind::kGrammar, std::string(what) + " is not UTF-8: byte " + std::to_string(i))
      .at(static_cast<int64_t>(i));
}

// Turns a limit of the C interface into units of work: 0 means `standard`, a negative number means no limit.
int64_t limit(int64_t given, int64_t standard) {
  if (given < 0) return Meter::kEndless;
  return given == 0 ? standard : std::min(given, Meter::kEndless);
}

// Returns the layout of this name. Any other text is read as a pattern for whitespace.
JsonLayout layout(const char* whitespace) {
  const std::string_view name = whitespace ? whitespace : "one-blank";
  return layout_of(utf8({name.data(), name.size()}, "whitespace"));
}

NumberSpelling numbers(int32_t number) {
  switch (number) {
    case 0: return NumberSpelling::kPlain;
    case 1: return NumberSpelling::kAny;
    case 2: return NumberSpelling::kCanonical;
    default: throw Error(ErrorKind::kValue, "any_numbers is 0, 1 or 2, not " + std::to_string(number));
  }
}

// Sets *out to the grammar that compile(compiler) returns.
template <class F>
structgen_status compiled(structgen_compiler* compiler, structgen_grammar** out, structgen_error** error,
                          F&& compile) {
  return guarded(error, [&] {
    structgen_compiler& c = given(compiler, "the compiler is NULL");
    given(out, "out is NULL");
    std::shared_ptr<Grammar> grammar = compile(c);
    std::vector<ReportEntry> report = grammar->report();
    *out = new structgen_grammar{std::move(grammar), std::move(report)};
  });
}

// Compiles a JSON Schema. The schema and its documents must be UTF-8, which is checked before anything is
// parsed.
structgen_status json(structgen_compiler* compiler, structgen_bytes schema,
                      const structgen_json_options* options, structgen_grammar** out,
                      structgen_error** error) {
  return compiled(compiler, out, error, [&](structgen_compiler& c) {
    const structgen_json_options asked = options_of(options);
    JsonOptions o;
    o.layout = layout(asked.whitespace);
    o.order = asked.any_property_order ? PropertyOrder::kAny : PropertyOrder::kSchema;
    o.numbers = numbers(asked.any_numbers);
    o.plain_strings = !asked.any_strings;
    o.schema.enforce_formats = !asked.annotate_formats;
    if (asked.draft) {
      o.schema.draft = draft_of(asked.draft);
      o.schema.force_draft = true;
    }
    SchemaSet::Documents documents;
    for (const structgen_document& d : list(asked.documents, asked.n_documents, "documents at NULL"))
      documents.emplace_back(&given(d.uri, "the URI of a document is NULL"), utf8(d.schema, "a document"));
    return c.compiler->json_schema(utf8(schema, "the schema"), documents, o, c.subset);
  });
}

}  // namespace

structgen_status capi::caught(structgen_error** error) noexcept {
  const auto made = [&](structgen_status status, auto&&... rest) noexcept -> structgen_status {
    if (!error) return status;
    try {
      *error = new structgen_error{status, rest...};
      return status;
    } catch (...) {
      *error = &no_memory();
      return STRUCTGEN_ERROR_MEMORY;
    }
  };
  try {
    throw;
  } catch (const Error& e) {
    return made(status_of(e.kind()), e.what(), e.pointer(), e.keyword(), e.offset());
  } catch (const std::bad_alloc&) {
    if (error) *error = &no_memory();
    return STRUCTGEN_ERROR_MEMORY;
  } catch (const std::exception& e) {
    return made(STRUCTGEN_ERROR_INTERNAL, e.what(), "", "", -1);
  } catch (...) {
    return made(STRUCTGEN_ERROR_INTERNAL, "an exception that is not structgen's", "", "", -1);
  }
}

uint32_t structgen_api_version(void) { return STRUCTGEN_API_VERSION; }
const char* structgen_version(void) { return STRUCTGEN_RELEASE; }

const char* structgen_error_message(const structgen_error* e) { return e ? e->message.c_str() : ""; }
const char* structgen_error_pointer(const structgen_error* e) { return e ? e->pointer.c_str() : ""; }
const char* structgen_error_keyword(const structgen_error* e) { return e ? e->keyword.c_str() : ""; }
int64_t structgen_error_offset(const structgen_error* e) { return e ? e->offset : -1; }
structgen_status structgen_error_status(const structgen_error* e) { return e ? e->status : STRUCTGEN_OK; }
// The error of missing memory is shared by all callers, so it is not freed.
void structgen_error_free(structgen_error* e) {
  if (e && e->status != STRUCTGEN_ERROR_MEMORY) delete e;
}

structgen_status structgen_vocabulary_new(const structgen_bytes* tokens, size_t n_tokens,
                                          const int32_t* end_ids, size_t n_end_ids,
                                          const int32_t* special_ids, size_t n_special_ids,
                                          structgen_vocabulary** out, structgen_error** error) {
  return guarded(error, [&] {
    given(out, "out is NULL");
    if (!tokens && n_tokens) bad_argument("tokens at NULL");
    std::vector<TokenId> ends = list(end_ids, n_end_ids, "end ids at NULL");
    std::vector<TokenId> special = list(special_ids, n_special_ids, "special ids at NULL");
    if (ends.empty())
      throw Error(ErrorKind::kVocabulary, "no end-of-sequence token is given, so no text could end");
    std::vector<std::string_view> texts;
    texts.reserve(n_tokens);
    for (std::size_t i = 0; i < n_tokens; ++i) texts.push_back(bytes(tokens[i]));
    for (const auto& [name, ids] : {std::pair{"end", &ends}, std::pair{"special", &special}})
      for (TokenId id : *ids) {
        if (id < 0 || static_cast<std::size_t>(id) >= n_tokens)
          throw Error(ErrorKind::kVocabulary, std::string(name) + " id " + std::to_string(id) +
                                                  " is outside the vocabulary of " +
                                                  std::to_string(n_tokens) + " ids");
        texts[static_cast<std::size_t>(id)] = {};
      }
    if (std::ranges::all_of(texts, [](std::string_view t) { return t.empty(); }))
      throw Error(ErrorKind::kVocabulary, "the vocabulary is empty: no id has text");
    *out = new structgen_vocabulary{std::make_shared<Vocabulary>(texts, std::move(ends), std::move(special))};
  });
}

structgen_status structgen_vocabulary_load(const char* path, structgen_vocabulary** out,
                                           structgen_error** error) {
  return guarded(error, [&] {
    given(out, "out is NULL");
    std::string meta;
    *out = new structgen_vocabulary{load_vocabulary(&given(path, "the path is NULL"), meta)};
  });
}

size_t structgen_vocabulary_size(const structgen_vocabulary* v) { return v ? v->vocabulary->size() : 0; }
size_t structgen_vocabulary_words(const structgen_vocabulary* v) { return v ? v->vocabulary->words() : 0; }
void structgen_vocabulary_free(structgen_vocabulary* v) { delete v; }

structgen_status structgen_compiler_new(const structgen_vocabulary* vocabulary,
                                        const structgen_limits* limits, structgen_compiler** out,
                                        structgen_error** error) {
  return guarded(error, [&] {
    given(out, "out is NULL");
    const structgen_vocabulary& v = given(vocabulary, "the vocabulary is NULL");
    const structgen_limits asked = options_of(limits);
    const int64_t memory = asked.memory == 0 ? int64_t{256} << 20 : asked.memory;
    if (memory < 0) bad_argument("limits: memory is negative");
    // The standard values are those that structgen/limits.py has for servers.
    const WorkLimits work{limit(asked.compile, 10'000'000), limit(asked.mask, 200'000)};
    *out = new structgen_compiler{
        std::make_shared<Compiler>(v.vocabulary, true, static_cast<std::size_t>(memory), work),
        asked.error_on_limit == 0};
  });
}

size_t structgen_compiler_byte_size(structgen_compiler* c) {
  std::size_t size = 0;
  if (c) guarded(nullptr, [&] { size = c->compiler->byte_size(); });
  return size;
}

void structgen_compiler_free(structgen_compiler* c) { delete c; }

structgen_status structgen_compile_json_schema(structgen_compiler* compiler, structgen_bytes schema,
                                               const structgen_json_options* options, structgen_grammar** out,
                                               structgen_error** error) {
  return json(compiler, schema, options, out, error);
}

structgen_status structgen_compile_json_object(structgen_compiler* compiler,
                                               const structgen_json_options* options, structgen_grammar** out,
                                               structgen_error** error) {
  constexpr std::string_view kObject = R"({"type":"object"})";
  return json(compiler, {kObject.data(), kObject.size()}, options, out, error);
}

structgen_status structgen_compile_regex(structgen_compiler* compiler, structgen_bytes pattern,
                                         structgen_grammar** out, structgen_error** error) {
  return compiled(compiler, out, error, [&](structgen_compiler& c) {
    return c.compiler->regex(utf8(pattern, "the pattern"), c.subset);
  });
}

structgen_status structgen_compile_choice(structgen_compiler* compiler, const structgen_bytes* texts,
                                          size_t n_texts, structgen_grammar** out, structgen_error** error) {
  return compiled(compiler, out, error, [&](structgen_compiler& c) {
    std::vector<std::string> all;
    for (const structgen_bytes& text : list(texts, n_texts, "texts at NULL"))
      all.emplace_back(utf8(text, "a text of the choice"));
    if (all.empty()) throw Error(ErrorKind::kGrammar, "a choice needs at least one text");
    return c.compiler->choice(all, c.subset);
  });
}

structgen_status structgen_compile_serialized(structgen_compiler* compiler, structgen_bytes serialized,
                                              structgen_grammar** out, structgen_error** error) {
  return compiled(compiler, out, error, [&](structgen_compiler& c) {
    WrittenGrammar g = read_grammar(bytes(serialized), c.compiler->vocabulary());
    return c.compiler->grammar(std::move(g.source), g.start, g.schemas, c.subset);
  });
}

// Makes the first mask now, so that the first request does not wait for it.
structgen_status structgen_grammar_prepare(const structgen_grammar* grammar, structgen_error** error) {
  return guarded(error, [&] {
    Matcher matcher(given(grammar, "the grammar is NULL").grammar);
    std::vector<uint32_t> row(grammar->grammar->vocabulary().words());
    matcher.fill_row(row.data());
  });
}

size_t structgen_grammar_report_size(const structgen_grammar* g) { return g ? g->report.size() : 0; }

structgen_status structgen_grammar_report(const structgen_grammar* g, size_t number, const char** pointer,
                                          const char** keyword, const char** reason) {
  if (!g || number >= g->report.size()) return STRUCTGEN_REFUSED;
  const ReportEntry& entry = g->report[number];
  if (pointer) *pointer = entry.pointer.c_str();
  if (keyword) *keyword = entry.keyword.c_str();
  if (reason) *reason = entry.reason.c_str();
  return STRUCTGEN_OK;
}

void structgen_grammar_free(structgen_grammar* g) { delete g; }
