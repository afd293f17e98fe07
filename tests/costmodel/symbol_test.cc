// Numbers over tile parameters: folding, common parts, and batches that equal one by one.
#include "costmodel/symbol/code.h"
#include "costmodel/symbol/kernels.h"
#include "costmodel/symbol/sym.h"
#include "ir/support/rng.h"
#include "tests/support/check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <thread>

namespace prunerc::costmodel {
namespace {

using ir::ParamId;

constexpr int kParams = 4;
constexpr int kCoefficients = 2;
constexpr double kMost = 48;

// Random expressions with their values beside them, worked out without any graph.
struct Sample {
  std::vector<double> params, coefficients;
};

struct Pair {
  Sym symbol;
  std::vector<double> values;  // by sample
};

class Maker {
 public:
  Maker(SymGraph& graph, Rng& rng, const std::vector<Sample>& samples)
      : graph_(graph), rng_(rng), samples_(samples) {}

  Pair leaf() {
    const int which = static_cast<int>(rng_.below(kParams + kCoefficients + 2));
    if (which < kParams) {
      return of(graph_.param(ParamId(which), 1, kMost),
                [&](const Sample& s) { return s.params[static_cast<std::size_t>(which)]; });
    }
    if (which < kParams + kCoefficients) {
      const int slot = which - kParams;
      return of(graph_.coefficient(slot),
                [&](const Sample& s) { return s.coefficients[static_cast<std::size_t>(slot)]; });
    }
    const auto value = static_cast<double>(rng_.between(-2, 6));
    return of(Sym(value), [&](const Sample&) { return value; });
  }

  Pair make(int depth) {
    if (depth == 0) return leaf();
    const Pair a = make(depth - 1), b = make(depth - 1);
    switch (rng_.below(15)) {
      case 0: return zip(a.symbol + b.symbol, a, b, [](double x, double y) { return x + y; });
      case 1: return zip(a.symbol - b.symbol, a, b, [](double x, double y) { return x - y; });
      case 2: return zip(a.symbol * b.symbol, a, b, [](double x, double y) { return x * y; });
      case 3:
        return zip(a.symbol / (abs(b.symbol) + 1), a, b,
                   [](double x, double y) { return x / (std::abs(y) + 1); });
      case 4:
        return zip(min(a.symbol, b.symbol), a, b, [](double x, double y) { return y < x ? y : x; });
      case 5:
        return zip(max(a.symbol, b.symbol), a, b, [](double x, double y) { return y > x ? y : x; });
      case 6:
        return zip(less(a.symbol, b.symbol), a, b,
                   [](double x, double y) { return x < y ? 1. : 0.; });
      case 7:
        return zip(less_equal(a.symbol, b.symbol), a, b,
                   [](double x, double y) { return x <= y ? 1. : 0.; });
      case 8:
        return zip(equal(a.symbol, b.symbol), a, b,
                   [](double x, double y) { return x == y ? 1. : 0.; });
      case 9:
        return zip(floor(a.symbol / 4), a, b, [](double x, double) { return std::floor(x / 4); });
      case 10:
        return zip(ceil(a.symbol / 3), a, b, [](double x, double) { return std::ceil(x / 3); });
      case 11:
        return zip(log2(abs(b.symbol) + 1), a, b,
                   [](double, double y) { return symbol::log2(std::abs(y) + 1); });
      case 12:
        return zip(select(logical_and(less(a.symbol, b.symbol), logical_not(equal(a.symbol, 2))),
                          a.symbol, 3),
                   a, b, [](double x, double y) { return x < y && x != 2 ? x : 3; });
      case 13:
        return zip(select(logical_or(less(b.symbol, 0), less(a.symbol, 4)), b.symbol, a.symbol), a,
                   b, [](double x, double y) { return y < 0 || x < 4 ? y : x; });
      default:
        return zip(power_of_two_factor(min(floor(abs(a.symbol)), 1e6)), a, b, [](double x, double) {
          const auto n = static_cast<int64_t>(std::min(std::floor(std::abs(x)), 1e6));
          return static_cast<double>(n & -n);
        });
    }
  }

 private:
  template <typename F>
  Pair of(Sym symbol, F&& f) const {
    Pair out{symbol, {}};
    for (const Sample& s : samples_) out.values.push_back(f(s));
    return out;
  }
  template <typename F>
  Pair zip(Sym symbol, const Pair& a, const Pair& b, F&& f) const {
    Pair out{symbol, {}};
    for (std::size_t i = 0; i < samples_.size(); ++i)
      out.values.push_back(f(a.values[i], b.values[i]));
    return out;
  }

  SymGraph& graph_;
  Rng& rng_;
  const std::vector<Sample>& samples_;
};

std::vector<double> coefficients(Rng& rng) {
  std::vector<double> out;
  for (int c = 0; c < kCoefficients; ++c) out.push_back(rng.uniform() * 3);
  return out;
}

std::vector<Sample> samples(Rng& rng, std::size_t n) {
  const std::vector<double> shared = coefficients(rng);
  std::vector<Sample> out(n);
  for (Sample& s : out) {
    for (int p = 0; p < kParams; ++p)
      s.params.push_back(static_cast<double>(rng.between(1, static_cast<int64_t>(kMost))));
    s.coefficients = shared;
  }
  return out;
}

struct Columns {
  explicit Columns(const std::vector<Sample>& samples) : data(kParams) {
    for (const Sample& s : samples) {
      for (std::size_t p = 0; p < kParams; ++p) data[p].push_back(s.params[p]);
    }
    for (const auto& column : data) pointers.push_back(column.data());
  }
  std::vector<std::vector<double>> data;
  std::vector<const double*> pointers;
};

std::vector<std::vector<double>> run(const SymbolCode& code, const Columns& columns, std::size_t n,
                                     const std::vector<double>& coefs) {
  std::vector<std::vector<double>> out(code.num_outputs(), std::vector<double>(n + 1, -77));
  std::vector<double*> pointers;
  for (auto& column : out) pointers.push_back(column.data());
  // What another code left behind.
  SymbolScratch scratch{std::vector<double>(1 << 16, std::nan(""))};
  code.evaluate(columns.pointers, n, pointers, scratch, coefs);
  return out;
}

}  // namespace

TEST_CASE("batches of random expressions equal direct evaluation, for every size") {
  Rng rng(11);
  for (int round = 0; round < 60; ++round) {
    const std::size_t n = std::vector<std::size_t>{0, 1, 5, 255, 256, 257, 700}[rng.below(7)];
    const std::vector<Sample> all = samples(rng, std::max<std::size_t>(n, 1));
    SymGraph graph;
    Maker maker(graph, rng, all);
    std::vector<Pair> made;
    std::vector<Sym> outputs;
    for (int i = 0; i < 12; ++i) {
      made.push_back(maker.make(static_cast<int>(rng.between(1, 5))));
      outputs.push_back(made.back().symbol);
    }
    const SymbolCode code(outputs);
    const auto batch = run(code, Columns(all), n, all[0].coefficients);
    int64_t wrong = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::vector<double> one = evaluate(outputs, all[i].params, all[i].coefficients);
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        const double value = made[o].values[i];
        wrong += one[o] != batch[o][i] ? 1 : 0;
        wrong += one[o] != value && !(std::isnan(one[o]) && std::isnan(value)) ? 1 : 0;
        const SymRange range = range_of(outputs[o]);
        wrong += value < range.lo || value > range.hi ? 1 : 0;
        wrong += range.is_integer && std::floor(value) != value ? 1 : 0;
      }
    }
    CHECK(wrong == 0);
    for (const auto& column : batch) CHECK(column[n] == -77);
  }
}

TEST_CASE("every operation has the same bits with either kind of vectors, and as a single one") {
  constexpr std::size_t kValues = 2 * kKernelStep;
  const auto bits = [](double x) { return std::bit_cast<uint64_t>(x); };
  // Which NaN is not said.
  const auto same = [&](double x, double y) {
    return bits(x) == bits(y) || (std::isnan(x) && std::isnan(y));
  };
  // Of every sign and size; what rounds, what is an integer, and what is not finite.
  std::vector<double> some = {0, -0.0, 1, -1, 0.5, 2, 3, 1e-300, -1e300, 4503599627370495, 1e6};
  some.push_back(std::numeric_limits<double>::infinity());
  Rng rng(11);
  while (some.size() < 40) some.push_back(std::exp2(80 * rng.uniform() - 40));
  std::vector<double> values[3], out(kValues);
  for (std::vector<double>& v : values) v.resize(kValues);
  for (int o = static_cast<int>(SymOp::kAdd); o <= static_cast<int>(SymOp::kSelect); ++o) {
    const auto op = static_cast<SymOp>(o);
    const bool has_b = !is_unary(op), has_c = op == SymOp::kSelect;
    for (int which = 0; which < 8; ++which) {
      const bool of_all[] = {(which & 1) != 0, (which & 2) != 0, (which & 4) != 0};
      if (!has_c && (of_all[2] || (of_all[0] && (of_all[1] || !has_b)))) continue;
      const auto operand = [&](int k, std::size_t i) { return values[k][of_all[k] ? 0 : i]; };
      for (int round = 0; round < 20; ++round) {
        for (std::vector<double>& v : values) {
          for (double& x : v) x = some[rng.below(some.size())];
        }
        // Operands that are not there are not read; of those that are the same for all, one value.
        const double *a = values[0].data(), *b = has_b ? values[1].data() : nullptr,
                     *c = has_c ? values[2].data() : nullptr;
        for (const bool wide : {false, true}) {
          if (wide && !has_wide_vectors()) continue;
          kernel_of(op, {of_all[0], of_all[1], of_all[2]}, wide)(out.data(), a, b, c, kValues);
          for (std::size_t i = 0; i < kValues; ++i) {
            const double one = has_c ? (operand(0, i) != 0 ? operand(1, i) : operand(2, i))
                                     : apply(op, operand(0, i), has_b ? operand(1, i) : 0);
            CHECK(same(one, out[i]));
          }
        }
      }
    }
  }
}

TEST_CASE("codes in turn in one scratch do not disturb each other") {
  Rng rng(12);
  const std::vector<Sample> all = samples(rng, 300);
  const Columns columns(all);
  std::vector<SymbolCode> codes;
  std::vector<std::vector<std::vector<double>>> expected;
  for (int i = 0; i < 6; ++i) {
    SymGraph graph;
    Maker maker(graph, rng, all);
    const std::vector<Sym> outputs = {maker.make(i).symbol, maker.make(2).symbol};
    codes.emplace_back(outputs);
    expected.push_back(run(codes.back(), columns, all.size(), all[0].coefficients));
  }
  SymbolScratch scratch;
  for (int round = 0; round < 30; ++round) {
    const std::size_t which = rng.below(codes.size());
    std::vector<std::vector<double>> out(2, std::vector<double>(all.size() + 1, -77));
    double* const pointers[] = {out[0].data(), out[1].data()};
    codes[which].evaluate(columns.pointers, all.size(), pointers, scratch, all[0].coefficients);
    CHECK(out == expected[which]);
  }
}

TEST_CASE("numbers fold without a graph and equal parts are one operation") {
  CHECK((Sym(3) * 4 + min(Sym(2), 9)).is(14));
  CHECK(select(less(2, 3), 5, 6).is(5));
  SymGraph graph;
  const Sym x = graph.param(ParamId(0), 1, 16), y = graph.param(ParamId(1), 1, 16);
  CHECK((x * y).same(y * x));
  CHECK((x + 0).same(x));
  CHECK((x * 0).is(0));
  CHECK((x - x).is(0));
  CHECK(min(x, 16).same(x));
  CHECK(max(x, 1).same(x));
  CHECK(less(x, 1).is(0));
  CHECK(less_equal(x * y, 256).is(1));
  CHECK(ceil(x * y).same(x * y));
  CHECK(select(less(x, y), x, x).same(x));
  CHECK(select(logical_not(less(x, y)), x, y).same(select(less(x, y), y, x)));
  CHECK(graph.param(ParamId(2), 7, 7).is(7));
  const Sym outputs[] = {x * y + 1, (x * y + 1) * 2, Sym(4)};
  const SymbolCode code(outputs);
  CHECK(code.num_ops() == 3);
  CHECK(code.reads(ParamId(1)));
  CHECK(!code.reads(ParamId(2)));
}

TEST_CASE("what no output needs is not computed, and an unwanted output is not written") {
  SymGraph graph;
  const Sym x = graph.param(ParamId(0), 1, 16);
  static_cast<void>(log2(x) + 7);
  const Sym outputs[] = {x + 1, x + 2};
  const SymbolCode code(outputs);
  CHECK(code.num_ops() == 2);
  const double column[] = {3, 4};
  const double* columns[] = {column};
  double second[] = {0, 0};
  double* const out[] = {nullptr, second};
  SymbolScratch scratch;
  code.evaluate(columns, 2, out, scratch);
  CHECK(second[0] == 5);
  CHECK(second[1] == 6);
}

TEST_CASE("coefficients are the call's, else the code's, else 0") {
  SymGraph graph;
  const Sym outputs[] = {graph.coefficient(0) + graph.coefficient(1) * 10};
  SymbolCode code(outputs);
  double result[3];
  double* const out[] = {result};
  SymbolScratch scratch;
  code.evaluate({}, 3, out, scratch);
  CHECK(result[2] == 0);
  const double defaults[] = {2, 3}, own[] = {1};
  code.set_defaults(defaults);
  code.evaluate({}, 3, out, scratch);
  CHECK(result[0] == 32);
  code.evaluate({}, 3, out, scratch, own);
  CHECK(result[0] == 1);
}

TEST_CASE("logarithms are those of the standard library to the last digits") {
  Rng rng(5);
  for (int i = 0; i < 2000; ++i) {
    const double x = std::exp((rng.uniform() - 0.5) * 200);
    CHECK(log2(Sym(x)).value() == Approx(std::log2(x)).epsilon(1e-14).margin(1e-15));
  }
}

TEST_CASE("a code outlives its graph and serves threads that bring their own scratch") {
  Rng rng(3);
  const std::vector<Sample> all = samples(rng, 1000);
  SymbolCode code;
  {
    SymGraph graph;
    Maker maker(graph, rng, all);
    std::vector<Sym> outputs;
    for (int i = 0; i < 8; ++i) outputs.push_back(maker.make(4).symbol);
    code = SymbolCode(outputs);
  }
  const Columns columns(all);
  const auto expected = run(code, columns, 1000, all[0].coefficients);
  std::vector<std::vector<std::vector<double>>> got(4);
  std::vector<std::thread> threads;
  for (auto& mine : got) {
    threads.emplace_back([&] { mine = run(code, columns, 1000, all[0].coefficients); });
  }
  for (std::thread& t : threads) t.join();
  const auto bits = [](const std::vector<std::vector<double>>& a,
                       const std::vector<std::vector<double>>& b) {
    for (std::size_t o = 0; o < a.size(); ++o) {
      for (std::size_t i = 0; i < a[o].size(); ++i) {
        if (std::bit_cast<uint64_t>(a[o][i]) != std::bit_cast<uint64_t>(b[o][i])) return false;
      }
    }
    return true;
  };
  for (const auto& mine : got) CHECK(bits(mine, expected));
}

}  // namespace prunerc::costmodel
