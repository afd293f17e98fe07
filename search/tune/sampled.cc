#include "search/tune/sampled.h"

#include "ir/support/check.h"
#include "ir/support/rng.h"
#include "schedule/schedule.h"
#include "schedule/twin/shrink.h"
#include "schedule/twin/slice.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace prunerc::search {
namespace {

/// A tile is about square in the last dimensions.
constexpr int64_t kTileSide = 8;
/// More corners than these are tried only by chance.
constexpr std::size_t kMaxCorners = 8;

std::vector<int64_t> extents_of(const ir::Buffer& buffer) {
  std::vector<int64_t> out;
  for (ir::Expr extent : buffer.shape) {
    const ir::IntImm* constant = extent.as<ir::IntImm>();
    // Parameters of programs, as opposed to sketches, have constant shapes.
    PRUNERC_CHECK(constant != nullptr, "an output's extent is a constant");
    out.push_back(constant->value);
  }
  return out;
}

std::vector<ir::BufferId> outputs_of(const ir::Program& program) {
  std::vector<ir::BufferId> out;
  for (const ir::Buffer& buffer : program.buffers()) {
    if (buffer.role == ir::BufferRole::kOutput) out.push_back(buffer.id);
  }
  return out;
}

// How an output is cut; tiles are numbered in row-major order.
class Tiling {
 public:
  explicit Tiling(const ir::Buffer& buffer) : shape_(extents_of(buffer)), side_(shape_.size()) {
    int64_t elements = 1;
    for (std::size_t d = shape_.size(); d-- > 0;) {
      side_[d] = std::min({shape_[d], kTileSide, kTileElements / elements});
      elements *= side_[d];
    }
  }

  int64_t count() const {
    int64_t out = 1;
    for (std::size_t d = 0; d < shape_.size(); ++d) out *= count_of(d);
    return out;
  }

  /// The first and last tile of each dimension, combined; some of these if there are many.
  std::set<int64_t> corners() const {
    std::set<int64_t> out = {0};
    int64_t stride = 1;
    for (std::size_t d = shape_.size(); d-- > 0;) {
      std::set<int64_t> both = out;
      for (int64_t tile : out) both.insert(tile + (count_of(d) - 1) * stride);
      out = std::move(both);
      stride *= count_of(d);
    }
    while (out.size() > kMaxCorners) out.erase(std::next(out.begin(), 1));
    return out;
  }

  std::vector<ir::Interval> box(int64_t tile) const {
    std::vector<ir::Interval> out(shape_.size());
    for (std::size_t d = shape_.size(); d-- > 0;) {
      const int64_t first = tile % count_of(d) * side_[d];
      out[d] = {first, std::min(first + side_[d], shape_[d]) - 1};
      tile /= count_of(d);
    }
    return out;
  }

 private:
  int64_t count_of(std::size_t d) const { return (shape_[d] + side_[d] - 1) / side_[d]; }

  std::vector<int64_t> shape_, side_;
};

ir::FpvVerdict check_tile(const ir::Program& spec, const ir::Program& candidate, int output,
                          const std::vector<ir::Interval>& box, ir::FpvOptions options) {
  const auto which = static_cast<std::size_t>(output);
  options.window = ir::FpvWindow{output, {}};
  for (const ir::Interval& range : box) options.window->box.emplace_back(range.lo, range.hi);
  const ir::Program part = schedule::slice(spec, {outputs_of(spec)[which], box});
  if (&spec == &candidate) return ir::check_equivalent(part, part, options);
  return ir::check_equivalent(part, schedule::slice(candidate, {outputs_of(candidate)[which], box}),
                              options);
}

bool same_outputs(const ir::Program& spec, const ir::Program& candidate) {
  const std::vector<ir::BufferId> a = outputs_of(spec);
  const std::vector<ir::BufferId> b = outputs_of(candidate);
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](ir::BufferId x, ir::BufferId y) {
    return extents_of(spec.buffer(x)) == extents_of(candidate.buffer(y));
  });
}

// Keeps the weaker bound; false if the tile ends the check.
bool take(const ir::FpvVerdict& tile, SampledVerdict* out) {
  const double bound = std::max(tile.log2_error, out->verdict.log2_error);
  const bool is_first = out->num_corners + out->num_random == 0;
  const ir::FpvAssumptions before = out->verdict.assumes;
  out->verdict = tile;
  if (!tile.ok()) return false;
  if (is_first) return true;
  out->verdict.log2_error = bound;
  out->verdict.assumes.add(before);
  return true;
}

// On tiles, up to the first that differs; those without a bound do not end it.
SampledVerdict check_tiles(const ir::Program& spec, const ir::Program& candidate,
                           const SampleOptions& options, const ir::FpvOptions& check) {
  SampledVerdict out;
  const std::vector<ir::BufferId> outputs = outputs_of(spec);
  std::optional<ir::FpvVerdict> unbounded;
  out.is_whole = true;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const Tiling tiling(spec.buffer(outputs[o]));
    out.num_tiles += tiling.count();
    const auto tile = [&](int64_t index) {
      ir::FpvVerdict found =
          check_tile(spec, candidate, static_cast<int>(o), tiling.box(index), check);
      if (!found.alike) return take(found, &out);
      unbounded = std::move(found);
      return true;
    };
    std::set<int64_t> certain = tiling.corners();
    // As many as there are, if these are few.
    const bool all = tiling.count() <= static_cast<int64_t>(certain.size()) + options.num_random;
    for (int64_t i = 0; all && i < tiling.count(); ++i) certain.insert(i);
    for (int64_t index : certain) {
      if (!tile(index)) return out;
      ++out.num_corners;
    }
    if (all) continue;
    out.is_whole = false;
    out.random_each = options.num_random;
    Rng rng(options.seed, o);
    for (int i = 0; i < options.num_random; ++i) {
      if (!tile(static_cast<int64_t>(rng.below(static_cast<uint64_t>(tiling.count()))))) return out;
      ++out.num_random;
    }
  }
  if (unbounded) out.verdict = *unbounded;
  return out;
}

}  // namespace

SampledVerdict check_programs(const ir::Program& spec, const ir::Program& candidate,
                              const SampleOptions& options) {
  ir::FpvOptions check;
  check.log2_error = options.log2_error;
  check.seed = options.seed;
  check.max_steps = options.max_steps;
  check.roundings = options.roundings;
  const int64_t cost = schedule::cost_of(spec) + schedule::cost_of(candidate);
  // Programs of other signatures are told apart there.
  if (cost > options.max_whole_cost && same_outputs(spec, candidate)) {
    return check_tiles(spec, candidate, options, check);
  }
  SampledVerdict out;
  out.is_whole = true;
  out.verdict = ir::check_equivalent(spec, candidate, check);
  return out;
}

SampledVerdict check_schedule(const Task& task, const schedule::Trace& trace,
                              const ir::Program& program, const SampleOptions& options) {
  SampledVerdict out;
  out.is_whole = true;
  out.verdict = check_on_twin(task, trace, kStoredLog2Error, options.seed).verdict;
  if (out.verdict.kind != ir::VerdictKind::kUnsupported) return out;
  return check_at_shape(task.base, trace, program, options);
}

SampledVerdict check_at_shape(const ir::Program& base, const schedule::Trace& trace,
                              const ir::Program& program, const SampleOptions& options) {
  if (!schedule::rounds_elsewhere(trace)) return check_programs(base, program, options);
  std::vector<ir::Program> around;
  SampledVerdict out;
  out.is_whole = true;
  schedule::ReplayOptions replay;
  replay.around = &around;
  const Result<schedule::Schedule> replayed = schedule::replay(base, trace, replay);
  if (!replayed.ok()) {
    out.verdict.text = replayed.error().message();
    return out;
  }
  const auto compare = [&](const ir::Program& from, const ir::Program& to, ir::Roundings roundings,
                           double log2_error) {
    SampleOptions own = options;
    own.roundings = roundings;
    own.log2_error = log2_error;
    const SampledVerdict piece = check_programs(from, to, own);
    // The seed draws the same tiles of each piece.
    if (piece.verdict.ok() && !piece.is_whole) out = piece;
    return piece.verdict;
  };
  // What `out` becomes on the way counts tiles alone.
  const ir::FpvVerdict all = check_in_pieces(base, around, program, options.log2_error, compare);
  out.verdict = all;
  return out;
}

SampledVerdict check_against(const ir::Program& spec, const Task& task,
                             const schedule::Trace& trace, const ir::Program& program,
                             const SampleOptions& options) {
  if (!schedule::rounds_elsewhere(trace)) return check_programs(spec, program, options);
  const SampledVerdict first = check_programs(spec, task.base, options);
  if (is_refuted(first.verdict)) return first;
  const SampledVerdict second = check_schedule(task, trace, program, options);
  SampledVerdict out = first.is_whole ? second : first;
  out.verdict = joined(first.verdict, second.verdict);
  return out;
}

std::string to_string(const SampledVerdict& verdict) {
  const std::string whole = ir::to_string(verdict.verdict);
  if (verdict.at_small_extents) return whole + " at small extents of two sizes";
  if (verdict.is_whole || !verdict.verdict.ok()) return whole;
  // "equal (chance ..)".
  const std::size_t space = whole.find(' ');
  const int random = verdict.num_random;
  char text[160];
  std::snprintf(text, sizeof(text), " on %d of %lld tiles, %d of them random",
                verdict.num_corners + random, static_cast<long long>(verdict.num_tiles), random);
  std::string out = whole.substr(0, space) + text + whole.substr(space);
  std::snprintf(text, sizeof(text), "; a fault in 1 of 10 tiles is missed with chance %.2g",
                std::pow(0.9, verdict.random_each));
  return out + text;
}

}  // namespace prunerc::search
