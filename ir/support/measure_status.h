// How building, running or verifying a kernel ends: one closed list for devices and the search.
#ifndef PRUNERC_IR_SUPPORT_MEASURE_STATUS_H_
#define PRUNERC_IR_SUPPORT_MEASURE_STATUS_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace prunerc {

enum class MeasureStatus : uint8_t {
#define PRUNERC_STATUS(Name, text, words) k##Name,
#include "ir/support/measure_status.def"
#undef PRUNERC_STATUS
};

inline constexpr int kNumMeasureStatuses = 0
#define PRUNERC_STATUS(Name, text, words) +1
#include "ir/support/measure_status.def"
#undef PRUNERC_STATUS
    ;

/// "wrong_result": the name in records and JSON.
std::string_view to_string(MeasureStatus status);
/// "wrong result": for people.
std::string_view describe(MeasureStatus status);
/// The inverse of to_string.
std::optional<MeasureStatus> measure_status_from_string(std::string_view text);

}  // namespace prunerc

#endif  // PRUNERC_IR_SUPPORT_MEASURE_STATUS_H_
