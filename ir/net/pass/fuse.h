// Groups of calls become one call each of a new operator, which calls what they called.
#ifndef PRUNERC_IR_NET_PASS_FUSE_H_
#define PRUNERC_IR_NET_PASS_FUSE_H_

#include "ir/net/net.h"
#include "ir/support/result.h"

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::net {

struct FusedCalls {
  std::vector<std::size_t>
      calls;               ///< of the net; the new call's results are what others read of them
  std::size_t anchor = 0;  ///< one of them: its label is kept
};

/// Groups are disjoint and closed: no call lies on a path from one of a group's to another of it
/// without being in the group. Equal groups give one operator, named after what it calls.
/// Errors: OperatorText, of the new text; that is a defect of the caller.
Result<Net> fuse_calls(const Net& net, const std::vector<FusedCalls>& groups);

/// Compiles the text of an edited net: its programs follow its calls. Errors: OperatorText.
Result<Net> compile_again(const Net& edited);

/// Adds the words of a text that stand behind `before` and in front of one character of `after`.
void add_words(const std::string& text, std::string_view before, std::string_view after,
               std::set<std::string>* words);

/// Names of the operators, functions and constants of a text: no local name may be the same.
std::set<std::string> global_names(const std::string& definitions);

/// `wanted`, or with underscores behind it what is none of `globals`.
std::string local_name(const std::set<std::string>& globals, std::string wanted);

}  // namespace prunerc::net

#endif  // PRUNERC_IR_NET_PASS_FUSE_H_
