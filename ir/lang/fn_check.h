// The rules of fn definitions, checked whether or not they are called.
#ifndef PRUNERC_IR_LANG_FN_CHECK_H_
#define PRUNERC_IR_LANG_FN_CHECK_H_

#include "ir/lang/bind/bind_impl.h"

#include <map>
#include <set>
#include <string_view>

namespace prunerc::lang {

/// Reports reads, reductions, unknown names and recursion. Gives the functions that must not be
/// expanded.
std::set<const AstFn*> check_functions(const Module& module,
                                       const std::map<std::string_view, Symbol>& symbols,
                                       DiagSink& sink);

}  // namespace prunerc::lang

#endif  // PRUNERC_IR_LANG_FN_CHECK_H_
