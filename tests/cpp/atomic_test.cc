// Every call is whole or nothing: an allocation or a unit of work fails in the middle of it, and the same
// call, then every later one, answers as in an engine where nothing failed.
//
// A script of calls runs once without failures. It runs again, and before each call the process forks a child
// for each place where the call may fail: the child fails there, compares the state with the one before,
// repeats the call and goes on to the end of the script. A crash costs one child. STRUCTGEN_FAULTS=N tries N
// places a call (0: all of them, minutes), spread evenly, the first ones always.
#include <doctest/doctest.h>

#include <execinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/work.h"
#include "engine/batch.h"
#include "engine/compile.h"
#include "engine/holes.h"
#include "engine/matcher.h"
#include "faults.h"
#include "numbers/number.h"
#include "random.h"
#include "regex/regex.h"

using namespace structgen;
using structgen_tests::from_environment;

namespace {

constexpr TokenId kEos = 0;

struct Engine {
  explicit Engine(bool all_bytes) {
    std::vector<std::string> tokens{""};
    for (int b = 0; b < 256; ++b)
      if (all_bytes || (b >= ' ' && b < 127)) tokens.emplace_back(1, static_cast<char>(b));
    for (const char* piece :
         {"{\"", "\":",  "\",", "\":\"", "tru", "e}", "ab",   "abc", "aaaa", "12",  "\"}", "[[",    "]]",
          "},{", "null", ", ",  "foo",   "fo",  "((", "let ", "/*",  "*/",   "0.5", "é",   "2024-", "-1"})
      tokens.emplace_back(piece);
    const std::vector<std::string_view> views(tokens.begin(), tokens.end());
    vocabulary = std::make_shared<Vocabulary>(views, std::vector<TokenId>{kEos}, std::vector<TokenId>{});
    compiler = std::make_unique<Compiler>(vocabulary, true, std::size_t{64} << 20);
  }
  // What a caller can see of it without asking for work.
  std::string state() const {
    std::string out = std::to_string(grammars.size());
    for (const auto& m : matchers)
      out += " " + std::to_string(m->history()) + (m->is_accepting() ? "a" : "") +
             (m->is_terminated() ? "t" : "");
    return out;
  }
  std::shared_ptr<const Vocabulary> vocabulary;
  std::unique_ptr<Compiler> compiler;
  std::vector<std::shared_ptr<Grammar>> grammars;
  std::vector<std::unique_ptr<Sole<Matcher>>> matchers;
};

struct Step {
  std::string name;
  std::function<std::string(Engine&)> run;
};

struct Script {
  bool all_bytes = true;
  std::vector<Step> steps;

  void compile(std::function<std::shared_ptr<Grammar>(Compiler&)> make) {
    steps.push_back({"compile", [=](Engine& e) {
                       auto grammar = make(*e.compiler);
                       e.grammars.push_back(std::move(grammar));
                       return std::string();
                     }});
  }
  void schema(std::string text, JsonOptions options = {}) {
    compile([=](Compiler& c) { return c.json_schema(text, {}, options); });
  }
  void middle(std::size_t grammar, std::string prefix, std::string suffix) {
    steps.push_back({"infill", [=](Engine& e) {
                       auto made = infill(e.grammars[grammar], prefix, suffix);
                       e.grammars.push_back(std::move(made));
                       return std::string();
                     }});
  }
  void fills(std::size_t grammar, std::vector<Part> parts) {
    steps.push_back({"fill holes", [=](Engine& e) {
                       const Filling f = can_complete(e.grammars[grammar], parts);
                       return std::to_string(static_cast<int>(f.verdict)) + f.text;
                     }});
  }
  void matcher(std::size_t grammar, Request request = {}) {
    steps.push_back({"matcher", [=](Engine& e) {
                       auto m = std::make_unique<Sole<Matcher>>(e.grammars[grammar], request);
                       e.matchers.push_back(std::move(m));
                       return std::string();
                     }});
  }
  void fork(std::size_t m) {
    steps.push_back({"fork", [=](Engine& e) {
                       auto copy = std::make_unique<Sole<Matcher>>(*e.matchers[m]);
                       e.matchers.push_back(std::move(copy));
                       return std::string();
                     }});
  }
  void on(std::size_t m, std::string name, std::function<std::string(Matcher&)> f) {
    steps.push_back({std::move(name), [=](Engine& e) { return f(*e.matchers[m]); }});
  }
  void fill(std::size_t m) {
    on(m, "fill", [](Matcher& x) {
      std::vector<uint32_t> row(x.grammar().vocabulary().words());
      x.fill_row(row.data());
      return text(row);
    });
  }
  void within(std::size_t m, std::size_t budget) {
    on(m, "fill within " + std::to_string(budget), [=](Matcher& x) {
      std::vector<uint32_t> row(x.grammar().vocabulary().words());
      const bool fits = x.fill_row_within(row.data(), budget);
      return std::to_string(fits) + text(row);
    });
  }
  void accept(std::size_t m, std::string bytes) {
    on(m, "accept " + bytes, [=](Matcher& x) { return std::to_string(x.accept_bytes(bytes)); });
  }
  void tokens(std::size_t m, std::string bytes, bool keep) {  // one byte a token
    on(m, (keep ? "accept tokens " : "validate tokens ") + bytes, [=](Matcher& x) {
      std::vector<TokenId> ids;
      for (char b : bytes)
        for (uint32_t t = 1; t < x.grammar().vocabulary().size(); ++t)
          if (x.grammar().vocabulary().bytes(static_cast<TokenId>(t)) == std::string_view(&b, 1)) {
            ids.push_back(static_cast<TokenId>(t));
            break;
          }
      return std::to_string(keep ? x.accept_tokens(ids) : x.validate_tokens(ids));
    });
  }
  void validate(std::size_t m, std::string bytes) {
    on(m, "validate " + bytes, [=](Matcher& x) { return std::to_string(x.validate_bytes(bytes)); });
  }
  void rollback(std::size_t m, std::size_t n) {
    on(m, "rollback", [=](Matcher& x) {
      x.rollback(n);
      return std::string();
    });
  }
  void ask(std::size_t m) {
    on(m, "completion", [](Matcher& x) { return x.shortest_completion(); });
    on(m, "forced", [](Matcher& x) { return x.forced_bytes(); });
    on(m, "tokens needed", [](Matcher& x) {
      const Matcher::Bounds b = x.tokens_needed(true);
      return std::to_string(b.least) + " " + std::to_string(b.enough);
    });
    on(m, "live", [](Matcher& x) {
      std::string out;
      x.live().for_each([&](uint8_t b) { out += static_cast<char>(b); });
      return out;
    });
    on(m, "open places", [](Matcher& x) {
      std::string out;
      for (std::size_t at : x.open_places("a", "")) out += std::to_string(at) + " ";
      return out;
    });
    on(m, "captures", [](Matcher& x) {
      std::string out;
      for (const Capture& c : x.captures())
        out += c.name + "=" + c.text + "@" + std::to_string(c.begin) + " ";
      return out;
    });
  }
  void batch(unsigned threads) {
    steps.push_back({"batch of " + std::to_string(threads), [=](Engine& e) {
                       const uint32_t words = e.vocabulary->words();
                       std::vector<std::vector<uint32_t>> rows(e.matchers.size(),
                                                               std::vector<uint32_t>(words));
                       std::vector<Sole<Matcher>*> all;
                       std::vector<uint32_t*> targets;
                       for (std::size_t i = 0; i < rows.size(); ++i) {
                         all.push_back(e.matchers[i].get());
                         targets.push_back(rows[i].data());
                       }
                       for (const std::exception_ptr& f : fill_rows(all, targets, threads))
                         if (f) std::rethrow_exception(f);
                       std::string out;
                       for (const auto& row : rows) out += text(row);
                       return out;
                     }});
  }
  // Every call once, for the table of grammars below.
  void each_call(const std::vector<std::string>& pieces, const std::string& wrong) {
    const std::size_t m = 0;
    matcher(0);
    fill(m);
    for (const std::string& piece : pieces) accept(m, piece);
    fill(m);
    validate(m, wrong);
    tokens(m, wrong, false);
    tokens(m, wrong, true);
    tokens(m, wrong.substr(0, 1), true);
    rollback(m, 1);
    ask(m);
    within(m, 30);
    fork(m);
    renew(0);
    batch(2);
  }
  void renew(std::size_t grammar) {  // the next call of its matchers takes their states over
    steps.push_back({"rotate", [=](Engine& e) {
                       std::lock_guard hold(e.grammars[grammar]->world().lock);
                       e.grammars[grammar]->rotate();
                       return std::string();
                     }});
  }
  // The walk that every script takes through a text.
  void walk(std::size_t m, const std::vector<std::string>& pieces, const std::string& wrong) {
    for (const std::string& piece : pieces) {
      fill(m);
      accept(m, piece);
    }
    fill(m);
    validate(m, wrong);
    tokens(m, wrong, false);
    tokens(m, wrong, true);
    rollback(m, 1);
    ask(m);
    within(m, 40);
    within(m, 6);
    fork(m);
    renew(0);
    batch(1);
    batch(2);
    accept(m, pieces.back());
    fill(m);
  }

 private:
  static std::string text(const std::vector<uint32_t>& row) {
    std::string out;
    char word[12];
    for (uint32_t w : row) {
      std::snprintf(word, sizeof(word), "%x,", w);
      out += word;
    }
    return out + ";";
  }
};

// A grammar as a front end writes it.
class Source {
 public:
  uint32_t node(NodeOp op, std::vector<uint32_t> kids = {}, uint32_t a = 0, uint32_t b = 0,
                std::string text = {}) {
    GrammarNode n;
    n.op = op;
    n.kids = std::move(kids);
    n.a = a;
    n.b = b;
    n.text = std::move(text);
    return all.add(std::move(n));
  }
  uint32_t pattern(std::string text) { return node(NodeOp::kPattern, {}, 0, 0, std::move(text)); }
  uint32_t literal(std::string text) { return node(NodeOp::kBytes, {}, 0, 0, std::move(text)); }
  uint32_t lexeme(std::string name, uint32_t of, bool is_literal = false) {
    all.lexemes.push_back({std::move(name), of, 0, is_literal, false, false, -1});
    return node(NodeOp::kLexeme, {}, static_cast<uint32_t>(all.lexemes.size() - 1));
  }
  uint32_t sequence(std::vector<uint32_t> kids) { return node(NodeOp::kSequence, std::move(kids)); }
  uint32_t choice(std::vector<uint32_t> kids) { return node(NodeOp::kChoice, std::move(kids)); }
  uint32_t repeat(uint32_t kid, uint32_t min, uint32_t max = kUnbounded) {
    return node(NodeOp::kRepeat, {kid}, min, max);
  }
  uint32_t rule(std::string name) {
    all.rules.push_back({std::move(name), 0, false});
    return static_cast<uint32_t>(all.rules.size() - 1);
  }
  void define(uint32_t rule, uint32_t of) {
    all.rules[rule].node = of;
    all.rules[rule].defined = true;
  }
  uint32_t call(uint32_t rule) { return node(NodeOp::kRule, {}, rule); }
  GrammarSource all;
};

// Statements over names, numbers and brackets, with blanks and comments between lexemes.
GrammarSource statements() {
  Source s;
  const uint32_t blank = s.lexeme("WS", s.pattern("[ \\n]+")),
                 note = s.lexeme("NOTE", s.pattern("/\\*[^*]*\\*/"));
  s.all.gaps.push_back({s.all.nodes[blank].a, s.all.nodes[note].a});
  const uint32_t gap = s.node(NodeOp::kGap);
  const auto word = [&](const std::string& text) {
    return s.sequence({s.lexeme(text, s.literal(text), true), gap});
  };
  const uint32_t name = s.sequence({s.lexeme("NAME", s.pattern("[a-z]+")), gap});
  const uint32_t number = s.sequence({s.lexeme("NUMBER", s.pattern("[0-9]+(\\.[0-9]+)?")), gap});
  const uint32_t start = s.rule("start"), expression = s.rule("expression"), term = s.rule("term");
  const uint32_t open = word("("), close = word(")"), plus = word("+"), times = word("**"),
                 times1 = word("*");
  s.define(term, s.choice({name, number, s.sequence({open, s.call(expression), close})}));
  s.define(expression, s.choice({s.call(term), s.sequence({s.call(expression),
                                                           s.choice({plus, times, times1}), s.call(term)})}));
  s.all.captures.push_back("value");
  const uint32_t value = s.node(NodeOp::kCapture, {s.call(expression)}, 0);
  s.define(start,
           s.sequence({gap, s.repeat(s.sequence({word("let"), name, word("="), value, word(";")}), 1)}));
  return s.all;
}

// Free text of a few tokens in brackets, which nest.
GrammarSource limited() {
  Source s;
  const uint32_t start = s.rule("start"), inner = s.rule("inner");
  const uint32_t text = s.node(NodeOp::kLimit, {s.pattern("[a-z ]+")}, 4, 0, "text");
  s.define(inner, s.choice({text, s.sequence({s.literal("("), s.call(inner), s.literal(")")})}));
  const uint32_t all = s.node(NodeOp::kLimit, {s.call(inner)}, 9, 0, "all");
  s.define(start, s.sequence({s.literal("<"), all, s.literal(">")}));
  return s.all;
}

// Free text with calls in it, as structural tags make it: a mark, a value of a schema, a mark.
GrammarSource tagged() {
  Source s;
  const uint32_t start = s.rule("start");
  const uint32_t call = s.sequence({s.literal("<t>"), s.node(NodeOp::kPart, {}, 0), s.literal("</t>")});
  s.define(start, s.repeat(s.choice({s.pattern("[a-z ]"), call}), 0));
  return s.all;
}

struct Failure {};  // what an interrupt throws

enum class Fault { kAllocation, kInterrupt, kLimit };
const char* name(Fault f) {
  return f == Fault::kAllocation ? "allocation" : f == Fault::kInterrupt ? "interrupt" : "limit";
}

// The result, or the engine's own refusal.
std::string outcome(const Step& step, Engine& e) {
  try {
    return step.run(e);
  } catch (const Error& error) {
    return std::string("error: ") + error.what();
  }
}

constexpr int kWhole = 0, kWrong = 1, kNoFailure = 2;

void report(const Step& step, Fault fault, int64_t n, const char* what, const std::string& got,
            const std::string& expected) {
  std::fprintf(stderr, "%s: %s %lld: %s: %.120s instead of %.120s\n", step.name.c_str(), name(fault),
               static_cast<long long>(n), what, got.c_str(), expected.c_str());
  void** frames;
  const int count = structgen_tests::failed_at(&frames);
  if (fault == Fault::kAllocation && from_environment("STRUCTGEN_FRAMES", 0))
    backtrace_symbols_fd(frames, count, 2);
}

// Runs in the forked child. Lets the step `at` fail at its n-th place, then repeats it, runs all later steps
// and compares their results. Returns kWhole, kWrong, or kNoFailure if there is no n-th place.
int fail_once(const Script& script, std::size_t at, Fault fault, int64_t n, Engine& e,
              const std::vector<std::string>& expected) {
  const Step& step = script.steps[at];
  const std::string before = e.state();
  bool failed = false;
  std::string got;
  if (fault == Fault::kAllocation)
    structgen_tests::fail_allocation(n);
  else
    meter.fail_after(n);
  static bool threw;
  threw = false;
  work_interrupt = fault == Fault::kInterrupt ? +[] {
    if (threw || meter.fails_later()) return;  // a checkpoint like any other
    threw = true;
    throw Failure{};
  }
  : nullptr;
  try {
    got = step.run(e);
  } catch (const Error& error) {
    got = std::string("error: ") + error.what();
    failed = got.find("a test asked for") != std::string::npos;
  } catch (const std::bad_alloc&) {
    failed = true;
  } catch (const Failure&) {
    failed = true;
  }
  const bool happened = fault == Fault::kAllocation  ? structgen_tests::allocation_failed()
                        : fault == Fault::kInterrupt ? threw
                                                     : failed;
  structgen_tests::fail_allocation(0);
  meter.fail_after(0);
  work_interrupt = nullptr;
  if (!happened) return kNoFailure;
  if (failed && e.state() != before) {
    report(step, fault, n, "the state moved", e.state(), before);
    return kWrong;
  }
  if (!failed && got != expected[at]) {
    report(step, fault, n, "a failure was hidden", got, expected[at]);
    return kWrong;
  }
  for (std::size_t i = failed ? at : at + 1; i < script.steps.size(); ++i) {
    got = outcome(script.steps[i], e);
    if (got == expected[i]) continue;
    report(step, fault, n, script.steps[i].name.c_str(), got, expected[i]);
    return kWrong;
  }
  return kWhole;
}

void check(const Script& script, int64_t most = from_environment("STRUCTGEN_FAULTS", 3)) {
  std::vector<std::string> expected;
  {
    Engine plain(script.all_bytes);
    for (const Step& step : script.steps) {
      const auto begin = std::chrono::steady_clock::now();
      expected.push_back(outcome(step, plain));
      if (from_environment("STRUCTGEN_TIMES", 0))
        std::fprintf(stderr, "%-30s %8ld us %s\n", step.name.c_str(),
                     static_cast<long>(std::chrono::duration_cast<std::chrono::microseconds>(
                                           std::chrono::steady_clock::now() - begin)
                                           .count()),
                     expected.back().substr(0, 40).c_str());
    }
    if (from_environment("STRUCTGEN_TIMES", 0)) return;
  }
  int64_t children = 0;
  Engine e(script.all_bytes);
  for (std::size_t at = 0; at < script.steps.size(); ++at) {
    for (const Fault fault : {Fault::kAllocation, Fault::kInterrupt, Fault::kLimit}) {
      // Places grow apart until the call no longer gets as far.
      int wrong = 0;
      double growth = most > 0 ? 1 + 8.0 / static_cast<double>(most) : 1;
      if (const char* only =
              std::getenv("STRUCTGEN_AT")) {  // step,fault,place: in this process, for a debugger
        unsigned long step = 0, kind = 0, place = 0;
        std::sscanf(only, "%lu,%lu,%lu", &step, &kind, &place);
        if (step == at && kind == static_cast<unsigned long>(fault)) {
          fail_once(script, at, fault, static_cast<int64_t>(place), e, expected);
          return;
        }
        continue;
      }
      for (int64_t n = 1; wrong < 3;) {
        const pid_t child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {
          for (int signal : {SIGSEGV, SIGABRT, SIGTERM, SIGALRM, SIGFPE, SIGBUS})
            std::signal(signal, SIG_DFL);
          alarm(120);
          int status = kWrong;
          try {
            status = fail_once(script, at, fault, n, e, expected);
          } catch (...) {
            report(script.steps[at], fault, n, "threw", "something else", "");
          }
          _exit(status);
        }
        ++children;
        int status = 0;
        REQUIRE(waitpid(child, &status, 0) == child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == kNoFailure) break;
        if (status != 0) {
          ++wrong;
          INFO(script.steps[at].name << ", step " << at << ": " << name(fault) << " " << n << ", status "
                                     << status);
          CHECK(status == 0);
        }
        n = std::max(n + 1, static_cast<int64_t>(static_cast<double>(n) * growth));
      }
    }
    REQUIRE(outcome(script.steps[at], e) == expected[at]);
  }
  MESSAGE(children << " children");
}

}  // namespace

TEST_CASE("atomic: objects, keys by pattern, one of many") {
  Script s;
  s.schema(R"({"type":"object","properties":{"a":{"type":"string","pattern":"^[a-f]+x?$","maxLength":9},
    "b":{"type":"boolean"},"d":{"format":"date"}},
    "patternProperties":{"^k[0-9]":{"type":"boolean"},"z$":{"enum":["p","q",7]}},
    "required":["a"],"oneOf":[{"required":["b"]},{"properties":{"a":{"minLength":3}},"maxProperties":1}]})");
  s.matcher(0);
  s.walk(0, {"{", "\"a\":", "\"ab", "cx\"", ",\"b\":"}, "true,\"d\":\"2024-02-29\",\"k1\":tru!");
  s.schema(
      R"({"type":"object","properties":{"a":{"type":"string","pattern":"^[a-f]+x?$"}},"minProperties":2})");
  s.matcher(1);
  s.fill(2);
  check(s);
}

TEST_CASE("atomic: arrays whose items differ, multiples, counts") {
  Script s;
  s.schema(R"({"type":"array","items":{"type":"integer","multipleOf":3},"contains":{"minimum":5},
    "uniqueItems":true,"maxItems":5})");
  s.matcher(0);
  s.walk(0, {"[", "3,", "6"}, ",6,9]");
  check(s);
  Script t;
  t.schema(R"({"type":"array","prefixItems":[{"enum":[1,"x",null]}],"items":{"type":["string","array"]},
    "uniqueItems":true,"minItems":3})");
  t.matcher(0);
  t.walk(0, {"[1,", "\"a", "b\",", "[2"}, ",[1]],\"ab\"");
  check(t);
}

TEST_CASE("atomic: languages of numbers, at every allocation") {
  using Question = RegexId (*)(NumberLanguage&);
  const auto text = [](RegexArena& arena, RegexId r) {
    std::string out;
    for (const char* number : {"0", "-1", "1.5", "1e5", "-2E+07", "10e-1", "0e9", "01", "1.", "e"})
      out += arena.matches(r, number) ? 'y' : 'n';
    return out;
  };
  for (const Question ask : {Question([](NumberLanguage& n) { return n.any(); }),
                             Question([](NumberLanguage& n) { return n.integers(); }),
                             Question([](NumberLanguage& n) { return n.at_least(Decimal{}, true); })}) {
    RegexArena plain;
    NumberLanguage whole(plain, NumberSpelling::kAny, false, NumberLanguage::kUnlimited);
    const std::string expected = text(plain, ask(whole));
    int places = 0;
    for (bool failed = true; failed; ++places) {
      RegexArena arena;
      NumberLanguage numbers(arena, NumberSpelling::kAny, false, NumberLanguage::kUnlimited);
      structgen_tests::fail_allocation(places + 1);
      try {
        ask(numbers);
      } catch (const std::bad_alloc&) {
      }
      failed = structgen_tests::allocation_failed();
      structgen_tests::fail_allocation(0);
      CHECK(text(arena, ask(numbers)) == expected);
    }
    CHECK(places > 10);
  }
}

TEST_CASE("atomic: bounds of the tokens that are needed, at many places") {
  Script s;
  s.schema(R"({"type":"object","properties":{"a":{"type":"string"}},"required":["a"]})");
  s.matcher(0);
  s.accept(0, "{\"a\":\"");
  s.on(0, "tokens needed", [](Matcher& x) {
    const Matcher::Bounds b = x.tokens_needed(true);
    return std::to_string(b.least) + " " + std::to_string(b.enough);
  });
  s.within(0, 5);
  check(s, 200);
}

TEST_CASE("atomic: a schema that refers to itself, within a budget") {
  Script s;
  s.schema(R"({"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"v":{"type":"number"},
    "next":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/n"}]}},"required":["v","next"],
    "additionalProperties":false}}})");
  s.matcher(0, {{}, 60, false});
  s.walk(0, {"{\"v\":", "-1", ".5,", "\"next\":"}, "{\"v\":1,\"nex!");
  check(s);
}

TEST_CASE("atomic: patterns that look around") {
  Script s;
  s.compile([](Compiler& c) {
    return c.regex("(?P<a>(?!foo)[a-z]+(?<!o)) = (?P<b>(?=.*x)[a-y]{2,9}|[0-9]{3}(?![0-4]).*)");
  });
  s.matcher(0);
  s.walk(0, {"ab", "c", " = ", "12"}, "39foo");
  check(s);
}

TEST_CASE("atomic: a grammar with lexemes and captures") {
  Script s;
  s.compile([source = statements()](Compiler& c) { return c.grammar(source, 0, {}); });
  s.matcher(0);
  s.walk(0, {"let ", "ab", " = ", "(12 ", "+ /* a", " */ c", ")"}, "* d; let");
  check(s);
}

TEST_CASE("atomic: limits on tokens") {
  Script s;
  s.compile([source = limited()](Compiler& c) { return c.grammar(source, 0, {}); });
  s.matcher(0);
  for (const char* piece : {"<", "(", "a", "b"}) {
    s.fill(0);
    s.tokens(0, piece, true);
  }
  s.fill(0);
  s.tokens(0, "abc)>", false);
  s.rollback(0, 1);
  s.ask(0);
  s.within(0, 9);
  s.within(0, 4);
  s.fork(0);
  s.renew(0);
  s.batch(1);
  s.tokens(0, "c)", true);
  s.fill(0);
  check(s);
}

TEST_CASE("atomic: a vocabulary that lacks bytes") {
  Script s;
  s.all_bytes = false;
  s.schema(R"({"type":"object","properties":{"a":{"type":"string","minLength":2},"é":{"enum":["é","ab"]}},
    "required":["é"],"additionalProperties":false})");
  s.matcher(0);
  s.walk(0, {"{\"", "a\":\"", "ab", "\","}, "\"é\":\"é\"}x");
  check(s);
}

TEST_CASE("atomic: choices and a request with tokens of its own") {
  Script s;
  s.compile([](Compiler& c) { return c.choice({"abc", "abd", "aaaa12", "foofo", "2024-"}); });
  s.matcher(0, {{5}, 6, true});
  s.fill(0);
  s.accept(0, "ab");
  s.fill(0);
  s.tokens(0, "cx", false);
  s.fork(0);
  s.ask(0);
  s.batch(1);
  check(s);
}

// Kinds of grammars, each with every call once.
TEST_CASE("atomic: schemas of every kind") {
  struct Case {
    const char* schema;
    std::vector<std::string> pieces;
    const char* wrong;
  };
  const Case cases[] = {
      {R"({"type":"array","uniqueItems":true,"contains":{"const":"ab"},"items":{"enum":["a","ab","b"]}})",
       {"[\"b", "\",\""},
       "ab\",\"b\"]"},
      {R"({"type":"array","items":{"enum":["a","ab",1,2]},"uniqueItems":true,"minItems":3})",
       {"[1,", "\"a"},
       "\",1,2]"},
      {R"({"type":"array","contains":{"const":7},"minContains":2,"maxContains":3})", {"[7,"}, "6,7,7,7]"},
      {R"({"allOf":[{"pattern":"^[ab]*a[ab]{2}$"},{"pattern":"b.$"},{"minLength":5}]})", {"\"ab"}, "abb\""},
      {R"({"type":"string","not":{"pattern":"ab"},"format":"hostname"})", {"\"a"}, "c.ab\""},
      {R"({"type":"object","propertyNames":{"pattern":"^k"},"minProperties":2,
        "additionalProperties":{"type":"null"}})",
       {"{\"k1\":", "null,"},
       "\"x\":null}"},
      {R"({"oneOf":[{"properties":{"t":{"const":"a"}},"required":["t"]},{"properties":{"t":{"const":"b"},
        "v":{"type":"integer"}},"required":["t","v"]}],"type":"object"})",
       {"{\"t\":\"", "b\","},
       "\"v\":1,\"t\":1}"},
      {R"({"type":"object","dependentSchemas":{"a":{"required":["b"]}},"unevaluatedProperties":false,
        "properties":{"a":true,"b":{"type":"boolean"}}})",
       {"{\"a\":1"},
       ",\"b\":true,\"c\":1}"},
      {R"({"type":"number","multipleOf":0.3,"minimum":-2,"exclusiveMaximum":9})", {"-"}, "1.21"},
      {R"({"if":{"type":"string"},"then":{"maxLength":2},"else":{"type":"array","items":{"$ref":"#"}}})",
       {"[[", "\"a"},
       "b\"],\"abc\"]"},
      {R"({"anyOf":[{"format":"date-time"},{"format":"uuid"},{"format":"email"}],"type":"string"})",
       {"\"2024-"},
       "13-40\""},
  };
  for (const Case& c : cases)
    for (const bool subset : {false, true}) {
      Script s;
      s.compile([=](Compiler& of) {
        of.set_limits({10'000'000, subset ? 20'000 : 10'000'000});
        return of.json_schema(c.schema, {}, {}, subset);
      });
      s.each_call(c.pieces, c.wrong);
      check(s);
    }
}

TEST_CASE("atomic: patterns and grammars of every kind") {
  for (const char* pattern :
       {"(a|b)*a(a|b){5}", "([ab]{1,4}c?){2,5}", "(?=.*foo)[a-z]{2,6}", "(?P<x>ab|a)(?P<y>b*)"}) {
    Script s;
    s.compile([=](Compiler& c) { return c.regex(pattern, true); });
    s.each_call({"a", "b"}, "bax");
    check(s);
  }
  Script tags;
  tags.compile([source = tagged()](Compiler& c) {
    return c.grammar(source, 0,
                     {{R"({"type":"object","properties":{"a":{"type":"integer"}}})", {}, {}, {}, {}, {}}},
                     true);
  });
  tags.each_call({"ab ", "<t>{\"a"}, "\":1}</t>c<x");
  check(tags);
}

TEST_CASE("atomic: texts with holes") {
  Script s;
  s.compile([](Compiler& c) {
    c.set_limits({10'000'000, 200'000});
    return c.json_schema(R"({"type":"array","items":{"enum":["a","ab","b",1]},"uniqueItems":true})", {}, {});
  });
  s.fills(0, {{Part::kText, "[\"a\",", 0, 0}, {Part::kAny, "", 0, 0}, {Part::kText, ",1]", 0, 0}});
  s.middle(0, "[\"a", "\"]");
  s.matcher(1);
  s.fill(0);
  s.accept(0, "\",1");
  s.fill(0);
  s.validate(0, ",\"ab");
  s.tokens(0, ",\"a", true);
  s.rollback(0, 1);
  s.ask(0);
  s.within(0, 9);
  s.fork(0);
  s.batch(2);
  check(s);
}
