#include "costmodel/pretrained/pretrained.h"

#include <cstddef>

// What the linker calls the bytes of cpu.model.
extern "C" const char _binary_costmodel_pretrained_cpu_model_start[];  // NOLINT
extern "C" const char _binary_costmodel_pretrained_cpu_model_end[];    // NOLINT

namespace prunerc::costmodel {

std::string_view pretrained_cpu() {
  const char* const start = _binary_costmodel_pretrained_cpu_model_start;
  return {start, static_cast<std::size_t>(_binary_costmodel_pretrained_cpu_model_end - start)};
}

}  // namespace prunerc::costmodel
