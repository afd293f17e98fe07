// Whether a network's outputs are what they should be, also where a rounding decides: a quantised value
// that is a step further changes all that follows.
#ifndef PRUNERC_TOOLS_DRIVER_NETWORK_AGREEMENT_H_
#define PRUNERC_TOOLS_DRIVER_NETWORK_AGREEMENT_H_

#include "ir/interp/tensor.h"
#include "ir/net/net.h"
#include "ir/support/result.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc {

/// Moves floats by two units in the last place, up or down as `seed` has it. Whole numbers and powers of two
/// stay: ones, masks, exact scales and what stands for -infinity are meant to the bit. Those of 16 bits stay,
/// too, unless `narrow`, when they move by one unit: it is more than roundings of a stable network make.
void move_floats(uint64_t seed, ir::Tensor* tensor, bool narrow = false);
/// Whether an input or a constant has floats of 16 bits.
bool has_narrow_floats(const net::Net& net);

/// From best to worst.
enum class Agreement : uint8_t {
  kRight,          ///< as close as roundings of a stable network leave it
  kSensitive,      ///< no further than moved floats bring the reference from itself
  kNotVerifiable,  ///< so, too, but moved floats change so much that a wrong kernel could hide in it
  kWrong,
};
/// "right", "within sensitivity", "not verifiable", "wrong".
std::string_view to_string(Agreement agreement);

/// Of a tensor of the reference: how far moved floats bring it from itself.
struct Sensitivity {
  std::string tensor;
  double deviation = 0;   ///< largest difference of an element; infinite: not of numbers
  double of_largest = 0;  ///< the same as a part of the tensor's largest value
};

/// What came of comparisons.
struct NetComparison {
  Agreement agreement = Agreement::kRight;
  int64_t num_elems = 0;                 ///< that are numbers in the reference
  double worst = 0;                      ///< largest error as a part of what is allowed, of floats
  std::string what;                      ///< unless right or within sensitivity: why
  std::vector<Sensitivity> sensitivity;  ///< of tensors that differ by more than a stable network's

  /// Takes in another comparison of the same net.
  void add(const NetComparison& other);
};

/// Tensors of a net, and what they should be.
struct NetValues {
  std::vector<net::Tensor> tensors;
  std::vector<std::string_view> got;  ///< bytes, borrowed
  std::vector<std::string> want;
  std::string whose;    ///< of `want`: "the calls as written give"
  bool is_own = false;  ///< `want` is what the reference gives as it is
};

/// The tensors' bytes by the reference, its float inputs and constants moved by `seed`; 0: as they are.
using MovedRun = std::function<Result<std::vector<std::string>>(uint64_t seed)>;

/// Allowed is a part of a tensor's largest value. Where that is exceeded, `run` says how sensitive the
/// reference is, and four times its deviation is allowed, too: to each element the largest of one, and to
/// all together what all deviate by and one such flip more. What is wrong by that and within the same of
/// `narrow_run`, if given, which moves floats of 16 bits, too, is not verifiable. Errors: those of the runs.
Result<NetComparison> compare_net(const NetValues& values, const MovedRun& run,
                                  const MovedRun& narrow_run = {});

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_NETWORK_AGREEMENT_H_
