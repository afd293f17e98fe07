// The model that ships with the compiler, as the bytes of its checkpoint.
#ifndef PRUNERC_COSTMODEL_PRETRAINED_PRETRAINED_H_
#define PRUNERC_COSTMODEL_PRETRAINED_PRETRAINED_H_

#include <string_view>

namespace prunerc::costmodel {

/// A pacm trained on the CPU pools under tests/data/pools; README.md here has the command.
std::string_view pretrained_cpu();

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_PRETRAINED_PRETRAINED_H_
