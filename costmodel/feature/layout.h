// Where the features of a program or a sketch come from: values that are numbers or symbols, and
// which of them stands where. What depends on the order of values is left to each candidate.
#ifndef PRUNERC_COSTMODEL_FEATURE_LAYOUT_H_
#define PRUNERC_COSTMODEL_FEATURE_LAYOUT_H_

#include "costmodel/feature/statement.h"
#include "costmodel/feature/stores.h"
#include "costmodel/symbol/sym.h"

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace prunerc::costmodel {

inline constexpr int kNumFlowFeatures = 39;
inline constexpr int kNumPaperFlowFeatures = 23;
/// Steps of the published flow: as released, and with the write-back behind these.
inline constexpr std::size_t kNumReleasedFlowSteps = 8;
inline constexpr std::size_t kNumPaperFlowSteps = 10;
/// Features of a statement before its buffers, and after its intensity curve.
inline constexpr int kNumLoopFeatures = 57;
inline constexpr int kNumScopeFeatures = 7;

/// Index of a value.
using Slot = int32_t;

/// One buffer of a statement: its features, in the order of feature.def.
struct UseLayout {
  ir::BufferId buffer;
  std::array<Slot, kNumAccessFeatures> slots = {};
};

/// One loop level of the intensity curve; `ops` is negative where the loop makes one iteration.
struct CurveLayout {
  Slot ops = 0;    // log2
  Slot ratio = 0;  // log2(operations) / log2(bytes)
};

struct StoreLayout {
  std::array<Slot, kNumLoopFeatures> loops = {};
  std::array<Slot, kNumScopeFeatures> scopes = {};
  std::vector<UseLayout> uses;     // in order of their first access, what is written first
  std::vector<CurveLayout> curve;  // from the innermost loop outwards
  Slot ops = 0;                    // of all iterations, as a feature
};

using StepLayout = std::array<Slot, kNumFlowFeatures>;
using PaperStepLayout = std::array<Slot, kNumPaperFlowFeatures>;

/// Holds no handles.
struct FeatureLayout {
  std::vector<StoreLayout> stores;
  std::vector<StepLayout> steps;
  std::vector<PaperStepLayout> paper_steps;  // none, 8, or with the write-back 10
  std::vector<float> values;                 // numbers in their places, 0 where candidates differ
  std::vector<Slot> open;                    // of the builder's outputs
};

/// Makes the layout while features are counted.
class LayoutBuilder {
 public:
  /// A value as it is.
  Slot raw(Sym value);
  /// A feature of unit log2.
  Slot log(Sym value) { return raw(log2(value + 1)); }

  FeatureLayout layout;
  std::vector<Sym> outputs;  // what differs between candidates

 private:
  std::unordered_map<int32_t, Slot> known_;  // by node
};

/// Adds the features of all stores.
void add_statements(const StoreTable& stores, const ir::Target& target, LayoutBuilder* out);

/// What the values say of one store.
void write_statement(const StoreLayout& store, const float* values, StatementFeatures* out);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_FEATURE_LAYOUT_H_
