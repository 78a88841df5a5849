#include "holes/fact_base.h"

#include <utility>

namespace structgen {

FactBase::FactBase(RegexArena& regexes, Productions& productions, Path path, Facts::Aim aim,
                   bool unrestricted, std::size_t most, Parser* reader)
    : regexes_(regexes),
      alive_(regexes_, productions, stacks_),
      path_(std::move(path)),
      places_(path_, alive_, unrestricted),
      productions_(productions),
      aim_(aim),
      most_(most),
      given_(reader) {
  begin_anew();
}

void FactBase::begin_anew() {
  tried_ = tried_ || (facts_ && facts_->tried());
  facts_.emplace(regexes_, productions_, alive_, places_, path_, aim_);
}

bool FactBase::reads(const Alternatives& all, std::string_view text) {
  if (!given_ && (!reader_ || reader_->byte_size() > most_))
    reader_ = std::make_unique<Parser>(regexes_, productions_);
  Parser& parser = given_ ? *given_ : *reader_;
  for (const std::span<const Symbol> symbols : all.each()) {
    const StateId s = parser.read(parser.before(symbols), text);
    if (s != Parser::dead() && parser.state(s).accepting) return true;
  }
  return false;
}

// The text with varied items is tried first. Later the parser compares the suffix's items with those of this
// text, and items that differ are more likely to pass.
std::unique_ptr<const FactBase::Proof> FactBase::find_proof(Facts::Head head, PlaceId from, PlaceId to,
                                                            const Alternatives& all) {
  const bool first = aim_ == Facts::Aim::kQuotient;
  for (const bool vary : {first, !first}) {
    Proof out;
    if (facts_->witness(head, from, to, vary, out.text, &out.items) && reads(all, out.text))
      return std::make_unique<const Proof>(std::move(out));
  }
  return nullptr;
}

}  // namespace structgen
