// Types of indices. Every index of an arena has a type of its own, so that a StateId is never taken for
// a RegexId.
//
// In and out: 32-bit integers. Cost: none (trivially copyable).
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace structgen {

// A number that has a type of its own (Tag). The meaning of 0 depends on the type.
template <class Tag>
struct Id {
  uint32_t v = 0;
  constexpr Id() = default;
  constexpr explicit Id(uint32_t value) : v(value) {}
  friend constexpr auto operator<=>(const Id&, const Id&) = default;
};

// The number of a node of the regex algebra (regex/regex.h).
using RegexId = Id<struct RegexTag>;
using RuleId = Id<struct RuleTag>;    // a nonterminal
using StackId = Id<struct StackTag>;  // a hash-consed set of stacks
using StateId = Id<struct StateTag>;  // a parse state
// The number of a text that is being captured; 0 means that nothing is captured.
using CaptureId = Id<struct CaptureTag>;
using ValueId = Id<struct ValueTag>;  // a formula of any JSON value
using TypedId = Id<struct TypedTag>;  // a formula of the values of one kind
// The number of a schema's position in its document (Lowering::location).
using LocationId = Id<struct LocationTag>;

using TokenId = int32_t;  // a language-model token

}  // namespace structgen

template <class Tag>
struct std::hash<structgen::Id<Tag>> {
  std::size_t operator()(structgen::Id<Tag> id) const noexcept { return id.v * 0x9E3779B97F4A7C15ull; }
};
