#include "engine/compile.h"

#include "base/error.h"
#include "grammar/table.h"
#include "regex/syntax.h"

namespace structgen {

Compiler::Compiler(std::shared_ptr<const Vocabulary> vocabulary, bool cache, std::size_t cache_bytes)
    : vocabulary_(std::move(vocabulary)), cache_(cache), cache_bytes_(cache_bytes) {}

std::shared_ptr<World> Compiler::world() {
  std::lock_guard hold(lock_);
  if (world_) {
    std::lock_guard inner(world_->lock);
    world_->publish();
    if (world_->byte_size() <= cache_bytes_ / 2) return world_;
    std::erase_if(worlds_, [](const std::weak_ptr<World>& w) { return w.expired(); });
    worlds_.push_back(world_);
  }
  world_ = std::make_shared<World>(vocabulary_, cache_bytes_, cache_);
  return world_;
}

std::size_t Compiler::byte_size() {
  std::lock_guard hold(lock_);
  std::size_t sum = world_ ? world_->total() : 0;
  for (const std::weak_ptr<World>& w : worlds_)
    if (const auto old = w.lock()) sum += old->total();
  return sum;
}

std::shared_ptr<Grammar> Compiler::json_schema(std::string_view schema, const SchemaSet::Documents& registry,
                                               const JsonOptions& options) {
  auto schemas = std::make_unique<SchemaSet>(schema, registry, options.schema);
  const SchemaSet* report_of = schemas.get();
  const std::shared_ptr<World> w = world();
  std::lock_guard hold(w->lock);
  auto productions = std::make_unique<JsonProductions>(w->regexes, std::move(schemas), options.layout, options.order,
                                                       options.canonical_numbers);
  const RuleId root = productions->root();
  return std::make_shared<Grammar>(w, std::move(productions), root, report_of);
}

std::shared_ptr<Grammar> Compiler::terminal(World& world, std::shared_ptr<World> keep, RegexId r) {
  if (world.regexes.is_empty(r)) throw Error(ErrorKind::kGrammar, "no text matches");
  std::vector<Alternatives> rules(1);
  rules[0].add({Symbol::terminal(r)});
  return std::make_shared<Grammar>(std::move(keep), std::make_unique<TableProductions>(std::move(rules)), RuleId{0}, nullptr);
}

std::shared_ptr<Grammar> Compiler::regex(std::string_view pattern) {
  const Pattern p = parse_pattern(pattern, Flavor::kPython);
  const std::shared_ptr<World> w = world();
  std::lock_guard hold(w->lock);
  return terminal(*w, w, lower_utf8(w->regexes, p, Match::kFull));
}

std::shared_ptr<Grammar> Compiler::choice(const std::vector<std::string>& texts) {
  const std::shared_ptr<World> w = world();
  std::lock_guard hold(w->lock);
  std::vector<RegexId> parts;
  for (const std::string& t : texts) parts.push_back(w->regexes.literal(t));
  return terminal(*w, w, w->regexes.alt(std::span<const RegexId>(parts)));
}

}  // namespace structgen
