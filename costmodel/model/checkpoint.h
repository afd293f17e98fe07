// Checkpoints: a model as a file, and back with everything checked.
#ifndef PRUNERC_COSTMODEL_MODEL_CHECKPOINT_H_
#define PRUNERC_COSTMODEL_MODEL_CHECKPOINT_H_

#include "costmodel/model/model.h"
#include "ir/support/result.h"

#include <string>
#include <string_view>

namespace prunerc::costmodel::model {

inline constexpr int kCheckpointFormat = 1;

/// Magic, format, a checksum, a JSON header (kind, options, feature set, platforms, normalisers,
/// tool, names and sizes of tensors), then the tensors as little-endian floats in the header's
/// order. `tool` is the version of the compiler that writes.
std::string serialize(const Model& model, std::string_view tool);

/// Nothing of the bytes is trusted: sizes, names, order and values are checked before a network
/// holds them. `path` is for messages. Errors: ModelDamaged, ModelVersion.
Result<Model> parse_checkpoint(std::string_view bytes, const std::string& path);

/// Replaces the file as a whole. Errors: IoError.
Result<void> write_checkpoint(const Model& model, std::string_view tool, const std::string& path);
/// Errors: IoError, ModelDamaged, ModelVersion.
Result<Model> read_checkpoint(const std::string& path);

}  // namespace prunerc::costmodel::model

#endif  // PRUNERC_COSTMODEL_MODEL_CHECKPOINT_H_
