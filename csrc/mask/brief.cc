#include "mask/brief.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "mask/rows.h"

namespace structgen {
// CMake compiles the files of a folder as one unit, so names in unnamed namespaces may collide. This
// namespace keeps `largest` apart from the function `largest` of logsumexp.cc.
namespace brief_parts {
namespace {

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
// If the most probable token exceeds the most probable allowed token by more nats than this, brief_row() does
// not serve the row. exp_of() is right for differences of up to this many nats.
constexpr double kMostNats = 300;
// The threshold is taken from a sample of about this many allowed values.
constexpr std::size_t kSample = 4096;

struct Candidate {
  float value;
  int32_t id;
};

// Returns exp(x) for -700 <= x <= 310, by Taylor's series to the 13th power on [-ln 2 / 2, ln 2 / 2]. x is
// split into n ln 2 + r: adding and subtracting 1.5 * 2^52 rounds to the nearest integer n, ln 2 is given in
// two parts so that r is exact, and the bits of n become the exponent. Unlike the library's exp, a loop of
// this function vectorises.
STRUCTGEN_INLINE double exp_of(double x) {
  const double rounded = (x * 1.4426950408889634 + 6755399441055744.0) - 6755399441055744.0;
  const double r = (x - rounded * 6.93147180369123816490e-01) - rounded * 1.90821492927058770002e-10;
  double p = 1.6059043836821613e-10;
  p = p * r + 2.0876756987868099e-09;
  p = p * r + 2.5052108385441719e-08;
  p = p * r + 2.7557319223985891e-07;
  p = p * r + 2.7557319223985893e-06;
  p = p * r + 2.4801587301587302e-05;
  p = p * r + 1.9841269841269841e-04;
  p = p * r + 1.3888888888888889e-03;
  p = p * r + 8.3333333333333333e-03;
  p = p * r + 4.1666666666666667e-02;
  p = p * r + 1.6666666666666667e-01;
  p = p * r + 0.5;
  p = p * r * r + r + 1.0;
  const int64_t bits = std::bit_cast<int64_t>(rounded + 6755399441055744.0) - 0x4338000000000000LL;
  return p * std::bit_cast<double>(static_cast<uint64_t>(bits + 1023) << 52);
}

struct Tops {
  float allowed = kMinusInf;
  float refused = kMinusInf;
};

// Finds the largest allowed and the largest refused logit. Lane j has the largest logits of the columns j, 32
// + j, and so on. A word that is all allowed, or all refused, is not tested bit by bit.
STRUCTGEN_CLONES void largest(const float* in, const uint32_t* mask, std::size_t words, Tops* out) {
  alignas(64) float yes[32], no[32];
  std::fill(yes, yes + 32, kMinusInf);
  std::fill(no, no + 32, kMinusInf);
  for (std::size_t w = 0; w < words; ++w) {
    const uint32_t word = mask[w];
    const float* x = in + w * 32;
    if (word == ~0u)
      for (unsigned j = 0; j < 32; ++j) yes[j] = x[j] > yes[j] ? x[j] : yes[j];
    else if (word == 0)
      for (unsigned j = 0; j < 32; ++j) no[j] = x[j] > no[j] ? x[j] : no[j];
    else
      for (unsigned j = 0; j < 32; ++j) {
        float* into = (word >> j) & 1u ? &yes[j] : &no[j];
        *into = x[j] > *into ? x[j] : *into;
      }
  }
  for (unsigned j = 0; j < 32; ++j) {
    out->allowed = std::max(out->allowed, yes[j]);
    out->refused = std::max(out->refused, no[j]);
  }
}

struct Sums {
  double all = 0;      // sum of exp(x - best) over all tokens
  double below = 0;    // the part of the sum from allowed x below the threshold
  double weighed = 0;  // that part with each summand times x - best
};

// Makes the three sums of a row in one pass. For a token that is allowed and not below the threshold, a bit
// is set in `above`; the sums `below` and `weighed` leave this token out, and the caller adds its weight.
STRUCTGEN_CLONES void sums(const float* in, const uint32_t* mask, std::size_t words, double best,
                           float threshold, Sums* out, uint32_t* above) {
  alignas(64) double all[32] = {}, below[32] = {}, weighed[32] = {};
  for (std::size_t w = 0; w < words; ++w) {
    const uint32_t word = mask[w];
    const float* x = in + w * 32;
    uint32_t reach = 0;
    for (unsigned j = 0; j < 32; ++j) reach |= static_cast<uint32_t>(x[j] >= threshold) << j;
    above[w] = reach & word;
    // Exponents below -690, -inf included, are raised to -690: a weight of e^-690 does not change a sum of
    // doubles, and no product becomes 0 * inf.
    alignas(64) float held[32];
    const uint32_t low = word & ~reach;
    for (unsigned j = 0; j < 32; ++j) held[j] = static_cast<float>((low >> j) & 1u);
    for (unsigned j = 0; j < 32; ++j) {
      const double d = std::max(static_cast<double>(x[j]) - best, -690.0);
      const double e = exp_of(d), kept = e * static_cast<double>(held[j]);
      all[j] += e;
      below[j] += kept;
      weighed[j] += kept * d;
    }
  }
  for (unsigned j = 0; j < 32; ++j) {
    out->all += all[j];
    out->below += below[j];
    out->weighed += weighed[j];
  }
}

// Returns a threshold that at least `most` allowed values probably reach. brief_row() is exact whatever the
// threshold is: if the threshold is too low, more candidates are sorted; if it is too high, brief_row() asks
// again with a larger `slack`.
float sampled_threshold(const float* in, const uint32_t* mask, std::size_t words, std::size_t allowed,
                        std::size_t most, double slack) {
  // The sample is every n-th word of 32 tokens of the whole vocabulary, because tokens with neighbouring ids
  // have similar frequencies.
  std::vector<float> seen;
  const std::size_t stride = std::max<std::size_t>(1, allowed / kSample);
  for (std::size_t w = 0; w < words; w += stride)
    for (uint32_t word = mask[w]; word; word &= word - 1)
      seen.push_back(in[w * 32 + static_cast<std::size_t>(std::countr_zero(word))]);
  const double rank = slack * static_cast<double>(most) / static_cast<double>(stride) + 8;
  if (rank >= static_cast<double>(seen.size())) return kMinusInf;
  const auto nth = seen.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(seen.begin(), nth, seen.end(), std::greater<>());
  return *nth;
}

}  // namespace
}  // namespace brief_parts

Brief brief_row(const float* row, std::size_t width, const uint32_t* mask, std::size_t words,
                std::size_t most, int32_t* ids, float* values) {
  using namespace brief_parts;
  Brief found;
  found.whole = true;
  const std::size_t count = (width + 31) / 32;
  // The loops read whole words of 32 columns. If the width is no multiple of 32, they read a copy of the row
  // that -inf fills up, and mask bits beyond the width are cleared.
  std::vector<float> padded;
  std::vector<uint32_t> bits(count);
  for (std::size_t w = 0; w < count; ++w) bits[w] = mask_word(mask, words, w, width);
  if (width % 32) {
    padded.assign(count * 32, kMinusInf);
    std::copy_n(row, width, padded.data());
    row = padded.data();
  }
  Tops tops;
  largest(row, bits.data(), count, &tops);
  if (std::isinf(tops.allowed) || (std::isinf(tops.refused) && tops.refused > 0) ||
      static_cast<double>(tops.refused) - static_cast<double>(tops.allowed) > kMostNats)
    return found;
  std::size_t allowed = 0;
  for (const uint32_t word : bits) allowed += static_cast<std::size_t>(std::popcount(word));
  found.best = tops.allowed;

  std::vector<uint32_t> above(count);
  std::vector<Candidate> candidates;
  Sums total;
  // `slack` grows until the threshold is -inf and every allowed token is a candidate, so the loop ends.
  for (double slack = 1.5;; slack *= 4) {
    const float threshold = sampled_threshold(row, bits.data(), count, allowed, most, slack);
    total = Sums();
    sums(row, bits.data(), count, found.best, threshold, &total, above.data());
    if (!std::isfinite(total.all)) return found;
    candidates.clear();
    for (std::size_t w = 0; w < count; ++w)
      for (uint32_t word = above[w]; word; word &= word - 1) {
        const std::size_t at = w * 32 + static_cast<std::size_t>(std::countr_zero(word));
        if (row[at] > kMinusInf) candidates.push_back({row[at], static_cast<int32_t>(at)});
      }
    if (candidates.size() >= most || threshold == kMinusInf) break;
  }
  found.shift = found.best + std::log(total.all);
  found.kept = std::min(most, candidates.size());
  const auto cut = candidates.begin() + static_cast<std::ptrdiff_t>(found.kept);
  if (cut != candidates.end())
    std::nth_element(candidates.begin(), cut, candidates.end(), [](const Candidate& a, const Candidate& b) {
      return a.value > b.value || (a.value == b.value && a.id < b.id);
    });
  double mass = total.below, weighed = total.weighed;
  found.tail = total.below;
  // nth_element() has moved the candidates that are kept to the front. The weights of all other candidates
  // are added to `tail`.
  for (auto c = candidates.begin(); c != candidates.end(); ++c) {
    const double d = static_cast<double>(c->value) - found.best, e = std::exp(d);
    mass += e;
    weighed += e * d;
    if (c >= cut) found.tail += e;
  }
  found.entropy = std::max(0.0, std::log(mass) - weighed / mass);
  found.whole = found.tail == 0;
  // `above` becomes the set of kept ids. Its bits in order give ascending ids without a sort.
  std::fill(above.begin(), above.end(), 0u);
  for (auto c = candidates.begin(); c != cut; ++c)
    above[static_cast<std::size_t>(c->id) / 32] |= 1u << (c->id % 32);
  std::size_t i = 0;
  for (std::size_t w = 0; w < count; ++w)
    for (uint32_t word = above[w]; word; word &= word - 1, ++i) {
      const std::size_t at = w * 32 + static_cast<std::size_t>(std::countr_zero(word));
      ids[i] = static_cast<int32_t>(at);
      values[i] = row[at];
    }
  if (tops.refused > kMinusInf) {
    found.lost_value = tops.refused;
    for (std::size_t w = 0; w < count && found.lost < 0; ++w)
      for (uint32_t word = ~bits[w]; word; word &= word - 1) {
        const std::size_t at = w * 32 + static_cast<std::size_t>(std::countr_zero(word));
        if (at < width && row[at] == tops.refused) {
          found.lost = static_cast<int64_t>(at);
          break;
        }
      }
  }
  return found;
}

}  // namespace structgen
