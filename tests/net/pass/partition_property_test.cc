// Random nets of small operators compute the same after the partition, whatever rules are left out.
#include "ir/net/pass/partition.h"
#include "tests/net/pass/nets.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <random>
#include <string>

namespace prunerc::testing {
namespace {

constexpr const char* kOps = R"(
op mm(X: f32[4,4], Z: f32[4,4]) -> (Y: f32[4,4]) { Y[i,j] = sum[k] X[i,k] * Z[k,j]; }
op relu(X: f32[4,4]) -> (Y: f32[4,4]) { Y[i,j] = max(X[i,j], 0); }
op half(X: f32[4,4]) -> (Y: f32[4,4]) { Y[i,j] = X[i,j] * 0.5; }
op add(X: f32[4,4], Z: f32[4,4]) -> (Y: f32[4,4]) { Y[i,j] = X[i,j] + Z[i,j]; }
op mul(X: f32[4,4], Z: f32[4,4]) -> (Y: f32[4,4]) { Y[i,j] = X[i,j] * Z[i,j]; }
op bias(X: f32[4,4], b: f32[4]) -> (Y: f32[4,4]) { Y[i,j] = X[i,j] + b[j]; }
op turn(X: f32[4,4]) -> (Y: f32[4,4]) { Y[i,j] = X[j,i]; }
op split(X: f32[4,4]) -> (Y: f32[2,2,4]) { Y[a,b,j] = X[a*2 + b, j]; }
op join(X: f32[2,2,4]) -> (Y: f32[4,4]) { Y[i,j] = X[i / 2, i % 2, j]; }
op mean(X: f32[4,4]) -> (Y: f32[4,1]) { Y[i,j] = (sum[k] X[i,k]) / 4; }
op sub(X: f32[4,4], m: f32[4,1]) -> (Y: f32[4,4]) { Y[i,j] = X[i,j] - m[i,0]; }
op grow(m: f32[4,1]) -> (Y: f32[4,1]) { Y[i,j] = m[i,0] + 1; }
op soft(X: f32[4,4]) -> (Y: f32[4,4]) {
  let m[i] = max[k] X[i,k]; let e[i,k] = exp(X[i,k] - m[i]); let s[i] = sum[k] e[i,k];
  Y[i,k] = e[i,k] / s[i];
}
)";

/// Squares, columns of four and cubes of 2x2x4, each drawn from those that are there.
struct NetMaker {
  explicit NetMaker(uint64_t seed) : random(seed) {}

  std::mt19937_64 random;
  std::vector<std::string> squares = {"x", "z", "W"}, columns, cubes;
  std::vector<std::string> read;
  std::string items;
  int number = 0;

  std::size_t below(std::size_t n) { return random() % n; }
  // Late ones more often: chains become long.
  std::string pick(const std::vector<std::string>& from) {
    const std::size_t n = from.size();
    const std::string name =
        from[below(3) == 0 ? below(n) : n - 1 - below(std::min<std::size_t>(n, 2))];
    read.push_back(name);
    return name;
  }
  void call(const std::string& text, std::vector<std::string>& to) {
    const std::string name = fmt::format("t{}", ++number);
    items += fmt::format("  let {} = {};\n", name, text);
    to.push_back(name);
  }
  void step() {
    switch (below(13)) {
      case 0: return call(fmt::format("mm({}, W)", pick(squares)), squares);
      case 1: return call(fmt::format("mm({}, {})", pick(squares), pick(squares)), squares);
      case 2: return call(fmt::format("add({}, {})", pick(squares), pick(squares)), squares);
      case 3: return call(fmt::format("mul({}, {})", pick(squares), pick(squares)), squares);
      case 4: return call(fmt::format("bias({}, b)", pick(squares)), squares);
      case 5: return call(fmt::format("turn({})", pick(squares)), squares);
      case 6: return call(fmt::format("soft({})", pick(squares)), squares);
      case 7: return call(fmt::format("mean({})", pick(squares)), columns);
      case 8: return call(fmt::format("split({})", pick(squares)), cubes);
      case 9:
        if (!columns.empty())
          return call(fmt::format("sub({}, {})", pick(squares), pick(columns)), squares);
        break;
      case 10:
        if (!columns.empty()) return call(fmt::format("grow({})", pick(columns)), columns);
        break;
      case 11:
        if (!cubes.empty()) return call(fmt::format("join({})", pick(cubes)), squares);
        break;
      default: break;
    }
    call(fmt::format("relu({})", pick(squares)), squares);
  }
  std::string text() {
    for (std::size_t left = 4 + below(20); left > 0; --left) step();
    const std::string second = pick(squares);
    return fmt::format(
        "{}net n(x: f32[4,4], z: f32[4,4]) -> (y: f32[4,4], v: f32[4,4]) {{\n"
        "  const W: f32[4,4]; const b: f32[4];\n{}  y = relu({});\n"
        "  v = half({});\n}}\n",
        kOps, items, squares.back(), second);
  }
};

TEST_CASE("Random nets compute the same after the partition") {
  constexpr int kCases = 150;
  std::size_t before_calls = 0, after_calls = 0;
  for (int i = 0; i < kCases; ++i) {
    NetMaker maker(static_cast<uint64_t>(i) + 1);
    const net::Net before = net_or_die(maker.text());
    net::PartitionOptions options;
    if (i % 3 == 0) {
      const std::vector<std::string_view> names = net::fuse_rule_names();
      options.without.insert(std::string(names[maker.below(names.size())]));
    }
    const Result<net::Net> after = net::partition(before, options);
    INFO("case " << i << "\n" << net::to_text(before));
    REQUIRE_OK(after);
    INFO(net::to_text(*after));
    REQUIRE(net_difference(*after, before, 7).empty());
    CHECK(after->calls.size() <= before.calls.size());
    before_calls += before.calls.size();
    after_calls += after->calls.size();
  }
  CHECK(after_calls * 5 < before_calls * 4);
}

}  // namespace
}  // namespace prunerc::testing
