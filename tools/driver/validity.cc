#include "tools/driver/validity.h"

#include "ir/analysis/in_bounds.h"
#include "schedule/legality/written.h"
#include "search/tune/sampled.h"

namespace prunerc {
namespace {

/// One world shows whether a program is valid: that depends on no chance but what data decides.
constexpr double kOneTest = 0;
/// Inputs of more elements take longer to fill than a check may; such programs are judged by their
/// text alone.
constexpr int64_t kMostElements = int64_t{1} << 23;

int64_t num_elements(const ir::Program& program) {
  int64_t total = 0;
  for (const ir::Buffer& buffer : program.buffers()) {
    int64_t elements = 1;
    for (ir::Expr extent : buffer.shape) {
      const ir::IntImm* constant = extent.as<ir::IntImm>();
      if (constant == nullptr || constant->value > kMostElements) return kMostElements + 1;
      elements = std::min(kMostElements + 1, elements * constant->value);
    }
    total += elements;
  }
  return total;
}

}  // namespace

Result<void> check_valid(const ir::Program& program) {
  PRUNERC_TRY_VOID(ir::verify_in_bounds(program));
  PRUNERC_TRY_VOID(schedule::verify_lifetimes(program));
  PRUNERC_TRY_VOID(schedule::verify_outputs_written(program));
  if (!program.domain().empty() || num_elements(program) > kMostElements) return {};
  const search::SampledVerdict found =
      search::check_programs(program, program, {.log2_error = kOneTest, .num_random = 0});
  if (!search::is_refuted(found.verdict)) return {};
  return error(Diag::kProgramInvalid, std::string(program.name()), found.verdict.text);
}

}  // namespace prunerc
