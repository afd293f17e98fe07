#include "ir/fpv/fpv.h"

#include "ir/equal.h"
#include "ir/fpv/bound.h"
#include "ir/fpv/machine.h"
#include "ir/support/check.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace prunerc::ir {
namespace {

constexpr int kResamples = 3;
// Orders that are drawn where values are compared, per 20 bits of the wanted bound.
constexpr double kOrdersPerBit = 0.8;
// Statements that the bound looks at, per step of a run.
constexpr int64_t kVisitsPerStep = 4;
// Of a world's seed: streams that the world does not use.
constexpr uint64_t kCommonStream = 1000;
// Two tests of above this chance are worth less than one modulo two pairs of primes, where the chances of two arguments to be
// equal multiply and not their sum.
constexpr double kMissOfOnePair = 0x1p-12;
// Of every p, of every q, and of both together.
constexpr double kBitsOfP = 30, kBitsOfQ = 29, kBitsOfPair = 59;
// A chance of error above one half is no verdict.
constexpr double kLeastLog2Error = -1;

FpvVerdict verdict(VerdictKind kind, std::string text) {
  FpvVerdict out;
  out.kind = kind;
  out.text = std::move(text);
  return out;
}

std::vector<const FpBuffer*> parameters(const FpCode& code, BufferRole role) {
  std::vector<const FpBuffer*> out;
  for (const FpBuffer& buffer : code.buffers) {
    if (buffer.role == role) out.push_back(&buffer);
  }
  return out;
}

bool same_parameters(const FpCode& a, const FpCode& b) {
  for (BufferRole role : {BufferRole::kInput, BufferRole::kOutput}) {
    const std::vector<const FpBuffer*> x = parameters(a, role);
    const std::vector<const FpBuffer*> y = parameters(b, role);
    const bool same = std::equal(
        x.begin(), x.end(), y.begin(), y.end(), [](const FpBuffer* left, const FpBuffer* right) {
          return left->dtype == right->dtype && left->shape == right->shape;
        });
    if (!same) return false;
  }
  return true;
}

// Of wide integers: half of them are near the extents, a quarter within 2^20 of 0, a quarter may be any (world.cc).
double mass_near_zero(const FpCode& code) {
  return 0.5 / static_cast<double>(code.largest_param_extent + 3) + 0x1p-23 + 0x1p-34;
}

// Largest probability of one value of an integer input.
double mass_of_ints(const FpCode& code) {
  double mass = 0;
  for (const FpBuffer* input : parameters(code, BufferRole::kInput)) {
    if (is_float(input->dtype)) continue;
    const bool is_byte = input->dtype == DType::kI8 || input->dtype == DType::kU8;
    mass = std::max(mass, is_bool(input->dtype) ? 0.5 : is_byte ? 1.0 / 256 : mass_near_zero(code));
  }
  return mass;
}

// Whether integers, which no cone follows, are made of floats.
bool makes_integers(const FpCode& code) {
  return code.compares_floats || std::any_of(code.exprs.begin(), code.exprs.end(),
                                             [](const FpExpr& e) { return e.op == FpOp::kToInt; });
}

// A share of the primes of D2; none where a test chooses them.
double share(const FpWorld& world, double num_primes) {
  if (world.p().m < (uint32_t{1} << 30)) return 0;
  return num_primes < kNumSafePrimes ? num_primes / kNumSafePrimes : 1;
}

// One of the programs, as it was run.
struct Side {
  const FpCode& code;
  const FpMachine& run;
};

// Chance that two of the hashed arguments are equal in one test and should not be: `own` are those of one output
// element, `all` those of both programs, `merges` the chance that q makes exponents equal. DESIGN.md, D15.
double miss_of_hashes(const FpPoints& own, const FpPoints& all, double merges,
                      const FpWorld& world) {
  const bool is_wide = world.is_wide();
  const double p = is_wide ? std::min(world.p().m, world.p2().m) : world.p().m;
  const double q = (p - 1) / 2;
  const double bits = bits_of_difference(own.kept, own.kept);
  const double one = share(world, primes_in(bits, kBitsOfQ));
  const double both = share(world, primes_in(bits, kBitsOfPair));
  // Two of them, or one and whole numbers: of each a root, or one modulo the prime that does not divide.
  const double rate = 1 / (p * q) + one * (1 / p + 1 / q);
  // Any of them may be taken for a maximum of others; hashes have 64 bits on their way.
  const double names = own.hashed * all.hashed * 0x1p-62;
  const double roots =
      own.squares * ((2 * own.hashed + world.num_small()) * rate + all.hashed / (p * q));
  const double pairs = own.hashed * (own.hashed - 1) / 2 + own.whole;
  const double lost = (own.lost + 6) * own.weight / p;
  if (!is_wide) return names + roots + pairs * both + lost;
  // Of two a root modulo both pairs of primes: no two have a larger chance than this.
  const double largest = std::min(2 * own.squares * rate, 1.0);
  // (w + w')^2 is 2 w^2 + 2 w'^2 at most; an exponent that q divides is part of all arguments.
  return names + 2 * (roots * largest + pairs * both * both) +
         (2 * own.lost + 9) * own.weight2 / (p * p) + 2 * merges * std::min(lost, 1.0);
}

// Chance that a difference of outputs vanishes modulo a pair of primes. With exponentials only the residues modulo p count,
// and each exponential is a power of random elements of a subgroup of order q.
double vanishes(double degree, double bits, bool has_exp, const FpWorld& world, const Modulus& p,
                const Modulus& q) {
  if (has_exp) return degree / p.m + 4 * degree / q.m + share(world, primes_in(bits, kBitsOfP));
  // Both residues; or one prime divides the coefficients and the other has a root.
  return degree / p.m * degree / q.m + share(world, primes_in(bits, kBitsOfPair)) +
         share(world, primes_in(bits, kBitsOfQ)) * (degree / p.m + degree / q.m);
}

// Chance that a difference of outputs vanishes because of the integers among the inputs.
double miss_of_integers(const FpCode& code, const FpDegrees& a, const FpDegrees& b) {
  const bool fractions = a.denominator + b.denominator > 0;
  const double degree =
      fractions ? a.int_degree + b.int_degree : std::max(a.int_degree, b.int_degree);
  const double mass = std::max({mass_of_ints(code), a.int_mass, b.int_mass});
  // Of degree + 1 whole numbers in a row one is no root, and inputs are drawn from such rows. 0 of an infinite degree is 0.
  return std::min(mass == 0 ? 0 : mass * degree, 1 - std::pow(0.4, degree));
}

// Chance that one test misses a difference for another reason: DESIGN.md, D3, D13 and D15.
double miss_of_one_test(const Side& spec, const Side& candidate, const FpWorld& world) {
  const FpCone x = spec.run.outputs();
  const FpCone y = candidate.run.outputs();
  // The difference of two fractions, over the common denominator.
  const double degree = std::max(x.num + y.den, y.num + x.den);
  const double bits = bits_of_difference(x.size, y.size);
  const bool has_exp = spec.code.has_exp || candidate.code.has_exp;
  const FpPoints all = spec.run.points() + candidate.run.points();
  const bool is_followed = !makes_integers(spec.code) && !makes_integers(candidate.code);
  const FpPoints own = is_followed ? at_most(all, x.points + y.points) : all;
  // The difference of two hashed arguments is of both degrees.
  const double largest = std::max(degree, 2 * own.degree);
  const double merges = share(world, primes_of_exponents(own, largest));
  const auto modulo = [&](const Modulus& p, const Modulus& q) {
    const double chance = vanishes(degree, bits, has_exp, world, p, q) + merges;
    return chance < 1 ? chance : 1.0;
  };
  double miss = modulo(world.p(), world.q());
  if (world.is_wide()) miss *= modulo(world.p2(), world.q2());
  return miss + miss_of_hashes(own, all, merges, world);
}

// The first output element that differs; nullopt if none does.
std::optional<std::string> difference(const FpCode& spec_code, const FpMachine& spec,
                                      const FpCode& code, const FpMachine& candidate) {
  std::vector<int32_t> ours, theirs;
  for (std::size_t b = 0; b < spec_code.buffers.size(); ++b) {
    if (spec_code.buffers[b].role == BufferRole::kOutput) ours.push_back(static_cast<int32_t>(b));
  }
  for (std::size_t b = 0; b < code.buffers.size(); ++b) {
    if (code.buffers[b].role == BufferRole::kOutput) theirs.push_back(static_cast<int32_t>(b));
  }
  for (std::size_t o = 0; o < ours.size(); ++o) {
    const FpBuffer& buffer = spec_code.buffers[static_cast<std::size_t>(ours[o])];
    const FpMemory& x = spec.memory(ours[o]);
    const FpMemory& y = candidate.memory(theirs[o]);
    const int64_t differs = find_watched(spec_code, ours[o], [&](int64_t position) {
      const auto i = static_cast<std::size_t>(position);
      if (!is_float(buffer.dtype)) return x.v[i] != y.v[i];
      return !agree(x.value(i), y.value(i));
    });
    if (differs >= 0) return spec.element_name(ours[o], differs);
  }
  return std::nullopt;
}

void set_window(const FpvWindow& window, FpCode* code) {
  int output = 0;
  for (std::size_t b = 0; b < code->buffers.size(); ++b) {
    const FpBuffer& buffer = code->buffers[b];
    if (buffer.role != BufferRole::kOutput) continue;
    FpWindow own = {static_cast<int32_t>(b), {}};
    if (output++ == window.output) {
      PRUNERC_CHECK(window.box.size() == buffer.shape.size(), "a window has the output's rank");
      own.box = window.box;
      // A scalar is one element.
      if (own.box.empty()) continue;
    }
    code->windows.push_back(std::move(own));
  }
}

// What a world's few values have among them: nothing of the programs, 0, or one of their constants.
std::optional<FpValue> common_value(const FpCode& spec, const FpCode& candidate, FpWorld& world) {
  std::vector<FpConstant> all = spec.constants;
  all.insert(all.end(), candidate.constants.begin(), candidate.constants.end());
  const uint64_t which = Rng(world.seed(), kCommonStream).below(all.size() + 2);
  if (which == 0) return std::nullopt;
  if (which == 1) return FpValue{};
  const FpConstant& one = all[which - 2];
  const FpValue value = world.of_float(one.value, one.dtype);
  return value.is_special() ? std::nullopt : std::optional(value);
}

// What integer data is compared with, among others.
std::vector<int64_t> int_constants(const FpCode& spec, const FpCode& candidate) {
  std::vector<int64_t> out;
  for (const FpCode* code : {&spec, &candidate}) {
    for (const FpExpr& e : code->exprs) {
      if (e.op == FpOp::kConstI && !is_bool(e.dtype)) out.push_back(e.value);
    }
  }
  return out;
}

class Check {
 public:
  Check(const FpCode& spec, const FpCode& candidate, const FpvOptions& options, uint64_t seed)
      : spec_(spec),
        candidate_(candidate),
        options_(options),
        seed_(seed),
        spec_degrees_(find_degrees(spec, kVisitsPerStep * options.max_steps)),
        degrees_(find_degrees(candidate, kVisitsPerStep * options.max_steps)),
        width_(options.width),
        int_miss_(miss_of_integers(spec, spec_degrees_, degrees_)) {
    assumes_.private_exponents = spec_degrees_.has_products_in_exp || degrees_.has_products_in_exp;
    assumes_.orders = compares_floats() || spec.indexes_by_data || candidate.indexes_by_data ||
                      spec_degrees_.compares_data || degrees_.compares_data;
    assumes_.roundings = spec.ignores_roundings || candidate.ignores_roundings;
  }

  FpvVerdict run();

 private:
  // Chances of one test.
  struct Miss {
    double arithmetic = 0;  // without those of integers
    double all = 0;
  };
  bool compares_floats() const { return spec_.compares_floats || candidate_.compares_floats; }
  bool has_bound() const { return spec_degrees_.is_finite() && degrees_.is_finite(); }
  bool should_widen(const Miss& miss, double log2_error) const;
  std::optional<FpvVerdict> test(uint64_t index, std::optional<Miss>* miss);

  const FpCode& spec_;
  const FpCode& candidate_;
  const FpvOptions& options_;
  uint64_t seed_;
  FpDegrees spec_degrees_, degrees_;
  FpvAssumptions assumes_;
  WorldWidth width_;
  double int_miss_;  // of each test
};

// One world. A verdict ends the check. No `miss`: the world shows nothing about arithmetic. Where data decides, every
// other one has inputs that are what the programs compare with.
std::optional<FpvVerdict> Check::test(uint64_t index, std::optional<Miss>* miss) {
  const OrderModel model = compares_floats() ? OrderModel::kOrdered : OrderModel::kSets;
  const bool is_odd = assumes_.orders && index % 2 == 1;
  const bool few = is_odd && compares_floats();
  const InputModel inputs = few ? InputModel::kFewValues : InputModel::kAllDifferent;
  for (uint64_t attempt = 0; attempt < kResamples; ++attempt) {
    FpWorld world(Rng(seed_, index, attempt).next(), options_.primes, model, inputs, width_);
    if (few) {
      if (const auto common = common_value(spec_, candidate_, world)) world.set_common(*common);
    }
    if (is_odd) world.set_common_ints(int_constants(spec_, candidate_));
    FpMachine spec(spec_, world, options_.max_steps);
    if (!spec.run() && !world.divided_by_zero()) {
      return verdict(spec.failure() == FpFailure::kInvalid ? VerdictKind::kSpecInvalid
                                                           : VerdictKind::kUnsupported,
                     spec.why());
    }
    if (world.divided_by_zero()) continue;
    FpMachine candidate(candidate_, world, options_.max_steps);
    // A second run of one program in one world shows nothing.
    const bool is_one = &spec_ == &candidate_;
    if (!is_one && !candidate.run() && !world.divided_by_zero()) {
      return verdict(candidate.failure() == FpFailure::kInvalid ? VerdictKind::kInvalid
                                                                : VerdictKind::kUnsupported,
                     candidate.why());
    }
    if (world.divided_by_zero()) continue;
    const FpMachine& other = is_one ? spec : candidate;
    const std::optional<std::string> differs = difference(spec_, spec, candidate_, other);
    if (differs) return verdict(VerdictKind::kNotEqual, "element " + *differs);
    if (few || (is_odd && spec_degrees_.int_degree + degrees_.int_degree > 0)) return std::nullopt;
    const double chance = miss_of_one_test({spec_, spec}, {candidate_, other}, world);
    // A world that was drawn again has as many chances.
    const double times = attempt > 0 ? kResamples : 1;
    *miss = {times * chance, std::min(1.0, times * (chance + int_miss_))};
    return std::nullopt;
  }
  // Differences of few values are often 0.
  if (few) return std::nullopt;
  return verdict(VerdictKind::kUnsupported, "division by zero");
}

// Whether tests after one of this miss are worth more modulo two pairs of primes, another like it not being enough.
bool Check::should_widen(const Miss& miss, double log2_error) const {
  return width_ == WorldWidth::kOne && has_bound() && int_miss_ < 1 &&
         !(miss.arithmetic <= kMissOfOnePair) &&
         log2_error + std::log2(miss.all) > options_.log2_error;
}

FpvVerdict Check::run() {
  if (spec_degrees_.is_too_long || degrees_.is_too_long) {
    return verdict(VerdictKind::kUnsupported, "loops too deep for a bound");
  }
  FpvVerdict out;
  out.kind = VerdictKind::kEqual;
  out.assumes = assumes_;
  const int at_least =
      out.assumes.orders
          ? std::max(1, static_cast<int>(std::ceil(-options_.log2_error * kOrdersPerBit)))
          : 1;
  bool goes_on = has_bound();  // tests multiply, but not those that say nothing
  while (out.tests < options_.max_tests &&
         (out.tests < at_least || (goes_on && out.log2_error > options_.log2_error))) {
    std::optional<Miss> miss;
    std::optional<FpvVerdict> ended = test(static_cast<uint64_t>(out.tests), &miss);
    ++out.tests;
    if (ended) {
      ended->tests = out.tests;
      return *ended;
    }
    if (!miss) continue;
    // Hashes are no better than that.
    if (has_bound()) out.log2_error += std::log2(std::max(miss->all, 0x1p-62));
    const bool widens = should_widen(*miss, out.log2_error);
    goes_on = goes_on && (miss->all < 1 || widens);
    if (widens) width_ = WorldWidth::kTwo;
  }
  if (options_.log2_error < 0 && out.log2_error > kLeastLog2Error) {
    FpvVerdict none = verdict(VerdictKind::kUnsupported,
                              has_bound() ? "no bound below one half" : "a degree without a bound");
    none.alike = true;
    none.tests = out.tests;
    return none;
  }
  // Nothing more was tried for than what was wanted.
  if (out.assumes.orders) out.log2_error = std::max(out.log2_error, options_.log2_error);
  return out;
}

}  // namespace

std::string_view to_string(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::kEqual: return "equal";
    case VerdictKind::kNotEqual: return "not equal";
    case VerdictKind::kInvalid: return "invalid";
    case VerdictKind::kSpecInvalid: return "reference invalid";
    case VerdictKind::kUnsupported: return "unsupported";
  }
  PRUNERC_UNREACHABLE("verdict");
}

FpvVerdict check_equivalent(const Program& spec, const Program& candidate,
                            const FpvOptions& options) {
  Result<FpCode> left =
      compile_fp(spec, options.spec_params, options.max_elements, options.roundings);
  if (!left) return verdict(VerdictKind::kUnsupported, left.error().message());
  std::optional<FpCode> right;  // none: a program beside itself
  if (&spec != &candidate || !std::ranges::equal(options.spec_params, options.candidate_params)) {
    Result<FpCode> own =
        compile_fp(candidate, options.candidate_params, options.max_elements, options.roundings);
    if (!own) return verdict(VerdictKind::kUnsupported, own.error().message());
    if (!same_parameters(*left, *own)) {
      return verdict(VerdictKind::kInvalid, "the parameters are others");
    }
    right = std::move(own).value();
  }
  if (options.window) {
    set_window(*options.window, &*left);
    if (right) set_window(*options.window, &*right);
  }
  // Of the programs as well: else who knows the seed could write one with its primes for constants.
  const uint64_t seed =
      hash_combine(hash_combine(options.seed, fingerprint(spec).low), fingerprint(candidate).low);
  return Check(*left, right ? *right : *left, options, seed).run();
}

std::string to_string(const FpvVerdict& verdict) {
  std::string out(to_string(verdict.kind));
  if (!verdict.ok()) return out + ": " + verdict.text;
  char number[32];
  std::snprintf(number, sizeof(number), "2^%.0f", verdict.log2_error);
  out += std::string(" (chance of error ") + number + ", " + std::to_string(verdict.tests) +
         (verdict.tests == 1 ? " test" : " tests");
  if (verdict.assumes.private_exponents) out += ", if exponents have inputs of their own";
  if (verdict.assumes.orders) out += ", for what comparisons do not decide";
  if (verdict.assumes.roundings) out += ", but for roundings to narrower floats";
  return out + ")";
}

}  // namespace prunerc::ir
