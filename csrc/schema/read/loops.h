// References that lead back to their own schema without a step into a value.
//
// In: the tree of schemas and the references between them, as numbers. Out: the references that lie on such a
// loop. Cost: linear. A first search has only the outermost schema of each value as a node, and nearly always
// finds that there is no loop.
//
// `{"$defs": {"x": {"anyOf": [{"$ref": "#/$defs/x"}, {"type": "null"}]}}}` leads from a schema back to the
// same schema with the same value, so no validator terminates. Loops are found when the schema is read. A
// search for values would find a loop only when a text needs the schema, in mid-text.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace structgen {

constexpr uint32_t kNotInPlace = 0xFFFFFFFFu;

// Returns the indices of the references that lie on a loop, in order. above[v] describes schema v: if another
// schema applies v to its own value, as by `allOf`, it is that schema, whose number is smaller; if v is about
// a member, an item or another value, it is kNotInPlace. A reference is a pair: the schema that holds it, and
// its target.
std::vector<uint32_t> looping_references(std::span<const uint32_t> above,
                                         std::span<const std::pair<uint32_t, uint32_t>> references);

}  // namespace structgen
