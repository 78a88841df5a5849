// Index types. Every arena index has its own type, so that a StateId never meets a RegexId by mistake.
//
// In/out: 32-bit integers. Cost: none (trivially copyable).
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace structgen {

template <class Tag>
struct Id {
  uint32_t v = 0;
  constexpr Id() = default;
  constexpr explicit Id(uint32_t value) : v(value) {}
  friend constexpr auto operator<=>(const Id&, const Id&) = default;
};

using RegexId = Id<struct RegexTag>;        // a node of the hash-consed regex algebra
using RuleId = Id<struct RuleTag>;          // a nonterminal
using StackId = Id<struct StackTag>;        // a hash-consed set of stacks
using StateId = Id<struct StateTag>;        // a parse state
using CaptureId = Id<struct CaptureTag>;    // text captured so far; 0 = not capturing
using ValueId = Id<struct ValueTag>;        // a formula of any JSON value
using TypedId = Id<struct TypedTag>;        // a formula of the values of one kind
using LocationId = Id<struct LocationTag>;  // where a schema stands (Lowering::location)

using TokenId = int32_t;  // a language-model token

}  // namespace structgen

template <class Tag>
struct std::hash<structgen::Id<Tag>> {
  std::size_t operator()(structgen::Id<Tag> id) const noexcept { return id.v * 0x9E3779B97F4A7C15ull; }
};
