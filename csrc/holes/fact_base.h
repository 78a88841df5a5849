// The facts over one path, the objects that they are made from, and texts that prove facts.
//
// In: productions, a path (holes/path.h), and what is asked (Facts::Aim). Out: facts, and for two places of a
// head a text between them that a parser has read. Cost: the facts; for each proof a parser reads at most two
// texts.
//
// Facts assume that captured texts differ, so the text of a fact's derivation (its witness) may be no text of
// the grammar. Two witnesses are tried, with and without `vary` (holes/derivations.h). For arrays of distinct
// items the witness without `vary` may be `[0,0]`, which no parser reads, and the witness with `vary` may be
// `[0,1]`.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holes/facts.h"
#include "holes/path.h"
#include "holes/places.h"
#include "parse/alive.h"
#include "parse/productions.h"
#include "parse/stack.h"
#include "parse/state.h"

namespace structgen {

class FactBase {
 public:
  // `unrestricted` goes to Places (holes/places.h). `reader` is the parser that reads proofs. If `reader` is
  // null, this object makes a parser of its own, and replaces it when its states take more than `most` bytes.
  // All arguments must live longer than this object.
  FactBase(RegexArena& regexes, Productions& productions, Path path, Facts::Aim aim, bool unrestricted,
           std::size_t most, Parser* reader = nullptr);
  // Drops all facts. An exception leaves facts half made, so a caller that catches one must call this.
  void begin_anew();
  // Tells whether readers were ever told possible captured texts one by one (Facts::tried()), also by facts
  // that were dropped since.
  bool tried() const { return tried_ || facts_->tried(); }
  // A text that leads from one place to another. A parser has read this text, so the proof rests on no
  // assumption.
  struct Proof {
    std::string text;
    // The texts of those compared items that lie in no other item.
    std::vector<std::string> items;
  };
  // Returns a proof that a text of `head` leads from `from` to `to`, or null. The parser reads the text with
  // the alternatives `all` as its grammar.
  std::unique_ptr<const Proof> find_proof(Facts::Head head, PlaceId from, PlaceId to,
                                          const Alternatives& all);
  bool reads(const Alternatives& all, std::string_view text);
  Facts& facts() { return *facts_; }
  Places& places() { return places_; }
  const Path& path() const { return path_; }
  std::size_t byte_size() const { return facts_->byte_size() + (reader_ ? reader_->byte_size() : 0); }

 protected:
  RegexArena& regexes_;
  // Alive needs an arena of stacks. No stack is added here, because facts ask Alive only about symbols.
  StackArena stacks_;
  Alive alive_;
  Path path_;
  Places places_;
  std::optional<Facts> facts_;

 private:
  Productions& productions_;
  const Facts::Aim aim_;
  const std::size_t most_;
  Parser* const given_;
  std::unique_ptr<Parser> reader_;
  bool tried_ = false;
};

}  // namespace structgen
