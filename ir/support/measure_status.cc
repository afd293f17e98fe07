#include "ir/support/measure_status.h"

#include "ir/support/check.h"

namespace prunerc {

std::string_view to_string(MeasureStatus status) {
  switch (status) {
#define PRUNERC_STATUS(Name, text, words) \
  case MeasureStatus::k##Name:            \
    return text;
#include "ir/support/measure_status.def"
#undef PRUNERC_STATUS
  }
  PRUNERC_UNREACHABLE("measurement status");
}

std::string_view describe(MeasureStatus status) {
  switch (status) {
#define PRUNERC_STATUS(Name, text, words) \
  case MeasureStatus::k##Name:            \
    return words;
#include "ir/support/measure_status.def"
#undef PRUNERC_STATUS
  }
  PRUNERC_UNREACHABLE("measurement status");
}

std::optional<MeasureStatus> measure_status_from_string(std::string_view text) {
  for (int i = 0; i < kNumMeasureStatuses; ++i) {
    const auto status = static_cast<MeasureStatus>(i);
    if (to_string(status) == text) return status;
  }
  return std::nullopt;
}

}  // namespace prunerc
