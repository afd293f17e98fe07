// The page of `prunerc report`: one file that draws the JSON inside it, and asks nothing of any network.
#ifndef PRUNERC_TOOLS_REPORT_PAGE_H_
#define PRUNERC_TOOLS_REPORT_PAGE_H_

#include <string>
#include <string_view>

namespace prunerc::report {

/// The page around `json`, of schema prunerc.report/1 in ASCII. Whatever its strings hold stays data.
std::string page(std::string_view json);

}  // namespace prunerc::report

#endif  // PRUNERC_TOOLS_REPORT_PAGE_H_
