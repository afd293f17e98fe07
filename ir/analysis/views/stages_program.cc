// Edited stages as a program again.
#include "ir/analysis/views/stages.h"
#include "ir/equal.h"
#include "ir/parser.h"
#include "ir/printer.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>

namespace prunerc::ir {
namespace {

bool is_known(const std::vector<Access>& accesses, BufferId buffer, std::span<const Expr> at) {
  return std::any_of(accesses.begin(), accesses.end(), [&](const Access& access) {
    return access.buffer == buffer &&
           std::equal(at.begin(), at.end(), access.region.begin(), access.region.end(),
                      [](Expr e, const Range& range) { return structural_equal(e, range.min); });
  });
}

// The block declares each element that it touches as it is written in the text.
void declare_points(IrBuilder& b, Block& block) {
  std::vector<Access> reads, writes;
  const auto add = [&](std::vector<Access>& accesses, BufferId buffer, std::span<const Expr> at) {
    if (is_known(accesses, buffer, at)) return;
    std::vector<Range> region;
    for (Expr index : at) region.push_back({index, b.int_imm(1)});
    accesses.push_back({buffer, b.copy(region)});
  };
  for (const Stmt part : {block.init, block.body}) {
    for (const Store* store : stores_of(part)) add(writes, store->buffer, store->indices);
  }
  for (const Stmt part : {block.init, block.body}) {
    for (const Load* load : loads_of(part)) {
      const bool is_written = std::any_of(writes.begin(), writes.end(), [&](const Access& access) {
        return access.buffer == load->buffer;
      });
      if (!is_written) add(reads, load->buffer, load->indices);
    }
  }
  block.reads = b.copy(reads);
  block.writes = b.copy(writes);
}

Stmt nest_of(Stages& stages, const Stage& stage) {
  IrBuilder& b = stages.b;
  Block block = stage.block;
  block.iters = b.copy(stage.iters);
  if (stage.is_changed) declare_points(b, block);
  Stmt stmt = b.block(block);
  for (auto it = stage.iters.rbegin(); it != stage.iters.rend(); ++it) {
    Loop loop{};
    loop.id = b.fresh_loop_id();
    loop.var = it->binding.as<Var>();
    loop.extent = it->extent;
    loop.loop_kind = LoopKind::kSerial;
    loop.body = stmt;
    stmt = b.loop(loop);
  }
  return stmt;
}

// Intermediates in the order in which they are written, and no others. Ids are positions, so this
// goes by way of the text, as renumbering does.
Program with_written_buffers(const Program& program, const Stages& stages) {
  constexpr std::string_view kBuffer = "  buffer ";
  std::map<std::string, std::string> lines;
  std::string before, after;
  std::istringstream text(print(program));
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with(kBuffer)) {
      lines[line.substr(kBuffer.size(), line.find(':') - kBuffer.size())] = line + "\n";
    } else {
      (before.empty() ? before : after) += line + "\n";
    }
  }
  std::set<BufferId> seen;
  for (const Stage& stage : stages.list) {
    for (const Store* store : stores_of(stage.block.body)) {
      if (!seen.insert(store->buffer).second) continue;
      const auto found = lines.find(std::string(program.buffer(store->buffer).name));
      if (found != lines.end()) before += found->second;
    }
  }
  Result<Program> written = parse(before + after);
  PRUNERC_CHECK(written.ok(), "what is printed parses");
  return std::move(written).value();
}

}  // namespace

Program program_of(Stages& stages) {
  IrBuilder& b = stages.b;
  std::vector<Stmt> nests;
  for (const Stage& stage : stages.list) nests.push_back(nest_of(stages, stage));
  return with_written_buffers(b.finish(b.seq(nests)), stages);
}

}  // namespace prunerc::ir
