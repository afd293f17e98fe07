// The JSON of `prunerc report`, which its page draws as well.
#ifndef PRUNERC_TOOLS_PRUNERC_REPORT_JSON_H_
#define PRUNERC_TOOLS_PRUNERC_REPORT_JSON_H_

#include "tools/driver/report/report.h"

#include <string>

namespace prunerc::cli {

/// One line of ASCII, schema "prunerc.report/1" (tools/FORMS.md). Texts are without folders of this machine's users.
std::string report_json(const TuningReport& report);

}  // namespace prunerc::cli

#endif  // PRUNERC_TOOLS_PRUNERC_REPORT_JSON_H_
