// Files of weights in the safetensors format: eight bytes of length, a JSON header, raw data.
// Format: huggingface.co/docs/safetensors.
#ifndef PRUNERC_IR_NET_WEIGHTS_H_
#define PRUNERC_IR_NET_WEIGHTS_H_

#include "ir/dtype.h"
#include "ir/support/result.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::net {

/// A tensor of the file. Its type as the file says it, since we may have none.
struct Weight {
  std::string type;  ///< "F32", "BF16", ...
  std::vector<int64_t> shape;
  std::string_view bytes;  ///< little-endian, row-major; of the size that type and shape say
};

/// A file that is mapped, not read: weights that nobody looks at take no memory. Movable; views stay
/// valid while it lives. Threads: any.
class WeightFile {
 public:
  /// Errors: IoError, FileKind; WeightsMalformed for anything whose header lies about the file.
  static Result<WeightFile> open(const std::string& path);
  /// The same of bytes that outlive it; `name` is shown in errors. Total.
  static Result<WeightFile> parse(std::string_view bytes, const std::string& name);

  /// Tensors that lie elsewhere, in memory that `owner` keeps.
  static WeightFile of(std::string path, std::map<std::string, Weight> weights,
                       std::shared_ptr<const void> owner);

  const std::string& path() const { return path_; }
  /// Null if there is none of that name.
  const Weight* find(const std::string& name) const;
  const std::map<std::string, Weight>& all() const { return weights_; }

 private:
  std::string path_;
  std::shared_ptr<const void> mapping_;
  std::map<std::string, Weight> weights_;
};

/// Our type, as the format names it; empty if it has none of it.
std::string_view weight_type(ir::DType dtype);

/// One tensor to write.
struct WeightToWrite {
  std::string name;
  ir::DType dtype = ir::DType::kF32;
  std::vector<int64_t> shape;
  std::string_view bytes;
};
/// The file's bytes; data start at a multiple of 64. Errors: Unsupported (a type that the format
/// lacks).
Result<std::string> weight_file_bytes(const std::vector<WeightToWrite>& weights);

}  // namespace prunerc::net

#endif  // PRUNERC_IR_NET_WEIGHTS_H_
