#include "ir/arith/digits.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace prunerc::ir {

namespace {
// Products of extents beyond this are not iterators of any program.
constexpr int64_t kMaxExtent = int64_t{1} << 40;
}  // namespace

bool same_place(const Digit& x, const Digit& y) {
  return x.mark == y.mark && x.lower == y.lower && x.extent == y.extent;
}

void sort_digits(std::vector<Digit>& digits) {
  std::stable_sort(digits.begin(), digits.end(), [](const Digit& x, const Digit& y) {
    return x.scale != y.scale ? x.scale > y.scale : x.mark < y.mark;
  });
}

void join_digits(std::vector<Digit>& digits) {
  for (std::size_t i = 0; i + 1 < digits.size();) {
    const Digit& high = digits[i];
    const Digit& low = digits[i + 1];
    if (high.mark == low.mark && high.lower == low.lower * low.extent &&
        high.scale == low.scale * low.extent) {
      digits[i] = {low.mark, low.lower, low.extent * high.extent, low.scale};
      digits.erase(digits.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      i = i > 0 ? i - 1 : 0;
    } else {
      ++i;
    }
  }
}

void add_digit(std::vector<Digit>& digits, const Digit& digit) {
  const auto at = std::find_if(digits.begin(), digits.end(),
                               [&](const Digit& d) { return same_place(d, digit); });
  if (at == digits.end()) {
    if (digit.scale != 0) digits.push_back(digit);
    return;
  }
  at->scale += digit.scale;
  if (at->scale == 0) digits.erase(at);
}

bool is_mixed_radix(const std::vector<Digit>& digits, int64_t* product) {
  int64_t expected = 1;
  for (auto d = digits.rbegin(); d != digits.rend(); ++d) {
    if (d->scale != expected || d->extent > kMaxExtent / expected) return false;
    expected *= d->extent;
  }
  *product = expected;
  return true;
}

bool any_below_one(const std::vector<Digit>& digits) {
  return std::any_of(digits.begin(), digits.end(), [](const Digit& d) { return d.scale < 1; });
}

void lift_digits(std::vector<Digit>& digits, int64_t divisor, const std::vector<int32_t>& depths,
                 std::vector<Digit>* pulled) {
  std::vector<Digit> left = digits;
  std::stable_sort(left.begin(), left.end(), [&](const Digit& x, const Digit& y) {
    const int32_t dx = depths[static_cast<std::size_t>(x.mark)];
    const int32_t dy = depths[static_cast<std::size_t>(y.mark)];
    return dx != dy ? dx > dy : x.lower < y.lower;
  });
  std::vector<Digit> out;
  std::vector<Digit> taken;
  int64_t expected = 1;
  while (!left.empty()) {
    const auto next = std::find_if(left.begin(), left.end(), [&](const Digit& d) {
      return (expected - d.scale) % divisor == 0;
    });
    if (next == left.end() || next->extent > kMaxExtent / expected) return;
    Digit digit = *next;
    left.erase(next);
    Digit part = digit;
    part.scale = -((expected - digit.scale) / divisor);
    if (part.scale != 0) taken.push_back(part);
    digit.scale = expected;
    expected *= digit.extent;
    out.push_back(digit);
  }
  sort_digits(out);
  digits = std::move(out);
  if (pulled != nullptr) pulled->insert(pulled->end(), taken.begin(), taken.end());
}

int64_t strip_digits(std::vector<Digit>& digits, int64_t divisor) {
  while (!digits.empty()) {
    Digit& last = digits.back();
    const int64_t common = std::gcd(divisor, last.extent);
    if (common == 1) break;
    for (Digit& d : digits) {
      if (&d != &last) d.scale /= common;
    }
    divisor /= common;
    last.lower *= common;
    last.extent /= common;
    if (last.extent == 1) digits.pop_back();
  }
  return divisor;
}

std::vector<Digit> refined(const std::vector<Digit>& digits, const std::vector<Digit>& at) {
  std::vector<Digit> out = digits;
  for (const Digit& d : at) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const Digit whole = out[i];
      const int64_t end = d.lower * d.extent;
      const int64_t whole_end = whole.lower * whole.extent;
      if (whole.mark != d.mark || same_place(whole, d) || d.lower % whole.lower != 0 ||
          whole_end % end != 0) {
        continue;
      }
      const int64_t below = d.lower / whole.lower;
      out[i] = {d.mark, d.lower, d.extent, whole.scale * below};
      if (below > 1) out.push_back({d.mark, whole.lower, below, whole.scale});
      if (whole_end > end) {
        out.push_back({d.mark, end, whole_end / end, whole.scale * below * d.extent});
      }
      break;
    }
  }
  sort_digits(out);
  return out;
}

bool embed_digit(Digit& digit, const std::vector<DigitMark>& marks, int32_t whole) {
  const std::vector<Digit>& all = marks[static_cast<std::size_t>(whole)].fused;
  const DigitMark& mark = marks[static_cast<std::size_t>(digit.mark)];
  // One digit of the fused mark holds it.
  for (const Digit& d : all) {
    if (d.mark != digit.mark || digit.lower % d.lower != 0) continue;
    if ((d.lower * d.extent) % (digit.lower * digit.extent) != 0) continue;
    digit = {whole, d.scale * (digit.lower / d.lower), digit.extent, digit.scale};
    return true;
  }
  // Its mark is fused itself, of digits that stand one after the other in the larger one.
  if (mark.var != nullptr || mark.cut) return false;
  const std::vector<Digit> into = refined(all, mark.fused);
  if (mark.fused.size() >= into.size()) return false;
  for (std::size_t i = 0; i + mark.fused.size() <= into.size(); ++i) {
    const int64_t unit = into[i + mark.fused.size() - 1].scale;
    bool same = true;
    for (std::size_t k = 0; same && k < mark.fused.size(); ++k) {
      same =
          same_place(into[i + k], mark.fused[k]) && into[i + k].scale == mark.fused[k].scale * unit;
    }
    if (!same) continue;
    digit = {whole, unit * digit.lower, digit.extent, digit.scale};
    return true;
  }
  return false;
}

}  // namespace prunerc::ir
