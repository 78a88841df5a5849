#include "engine/canvas.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/fork.h"
#include "base/told.h"
#include "base/undo.h"
#include "base/work.h"
#include "engine/holes.h"

namespace structgen {

namespace {
// A canvas has at most kMostSlots slots. Reading a byte of the prefix costs kReadPrefixByte units of work.
constexpr std::size_t kMostSlots = 1u << 14;
constexpr int64_t kReadPrefixByte = 200;

// Returns the clouds that the grammar keeps. If these clouds take too much memory, makes and keeps new
// clouds. If another thread was using the clouds at a fork, they may be half changed in the child, so the
// child never frees them.
std::shared_ptr<Clouds> clouds_of(Grammar& g) {
  std::shared_ptr<Clouds>& kept = g.clouds();
  if (kept && kept->byte_size() < g.world().policy.canvases()) return kept;
  World* const world = &g.world();
  kept = std::shared_ptr<Clouds>(
      new Clouds(world->regexes, g.productions(), g.vocabulary(), world->policy.strides()),
      [world](Clouds* c) {
        if (!world->lock.lost()) delete c;
      });
  return kept;
}
}  // namespace

GrammarCanvas::GrammarCanvas(std::shared_ptr<Grammar> grammar, std::size_t slots, std::string_view prefix,
                             bool open, TokenId pad)
    : grammar_(without_range(grammar)), prefix_(prefix), open_(open), pad_(pad) {
  if (slots > kMostSlots)
    throw Error(ErrorKind::kValue, "a canvas has at most " + std::to_string(kMostSlots) + " slots, not " +
                                       std::to_string(slots));
  if (pad != Canvas::kMasked) {
    checked_token(pad);
    const Vocabulary& v = grammar_->vocabulary();
    if (!v.is_eos(pad) && !v.is_special(pad) && !v.bytes(pad).empty())
      throw Error(ErrorKind::kValue, "the padding token " + std::to_string(pad) +
                                         " is text; padding is a special token or one that ends the text");
  }
  std::lock_guard hold(grammar_->world().lock);
  if (grammar_->limited())
    throw Error(ErrorKind::kGrammar, "a grammar that limits tokens (max_tokens) has no canvas");
  if (grammar_->epoch()->parser.edged())
    throw Error(ErrorKind::kGrammar,
                "a grammar that asks for ordinary tokens, whatever their text, has no canvas");
  begin(slots);
}

void GrammarCanvas::begin(std::size_t slots) {
  const GrammarWork scope(
      *grammar_, nullptr, Task::kHoles,
      std::min(Meter::kEndless,
               grammar_->mask_work() + kReadPrefixByte * static_cast<int64_t>(prefix_.size())));
  const std::shared_ptr<Clouds> clouds = clouds_of(*grammar_);
  Parser& parser = clouds->parser();
  StateId s = parser.start(grammar_->start_rule());
  for (std::size_t i = 0; i < prefix_.size(); ++i) {
    const uint8_t b = static_cast<uint8_t>(prefix_[i]);
    s = b >= kEdge ? Parser::dead() : parser.step(s, b);
    if (s == Parser::dead())
      throw Error(ErrorKind::kUnsatisfiableInfill, "no text of the grammar begins with the prefix")
          .at(static_cast<int64_t>(i))
          .in("prefix");
  }
  canvas_ = std::make_unique<Canvas>(clouds, grammar_->vocabulary(), s, slots, open_, pad_);
}

bool GrammarCanvas::outgrown() const {
  return canvas_->clouds().byte_size() >= grammar_->world().policy.canvases();
}

// If the clouds of the canvas take more than their share of memory, replaces them by new ones. The tokens in
// the slots stay.
void GrammarCanvas::renew() {
  if (!outgrown()) return;
  const std::unique_ptr<Canvas> old = std::move(canvas_);
  Undo back([&] { canvas_ = std::make_unique<Canvas>(*old); });
  begin(old->size());
  back.keep();
  for (std::size_t i = 0; i < old->size(); ++i)
    if (old->slots()[i] != Canvas::kMasked) canvas_->put(i, old->slots()[i]);
}

GrammarCanvas::GrammarCanvas(const GrammarCanvas& o)
    : grammar_(o.grammar_),
      prefix_(o.prefix_),
      open_(o.open_),
      pad_(o.pad_),
      canvas_(std::make_unique<Canvas>(*o.canvas_)),
      asked_(0),
      unknown_(0) {}

GrammarCanvas::~GrammarCanvas() {
  if (grammar_->world().lock.lost()) static_cast<void>(canvas_.release());
}

std::size_t GrammarCanvas::checked(int64_t slot) const {
  const int64_t n = static_cast<int64_t>(canvas_->size());
  if (slot < 0 || slot >= n)
    throw Error(ErrorKind::kValue, "slot " + std::to_string(slot) + " of a canvas of " + std::to_string(n) +
                                       " slots; the first is slot 0");
  return static_cast<std::size_t>(slot);
}

void GrammarCanvas::checked_token(TokenId t) const {
  if (t < 0 || static_cast<uint32_t>(t) >= grammar_->vocabulary().size())
    throw Error(ErrorKind::kValue, "token " + std::to_string(t) + " is outside the vocabulary of " +
                                       std::to_string(grammar_->vocabulary().size()) + " ids");
}

// Returns f(). If f() runs out of work, or out of memory because of clouds or automata, it returns `unknown`,
// and the next question begins with other clouds.
template <class T, class F>
T GrammarCanvas::limited(T unknown, F&& f) {
  std::lock_guard hold(grammar_->world().lock);
  const auto all = [&] {
    renew();
    const GrammarWork scope(*grammar_, nullptr, Task::kHoles, grammar_->mask_work());
    return f();
  };
  return structgen::told(all,
                         [&](const Error& e) {
                           const World& world = grammar_->world();
                           return e.kind() == ErrorKind::kBudgetExceeded &&
                                  (outgrown() || world.byte_size() > world.policy.renewed());
                         })
      .value_or(unknown);
}

// Returns the verdict f(). For a partial grammar the answer is "not known" in place of "no", because a text
// that was omitted may be a filling.
template <class F>
Verdict GrammarCanvas::told(F&& f) {
  const Verdict out = limited(Verdict::kUnknown, f);
  return out == Verdict::kNo && grammar_->partial() ? Verdict::kUnknown : out;
}

Verdict GrammarCanvas::possible() {
  return told([&] { return canvas_->possible(); });
}

Verdict GrammarCanvas::allows(int64_t slot, TokenId t) {
  const std::size_t i = checked(slot);
  checked_token(t);
  const Verdict out = told([&] { return canvas_->allows(i, t); });
  ++asked_;
  unknown_ += out == Verdict::kUnknown;
  return out;
}

// `force` sets the token whatever the verdict. The model may have written the token already.
Verdict GrammarCanvas::set(int64_t slot, TokenId t, bool force) {
  const std::size_t i = checked(slot);
  checked_token(t);
  const Verdict out = told([&] { return canvas_->set(i, t); });
  ++asked_;
  unknown_ += out == Verdict::kUnknown;
  if (out != Verdict::kYes && force) {
    std::lock_guard hold(grammar_->world().lock);
    canvas_->put(i, t);
  }
  return out;
}

void GrammarCanvas::clear(int64_t slot) {
  const std::size_t i = checked(slot);
  std::lock_guard hold(grammar_->world().lock);
  canvas_->clear(i);
}

bool GrammarCanvas::fill_row(int64_t slot, uint32_t* row) {
  const std::size_t i = checked(slot);
  // If work or memory runs out, tokens may be missing in the row, but none of its tokens is wrong.
  return limited(false, [&] { return canvas_->fill_row(i, row); }) && !grammar_->partial();
}

Verdict GrammarCanvas::complete(std::vector<TokenId>& out) {
  return told([&] { return canvas_->complete(out); });
}

}  // namespace structgen
