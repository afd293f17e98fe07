// NetworkOptions: which network, and how large. All that is needed to make one.
#ifndef PRUNERC_COSTMODEL_MODEL_OPTIONS_H_
#define PRUNERC_COSTMODEL_MODEL_OPTIONS_H_

#include "costmodel/nn/batch_norm.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace prunerc::costmodel::model {

enum class NetworkKind : uint8_t { kPacmPaper, kPacm, kTensetMlp, kTlp };

/// "pacm-paper", "pacm", "tenset-mlp", "tlp".
std::string_view to_string(NetworkKind kind);
std::optional<NetworkKind> network_kind_from_string(std::string_view name);

/// Fields that a kind does not read are left alone. The published networks have fixed widths.
struct NetworkOptions {
  NetworkKind kind = NetworkKind::kPacm;
  // What comes in.
  int statement_inputs = 174;  // 164 of a statement, 10 of the task
  int flow_inputs = 23;        // of a step
  int context_inputs = 0;
  int token_length = 25;  // of tlp; 25 x 22 on CPUs, 40 x 20 on GPUs
  int token_inputs = 22;
  // Sizes of pacm.
  int statement_width = 128;
  int flow_width = 64;
  int context_width = 32;
  int width = 128;  // where all of these meet
  int heads = 4;
  int positions = 32;
  int blocks = 2;
  /// Of pacm-paper when it predicts: kBatch is what the release does, in which a score depends on
  /// the other candidates of the batch.
  nn::Statistics statistics = nn::Statistics::kBatch;
  bool operator==(const NetworkOptions&) const = default;
};

}  // namespace prunerc::costmodel::model

#endif  // PRUNERC_COSTMODEL_MODEL_OPTIONS_H_
