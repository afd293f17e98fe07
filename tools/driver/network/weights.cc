#include "ir/net/weights.h"

#include "ir/support/hash.h"
#include "tools/driver/network/agreement.h"
#include "tools/driver/network/network.h"
#include "tools/driver/npy.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

namespace prunerc {
namespace {

bool is_fill(const std::string& text) {
  return text == "zeros" || text == "ones" || text == "arange" || text.starts_with("rand:");
}

// The same fill with a seed that depends on the weight's name: no two are alike, and constants that are the
// same weight are.
std::string fill_for(const std::string& fill, const std::string& name) {
  if (!fill.starts_with("rand:")) return fill;
  const std::size_t at = fill.find(":seed=");
  const uint64_t seed = at == std::string::npos ? 0 : std::strtoull(&fill[at + 6], nullptr, 10);
  return fmt::format("{}:seed={}", fill.substr(0, at), hash_bytes(name, seed));
}

std::string type_text(std::string_view type, const std::vector<int64_t>& shape) {
  return fmt::format("{}[{}]", type, fmt::join(shape, ","));
}

}  // namespace

struct WeightSource::Impl {
  std::string net_name;
  std::optional<net::WeightFile> file;
  std::string fill;
  std::map<std::string, ir::Tensor> given;
  uint64_t moved_by = 0;
  bool moves_narrow = false;
};

WeightSource::WeightSource(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
WeightSource::WeightSource(WeightSource&&) noexcept = default;
WeightSource& WeightSource::operator=(WeightSource&&) noexcept = default;
WeightSource::~WeightSource() = default;

Result<WeightSource> WeightSource::open(const net::Net& net, const std::string& file_name,
                                        const std::string& given) {
  auto impl = std::make_unique<Impl>();
  impl->net_name = net.name;
  if (is_fill(given)) {
    ir::Tensor probe(ir::DType::kF32, {1});
    PRUNERC_TRY_VOID(fill(probe, given));
    impl->fill = given;
  } else if (!given.empty()) {
    PRUNERC_TRY(impl->file, net::WeightFile::open(given));
  } else if (!net.weights.empty()) {
    // What a text names lies beside it.
    if (net.weights.starts_with("/") || net.weights.find("..") != std::string::npos)
      return error(Diag::kImportOutside, net.weights, file_name);
    const std::size_t slash = file_name.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : file_name.substr(0, slash + 1);
    PRUNERC_TRY(impl->file, net::WeightFile::open(folder + net.weights));
  }
  return WeightSource(std::move(impl));
}

WeightSource WeightSource::of(const net::Net& net, net::WeightFile weights) {
  auto impl = std::make_unique<Impl>();
  impl->net_name = net.name;
  impl->file = std::move(weights);
  return WeightSource(std::move(impl));
}

void WeightSource::set(const std::string& name, ir::Tensor tensor) {
  impl_->given.insert_or_assign(name, std::move(tensor));
}

void WeightSource::set_moved(uint64_t seed, bool narrow) {
  impl_->moved_by = seed;
  impl_->moves_narrow = narrow;
}

Result<ir::Tensor> WeightSource::get(const net::Tensor& constant) const {
  PRUNERC_TRY(ir::Tensor tensor, get_as_given(constant));
  // Constants that are the same weight move alike.
  const std::string& name = constant.weight.empty() ? constant.name : constant.weight;
  if (impl_->moved_by != 0)
    move_floats(hash_bytes(name, impl_->moved_by), &tensor, impl_->moves_narrow);
  return tensor;
}

Result<ir::Tensor> WeightSource::get_as_given(const net::Tensor& constant) const {
  if (const auto found = impl_->given.find(constant.name); found != impl_->given.end())
    return found->second;
  ir::Tensor tensor(constant.dtype, constant.shape);
  if (constant.value) {
    for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.set(i, *constant.value);
    return tensor;
  }
  if (!impl_->fill.empty()) {
    PRUNERC_TRY_VOID(fill(tensor, fill_for(impl_->fill, constant.weight)));
    return tensor;
  }
  if (!impl_->file) return error(Diag::kWeightsNotGiven, impl_->net_name, constant.name);
  const net::Weight* const weight = impl_->file->find(constant.weight);
  if (weight == nullptr)
    return error(Diag::kWeightMissing, impl_->file->path(), constant.weight, constant.name);
  if (weight->type != net::weight_type(constant.dtype) || weight->shape != constant.shape) {
    return error(Diag::kUsageShape, constant.weight, net::type_text(constant),
                 type_text(weight->type, weight->shape));
  }
  if (!weight->bytes.empty())
    std::memcpy(tensor.data.data(), weight->bytes.data(), weight->bytes.size());
  return tensor;
}

}  // namespace prunerc
