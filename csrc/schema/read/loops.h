// References that lead back to their own schema without a step into a value.
//
// In: the tree of schemas and the references between them, as numbers. Out: the references that lie on such a
// loop. Cost: linear. Only the outermost schemas of a value and those with references are nodes where nothing
// suggests a loop, which is nearly always.
//
// `{"$defs": {"x": {"anyOf": [{"$ref": "#/$defs/x"}, {"type": "null"}]}}}` refers a value back to the
// same schema, so no validator comes to an end with it. Loops are found when the schema is read. A
// search for values would meet them only where a text needs them, in mid-text.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace structgen {

constexpr uint32_t kNotInPlace = 0xFFFFFFFFu;

// `above[v]` is the schema that applies schema v to its own value (v stands in its `allOf`, say), or
// kNotInPlace where v applies to a member, an item, or a value elsewhere; above[v] < v. `references`
// are pairs of schemas: one that holds a reference, and its target. The result holds indices of
// `references`, in order.
std::vector<uint32_t> looping_references(std::span<const uint32_t> above,
                                         std::span<const std::pair<uint32_t, uint32_t>> references);

}  // namespace structgen
