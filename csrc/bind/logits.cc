// Masks on logits, by addresses: structgen/logits.py owns the arrays and has checked their shapes.
//
// In: addresses of live buffers, sizes in elements and words, strides in elements. Out: written
// buffers. The GIL is released where the work takes longer than releasing it.
#include <nanobind/nanobind.h>

#include <utility>

#include "base/error.h"
#include "mask/apply.h"
#include "mask/brief.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace structgen;

namespace {

LogitRows logit_rows(uintptr_t address, int kind, std::size_t rows, std::size_t width,
                     std::ptrdiff_t stride) {
  if (kind < 0 || kind > 3) throw Error(ErrorKind::kValue, "logits: unknown element kind");
  return {reinterpret_cast<const void*>(address), static_cast<Element>(kind), rows, width, stride};
}

MaskRows mask_rows(uintptr_t address, std::ptrdiff_t stride, std::size_t words) {
  return {reinterpret_cast<const uint32_t*>(address), stride, words};
}

}  // namespace

void bind_logits(nb::module_& m) {
  m.def(
      "mask_logits",
      [](uintptr_t out, std::ptrdiff_t out_stride, uintptr_t in, int kind, std::size_t rows,
         std::size_t width, std::ptrdiff_t stride, uintptr_t mask, std::ptrdiff_t mask_stride,
         std::size_t words, uintptr_t indices, std::size_t n_indices, unsigned threads) {
        const LogitRows logits = logit_rows(in, kind, rows, width, stride);
        nb::gil_scoped_release release;
        structgen::mask_logits(reinterpret_cast<void*>(out), out_stride, logits,
                               mask_rows(mask, mask_stride, words), reinterpret_cast<const int64_t*>(indices),
                               n_indices, threads);
      },
      "out"_a, "out_stride"_a, "logits"_a, "kind"_a, "rows"_a, "width"_a, "stride"_a, "mask"_a,
      "mask_stride"_a, "words"_a, "indices"_a, "n_indices"_a, "threads"_a);
  for (const auto& [name, rows_to] : {std::pair{"masked_logsumexp", &structgen::masked_logsumexp},
                                      std::pair{"masked_log_softmax", &structgen::masked_log_softmax}})
    m.def(
        name,
        [rows_to](uintptr_t out, uintptr_t in, int kind, std::size_t rows, std::size_t width,
                  std::ptrdiff_t stride, uintptr_t mask, std::ptrdiff_t mask_stride, std::size_t words,
                  unsigned threads) {
          const LogitRows logits = logit_rows(in, kind, rows, width, stride);
          nb::gil_scoped_release release;
          rows_to(reinterpret_cast<void*>(out), logits, mask_rows(mask, mask_stride, words), threads);
        },
        "out"_a, "logits"_a, "kind"_a, "rows"_a, "width"_a, "stride"_a, "mask"_a, "mask_stride"_a, "words"_a,
        "threads"_a);
  m.def(
      "brief_row",
      [](uintptr_t row, std::size_t width, uintptr_t mask, std::size_t words, std::size_t most, uintptr_t ids,
         uintptr_t values) {
        Brief found;
        {
          nb::gil_scoped_release release;
          found = structgen::brief_row(reinterpret_cast<const float*>(row), width,
                                       reinterpret_cast<const uint32_t*>(mask), words, most,
                                       reinterpret_cast<int32_t*>(ids), reinterpret_cast<float*>(values));
        }
        return nb::make_tuple(found.whole, found.kept, found.shift, found.best, found.tail, found.entropy,
                              found.lost, found.lost_value);
      },
      "row"_a, "width"_a, "mask"_a, "words"_a, "most"_a, "ids"_a, "values"_a);
}
