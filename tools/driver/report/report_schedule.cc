#include "tools/driver/report/report_schedule.h"

#include "codegen/codegen.h"
#include "costmodel/latency/symbols.h"
#include "ir/printer.h"
#include "schedule/schedule.h"

#include <algorithm>

namespace prunerc {
namespace {

/// Lines of a text that a page shows; `prunerc show` prints all of it.
constexpr int64_t kMostLines = 400;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// Those around `centre` if not all fit.
ReportText excerpt(const std::vector<std::string_view>& lines, int64_t centre) {
  ReportText text;
  text.num_lines = static_cast<int64_t>(lines.size());
  const int64_t last_first = std::max<int64_t>(0, text.num_lines - kMostLines);
  text.first = std::clamp<int64_t>(centre - kMostLines / 2, 0, last_first);
  const int64_t end = std::min(text.num_lines, text.first + kMostLines);
  for (int64_t i = text.first; i < end; ++i) {
    text.lines.push_back(without_folders(lines[static_cast<std::size_t>(i)]));
  }
  return text;
}

ReportText whole(const std::string& text) { return excerpt(lines_of(text), 0); }

// What the assembler is told beside instructions and labels says nothing of speed.
bool is_directive(std::string_view line) {
  const std::size_t start = line.find_first_not_of(" \t");
  return start != line.npos && start > 0 && line[start] == '.';
}

void add_assembly(const std::string& text, ReportSchedule* out) {
  std::vector<std::string_view> lines = lines_of(text);
  std::erase_if(lines, is_directive);
  out->loop = find_hot_loop(lines);
  out->code = excerpt(lines, static_cast<int64_t>((out->loop.first + out->loop.last) / 2));
  out->code_kind = "assembly";
}

void add_code(const ir::Program& program, const ir::Target& target, ReportSchedule* out) {
  if (target.kind == ir::TargetKind::kCpu) {
    const Result<std::string> text =
        codegen::emit_cpu(program, target, codegen::EmitKind::kAssembly);
    if (text.ok()) return add_assembly(*text, out);
    out->note = without_folders(text.error().message());
    return;
  }
  const Result<codegen::Artifact> artifact = codegen::print_cuda_artifact(program, target);
  if (artifact.ok()) {
    out->code = whole(artifact->bytes);
    out->code_kind = "CUDA";
  } else {
    out->note = without_folders(artifact.error().message());
  }
}

void add_estimate(const costmodel::LatencySymbols& symbols, ReportSchedule* out) {
  out->predicted_ns = symbols.total_ns.value();
  out->launch_ns = symbols.launch_ns.value();
  for (const costmodel::LatencyTerm& term : symbols.terms) {
    ReportNest nest = {term.name, term.total_ns.value(), {}};
    for (std::size_t i = 0; i < term.parts_ns.size(); ++i) {
      const double ns = term.parts_ns[i].value();
      if (ns <= 0) continue;
      nest.parts_ns.emplace_back(to_string(static_cast<costmodel::TermPart>(i)), ns);
    }
    out->nests.push_back(std::move(nest));
  }
}

}  // namespace

Result<ReportSchedule> schedule_of(const search::Task& task, const std::string& trace) {
  PRUNERC_TRY(const schedule::Trace parsed, schedule::parse_trace(trace));
  PRUNERC_TRY(const schedule::Schedule replayed, schedule::replay(task.base, parsed));
  ReportSchedule out;
  add_estimate(costmodel::latency_symbols(replayed.program(), task.target), &out);
  out.trace = whole(trace);
  out.program = whole(ir::print(replayed.program()));
  add_code(replayed.program(), task.target, &out);
  return out;
}

}  // namespace prunerc
