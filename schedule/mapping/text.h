// Lists as text.
#ifndef PRUNERC_SCHEDULE_MAPPING_TEXT_H_
#define PRUNERC_SCHEDULE_MAPPING_TEXT_H_

#include <string>
#include <vector>

namespace prunerc::schedule {

inline std::string joined(const std::vector<std::string>& items) {
  std::string out;
  for (const std::string& item : items) out += (out.empty() ? "" : ", ") + item;
  return out;
}

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_MAPPING_TEXT_H_
