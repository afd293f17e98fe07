// A stored schedule as report.h shows it: its estimate, its texts and its code.
#ifndef PRUNERC_TOOLS_DRIVER_REPORT_REPORT_SCHEDULE_H_
#define PRUNERC_TOOLS_DRIVER_REPORT_REPORT_SCHEDULE_H_

#include "tools/driver/report/report.h"

#include <string>

namespace prunerc {

/// Code that cannot be made is a note. Errors: those of parsing and replaying the trace.
Result<ReportSchedule> schedule_of(const search::Task& task, const std::string& trace);

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_REPORT_REPORT_SCHEDULE_H_
