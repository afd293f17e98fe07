// What other autotuners measured: results in the T4 format, and Kernel Tuner's cache files.
#ifndef PRUNERC_TOOLS_DRIVER_T4_T4_FILE_H_
#define PRUNERC_TOOLS_DRIVER_T4_T4_FILE_H_

#include "ir/support/result.h"
#include "search/record/measurement.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc {

/// One configuration and how it ended.
struct T4Row {
  std::vector<int64_t> values;      ///< by parameter of the file
  search::Measurement measurement;  ///< `detail`: the cause of a failure, in the file's words
};

/// One kernel on one device.
struct T4File {
  std::string device;                 ///< as its maker calls it; empty: the file does not say
  std::vector<int64_t> problem_size;  ///< empty: the file does not say
  std::vector<std::string> params;
  std::vector<T4Row> rows;  ///< T4: in the file's order; caches: in that of their keys
};

/// Reads both formats, gzipped or not. Times are in ms there. Source: "FAIR Sharing of Data in
/// Autotuning Research" (doi 10.1145/3629527.3651429) and the files of AutoTuningAssociation's
/// benchmark_hub. Errors: T4Damaged, TooMany. `path` is for messages.
Result<T4File> parse_t4(std::string_view bytes, const std::string& path);
/// Errors: also those of reading files.
Result<T4File> read_t4(const std::string& path);

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_T4_T4_FILE_H_
