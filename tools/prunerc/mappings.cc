#include "tools/prunerc/mappings.h"

#include "ir/target.h"
#include "ir/tensor/intrinsic.h"
#include "ir/visit.h"
#include "schedule/mapping/mapping.h"
#include "tools/prunerc/cli.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace prunerc::cli {
namespace {

using ir::BlockId;
using ir::TensorIntrinsic;
using schedule::TensorMapping;

/// A convolution has hundreds; the best are wanted.
constexpr std::size_t kMostLines = 20;

std::vector<const ir::Block*> blocks_of(const ir::Program& program) {
  std::vector<const ir::Block*> out;
  ir::walk(
      program.root(),
      [&](ir::Stmt s) {
        if (const ir::Block* block = s.as<ir::Block>()) out.push_back(block);
        return s.as<ir::Block>() == nullptr;
      },
      [](ir::Expr) {});
  return out;
}

Result<std::vector<const TensorIntrinsic*>> wanted(const MappingOptions& options) {
  if (!options.tensor.empty()) {
    PRUNERC_TRY(const TensorIntrinsic* const one, ir::find_tensor(options.tensor));
    return std::vector{one};
  }
  PRUNERC_TRY(const ir::Target target, ir::target_from_string(options.target));
  const std::string_view family = target.kind == ir::TargetKind::kCpu ? "cpu" : "cuda";
  std::vector<const TensorIntrinsic*> out;
  for (const TensorIntrinsic& one : ir::tensor_intrinsics()) {
    // Products of tiles sum over two variables, the groups and what is in one: few operators do. There
    // is one for each number of rows, to be asked for by name.
    if (one.family == family && !one.uses_tiles()) out.push_back(&one);
  }
  return out;
}

std::string sizes(const std::vector<int64_t>& extents) {
  return fmt::format("{}", fmt::join(extents, "x"));
}

void print_mappings(const ir::Program& program, BlockId block,
                    const std::vector<TensorMapping>& mappings) {
  for (std::size_t i = 0; i < std::min(mappings.size(), kMostLines); ++i) {
    const TensorMapping& m = mappings[i];
    const std::string padded = m.padded == m.extents ? "" : " padded to " + sizes(m.padded);
    fmt::print("#   {:2}. {}; {}{}, {} elements copied\n", i + 1,
               to_string(program, block, m).substr(m.intrinsic.size() + 2), sizes(m.extents),
               padded, m.copied_elems);
  }
  if (mappings.size() > kMostLines) fmt::print("#   {} more\n", mappings.size() - kMostLines);
}

int print_script(const ir::Program& program, BlockId block, const TensorMapping& mapping) {
  schedule::Schedule s(program);
  const Result<std::vector<ir::LoopId>> applied = schedule::apply_mapping(s, block, mapping);
  if (!applied.ok()) return fail(applied.error(), kNoCandidate);
  fmt::print("{}", schedule::print(s.trace()));
  return kSuccess;
}

}  // namespace

int show_mappings(const ir::Program& program, const MappingOptions& options) {
  const Result<std::vector<const TensorIntrinsic*>> intrinsics = wanted(options);
  if (!intrinsics.ok()) return fail(intrinsics.error(), kUsage);
  bool found = false;
  for (const ir::Block* block : blocks_of(program)) {
    fmt::print("# block \"{}\" @B{}\n", block->name, block->id.value);
    for (const TensorIntrinsic* tensor : *intrinsics) {
      const Result<std::vector<TensorMapping>> mappings =
          schedule::tensor_mappings(program, block->id, tensor->name);
      if (!mappings.ok()) {
        fmt::print("# {}: none: {}\n", tensor->name, mappings.error().message());
        continue;
      }
      fmt::print("# {} ({}): {}\n", tensor->name, tensor->needs(), mappings->size());
      print_mappings(program, block->id, *mappings);
      const auto rank = static_cast<std::size_t>(options.rank);
      // Only one of them: applying it takes the program along.
      if (options.tensor.empty() || found || rank > mappings->size()) continue;
      const int code = print_script(program, block->id, (*mappings)[rank - 1]);
      if (code != kSuccess) return code;
      found = true;
    }
  }
  if (options.tensor.empty() || found) return kSuccess;
  return fail(error(Diag::kUsageOption, "--rank",
                    fmt::format("no block has {} mappings onto {}", options.rank, options.tensor)),
              kNoCandidate);
}

}  // namespace prunerc::cli
