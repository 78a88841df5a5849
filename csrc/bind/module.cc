// The Python module _core: thin shims around the engine. structgen/*.py turn these into the public
// classes.
//
// In and out: Python objects. Cost: 0.1 to 0.3 us per call. A known mask is copied and a known step is
// taken with the GIL held, because releasing it costs more. Whatever may wait for a lock has released
// it.
//
// Every call that works goes through released(): without the GIL, with enough stack, and ended by
// Ctrl-C. A matcher belongs to one thread at a time (Use). Errors of the core become Python's in one
// place (translate).
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <utility>

#include "base/depth.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/interrupt.h"
#include "base/undo.h"
#include "base/work.h"
#include "bind/grammar.h"
#include "bind/released.h"
#include "bind/rows.h"
#include "engine/batch.h"
#include "engine/compile.h"
#include "engine/holes.h"
#include "engine/matcher.h"
#include "engine/reaper.h"
#include "engine/sole.h"
#include "engine/written_grammar.h"
#include "mask/artefact.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace structgen;

void bind_regex(nb::module_& m);
void bind_canvas(nb::module_& m);
void bind_grammar(nb::module_& m);
void bind_logits(nb::module_& m);

namespace {

// Returns the name of a kind as structgen/errors.py knows it.
const char* kind_name(ErrorKind k) {
  switch (k) {
    case ErrorKind::kGrammar: return "grammar";
    case ErrorKind::kTerminalsOnly: return "terminals_only";
    case ErrorKind::kUnsupportedSchema: return "unsupported";
    case ErrorKind::kSchemaTooComplex: return "too_complex";
    case ErrorKind::kUnsatisfiableSchema: return "unsatisfiable";
    case ErrorKind::kVocabulary: return "vocabulary";
    case ErrorKind::kBudgetExceeded: return "budget";
    case ErrorKind::kUnsatisfiableInfill: return "unsatisfiable_infill";
    case ErrorKind::kUnsatisfiableBudget: return "unsatisfiable_budget";
    case ErrorKind::kValue: return "value";
  }
  return "value";
}

// Returns a text for people to read. JSON may contain half of a surrogate pair, which Python's decoder would
// refuse.
nb::str shown(const std::string& text) {
  return nb::steal<nb::str>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

// Returns the Python exception for an error. Python code makes it, because its class is written in Python.
nb::object python_error(const Error& e) {
  return nb::module_::import_("structgen.errors")
      .attr("from_core")(kind_name(e.kind()), shown(e.what()), shown(e.pointer()), shown(e.keyword()),
                         e.offset());
}

// nanobind calls this for every exception that leaves a binding. An exception other than Error is thrown on.
void translate(const std::exception_ptr& p, void*) {
  try {
    std::rethrow_exception(p);
  } catch (const Error& e) {
    try {
      const nb::object error = python_error(e);
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
      // Ctrl-C may be pressed while Python makes the exception. Then the KeyboardInterrupt is raised instead.
    } catch (nb::python_error& other) {
      other.restore();
    }
  }
}

std::vector<TokenId> to_tokens(nb::handle h) {
  std::vector<TokenId> out;
  for (nb::handle x : nb::iter(h)) out.push_back(nb::cast<TokenId>(x));
  return out;
}

std::shared_ptr<Vocabulary> make_vocabulary(nb::list tokens, std::vector<TokenId> eos,
                                            std::vector<TokenId> special) {
  std::vector<std::string_view> views;
  // The tokens are copied into a tuple, because other threads may change the list.
  const nb::tuple held(tokens);
  views.reserve(held.size());
  for (nb::handle t : held) {
    if (t.is_none()) {
      views.emplace_back();
      continue;
    }
    char* data;
    Py_ssize_t n;
    if (PyBytes_AsStringAndSize(t.ptr(), &data, &n) != 0) throw nb::python_error();
    views.emplace_back(data, static_cast<std::size_t>(n));
  }
  return released([&] { return std::make_shared<Vocabulary>(views, eos, special); });
}

nb::tuple load(const std::string& path) {
  std::string meta;
  const std::shared_ptr<Vocabulary> made = released([&] {
    meta.clear();
    return load_vocabulary(path, meta);
  });
  return nb::make_tuple(made, nb::bytes(meta.data(), meta.size()));
}

void save(const Vocabulary& vocabulary, const std::string& path, const nb::bytes& meta) {
  const std::string_view words(meta.c_str(), meta.size());
  released([&] { save_vocabulary(vocabulary, words, path); });
}

// Returns true if the schema's text seems to refer to a schema of the specification. Only then does the core
// get the texts of those schemas, 31 kB. A wrong "yes" only costs time, so the text is searched and not
// parsed.
bool names_metaschema(std::string_view schema) {
  constexpr std::string_view kHost = "json-schema.org/";
  for (std::size_t at = 0; (at = schema.find(kHost, at)) != std::string_view::npos; at += kHost.size()) {
    std::string_view before = schema.substr(0, at);
    const auto strip = [&](std::string_view part) {
      if (!before.ends_with(part)) return false;
      before.remove_suffix(part.size());
      return true;
    };
    const auto blanks = [&] { before = before.substr(0, before.find_last_not_of(" \t\r\n") + 1); };
    if (!strip("https://") && !strip("http://")) continue;
    if (!strip("\"")) continue;
    blanks();
    if (!strip(":")) continue;
    blanks();
    // The text ends with "$ref", "$dynamicRef" or "$recursiveRef".
    if (before.ends_with("ef\"")) return true;
  }
  return false;
}

using Documents = std::vector<std::pair<std::string, std::string>>;

// Recipe, option 3: an argument, in the order of JsonStyle.core().
// `registry` holds the documents that references may name. If it is None, `metaschemas` gives those of the
// specification, if the schema names one.
std::shared_ptr<Grammar> json_schema(Compiler& c, std::string_view schema,
                                     const std::optional<Documents>& given, const nb::callable& metaschemas,
                                     const std::string& whitespace, bool any_order,
                                     const std::string& numbers, bool plain_strings, bool enforce_formats,
                                     int draft, bool subset) {
  const JsonOptions o = json_options(whitespace, any_order, numbers, plain_strings, enforce_formats, draft);
  Documents registry;
  if (given)
    registry = *given;
  else if (names_metaschema(schema))
    registry = nb::cast<Documents>(metaschemas());
  return released([&] { return c.json_schema(schema, registry, o, subset); });
}

// Compiles with the default of every option, as most calls do, so that no option is converted. Returns null
// if a reference needs other documents.
std::shared_ptr<Grammar> json_schema_text(Compiler& c, std::string_view schema, bool subset) {
  if (names_metaschema(schema)) return nullptr;
  return released([&] { return c.json_schema(schema, {}, JsonOptions(), subset); });
}

nb::bytes to_bytes(const std::string& s) { return nb::bytes(s.data(), s.size()); }
std::string_view from_bytes(const nb::bytes& b) { return {b.c_str(), b.size()}; }

using BoundMatcher = Sole<Matcher>;

// Binds a method of Matcher that takes no lock. One thread at a time may call it.
template <class R, class... Args>
auto sole(R (Matcher::*method)(Args...)) {
  return [method](BoundMatcher& self, Args... args) {
    const Use use(self);
    return (self.*method)(args...);
  };
}
template <class R, class... Args>
auto sole(R (Matcher::*method)(Args...) const) {
  return [method](BoundMatcher& self, Args... args) {
    const Use use(self);
    return (self.*method)(args...);
  };
}
// Binds a method of Matcher that runs without the GIL. `shown` turns the method's result into a Python value.
template <class R, class... Args, class Shown = std::identity>
auto working(R (Matcher::*method)(Args...), Shown shown = {}) {
  return [method, shown](BoundMatcher& self, Args... args) {
    const Use use(self);
    return shown(released([&] { return (self.*method)(args...); }));
  };
}
// Returns f(), which runs without the GIL and with the lock of a grammar's world.
template <class F>
auto in_world(Grammar& g, F&& f) {
  return released([&] {
    std::lock_guard hold(g.world().lock);
    return f();
  });
}
// Returns f(), which reads `given`. If all its steps are known, f is quick and the GIL stays held.
template <class Given, class F>
auto reading(const BoundMatcher& m, const Given& given, F&& f) {
  // At most this many known steps are read with the GIL held, which takes about 50 us.
  constexpr std::size_t kMost = 4096;
  return given.size() <= kMost && m.known(given) ? f() : released(f);
}

// Bind a method under two names, one for tokens and one for bytes.
template <class R>
auto reading_tokens(R (Matcher::*method)(std::span<const TokenId>)) {
  return [method](BoundMatcher& self, nb::handle t) {
    const Use use(self);
    const std::vector<TokenId> tokens = to_tokens(t);
    const std::span<const TokenId> all(tokens);
    return reading(self, all, [&] { return (self.*method)(all); });
  };
}
template <class R>
auto reading_bytes(R (Matcher::*method)(std::string_view)) {
  return [method](BoundMatcher& self, const nb::bytes& b) {
    const Use use(self);
    return reading(self, from_bytes(b), [&] { return (self.*method)(from_bytes(b)); });
  };
}

// Calls f with a row of the mask. If f throws or returns false, the row is cleared: a caller that ignores
// this must not sample from half a mask.
template <class F>
bool fill(BoundMatcher& m, nb::handle mask, int64_t row, F&& f) {
  const Use use(m);
  const uint32_t words = m.grammar().vocabulary().words();
  Rows rows(mask, words);
  uint32_t* const p = rows.row(row);
  Undo empty([&] { std::fill_n(p, words, 0u); });
  if (!f(p)) return false;
  empty.keep();
  return true;
}

// Fills the row, and returns whether it holds all allowed tokens (mask_exact()).
bool fill_bitmask(BoundMatcher& m, nb::handle mask, int64_t row) {
  fill(m, mask, row, [&](uint32_t* p) {
    if (!m.fill_row_fast(p)) released([&] { m.fill_row(p); });
    return true;
  });
  return m.mask_exact();
}

// If the mask is known, fills the row and returns true; otherwise returns false. It neither waits nor makes a
// mask.
bool fill_known(BoundMatcher& m, nb::handle mask, int64_t row) {
  const Use use(m);
  Rows rows(mask, m.grammar().vocabulary().words());
  return m.fill_row_fast(rows.row(row));
}

bool fill_within(BoundMatcher& m, nb::handle mask, int64_t row, std::size_t budget) {
  return fill(m, mask, row, [&](uint32_t* p) {
    return m.fill_row_fast(p, budget) || released([&] { return m.fill_row_within(p, budget); });
  });
}

// A copy of the matcher reads the tokens, so that the matcher itself is unchanged if the call begins again
// after Ctrl-C.
std::pair<std::size_t, nb::bytes> replay(BoundMatcher& m, nb::handle ids, std::size_t most) {
  const Use use(m);
  const std::size_t count = nb::len(ids);
  Rows held(ids, static_cast<uint32_t>(count));
  uint32_t* const first = held.row(0);
  const std::vector<TokenId> tokens(first, first + count);
  const Matcher::Replay read = released([&] {
    Matcher fork(m);
    return fork.replay(tokens, most);
  });
  std::copy(read.of.begin(), read.of.end(), first);
  return {read.of.size(), nb::bytes(read.rows.data(), read.rows.size() * sizeof(uint32_t))};
}

nb::object raised(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& e) {
    return python_error(e);
  } catch (const std::bad_alloc&) {
    return nb::steal(PyObject_CallNoArgs(PyExc_MemoryError));
  } catch (const std::exception& e) {
    return nb::steal(PyObject_CallFunction(PyExc_RuntimeError, "s", e.what()));
  }
}

// Returns the row index of each matcher: those of `given`, or 0, 1, 2 and so on. Throws if an index occurs
// twice. It writes no row.
std::vector<int64_t> places_of(const std::optional<std::vector<int64_t>>& given, Rows& rows,
                               std::size_t count) {
  std::vector<int64_t> out;
  if (!given) {
    if (rows.count() < count) throw Error(ErrorKind::kValue, "bitmask: fewer rows than matchers");
    for (std::size_t i = 0; i < count; ++i) out.push_back(static_cast<int64_t>(i));
    return out;
  }
  if (given->size() != count)
    throw Error(ErrorKind::kValue, "rows: " + std::to_string(given->size()) + " of them for " +
                                       std::to_string(count) + " matchers");
  std::vector<bool> taken(rows.count(), false);
  for (int64_t i : *given) {
    const std::size_t row = rows.index(i);
    if (taken[row]) throw Error(ErrorKind::kValue, "rows: row " + std::to_string(row) + " stands twice");
    taken[row] = true;
    out.push_back(static_cast<int64_t>(row));
  }
  return out;
}

// Returns an empty list if every row was filled; otherwise the error of each matcher, or None.
nb::list fill_bitmasks(nb::list matchers, nb::handle mask, unsigned threads,
                       const std::optional<std::vector<int64_t>>& given) {
  // The matchers are copied into a tuple, because other threads may change the list.
  const nb::tuple held(matchers);
  nb::list errors;
  if (held.size() == 0) {
    if (given && !given->empty()) throw Error(ErrorKind::kValue, "rows: there are no matchers for them");
    return errors;
  }
  std::vector<BoundMatcher*> all;
  uint32_t words = 0;
  for (nb::handle h : held) {
    all.push_back(&nb::cast<BoundMatcher&>(h));
    words = std::max(words, all.back()->grammar().vocabulary().words());
  }
  Rows rows(mask, words);
  const std::vector<int64_t> where = places_of(given, rows, all.size());
  std::vector<uint32_t*> pointers;
  for (std::size_t i = 0; i < all.size(); ++i) {
    pointers.push_back(rows.row(where[i]));
    std::fill(pointers[i] + all[i]->grammar().vocabulary().words(), pointers[i] + words, 0u);
  }
  const std::vector<std::exception_ptr> failures = interruptible([&] {
    const nb::gil_scoped_release release;
    return fill_rows(all, pointers, threads);
  });
  for (const std::exception_ptr& f : failures) errors.append(f ? raised(f) : nb::none());
  return errors;
}

}  // namespace

// Returns the value of an option's name, which structgen/json_options.py has checked.
NumberSpelling number_spelling(std::string_view name) {
  if (name == "any") return NumberSpelling::kAny;
  if (name == "plain") return NumberSpelling::kPlain;
  if (name == "canonical") return NumberSpelling::kCanonical;
  throw Error(ErrorKind::kValue, "numbers is 'any', 'plain' or 'canonical'");
}

JsonOptions json_options(const std::string& whitespace, bool any_order, const std::string& numbers,
                         bool plain_strings, bool enforce_formats, int draft) {
  JsonOptions o;
  o.schema.enforce_formats = enforce_formats;
  if (draft != 0) {
    o.schema.draft = draft_of(draft);
    o.schema.force_draft = true;
  }
  o.order = any_order ? PropertyOrder::kAny : PropertyOrder::kSchema;
  o.numbers = number_spelling(numbers);
  o.plain_strings = plain_strings;
  o.layout = layout_of(whitespace);
  return o;
}

namespace {

void bind_vocabulary(nb::module_& m) {
  nb::class_<Vocabulary>(m, "Vocabulary")
      .def(nb::new_(&make_vocabulary), "tokens"_a, "eos"_a, "special"_a)
      .def_static("load", &load, "path"_a)
      .def("save", &save, "path"_a, "meta"_a)
      .def(
          "token",
          [](const Vocabulary& v, TokenId t) {
            const std::string_view text = v.is_special(t) ? std::string_view() : v.bytes(t);
            return nb::bytes(text.data(), text.size());
          },
          "id"_a)
      .def_prop_ro("eos", &Vocabulary::eos)
      .def_prop_ro("special", &Vocabulary::special)
      .def("__len__", &Vocabulary::size)
      .def_prop_ro("words", &Vocabulary::words)
      .def_prop_ro("nodes", [](const Vocabulary& v) { return v.trie().size(); })
      .def_prop_ro("longest", &Vocabulary::longest)
      .def_prop_ro("byte_size", &Vocabulary::byte_size);
}

void bind_compiled(nb::module_& m) {
  nb::class_<Grammar>(m, "Grammar")
      .def("report",
           [](const Grammar& g) {
             std::vector<std::tuple<nb::str, nb::str, nb::str>> out;
             for (const ReportEntry& e : g.report())
               out.emplace_back(shown(e.pointer), shown(e.keyword), shown(e.reason));
             return out;
           })
      .def_prop_ro(
          "full", [](const Grammar& g) { return g.is_full(); },
          "Whether so much was made for it that the next text is to have a new one.")
      .def_prop_ro("warnings", [](const Grammar& g) { return g.warnings(); })
      .def_prop_ro("captures", [](const Grammar& g) { return g.captures(); })
      .def(
          "prepare_endings",
          [](Grammar& g) {
            in_world(g, [&] {
              if (RunClass* const characters = g.epoch()->masks.characters()) {
                characters->exits('"');
                characters->cuts();
                characters->counts();
              }
            });
          },
          "Makes the lists of tokens that masks inside strings take near the end of a text.")
      .def("collect", [](Grammar& g) { in_world(g, [&] { g.rotate(); }); })
      .def_prop_ro("byte_size", [](Grammar& g) { return in_world(g, [&] { return g.byte_size(); }); })
      .def_prop_ro("states", [](Grammar& g) { return in_world(g, [&] { return g.states(); }); })
      .def(
          "infill",
          [](Grammar& g, const nb::bytes& prefix, const nb::bytes& suffix) {
            const std::string before(from_bytes(prefix)), after(from_bytes(suffix));
            return released([&] { return infill(g.shared_from_this(), before, after); });
          },
          "prefix"_a, "suffix"_a, "The grammar of what may stand between two texts.")
      .def(
          "conditioned",
          [](Grammar& g, const std::vector<std::tuple<int, std::vector<nb::bytes>, uint64_t, uint64_t>>& of) {
            std::vector<ConditionStep> steps;
            for (const auto& [kind, texts, lo, hi] : of) {
              if (kind < ConditionStep::kRegex || kind > ConditionStep::kNot)
                throw Error(ErrorKind::kValue, "no kind of a condition");
              ConditionStep step{static_cast<ConditionStep::StepKind>(kind), {}, lo, hi};
              for (const nb::bytes& t : texts) step.texts.emplace_back(from_bytes(t));
              steps.push_back(std::move(step));
            }
            return released([&] { return conditioned(g.shared_from_this(), steps); });
          },
          "condition"_a, "The grammar of those texts that meet a condition.")
      .def(
          "can_complete",
          [](Grammar& g, const std::vector<std::tuple<int, nb::bytes, uint64_t, uint64_t>>& of) {
            std::vector<Part> parts;
            for (const auto& [kind, text, lo, hi] : of) {
              if (kind < Part::kText || kind > Part::kTokens)
                throw Error(ErrorKind::kValue, "no kind of a part");
              parts.push_back({static_cast<Part::PartKind>(kind), std::string(from_bytes(text)), lo, hi});
            }
            const Filling found = released([&] { return can_complete(g.shared_from_this(), parts); });
            return std::pair(static_cast<int>(found.verdict), to_bytes(found.text));
          },
          "parts"_a,
          "(1, text) where texts can fill the gaps, (0, nothing) where none can, (-1, nothing) where that is "
          "not known. A part is (0, text, 0, 0), (1, nothing, 0, 0) for any text, (2, nothing, least, most) "
          "for "
          "bytes or (3, nothing, n, n) for tokens.");
}

void bind_compiler(nb::module_& m) {
  nb::class_<Compiler>(m, "Compiler")
      .def(
          "__init__",
          [](Compiler* self, std::shared_ptr<Vocabulary> v, bool cache, std::size_t cache_bytes,
             int64_t compile_work, int64_t mask_work) {
            new (self) Compiler(std::move(v), cache, cache_bytes, {compile_work, mask_work});
          },
          "vocabulary"_a, "cache"_a, "cache_bytes"_a, "compile_work"_a, "mask_work"_a)
      .def("json_schema_text", &json_schema_text, "schema"_a, "subset"_a,
           nb::sig("def json_schema_text(self, schema: str, subset: bool) -> Grammar | None"))
      .def("json_schema", &json_schema, "schema"_a, "registry"_a.none(), "metaschemas"_a, "whitespace"_a,
           "any_order"_a, "numbers"_a, "plain_strings"_a, "enforce_formats"_a, "draft"_a, "subset"_a)
      .def(
          "regex",
          [](Compiler& c, std::string_view pattern, bool subset) {
            return released([&] { return c.regex(pattern, subset); });
          },
          "pattern"_a, "subset"_a)
      .def(
          "grammar",
          [](Compiler& c, const BoundGrammar& g, uint32_t start, bool subset) {
            if (start >= g.source.rules.size()) throw Error(ErrorKind::kValue, "rule out of range");
            GrammarSource source = g.source;  // the builder may go on being used
            const std::vector<JsonPart> schemas = g.schemas;
            return released([&] { return c.grammar(source, start, schemas, subset); });
          },
          nb::arg("builder").lock(), "start"_a, "subset"_a)
      .def(
          "write_grammar",
          [](Compiler& c, const BoundGrammar& g, uint32_t start) {
            const std::string out = write_grammar(g.source, g.schemas, start, c.vocabulary());
            return nb::bytes(out.data(), out.size());
          },
          nb::arg("builder").lock(), "start"_a, "What read_grammar() makes the same grammar of.")
      .def(
          "read_grammar",
          [](Compiler& c, const nb::bytes& written, bool subset) {
            const std::string_view text(written.c_str(), written.size());
            return released([&] {
              WrittenGrammar g = read_grammar(text, c.vocabulary());
              return c.grammar(std::move(g.source), g.start, g.schemas, subset);
            });
          },
          "written"_a, "subset"_a)
      .def(
          "include_grammar",
          [](Compiler& c, BoundGrammar& g, const nb::bytes& written) {
            WrittenGrammar part = read_grammar({written.c_str(), written.size()}, c.vocabulary());
            return include_grammar(g.source, g.schemas, std::move(part));
          },
          nb::arg("builder").lock(), "written"_a,
          "Puts a written grammar into a builder; the number of its first rule there.")
      .def(
          "choice",
          [](Compiler& c, const std::vector<std::string>& texts, bool subset) {
            return released([&] { return c.choice(texts, subset); });
          },
          "texts"_a, "subset"_a)
      .def(
          "set_limits",
          [](Compiler& c, Grammar& g, int64_t compile_work, int64_t mask_work) {
            c.set_limits({compile_work, mask_work});
            g.set_mask_work(mask_work);
          },
          "grammar"_a, "compile_work"_a, "mask_work"_a,
          "Other limits of a compiler and of a grammar of it; while nobody else has either.")
      .def_prop_ro("byte_size", [](Compiler& c) { return released([&] { return c.byte_size(); }); })
      // The argument is a reference: a shared_ptr would keep the Python object alive and free it under the
      // GIL. No lock of the core is held while `forget` runs.
      .def(
          "keep",
          [](Compiler& c, Grammar& g, const nb::typed<nb::callable, void(Grammar)>& forget) {
            Compiler::Grammars gone = released([&] { return c.keep(g.shared_from_this()); });
            for (const std::shared_ptr<Grammar>& old : gone) forget(old);
            released([&] { c.reap(std::move(gone)); });
          },
          "grammar"_a, "forget"_a,
          "Keeps it until others were used more recently; calls forget(grammar) for each that goes now.")
      .def(
          "found", [](Compiler& c, Grammar& g) { return released([&] { return c.found(g); }); }, "grammar"_a,
          "It is used again; False where it is to be compiled anew, and is not kept any more.")
      .def_prop_ro("retiring", [](Compiler& c) { return released([&] { return c.retiring(); }); });
}

void bind_matcher(nb::module_& m) {
  nb::class_<BoundMatcher>(m, "Matcher")
      .def(
          "__init__",
          [](BoundMatcher* self, std::shared_ptr<Grammar> grammar, std::vector<TokenId> ends,
             std::optional<std::size_t> tokens, bool goes_on_after_end) {
            const Request request{std::move(ends), tokens.value_or(Request::kAny), goes_on_after_end};
            released([&] { new (self) BoundMatcher(grammar, request); });
          },
          "grammar"_a, "ends"_a = std::vector<TokenId>(), "tokens"_a = nb::none(),
          "goes_on_after_end"_a = false)
      .def("fork",
           [](BoundMatcher& self) {
             const Use use(self);
             return BoundMatcher(self);
           })
      .def(
          "accept_token",
          [](BoundMatcher& self, TokenId t) {
            const Use use(self);
            return reading(self, std::span<const TokenId>(&t, 1), [&] { return self.accept_token(t); });
          },
          "token"_a)
      .def("accept_tokens", reading_tokens(&Matcher::accept_tokens), "tokens"_a)
      .def("accept_bytes", reading_bytes(&Matcher::accept_bytes), "text"_a)
      .def(
          "validate_tokens",
          [](BoundMatcher& self, nb::handle t) {
            const Use use(self);
            const std::vector<TokenId> tokens = to_tokens(t);
            const auto validate = [&] { return self.validate_tokens(tokens); };
            return self.has_budget() ? released(validate)
                                     : reading(self, std::span<const TokenId>(tokens), validate);
          },
          "tokens"_a)
      .def("validate_bytes", reading_bytes(&Matcher::validate_bytes), "text"_a)
      .def(
          "rollback",
          [](BoundMatcher& self, int64_t n) {
            const Use use(self);
            if (n < 0) throw Error(ErrorKind::kValue, "cannot roll back a negative number of steps");
            self.rollback(static_cast<std::size_t>(n));
          },
          "n"_a)
      .def("reset", sole(&Matcher::reset))
      .def("is_accepting", sole(&Matcher::is_accepting))
      .def("is_terminated", sole(&Matcher::is_terminated))
      .def_prop_ro("history", sole(&Matcher::history))
      .def_prop_ro("state", sole(&Matcher::state))
      .def("successors", working(&Matcher::successors,
                                 [](const std::vector<std::pair<std::string, uint64_t>>& found) {
                                   std::vector<std::pair<nb::bytes, uint64_t>> out;
                                   for (const auto& [text, state] : found)
                                     out.emplace_back(to_bytes(text), state);
                                   return out;
                                 }))
      .def("fill_bitmask", &fill_bitmask, "mask"_a, "row"_a = 0, "Returns mask_exact.")
      .def("replay", &replay, "ids"_a, "most"_a,
           "Ids become numbers of rows; the number that was read, and the rows.")
      .def("fill_known", &fill_known, "mask"_a, "row"_a = 0)
      .def("fill_within", &fill_within, "mask"_a, "row"_a, "budget"_a)
      .def("tokens_needed",
           working(&Matcher::tokens_needed,
                   [](Matcher::Bounds b) {
                     const auto shown = [](std::size_t n) {
                       return n < Matcher::kFar ? static_cast<int64_t>(n) : -1;
                     };
                     return std::pair(shown(b.least), shown(b.enough));
                   }),
           "search"_a)
      .def("fits", working(&Matcher::fits), "budget"_a)
      .def("shortest_completion", working(&Matcher::shortest_completion, to_bytes))
      .def("forced_bytes",
           [](BoundMatcher& self) {
             const Use use(self);
             return to_bytes(released([&] { return self.forced_bytes(); }));
           })
      .def_prop_ro("mask_exact", [](const BoundMatcher& self) { return self.mask_exact(); })
      .def("tail", sole(&Matcher::tail), "most"_a)
      .def(
          "open_places",
          [](BoundMatcher& self, const nb::bytes& text, const nb::bytes& forced) {
            const Use use(self);
            return released([&] { return self.open_places(from_bytes(text), from_bytes(forced)); });
          },
          "text"_a, "forced"_a)
      .def("captures",
           working(
               &Matcher::captures,
               [](const std::vector<Capture>& found) {
                 std::vector<
                     std::tuple<std::string, std::size_t, std::size_t, std::size_t, std::size_t, nb::bytes>>
                     out;
                 for (const Capture& c : found)
                   out.emplace_back(c.name, c.begin, c.end, c.first_token, c.last_token, to_bytes(c.text));
                 return out;
               }))
      .def("live_bytes",
           working(&Matcher::live,
                   [](ByteSet live) {
                     std::string out;
                     live.for_each([&](uint8_t b) { out.push_back(static_cast<char>(b)); });
                     return to_bytes(out);
                   }),
           "inside"_a = false);
}

}  // namespace

NB_MODULE(_core, m) {
  work_interrupt = Interrupt::check;
  // Objects that threads still hold when the process ends (a server's, a user's) are no leaks. nanobind's
  // warnings about them would be the last lines that the user sees.
  nb::set_leak_warnings(false);
  m.doc() = "C++ core of structgen; use the classes of the structgen package instead.";
  nb::register_exception_translator(translate);
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([] {
    const nb::gil_scoped_release release;
    Reaper::get().stop();
  }));

  bind_vocabulary(m);
  bind_compiled(m);
  bind_canvas(m);
  bind_grammar(m);
  bind_compiler(m);
  bind_matcher(m);
  m.def(
      "_fail_after", [](int64_t units) { meter.fail_after(units); }, "units"_a,
      "Makes the charge of work in this thread that comes after so many units fail, once; 0: none. For "
      "tests.");
  m.def("_work_done", [] { return meter.done(); }, "Units of work that this thread was ever charged for.");
  m.def("with_stack", &with_python_stack, "f"_a,
        "f(), with megabytes of stack: on a thread of its own where this one has little.");
  m.def(
      "fork_patience", [](double seconds) { set_fork_patience(static_cast<int64_t>(seconds * 1000)); },
      "seconds"_a, "How long the forks to come wait for the core's threads; negative: as long as at first.");
  m.def("fill_bitmasks", &fill_bitmasks, "matchers"_a, "mask"_a, "threads"_a, "rows"_a = nb::none());
  bind_regex(m);
  bind_logits(m);
}
