#include "search/model/inputs.h"

#include "ir/analysis/prologue.h"
#include "ir/support/check.h"
#include "schedule/trace/tokens.h"
#include "search/space/draft_space.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

namespace prunerc::search {

using costmodel::ModelFeatures;
using costmodel::model::Batch;
using costmodel::model::NetworkKind;
using costmodel::model::NetworkOptions;
using costmodel::model::ProgramView;

namespace {

constexpr int kStatementInputs = costmodel::kNumStatementFeatures + costmodel::kNumTagFeatures;
constexpr int kContextInputs =
    costmodel::kNumHardwareFeatures + costmodel::kNumTagFeatures + kNumAnalyzerInputs;
/// Ratios below this count as none at all.
constexpr double kLeastRatio = 1.0 / 1024;
/// What TLP keeps of a trace: its first instructions and their first numbers (Zhai et al., ASPLOS 2023).
constexpr int kCpuTokenRows = 25, kCpuTokenWidth = schedule::kTokenWidth;
constexpr int kGpuTokenRows = 40, kGpuTokenWidth = 20;
/// Candidates of one task for a thread.
constexpr std::size_t kPortion = 128;

/// Candidates of one sketch, as many as a thread takes at a time: code runs on blocks of them, and
/// a ranking mixes all sketches.
struct Portion {
  int sketch = -1;
  std::vector<std::size_t> which;
};

std::vector<Portion> portions_of(std::span<const Genome> genomes) {
  std::map<int, Portion> open;
  std::vector<Portion> out;
  for (std::size_t i = 0; i < genomes.size(); ++i) {
    Portion& portion = open[genomes[i].sketch];
    portion.sketch = genomes[i].sketch;
    portion.which.push_back(i);
    if (portion.which.size() < kPortion) continue;
    out.push_back(std::exchange(portion, {}));
  }
  for (auto& [sketch, portion] : open) {
    if (!portion.which.empty()) out.push_back(std::move(portion));
  }
  return out;
}

/// One candidate's inputs, laid out for a ProgramView.
class Row {
 public:
  Row(const NetworkOptions& network, const ModelFeatures& features, const AnalyzerInputs& analyzer)
      : network_(network) {
    for (const costmodel::StatementFeatures& s : features.statements) {
      statements_.insert(statements_.end(), s.begin(), s.end());
      statements_.insert(statements_.end(), features.tag.begin(), features.tag.end());
    }
    if (network.kind == NetworkKind::kPacmPaper) {
      for (std::size_t i = 0; i < costmodel::kNumReleasedFlowSteps; ++i) {
        flow_.insert(flow_.end(), features.paper_flow[i].begin(), features.paper_flow[i].end());
      }
    } else {
      for (const costmodel::FlowFeatures& step : features.flow) {
        flow_.insert(flow_.end(), step.begin(), step.end());
      }
    }
    context_.insert(context_.end(), features.hardware.begin(), features.hardware.end());
    context_.insert(context_.end(), features.tag.begin(), features.tag.end());
    context_.insert(context_.end(), analyzer.begin(), analyzer.end());
  }

  Row(const NetworkOptions& network, const schedule::Trace& trace) : network_(network) {
    const schedule::TraceTokens tokens = schedule::trace_tokens(trace);
    const int width = std::min(network.token_inputs, schedule::kTokenWidth);
    for (int row = 0; row < std::min(tokens.num_rows, network.token_length); ++row) {
      const auto first = tokens.values.begin() + row * schedule::kTokenWidth;
      tokens_.insert(tokens_.end(), first, first + width);
    }
    tokens_.resize(static_cast<std::size_t>(network.token_length) *
                   static_cast<std::size_t>(network.token_inputs));
  }

  void append_to(Batch<float>* batch) const {
    ProgramView view;
    const auto rows = [](const std::vector<float>& values, int width) {
      return costmodel::nn::View<const float>{
          values.data(), static_cast<int>(values.size()) / width, width, width};
    };
    if (network_.kind == NetworkKind::kTlp) {
      view.tokens = rows(tokens_, network_.token_inputs);
    } else {
      view.statements = rows(statements_, network_.statement_inputs);
    }
    if (network_.kind == NetworkKind::kPacm || network_.kind == NetworkKind::kPacmPaper) {
      view.flow = rows(flow_, network_.flow_inputs);
    }
    if (network_.kind == NetworkKind::kPacm) view.context = rows(context_, network_.context_inputs);
    append(view, batch);
  }

 private:
  const NetworkOptions& network_;
  std::vector<float> statements_, flow_, context_, tokens_;
};

}  // namespace

std::string_view feature_set(NetworkKind kind) {
  switch (kind) {
    case NetworkKind::kPacm:
    case NetworkKind::kTensetMlp: return "prunerc.features/5";
    // 6: a data flow on CPUs; TLP's tokens cut as published.
    case NetworkKind::kPacmPaper:
    case NetworkKind::kTlp: return "prunerc.features/6";
  }
  PRUNERC_UNREACHABLE("kinds");
}

NetworkOptions network_options(NetworkKind kind, ir::TargetKind target) {
  NetworkOptions out;
  out.kind = kind;
  out.statement_inputs = kStatementInputs;
  const bool published = kind == NetworkKind::kPacmPaper;
  out.flow_inputs = published ? costmodel::kNumPaperFlowFeatures : costmodel::kNumFlowFeatures;
  out.context_inputs = kContextInputs;
  out.positions = costmodel::kMaxFlowSteps;
  const bool is_cpu = target == ir::TargetKind::kCpu;
  out.token_length = is_cpu ? kCpuTokenRows : kGpuTokenRows;
  out.token_inputs = is_cpu ? kCpuTokenWidth : kGpuTokenWidth;
  return out;
}

InputSource::InputSource(const Task& task, const SearchSpace& space, ThreadPool* pool)
    : task_(task),
      space_(space),
      tag_(costmodel::task_tag(ir::repeated_part(task.base, task.target))),
      limit_ns_(std::max(1.0, limit_ns(task))),
      sketches_(space.sketches.size()) {
  const auto derive = [&](std::size_t i) {
    Result<schedule::Parametric> parametric =
        schedule::parametrize(task.base, space.sketches[i].trace);
    if (!parametric) return;
    costmodel::FeatureProgram program =
        costmodel::derive_features(parametric->program, task.target, &task.base);
    costmodel::SymbolProgram analyzer =
        costmodel::derive(parametric->program, task.target, {.attrs = open_attrs(*parametric)});
    sketches_[i].emplace(
        SketchFeatures{std::move(parametric).value(), std::move(program), std::move(analyzer)});
  };
  if (pool != nullptr) {
    pool->for_each(sketches_.size(), derive);
  } else {
    for (std::size_t i = 0; i < sketches_.size(); ++i) derive(i);
  }
}

std::vector<AnalyzerInputs> InputSource::analyze(const costmodel::SymbolProgram& program,
                                                 std::span<const double* const> columns,
                                                 std::size_t n) const {
  const std::size_t num_outputs = program.parts.num_outputs();
  std::vector<double> values(num_outputs * n);
  std::vector<double*> outputs;
  for (std::size_t o = 0; o < num_outputs; ++o) outputs.push_back(values.data() + o * n);
  costmodel::SymbolScratch scratch;
  program.parts.evaluate(columns, n, outputs, scratch);
  std::vector<AnalyzerInputs> out(n);
  for (std::size_t i = 0; i < n; ++i) {
    std::array<double, kNumAnalyzerInputs> ns = {};
    ns[0] = outputs[0][i];
    ns[1] = outputs[costmodel::SymbolProgram::kLaunchOutput][i];
    for (const costmodel::SymbolProgram::Term& term : program.terms) {
      for (std::size_t p = 0; p < term.num_parts; ++p) ns[2 + p] += outputs[term.first + p][i];
    }
    for (std::size_t k = 0; k < ns.size(); ++k) {
      out[i][k] = static_cast<float>(std::log2(std::max(kLeastRatio, ns[k] / limit_ns_)));
    }
  }
  return out;
}

std::optional<InputSource::Described> InputSource::by_program(const Genome& genome) const {
  const Result<Candidate> made = instantiate(task_, space_, genome.sketch, genome.decisions);
  if (!made) return std::nullopt;
  Described out;
  out.features = costmodel::extract(made->program, task_.target);
  out.features.tag = tag_;
  out.analyzer = analyze(costmodel::derive(made->program, task_.target), {}, 1).front();
  return out;
}

std::vector<bool> InputSource::append(const NetworkOptions& network,
                                      std::span<const Genome> genomes, ThreadPool& pool,
                                      Batch<float>* batch) const {
  std::vector<std::optional<Row>> rows(genomes.size());
  const std::vector<Portion> portions = portions_of(genomes);
  pool.for_each(portions.size(), [&](std::size_t p) {
    const std::vector<std::size_t>& which = portions[p].which;
    const auto s = static_cast<std::size_t>(portions[p].sketch);
    if (portions[p].sketch < 0 || s >= sketches_.size()) return;
    if (network.kind == NetworkKind::kTlp) {
      for (const std::size_t i : which) {
        schedule::Trace trace = space_.sketches[s].trace;
        if (genomes[i].decisions.size() != trace.decisions.size()) continue;
        trace.decisions = genomes[i].decisions;
        rows[i].emplace(network, trace);
      }
      return;
    }
    const std::optional<SketchFeatures>& sketch = sketches_[s];
    std::vector<std::size_t> mine;
    std::vector<std::vector<double>> columns;
    for (const std::size_t i : which) {
      const Result<std::vector<int64_t>> values =
          sketch ? schedule::param_values(sketch->parametric, genomes[i].decisions)
                 : Result<std::vector<int64_t>>(std::vector<int64_t>());
      if (!sketch || !values) {
        if (const std::optional<Described> made = by_program(genomes[i])) {
          rows[i].emplace(network, made->features, made->analyzer);
        }
        continue;
      }
      columns.resize(values->size());
      for (std::size_t k = 0; k < values->size(); ++k) {
        columns[k].push_back(static_cast<double>((*values)[k]));
      }
      mine.push_back(i);
    }
    if (mine.empty()) return;
    std::vector<const double*> inputs;
    for (const std::vector<double>& column : columns) inputs.push_back(column.data());
    costmodel::FeatureScratch scratch;
    costmodel::FeatureBatch features;
    costmodel::evaluate(sketch->program, inputs, mine.size(), &scratch, &features);
    const std::vector<AnalyzerInputs> analyzer = analyze(sketch->analyzer, inputs, mine.size());
    for (std::size_t i = 0; i < mine.size(); ++i) {
      rows[mine[i]].emplace(network, features.of(i), analyzer[i]);
    }
  });
  std::vector<bool> legal(genomes.size());
  const ModelFeatures none;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    legal[i] = rows[i].has_value();
    if (!legal[i] && network.kind == NetworkKind::kTlp) {
      rows[i].emplace(network, schedule::Trace{});
    } else if (!legal[i]) {
      rows[i].emplace(network, none, AnalyzerInputs{});
    }
    rows[i]->append_to(batch);
    rows[i].reset();
  }
  return legal;
}

}  // namespace prunerc::search
