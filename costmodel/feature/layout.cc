#include "costmodel/feature/layout.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace prunerc::costmodel {
namespace {

constexpr int kIntensitySamples = kNumStatementFeatures - kNumLoopFeatures - kNumScopeFeatures -
                                  kNumFeatureBuffers * kNumAccessFeatures;
static_assert(kIntensitySamples == 10);

// Places within a buffer's features.
constexpr std::size_t kIsWrite = 1;
constexpr std::size_t kIsReadWrite = 2;
constexpr std::size_t kUniqueBytes = 4;
constexpr std::size_t kUniqueLines = 6;
constexpr std::size_t kReuseBytes = 11;

float* copy(std::span<const Slot> slots, const float* values, float* out) {
  for (const Slot slot : slots) *out++ = values[slot];
  return out;
}

// Buffers by ascending distance of reuse. The order of logarithms in f32 is that of the quantities
// but for differences that are rounding.
float* write_buffers(const StoreLayout& store, const float* values, float* out) {
  std::array<const UseLayout*, 64> order;
  const std::size_t count = std::min(store.uses.size(), order.size());
  const auto rank = [&](const UseLayout* use) {
    const auto at = [&](std::size_t i) { return values[use->slots[i]]; };
    return std::make_tuple(at(kReuseBytes), at(kUniqueBytes), at(kUniqueLines),
                           2 * at(kIsReadWrite) + at(kIsWrite));
  };
  for (std::size_t i = 0; i < count; ++i) {
    // Insertion keeps the order of equal ones; there are three or four.
    const UseLayout* const use = &store.uses[i];
    std::size_t at = i;
    while (at > 0 && rank(use) < rank(order[at - 1])) {
      order[at] = order[at - 1];
      --at;
    }
    order[at] = use;
  }
  for (std::size_t i = 0; i < kNumFeatureBuffers; ++i) {
    if (i < count) {
      copy(order[i]->slots, values, out);
    } else {
      std::fill_n(out, kNumAccessFeatures, 0.0F);
    }
    out += kNumAccessFeatures;
  }
  return out;
}

// The curve of log2(operations) / log2(bytes) over log2(operations) from the innermost loop
// outwards, read at equal steps.
float* write_intensity(const StoreLayout& store, const float* values, float* out) {
  float last = 0;
  for (const CurveLayout& level : store.curve) last = std::max(last, values[level.ops]);
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;  // of the piece at hand
  std::size_t next = 0;
  for (int i = 1; i <= kIntensitySamples; ++i) {
    const float at = last * static_cast<float>(i) / kIntensitySamples;
    while (next < store.curve.size() && x1 < at) {
      const CurveLayout& level = store.curve[next++];
      if (values[level.ops] < 0) continue;
      x0 = x1, y0 = y1;
      x1 = values[level.ops], y1 = values[level.ratio];
    }
    const float part = x1 > x0 ? std::min(1.0F, (at - x0) / (x1 - x0)) : 1.0F;
    *out++ = last > 0 ? y0 + part * (y1 - y0) : 0.0F;
  }
  return out;
}

}  // namespace

Slot LayoutBuilder::raw(Sym value) {
  const auto next = static_cast<Slot>(layout.values.size());
  if (!value.is_constant()) {
    const auto [at, is_new] = known_.try_emplace(value.node(), next);
    if (!is_new) return at->second;
    outputs.push_back(value);
    layout.open.push_back(next);
    layout.values.push_back(0);
    return next;
  }
  layout.values.push_back(static_cast<float>(value.value()));
  return next;
}

void write_statement(const StoreLayout& store, const float* values, StatementFeatures* out) {
  float* at = copy(store.loops, values, out->data());
  at = write_buffers(store, values, at);
  at = write_intensity(store, values, at);
  copy(store.scopes, values, at);
}

}  // namespace prunerc::costmodel
