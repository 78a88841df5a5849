// Canvas: slots of tokens that are filled in any order, for structgen/canvas.py.
//
// In: slots and tokens. Out: 1, 0 or -1 for yes, no, not known. Cost: a call releases the GIL. A canvas
// belongs to one thread at a time; a second thread is refused.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "bind/released.h"
#include "bind/rows.h"
#include "engine/canvas.h"
#include "engine/sole.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace structgen;

namespace {

using BoundCanvas = Sole<GrammarCanvas>;

template <class F>
auto in_use(BoundCanvas& c, F&& f) {
  const Use use(c, "canvas");
  return released(f);
}

}  // namespace

void bind_canvas(nb::module_& m) {
  nb::class_<BoundCanvas>(m, "Canvas")
      .def(
          "__init__",
          [](BoundCanvas* self, std::shared_ptr<Grammar> grammar, std::size_t slots, const nb::bytes& prefix,
             bool open, std::optional<TokenId> pad) {
            const std::string text(prefix.c_str(), prefix.size());
            released([&] {
              new (self) BoundCanvas(std::move(grammar), slots, text, open, pad.value_or(Canvas::kMasked));
            });
          },
          "grammar"_a, "slots"_a, "prefix"_a, "open"_a, "pad"_a.none())
      .def("fork", [](BoundCanvas& c) { return in_use(c, [&] { return BoundCanvas(c); }); })
      .def("__len__", [](const BoundCanvas& c) { return c.size(); })
      .def_prop_ro(
          "tokens", [](const BoundCanvas& c) { return c.slots(); }, "-1: masked")
      .def_prop_ro("asked", &BoundCanvas::asked)
      .def_prop_ro("unknown", &BoundCanvas::unknown)
      .def("possible",
           [](BoundCanvas& c) { return in_use(c, [&] { return static_cast<int>(c.possible()); }); })
      .def(
          "allows",
          [](BoundCanvas& c, int64_t slot, TokenId t) {
            return in_use(c, [&] { return static_cast<int>(c.allows(slot, t)); });
          },
          "slot"_a, "token"_a)
      .def(
          "set",
          [](BoundCanvas& c, int64_t slot, TokenId t, bool force) {
            return in_use(c, [&] { return static_cast<int>(c.set(slot, t, force)); });
          },
          "slot"_a, "token"_a, "force"_a)
      .def(
          "clear", [](BoundCanvas& c, int64_t slot) { in_use(c, [&] { c.clear(slot); }); }, "slot"_a)
      .def(
          "fill",
          [](BoundCanvas& c, nb::handle mask, int64_t slot, int64_t row) {
            Rows rows(mask, c.vocabulary().words());
            uint32_t* const line = rows.row(row);
            return in_use(c, [&] { return c.fill_row(slot, line); });
          },
          "mask"_a, "slot"_a, "row"_a, "Writes the tokens that are allowed; whether none was left out.")
      .def("complete", [](BoundCanvas& c) {
        std::vector<TokenId> tokens;
        const Verdict told = in_use(c, [&] { return c.complete(tokens); });
        return std::pair(static_cast<int>(told), tokens);
      });
}
