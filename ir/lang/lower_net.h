// Bound net -> net::Net: proves and lowers its operators, and keeps the text of what it calls.
#ifndef PRUNERC_IR_LANG_LOWER_NET_H_
#define PRUNERC_IR_LANG_LOWER_NET_H_

#include "ir/lang/bind/bind.h"
#include "ir/net/net.h"

#include <optional>

namespace prunerc::lang {

/// Nullopt after errors, which go to `sink`.
std::optional<net::Net> lower_net(const Module& module, const AstNet& ast, const BoundNet& bound,
                                  const SourceSet& sources, DiagSink& sink);

}  // namespace prunerc::lang

#endif  // PRUNERC_IR_LANG_LOWER_NET_H_
