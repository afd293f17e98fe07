// Where a rounding decides, a network is compared as far as it is sensitive to roundings itself.
#include "tools/driver/network/agreement.h"

#include "tools/driver/aligned.h"
#include "tools/driver/network/network.h"
#include "tools/driver/reference.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <limits>

namespace prunerc {
namespace {

using ir::DType;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

ir::Tensor tensor_of(DType dtype, const std::vector<double>& values) {
  ir::Tensor tensor(dtype, {static_cast<int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) tensor.set(static_cast<int64_t>(i), values[i]);
  return tensor;
}

std::string bytes_of(DType dtype, const std::vector<double>& values) {
  const ir::Tensor tensor = tensor_of(dtype, values);
  return {reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()};
}

TEST_CASE(
    "floats move by two units in the last place, whole numbers and powers of two not at all") {
  const ir::Tensor before = tensor_of(
      DType::kF32,
      {0.3, -1.7, 2, 0, -kInfinity, -std::numeric_limits<float>::max(), 0.5, -0x1p-30, 0x1p-149});
  ir::Tensor moved = before, again = before;
  move_floats(7, &moved);
  move_floats(7, &again);
  CHECK(moved == again);
  for (int64_t i = 0; i < before.num_elements(); ++i) {
    INFO("element " << i);
    if (i >= 2) {
      CHECK(moved.get(i) == before.get(i));
      continue;
    }
    const double by = std::fabs(moved.get(i) / before.get(i) - 1);
    CHECK(by > 0x1p-23);
    CHECK(by < 0x1p-21);
  }
  ir::Tensor wide = tensor_of(DType::kF64, {0.3});
  move_floats(7, &wide);
  CHECK(wide.get(0) != 0.3);
}

TEST_CASE("floats of 16 bits move only if asked for, and integers do not move") {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    ir::Tensor other = tensor_of(dtype, {0.3, 2, 0.5});
    move_floats(7, &other);
    CHECK(other == tensor_of(dtype, {0.3, 2, 0.5}));
    move_floats(7, &other, true);
    const double by = std::fabs(other.get(0) / tensor_of(dtype, {0.3}).get(0) - 1);
    CHECK(by >= (dtype == DType::kF16 ? 0x1p-11 : 0x1p-8));
    CHECK(by <= (dtype == DType::kF16 ? 0x1p-9 : 0x1p-6));
    CHECK(other.get(1) == 2);
    CHECK(other.get(2) == 0.5);
  }
  ir::Tensor whole = tensor_of(DType::kU8, {3, 255});
  move_floats(7, &whole);
  CHECK(whole == tensor_of(DType::kU8, {3, 255}));
}

TEST_CASE("seeds move the elements of a tensor differently") {
  const ir::Tensor before = tensor_of(DType::kF32, std::vector<double>(64, 0.3));
  ir::Tensor one = before, two = before;
  move_floats(1, &one);
  move_floats(2, &two);
  CHECK(one != two);
  double sum = 0;
  for (int64_t i = 0; i < 64; ++i) sum += one.get(i);
  CHECK(sum != one.get(0) * 64);
}

net::Tensor port(const std::string& name, DType dtype, std::size_t size) {
  net::Tensor tensor;
  tensor.name = name;
  tensor.dtype = dtype;
  tensor.shape = {static_cast<int64_t>(size)};
  return tensor;
}

// `got` beside `want`; `moved`: what the reference gives with moved floats.
NetComparison compared(DType dtype, const std::vector<double>& got, const std::vector<double>& want,
                       const std::vector<double>& moved) {
  const std::string ours = bytes_of(dtype, got);
  const NetValues values = {
      {port("y", dtype, want.size())}, {ours}, {bytes_of(dtype, want)}, "it should be"};
  const Result<NetComparison> found = compare_net(values, [&](uint64_t seed) {
    return Result<std::vector<std::string>>(
        std::vector<std::string>{bytes_of(dtype, seed == 5 ? moved : want)});
  });
  REQUIRE(found.ok());
  return *found;
}

TEST_CASE("what is right asks for no run of the reference") {
  net::Tensor tensor;
  tensor.name = "y";
  tensor.shape = {2};
  const std::string want = bytes_of(DType::kF32, {1, 100}),
                    near = bytes_of(DType::kF32, {1, 99.95});
  const auto refuse = [](uint64_t) {
    return Result<std::vector<std::string>>(error(Diag::kKernelArguments, "not to be run"));
  };
  const Result<NetComparison> right =
      compare_net({{tensor}, {near}, {want}, "it should be"}, refuse);
  REQUIRE(right.ok());
  CHECK(right->agreement == Agreement::kRight);
  CHECK(right->num_elems == 2);
  CHECK(right->worst > 0.4);
  CHECK(right->sensitivity.empty());
  const std::string far = bytes_of(DType::kF32, {2, 100});
  const Result<NetComparison> failed =
      compare_net({{tensor}, {far}, {want}, "it should be"}, refuse);
  REQUIRE(!failed.ok());
  CHECK(failed.error().id() == Diag::kKernelArguments);
}

TEST_CASE("a difference that moved floats make, too, is within the sensitivity of the net") {
  const NetComparison flip = compared(DType::kF32, {3, 100}, {2, 100}, {2.5, 100});
  CHECK(flip.agreement == Agreement::kSensitive);
  CHECK(flip.what.empty());
  REQUIRE(flip.sensitivity.size() == 1);
  CHECK(flip.sensitivity[0].tensor == "y");
  CHECK(flip.sensitivity[0].deviation == 0.5);
  CHECK(flip.sensitivity[0].of_largest == 0.005);
  CHECK(flip.worst == 0.5);
  CHECK(compared(DType::kU8, {3, 200}, {2, 200}, {2, 201}).agreement == Agreement::kSensitive);
}

TEST_CASE("a difference that moved floats do not make is wrong") {
  const NetComparison stable = compared(DType::kF32, {3, 100}, {2, 100}, {2.01, 100});
  CHECK(stable.agreement == Agreement::kWrong);
  CHECK(stable.what == "y[0] is 3, it should be 2 (allowed: 0.1)");
  const NetComparison too_far = compared(DType::kF32, {8, 100}, {2, 100}, {3, 100});
  CHECK(too_far.agreement == Agreement::kWrong);
  CHECK(too_far.what == "y[0] is 8, it should be 2 (allowed: 4, four times its sensitivity)");
  CHECK(too_far.sensitivity.size() == 1);
  CHECK(compared(DType::kF32, {NAN, 100}, {2, 100}, {3, 100}).agreement == Agreement::kWrong);
  CHECK(compared(DType::kI32, {3, 100}, {2, 100}, {2, 100}).agreement == Agreement::kWrong);
}

// `n` of `rest`, after `first`.
std::vector<double> many(const std::vector<double>& first, std::size_t n, double rest) {
  std::vector<double> all = first;
  all.resize(first.size() + n, rest);
  return all;
}

TEST_CASE("elements that flip say nothing of the others") {
  // A kernel that truncates where the reference rounds.
  const std::vector<double> codes(64, 100);
  const NetComparison truncated =
      compared(DType::kU8, many(std::vector<double>(32, 99), 32, 100), codes, many({101}, 63, 100));
  CHECK(truncated.agreement == Agreement::kWrong);
  CHECK(truncated.what ==
        "y differs by 32 in all its elements together (allowed: 8, four times its sensitivity)");
  REQUIRE(truncated.sensitivity.size() == 1);
  CHECK(truncated.sensitivity[0].deviation == 1);
  const std::vector<double> flips = many(std::vector<double>(8, 99), 56, 100);
  CHECK(compared(DType::kU8, flips, codes, many({101}, 63, 100)).agreement ==
        Agreement::kSensitive);
  // A tail of zeros behind a large value.
  const std::vector<double> tail = many({100}, 63, 1);
  CHECK(compared(DType::kF32, many({100}, 63, 0), tail, many({106}, 63, 1)).agreement ==
        Agreement::kWrong);
  CHECK(compared(DType::kF32, many({106}, 63, 1), tail, many({106}, 63, 1)).agreement ==
        Agreement::kSensitive);
  // The next index in all rows, where one row has a near tie.
  const std::vector<double> indices(64, 50);
  CHECK(compared(DType::kI64, std::vector<double>(64, 51), indices, many({52}, 63, 50)).agreement ==
        Agreement::kWrong);
  CHECK(compared(DType::kI64, many({52}, 63, 50), indices, many({52}, 63, 50)).agreement ==
        Agreement::kSensitive);
}

TEST_CASE("whole numbers that are the same as doubles differ") {
  net::Tensor tensor;
  tensor.name = "y";
  tensor.dtype = DType::kI64;
  tensor.shape = {1};
  ir::Tensor got(DType::kI64, {1}), want(DType::kI64, {1});
  got.set_int(0, (int64_t{1} << 60) + 1);
  want.set_int(0, int64_t{1} << 60);
  const auto bytes = [](const ir::Tensor& of) {
    return std::string(reinterpret_cast<const char*>(of.data.data()), of.data.size());
  };
  const std::string ours = bytes(got);
  const NetValues values = {{tensor}, {ours}, {bytes(want)}, "it should be"};
  const Result<NetComparison> found =
      compare_net(values, [&](uint64_t) { return Result<std::vector<std::string>>(values.want); });
  REQUIRE(found.ok());
  CHECK(found->agreement == Agreement::kWrong);
}

TEST_CASE("a net whose outputs moved floats change as a whole is not verifiable") {
  const NetComparison chaos = compared(DType::kF32, {3, 10}, {2, 10}, {2, 9});
  CHECK(chaos.agreement == Agreement::kNotVerifiable);
  CHECK(chaos.what ==
        "floats moved by a rounding change y by 1, 10% of its largest value, and a wrong kernel "
        "could hide in that; y[0] is 3, it should be 2 (allowed: 0.01)");
  const NetComparison none = compared(DType::kF32, {3, 10}, {2, 10}, {2, NAN});
  CHECK(none.agreement == Agreement::kNotVerifiable);
  CHECK(none.sensitivity[0].of_largest == kInfinity);
  CHECK(compared(DType::kBool, {1, 0}, {0, 0}, {1, 0}).agreement == Agreement::kNotVerifiable);
}

TEST_CASE("comparisons of a net add up to the worst of them") {
  NetComparison all = compared(DType::kF32, {3, 100}, {2, 100}, {2.5, 100});
  all.add(compared(DType::kF32, {2, 100}, {2, 100}, {2.5, 100}));
  CHECK(all.agreement == Agreement::kSensitive);
  CHECK(all.num_elems == 4);
  all.add(compared(DType::kF32, {4, 100}, {2, 100}, {3, 100}));
  REQUIRE(all.sensitivity.size() == 1);
  CHECK(all.sensitivity[0].deviation == 1);
  all.add(compared(DType::kF32, {50, 100}, {2, 100}, {2.5, 100}));
  CHECK(all.agreement == Agreement::kWrong);
  CHECK(!all.what.empty());
  CHECK(all.sensitivity[0].deviation == 1);
}

TEST_CASE("what is not verifiable hides nothing that is wrong") {
  const std::string chaos = bytes_of(DType::kF32, {2, 10}), flip = bytes_of(DType::kF32, {3, 10});
  const std::string stable = bytes_of(DType::kF32, {1, 1}), planted = bytes_of(DType::kF32, {1, 2});
  NetValues values = {{port("y", DType::kF32, 2), port("z", DType::kF32, 2)},
                      {flip, planted},
                      {chaos, stable},
                      "it should be"};
  const auto run = [&](uint64_t seed) {
    return Result<std::vector<std::string>>(
        std::vector<std::string>{seed == 5 ? flip : chaos, stable});
  };
  const NetComparison wrong = compare_net(values, run).value();
  CHECK(wrong.agreement == Agreement::kWrong);
  CHECK(wrong.what == "z[1] is 2, it should be 1 (allowed: 0.001)");
  values.got[1] = stable;
  const NetComparison unsure = compare_net(values, run).value();
  CHECK(unsure.agreement == Agreement::kNotVerifiable);
  const NetComparison right = compared(DType::kF32, {2}, {2}, {2});
  NetComparison all = unsure;
  all.add(right);
  CHECK(all.agreement == Agreement::kNotVerifiable);
  CHECK(all.what == unsure.what);
  all.add(wrong);
  CHECK(all.agreement == Agreement::kWrong);
  CHECK(all.what == wrong.what);
  all.add(unsure);
  CHECK(all.what == wrong.what);
}

TEST_CASE("the reference is not run again for what it gave") {
  const std::string want = bytes_of(DType::kF32, {2, 100}), got = bytes_of(DType::kF32, {3, 100});
  for (const bool is_own : {false, true}) {
    int num_as_is = 0, num_moved = 0;
    const NetValues values = {{port("y", DType::kF32, 2)}, {got}, {want}, "it should be", is_own};
    const auto run = [&](uint64_t seed) {
      ++(seed == 0 ? num_as_is : num_moved);
      return Result<std::vector<std::string>>(std::vector<std::string>{want});
    };
    CHECK(compare_net(values, run).value().agreement == Agreement::kWrong);
    CHECK(num_as_is == (is_own ? 0 : 1));
    CHECK(num_moved == 8);
  }
}

// Integers come in; a rounding of the constants decides.
constexpr const char* kStep = R"(
op step<N>(X: f32[N], I: i32[N]) -> (Y: f32[N]) { Y[i] = round(X[i]) + f32(I[i]); }
net steps(ids: i32[8], const E: f32[8]) -> (y: f32[8]) { y = step(E, ids); }
)";
constexpr const char* kPlanted = R"(
op step<N>(X: f32[N], I: i32[N]) -> (Y: f32[N]) { Y[i] = round(X[i]) + f32(I[i]) * 2; }
net steps(ids: i32[8], const E: f32[8]) -> (y: f32[8]) { y = step(E, ids); }
)";

// A product that is exact, and halves of odd numbers are ties.
constexpr const char* kExact = R"(
op scaled<N>(X: f32[N], I: i32[N]) -> (Y: f32[N]) { Y[i] = round(f32(I[i]) * X[i]); }
net steps(ids: i32[8], const E: f32[8]) -> (y: f32[8]) { y = scaled(E, ids); }
)";
constexpr const char* kNarrow = R"(
op widen<N>(X: bf16[N], I: i32[N]) -> (Y: f32[N]) { Y[i] = f32(X[i]) + f32(I[i]); }
net steps(ids: i32[8], const E: bf16[8]) -> (y: f32[8]) { y = widen(E, ids); }
)";

// All floats that come in have 16 bits: what moves others moves nothing here.
constexpr const char* kHalf = R"(
op step<N>(X: f16[N], I: i32[N]) -> (Y: f32[N]) { Y[i] = round(f32(X[i])) + f32(I[i]); }
net steps(ids: i32[8], const E: f16[8]) -> (y: f32[8]) { y = step(E, ids); }
)";
constexpr const char* kHalfPlanted = R"(
op step<N>(X: f16[N], I: i32[N]) -> (Y: f32[N]) { Y[i] = round(f32(X[i])) + f32(I[i]) * 2; }
net steps(ids: i32[8], const E: f16[8]) -> (y: f32[8]) { y = step(E, ids); }
)";

net::Net load(const std::string& text) {
  OperatorRequest request;
  request.text = text;
  Result<std::optional<LoadedNet>> loaded = load_net(request);
  INFO((loaded.ok() ? "" : loaded.error().message()));
  REQUIRE(loaded.ok());
  REQUIRE(loaded->has_value());
  return (*loaded)->net;
}

const ir::Target& host() {
  static const ir::Target target = [] {
    SessionOptions options;
    options.threads = 1;
    options.database = ":memory:";
    return Session::open(options)->target();
  }();
  return target;
}

class Steps {
 public:
  // E holds `first` and `second` in turn, ids `id`.
  Steps(const std::string& text, double first, double second, int id)
      : net_(load(text)), weights_(WeightSource::open(net_, "steps.prn", "").value()), id_(id) {
    weights_.set("E", tensor_of(net_.tensors[net_.inputs[1]].dtype,
                                {first, second, first, second, first, second, first, second}));
  }

  Result<std::vector<std::string>> run(uint64_t seed, bool narrow = false) {
    PRUNERC_TRY(Network network, Network::build(net_, {host(), 1}, [](const Operator& op) {
                  return Result<ir::Program>(reference_schedule(op.program, host()));
                }));
    weights_.set_moved(seed, narrow);
    PRUNERC_TRY_VOID(network.prepare(weights_));
    PRUNERC_TRY(const AlignedArray ids, AlignedArray::make(8 * sizeof(int32_t)));
    PRUNERC_TRY(const AlignedArray y, AlignedArray::make(8 * sizeof(float)));
    for (int i = 0; i < 8; ++i) static_cast<int32_t*>(ids.data())[i] = id_;
    const void* const inputs[] = {ids.data()};
    void* const outputs[] = {y.data()};
    PRUNERC_TRY_VOID(network.run(inputs, outputs));
    const std::string bytes(static_cast<const char*>(y.data()), 8 * sizeof(float));
    return std::vector<std::string>{bytes};
  }

  // The outputs of another net, or these with `by` added to the first, beside these.
  NetComparison compare(Steps& other, float by = 0) {
    std::string got = other.run(0).value()[0];
    float first = 0;
    std::memcpy(&first, got.data(), sizeof(first));
    first += by;
    std::memcpy(got.data(), &first, sizeof(first));
    const NetValues values = {
        {net_.tensors[net_.outputs[0]]}, {got}, run(0).value(), "it should be", true};
    MovedRun narrow;
    if (has_narrow_floats(net_)) narrow = [&](uint64_t seed) { return run(seed, true); };
    return compare_net(
               values, [&](uint64_t seed) { return run(seed); }, narrow)
        .value();
  }

 private:
  net::Net net_;
  WeightSource weights_;
  int id_;
};

TEST_CASE("constants of a net with integer inputs say how sensitive it is") {
  Steps net(kStep, 2.5, 3.5, 100);
  const NetComparison flip = net.compare(net, 1);
  INFO(flip.what);
  CHECK(flip.agreement == Agreement::kSensitive);
  REQUIRE(flip.sensitivity.size() == 1);
  CHECK(flip.sensitivity[0].deviation == 1);
  CHECK(net.compare(net).agreement == Agreement::kRight);
}

TEST_CASE(
    "a wrong kernel is wrong in a stable net and in one with flips, and never right in chaos") {
  Steps stable(kStep, 2.3, 3.3, 100), flips(kStep, 2.5, 3.5, 100), chaos(kStep, 2.5, 3.5, 0);
  Steps planted(kPlanted, 2.5, 3.5, 100), planted_stable(kPlanted, 2.3, 3.3, 100);
  CHECK(stable.compare(stable, 1).agreement == Agreement::kWrong);
  CHECK(stable.compare(planted_stable).agreement == Agreement::kWrong);
  CHECK(flips.compare(planted).agreement == Agreement::kWrong);
  CHECK(chaos.compare(chaos, 1).agreement == Agreement::kNotVerifiable);
  CHECK(chaos.compare(planted).agreement == Agreement::kWrong);
}

TEST_CASE("exact scales loosen no stable net, and weights of 16 bits make nothing acceptable") {
  Steps exact(kExact, 0.5, 0.25, 201), narrow(kNarrow, 0.3, 0.7, 0);
  CHECK(exact.compare(exact).agreement == Agreement::kRight);
  CHECK(exact.compare(exact, 1).agreement == Agreement::kWrong);
  CHECK(narrow.compare(narrow).agreement == Agreement::kRight);
  CHECK(narrow.compare(narrow, 0.01F).agreement == Agreement::kNotVerifiable);
  CHECK(narrow.compare(narrow, 0.1F).agreement == Agreement::kWrong);
}

TEST_CASE("a flip that a rounding of 16 bits makes is not verifiable, and never accepted") {
  Steps flips(kHalf, 2.5, 3.5, 100), stable(kHalf, 2.3, 3.3, 100),
      planted(kHalfPlanted, 2.5, 3.5, 100);
  CHECK(flips.compare(flips).agreement == Agreement::kRight);
  const NetComparison flip = flips.compare(flips, 1);
  CHECK(flip.agreement == Agreement::kNotVerifiable);
  CHECK(flip.what.find("floats of 16 bits moved by a unit change as much") == 0);
  REQUIRE(flip.sensitivity.size() == 1);
  CHECK(flip.sensitivity[0].deviation == 1);
  CHECK(flips.compare(planted).agreement == Agreement::kWrong);
  CHECK(stable.compare(stable, 1).agreement == Agreement::kWrong);
}

TEST_CASE("weights move by seed, those of one name alike, and come back") {
  const net::Net net = load(R"(
op both<N>(A: f32[N], B: f32[N], x: f32[N]) -> (Y: f32[N]) { Y[i] = A[i] + B[i] * x[i]; }
net tied(x: f32[16]) -> (y: f32[16]) {
  const A: f32[16] = "w"; const B: f32[16] = "w"; const C: f32[16] = "v";
  let h = both(A, B, x); y = both(C, A, h);
})");
  WeightSource weights = WeightSource::open(net, "tied.prn", "rand:uniform(-1,1):seed=1").value();
  const auto get = [&](const std::string& name) {
    for (const net::Tensor& tensor : net.tensors) {
      if (tensor.name == name) return weights.get(tensor).value();
    }
    FAIL("no tensor " << name);
    return ir::Tensor();
  };
  const ir::Tensor a = get("A"), c = get("C");
  weights.set_moved(3);
  const ir::Tensor moved = get("A");
  CHECK(moved != a);
  CHECK(get("B") == moved);
  CHECK(get("C") != c);
  weights.set_moved(4);
  CHECK(get("A") != moved);
  weights.set_moved(0);
  CHECK(get("A") == a);
}

}  // namespace
}  // namespace prunerc
