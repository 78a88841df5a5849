// How a text becomes a grammar, and how long grammars and worlds are kept; compile.h has the interface.
//
// The problem. A compile works in a world: the lock, the regexes and the masks that its grammars share
// (mask/world.h). Two threads that compile at once need two worlds, and nothing that one world has found out
// helps the other world. Worlds grow with every grammar, so worlds have to be replaced without harm to the
// grammars that are in use.
//
// The idea. enter() picks a world: the first world that no thread is in; otherwise a new world while there
// are fewer than kWorlds; otherwise the next world in turn. Two options change the language of every grammar
// in a world, so worlds are kept apart by them (current_): strings without needless escapes, and omitting
// what is too much to tell. Example, a schema:
//
//     SchemaSet          reads the JSON and every `$ref`, without a world
//     enter()            a world and its lock
//     JsonProductions    decides whether some value exists, and names the rule of the root
//     Grammar            makes the first parse state; all others are made when a matcher asks
//
// A grammar with schemas in it takes the same steps for each schema; lower() and analyse() (grammar/) turn
// its own rules into productions, and ComposedProductions numbers the rules of all parts together.
//
// Keeping. A world that exceeds its share of the memory takes no more grammars, and is freed together with
// its last grammar. keep() drops the grammars that were used longest ago, until the bytes of all worlds fit.
// reap() frees the dropped grammars on another thread (reaper.h), because freeing takes tens of milliseconds.
//
// Invariants.
// - No thread waits for a world while it holds the compiler's lock.
// - A grammar holds its world, so a world lives as long as some grammar of it.
// - A world whose lock was lost in a fork takes no more grammars (base/fork.h).
//
// Rejected. One world whose lock lets several threads read at once: nearly every call makes regexes or
// states, so nearly every call would be a writer.
#include "engine/compile.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <string_view>
#include <thread>

#include "base/error.h"
#include "base/work.h"
#include "engine/compose.h"
#include "engine/reaper.h"
#include "grammar/lower.h"
#include "grammar/table.h"
#include "holes/intersection.h"
#include "regex/choice.h"
#include "regex/syntax.h"

namespace structgen {

JsonLayout layout_of(std::string_view whitespace) {
  static constexpr std::pair<std::string_view, JsonLayout::Mode> kModes[] = {
      {"flexible", JsonLayout::kFlexible},
      {"compact", JsonLayout::kCompact},
      {"one-blank", JsonLayout::kOneBlank},
      {"spaced", JsonLayout::kSpaced},
      {"pretty", JsonLayout::kPretty}};
  JsonLayout out;
  const auto known =
      std::ranges::find(kModes, whitespace, &std::pair<std::string_view, JsonLayout::Mode>::first);
  out.mode = known == std::end(kModes) ? JsonLayout::kPattern : known->second;
  if (out.mode == JsonLayout::kPattern) out.pattern = whitespace;
  return out;
}

Draft draft_of(int64_t number) {
  switch (number) {
    case 4: return Draft::k4;
    case 6: return Draft::k6;
    case 7: return Draft::k7;
    case 2019: return Draft::k2019;
    case 2020: return Draft::k2020;
    default: throw Error(ErrorKind::kValue, "draft is 4, 6, 7, 2019 or 2020, not " + std::to_string(number));
  }
}

Compiler::Compiler(std::shared_ptr<const Vocabulary> vocabulary, bool cache, std::size_t cache_bytes,
                   WorkLimits limits)
    : vocabulary_(std::move(vocabulary)), cache_(cache), policy_{cache_bytes}, limits_(limits) {}

namespace {
// The most worlds of one kind. More worlds than parallel compiles would only repeat work, because each world
// finds everything out anew.
const std::size_t kWorlds = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 8);
}  // namespace

// Enters the first world that is free. If all worlds are busy, a new world is made while there are fewer than
// kWorlds. Otherwise this thread waits for the next world in turn, without the compiler's lock.
Compiler::Entered Compiler::enter(bool plain_strings, bool subset) {
  std::unique_lock hold(lock_);
  auto& [open, turn] = current_[2 * subset + plain_strings];
  const auto another = [&] { return World::make(vocabulary_, policy_.bytes, cache_, plain_strings, subset); };
  for (std::shared_ptr<World>& w : open) {
    // A world that is too large takes no more grammars, and a new world replaces it. The old world is freed
    // with its last grammar.
    std::size_t worlds = 0;
    for (const Worlds& all : current_) worlds += all.open.size();
    if (w->lock.lost()) w = another();
    if (w->published.load(std::memory_order_relaxed) > policy_.world(worlds)) {
      std::erase_if(worlds_, [](const std::weak_ptr<World>& old) { return old.expired(); });
      worlds_.push_back(w);
      w = another();
    }
    std::unique_lock inside(w->lock, std::try_to_lock);
    if (inside) return {w, std::move(inside)};
  }
  std::shared_ptr<World> w;
  if (open.size() < kWorlds) {
    w = open.emplace_back(another());
  } else {
    w = open[turn++ % open.size()];
    // Waiting for the world may take long, so the compiler's lock is released. Other threads may then compile
    // in another world.
    hold.unlock();
  }
  std::unique_lock inside(w->lock);
  return {std::move(w), std::move(inside)};
}

std::size_t Compiler::byte_size() {
  std::lock_guard hold(lock_);
  return total();
}

// Returns the bytes of all worlds. The caller holds the compiler's lock.
std::size_t Compiler::total() const {
  std::size_t sum = 0;
  for (const Worlds& worlds : current_)
    for (const std::shared_ptr<World>& w : worlds.open) sum += w->total();
  for (const std::weak_ptr<World>& w : worlds_)
    if (const auto old = w.lock()) sum += old->total();
  return sum;
}

// Returns how many bytes are freed by dropping the grammar. These are the bytes of the grammar and, if its
// world takes no more grammars and no other kept grammar uses this world, the bytes of the world. The caller
// holds the compiler's lock.
std::size_t Compiler::retire(Grammar& grammar) {
  std::size_t bytes = grammar.published();
  World& world = grammar.world();
  const Worlds& alike =
      current_[2 * world.regexes.effort().omits() + (&world.regexes.spelling() == &kPlainJson)];
  const bool open = std::ranges::any_of(alike.open, [&](const auto& w) { return w.get() == &world; });
  if (grammar.retire() == 0 && !open) bytes += world.published.load(std::memory_order_relaxed);
  return bytes;
}

Compiler::Grammars Compiler::keep(std::shared_ptr<Grammar> grammar) {
  std::lock_guard hold(lock_);
  recent_.add(std::move(grammar));
  Grammars gone;
  const auto drop_oldest = [&] {
    gone.push_back(recent_.oldest());
    recent_.remove(*gone.back());
    return retire(*gone.back());
  };
  while (recent_.size() > CachePolicy::kGrammars) drop_oldest();
  // Freeing grammars takes tens of milliseconds, and total() counts their bytes until then. While grammars
  // are being freed, no further grammar is dropped.
  std::size_t bytes = Reaper::get().pending() == 0 ? total() : 0;
  if (bytes <= policy_.bytes) return gone;
  while (recent_.size() > 1 && bytes > policy_.kept()) bytes -= std::min(bytes, drop_oldest());
  return gone;
}

bool Compiler::found(Grammar& grammar) {
  // Declared before the lock, so that the grammar is freed after the lock is released.
  std::shared_ptr<Grammar> last;
  std::lock_guard hold(lock_);
  if (!grammar.is_full() && !grammar.world().lock.lost()) {
    recent_.touch(grammar);
    return true;
  }
  last = grammar.shared_from_this();
  recent_.remove(grammar);
  return false;
}

void Compiler::reap(Grammars gone) {
  if (!gone.empty()) Reaper::get().take({std::move_iterator(gone.begin()), std::move_iterator(gone.end())});
}

std::size_t Compiler::retiring() const { return Reaper::get().pending(); }

// The schema set is parsed before a world is entered, because that needs no world.
std::shared_ptr<Grammar> Compiler::json_schema(std::string_view schema, const SchemaSet::Documents& registry,
                                               const JsonOptions& options, bool subset) {
  const ForkSection whole;
  const WorkScope scope(Task::kCompile, limits_.compile);
  auto schemas = std::make_unique<SchemaSet>(schema, registry, options.schema);
  const SchemaSet* report_of = schemas.get();
  const auto [w, hold] = enter(options.plain_strings, subset);
  auto productions = std::make_unique<JsonProductions>(w->regexes, std::move(schemas), options.layout,
                                                       options.order, options.numbers);
  const RuleId root = productions->root();
  auto grammar = std::make_shared<Grammar>(w, std::move(productions), root,
                                           std::vector<const SchemaSet*>{report_of}, limits_.mask);
  check_start(*grammar);
  return grammar;
}

// Throws if everything that a partial grammar could begin with was omitted.
void Compiler::check_start(Grammar& grammar) {
  if (!grammar.omits()) return;
  Parser& parser = grammar.epoch()->parser;
  if (!parser.state(grammar.start()).accepting && parser.live(grammar.start()).none())
    too_complex("everything in this schema is too large to decide exactly; nothing is left to allow");
}

std::shared_ptr<Grammar> Compiler::terminal(std::shared_ptr<World> world, RegexId r) {
  if (world->regexes.is_empty(r)) throw Error(ErrorKind::kGrammar, "no text matches");
  std::vector<Alternatives> rules(1);
  rules[0].add({Symbol::terminal(r)});
  return std::make_shared<Grammar>(std::move(world), std::make_unique<TableProductions>(std::move(rules)),
                                   RuleId{0}, std::vector<const SchemaSet*>{}, limits_.mask);
}

std::shared_ptr<Grammar> Compiler::regex(std::string_view pattern, bool subset) {
  const ForkSection whole;
  const WorkScope scope(Task::kCompile, limits_.compile);
  Pattern p = parse_pattern(pattern, Flavor::kPython, true);
  const auto [w, hold] = enter(false, subset);
  std::shared_ptr<Grammar> grammar = terminal(w, lower(w->regexes, p, Match::kFull));
  if (!p.groups.empty()) grammar->set_groups(std::move(p));
  return grammar;
}

// Returns the layouts of all schemas. If JSON stands inside a markup, the marks around values are nodes of
// the grammar; one pass turns all nodes into regexes.
static std::vector<JsonLayout> layouts(RegexArena& regexes, const GrammarSource& source,
                                       const std::vector<JsonPart>& parts) {
  std::vector<uint32_t> nodes;
  for (const JsonPart& part : parts) {
    if (!part.marks) continue;
    ElementMarks<uint32_t> marks = *part.marks;
    marks.for_each([&](uint32_t node) { nodes.push_back(node); });
  }
  const std::vector<RegexId> lowered = lower_regular(regexes, source, nodes);
  auto next = lowered.begin();
  std::vector<JsonLayout> out;
  for (const JsonPart& part : parts) {
    out.push_back(part.options.layout);
    if (!part.marks) continue;
    auto elements = std::make_shared<ElementLayout>();
    elements->marks.for_each([&](RegexId& mark) { mark = *next++; });
    elements->text = part.text;
    out.back().elements = std::move(elements);
  }
  return out;
}

// Returns the regexes of JsonPart::condition, by the index of the schema.
static std::map<std::size_t, RegexId> conditions(RegexArena& regexes, const GrammarSource& source,
                                                 const std::vector<JsonPart>& parts) {
  std::vector<uint32_t> nodes;
  for (const JsonPart& part : parts)
    if (part.condition) nodes.push_back(*part.condition);
  std::map<std::size_t, RegexId> out;
  if (nodes.empty()) return out;
  const std::vector<RegexId> lowered = lower_regular(regexes, source, nodes);
  auto next = lowered.begin();
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i].condition) out[i] = *next++;
  return out;
}

// Compiles a grammar: checks the named tokens, parses the schemas, lowers the rules to a context-free
// grammar, numbers the rules of all parts together, and checks that limits on tokens can be kept.
std::shared_ptr<Grammar> Compiler::grammar(GrammarSource source, uint32_t start,
                                           const std::vector<JsonPart>& schemas, bool subset) {
  const ForkSection whole;
  const WorkScope scope(Task::kCompile, limits_.compile);
  for (GrammarNode& n : source.nodes)
    for (TokenId t : n.ids) {
      if (vocabulary_->is_eos(t))
        throw Error(ErrorKind::kGrammar,
                    "token " + std::to_string(t) + " ends the text; a grammar cannot contain it");
      if (vocabulary_->bytes(t).empty())
        throw Error(ErrorKind::kGrammar,
                    "token " + std::to_string(t) + " is neither text nor a special token");
      // A token named by its id is read as its bytes. A special token is read as its path in the trie.
      n.units.emplace_back(vocabulary_->bytes(t));
    }
  std::vector<std::unique_ptr<SchemaSet>> sets;
  for (const JsonPart& p : schemas)
    sets.push_back(std::make_unique<SchemaSet>(p.schema, p.registry, p.options.schema));
  // All parts share one world, and a world has one spelling of strings. Strings are plain if every schema
  // asks for it. Lexemes inside a string accept both spellings.
  const bool strings = !schemas.empty() || std::ranges::any_of(source.lexemes, &Lexeme::inside);
  const bool plain =
      strings && std::ranges::all_of(schemas, [](const JsonPart& p) { return p.options.plain_strings; });
  const auto [w, hold] = enter(plain, subset);
  Lowered lowered = lower(w->regexes, source, start);
  analyse(lowered.cfg, w->regexes);
  auto rules =
      std::make_unique<CfgProductions>(w->regexes, std::move(lowered.cfg), std::move(lowered.lexemes));
  std::vector<std::string> warnings = rules->warnings();
  std::vector<CfgLimit> limits = rules->limits();
  const bool lexed = rules->traits().context_free;
  std::vector<const SchemaSet*> report_of;
  auto all = std::make_unique<ComposedProductions>(std::move(rules), static_cast<uint32_t>(schemas.size()));
  if (source.edged) {
    if (!source.captures.empty())
      throw Error(ErrorKind::kGrammar, "captures are not found beside formats of ordinary tokens");
    all->set_edged();
  }
  std::vector<JsonLayout> written = layouts(w->regexes, source, schemas);
  const std::map<std::size_t, RegexId> conditioned = conditions(w->regexes, source, schemas);
  for (std::size_t i = 0; i < schemas.size(); ++i) {
    const JsonOptions& o = schemas[i].options;
    report_of.push_back(sets[i].get());
    auto part = std::make_unique<JsonProductions>(w->regexes, std::move(sets[i]), std::move(written[i]),
                                                  o.order, o.numbers);
    if (const auto condition = conditioned.find(i); condition != conditioned.end()) {
      const std::shared_ptr<JsonProductions> base = std::move(part);
      auto values =
          std::make_unique<Intersection>(w->regexes, *base, base->root(), false, condition->second, base);
      if (values->possible() == Verdict::kNo)
        throw Error(ErrorKind::kUnsatisfiableInfill, "no text of the grammar meets the condition")
            .in("condition");
      const RuleId root = values->rule();
      all->add(std::move(values), root);
      continue;
    }
    const RuleId root = part->root();
    all->add(std::move(part), root);
  }
  const RuleId root = all->root();
  for (CfgLimit& limit : limits) limit.rule = all->rule(limit.rule).v;
  auto grammar = std::make_shared<Grammar>(w, std::move(all), root, std::move(report_of), limits_.mask,
                                           std::move(warnings), std::move(source.captures), !limits.empty());
  if (grammar->start() == Parser::dead()) throw Error(ErrorKind::kGrammar, "no text matches this grammar");
  if (limits.empty()) return grammar;
  Epoch& epoch = *grammar->epoch();
  for (const CfgLimit& limit : limits) {
    std::vector<Symbol> fresh;
    // The check begins at the limited rule, in the context that the lexeme in front of this rule gives.
    if (lexed) fresh.push_back(Symbol::after(limit.context));
    fresh.push_back(Symbol::rule(RuleId{limit.rule}));
    epoch.budgets.limits->check(epoch.parser.before(fresh), limit.name, limit.tokens, limit.place);
  }
  if (epoch.budgets.limits->way(grammar->start()).tokens == Limits::kNever)
    throw Error(ErrorKind::kGrammar, "no text that keeps to the limits on tokens was found")
        .at(limits[0].place);
  return grammar;
}

std::shared_ptr<Grammar> Compiler::choice(const std::vector<std::string>& texts, bool subset) {
  const ForkSection whole;
  const WorkScope scope(Task::kCompile, limits_.compile);
  const auto [w, hold] = enter(false, subset);
  return terminal(w, one_of(w->regexes, texts));
}

}  // namespace structgen
