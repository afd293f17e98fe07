// Inputs: what a network takes of the candidates of one task, most of it without making their
// programs.
#ifndef PRUNERC_SEARCH_MODEL_INPUTS_H_
#define PRUNERC_SEARCH_MODEL_INPUTS_H_

#include "costmodel/feature/batch.h"
#include "costmodel/latency/program.h"
#include "costmodel/model/batch.h"
#include "costmodel/model/options.h"
#include "ir/support/parallel.h"
#include "schedule/parametric/parametric.h"
#include "search/space/sampler.h"
#include "search/space/space.h"
#include "search/space/task.h"

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace prunerc::search {

/// Of what networks of a kind read; changes with the meaning of any of it. A checkpoint names the one
/// that it was trained on.
std::string_view feature_set(costmodel::model::NetworkKind kind);

/// What the analyzer says of a candidate, as an input of our own network: its latency, launches and
/// the time of each unit, each as log2 of the ratio to the task's lower limit. The draft is by this
/// analyzer; a model that sees its reasons learns where they are wrong.
inline constexpr int kNumAnalyzerInputs = 2 + costmodel::kNumTermParts;
using AnalyzerInputs = std::array<float, kNumAnalyzerInputs>;
/// Where its latency is in a row of `Batch::context`.
inline constexpr int kAnalyzerLatencyColumn =
    costmodel::kNumHardwareFeatures + costmodel::kNumTagFeatures;

/// Options of a network of this kind with the widths that InputSource gives it. TLP sees 25 x 22 numbers
/// of a trace for a CPU and 40 x 20 for a GPU, as published: what is longer is cut off.
costmodel::model::NetworkOptions network_options(costmodel::model::NetworkKind kind,
                                                 ir::TargetKind target = ir::TargetKind::kCpu);

/// Derives the features of every sketch once. Task and space must outlive it.
/// Threads: append may be called from one at a time.
class InputSource {
 public:
  /// By all threads of the pool if there is one.
  InputSource(const Task& task, const SearchSpace& space, ThreadPool* pool = nullptr);

  /// Adds the genomes' inputs in order, those that the network reads. Candidates of sketches
  /// without a parametric form are instantiated. Decisions are taken for those of the sketch; where
  /// they are not (another number of them, a program that is illegal) the row is zeros and the
  /// result says so. Cost: about 10 us for a candidate.
  std::vector<bool> append(const costmodel::model::NetworkOptions& network,
                           std::span<const Genome> genomes, ThreadPool& pool,
                           costmodel::model::Batch<float>* batch) const;

 private:
  struct SketchFeatures {
    schedule::Parametric parametric;
    costmodel::FeatureProgram program;
    costmodel::SymbolProgram analyzer;
  };
  struct Described {
    costmodel::ModelFeatures features;
    AnalyzerInputs analyzer = {};
  };
  std::optional<Described> by_program(const Genome& genome) const;
  std::vector<AnalyzerInputs> analyze(const costmodel::SymbolProgram& program,
                                      std::span<const double* const> columns, std::size_t n) const;

  const Task& task_;
  const SearchSpace& space_;
  costmodel::TaskTag tag_;
  double limit_ns_;
  std::vector<std::optional<SketchFeatures>> sketches_;  // none: no parametric form
};

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_MODEL_INPUTS_H_
