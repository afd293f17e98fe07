#include "schedule/trace/tokens.h"

#include "ir/int_math.h"
#include "ir/support/hash.h"

#include <cmath>
#include <cstddef>
#include <string>

namespace prunerc::schedule {
namespace {

/// What TLP tells apart; ours are more and go to the nearest.
enum TokenKind : uint8_t {
  kSplitToken,
  kReorderToken,
  kFuseToken,
  kLoopKindToken,
  kComputeAtToken,
  kInlineToken,
  kCacheToken,
  kReductionToken,
  kAnnotationToken,
  kLayoutToken,
  kTensorToken,
};

TokenKind kind_of(PrimitiveKind primitive) {
  switch (primitive) {
    case PrimitiveKind::kSplit:
    case PrimitiveKind::kLoopPartition: return kSplitToken;
    case PrimitiveKind::kReorder: return kReorderToken;
    case PrimitiveKind::kFuse:
    case PrimitiveKind::kMerge: return kFuseToken;
    case PrimitiveKind::kParallel:
    case PrimitiveKind::kVectorize:
    case PrimitiveKind::kUnroll:
    case PrimitiveKind::kBind: return kLoopKindToken;
    case PrimitiveKind::kComputeAt:
    case PrimitiveKind::kReverseComputeAt:
    case PrimitiveKind::kComputeAtLocation: return kComputeAtToken;
    case PrimitiveKind::kComputeInline:
    case PrimitiveKind::kReverseComputeInline: return kInlineToken;
    case PrimitiveKind::kCacheRead:
    case PrimitiveKind::kCacheWrite:
    case PrimitiveKind::kCacheInplace:
    case PrimitiveKind::kPadRead:
    case PrimitiveKind::kReindexCacheRead:
    case PrimitiveKind::kReindexCacheWrite: return kCacheToken;
    case PrimitiveKind::kRfactor:
    case PrimitiveKind::kScan:
    case PrimitiveKind::kOnline:
    case PrimitiveKind::kRescale:
    case PrimitiveKind::kDecomposeReduction:
    case PrimitiveKind::kFuseReductionEpilogue: return kReductionToken;
    case PrimitiveKind::kReindex:
    case PrimitiveKind::kTransformLayout:
    case PrimitiveKind::kTransformBlockLayout:
    case PrimitiveKind::kPadEinsum:
    case PrimitiveKind::kNarrowReduction:
    case PrimitiveKind::kDecomposePadding: return kLayoutToken;
    case PrimitiveKind::kBlockize:
    case PrimitiveKind::kTensorize: return kTensorToken;
    default: return kAnnotationToken;
  }
}

double log_of(int64_t x) {
  const auto value = static_cast<double>(x);
  return std::copysign(std::log2(1 + std::abs(value)), value);
}

class Tokenizer {
 public:
  explicit Tokenizer(const Trace& trace) : trace_(trace) {}

  TraceTokens run() {
    for (const Instruction& step : trace_.instructions) {
      if (step.is_sample()) {
        sample(step);
      } else if (step.primitive == PrimitiveKind::kProduct) {
        multiply(step);
      } else if (step.primitive != PrimitiveKind::kEnterPostproc) {
        row(step);
      }
    }
    return std::move(out_);
  }

 private:
  int64_t resolve(const Int& x) const {
    if (!x.ref.valid()) return x.value;
    const auto at = static_cast<std::size_t>(x.ref.value);
    return at < values_.size() ? values_[at] : 0;
  }

  void sample(const Instruction& step) {
    const Decision none;
    const Decision& decision = next_ < trace_.decisions.size() ? trace_.decisions[next_++] : none;
    for (std::size_t i = 0; i < step.outputs.size(); ++i) {
      int64_t value = i < decision.size() ? decision[i] : 0;
      if (step.primitive == PrimitiveKind::kSampleCategorical && !step.operands.empty()) {
        const auto* candidates = std::get_if<std::vector<Int>>(&step.operands.front());
        const auto index = static_cast<std::size_t>(value);
        if (candidates != nullptr && index < candidates->size()) value = (*candidates)[index].value;
      }
      values_.push_back(value);
    }
  }

  void multiply(const Instruction& step) {
    int64_t product = 1;
    if (!step.operands.empty()) {
      if (const auto* factors = std::get_if<std::vector<Int>>(&step.operands.front())) {
        for (const Int& factor : *factors) {
          product = ir::wrapping_mul(product, resolve(factor));
        }
      }
    }
    values_.push_back(product);
  }

  void row(const Instruction& step) {
    std::vector<float> numbers;
    const auto add = [&](double x) { numbers.push_back(static_cast<float>(x)); };
    for (const Operand& operand : step.operands) {
      if (const auto* loop = std::get_if<ir::LoopId>(&operand)) add(loop->value);
      if (const auto* block = std::get_if<ir::BlockId>(&operand)) add(block->value);
      if (const auto* number = std::get_if<Int>(&operand)) add(log_of(resolve(*number)));
      if (const auto* text = std::get_if<std::string>(&operand)) {
        constexpr uint64_t kTexts = 32;
        add(static_cast<double>(hash_bytes(*text) % kTexts));
      }
      if (const auto* loops = std::get_if<std::vector<ir::LoopId>>(&operand)) {
        for (const ir::LoopId id : *loops) add(id.value);
      }
      if (const auto* many = std::get_if<std::vector<Int>>(&operand)) {
        for (const Int& number : *many) add(log_of(resolve(number)));
      }
    }
    numbers.resize(kTokenWidth - kNumTokenKinds);
    for (int kind = 0; kind < kNumTokenKinds; ++kind) {
      out_.values.push_back(kind == kind_of(step.primitive) ? 1.0F : 0.0F);
    }
    out_.values.insert(out_.values.end(), numbers.begin(), numbers.end());
    ++out_.num_rows;
  }

  const Trace& trace_;
  TraceTokens out_;
  std::vector<int64_t> values_;  // of what was sampled, in order
  std::size_t next_ = 0;         // decision
};

}  // namespace

TraceTokens trace_tokens(const Trace& trace) { return Tokenizer(trace).run(); }

}  // namespace prunerc::schedule
