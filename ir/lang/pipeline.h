// The steps that files and command line expressions share.
#ifndef PRUNERC_IR_LANG_PIPELINE_H_
#define PRUNERC_IR_LANG_PIPELINE_H_

#include "ir/lang/lang.h"
#include "ir/lang/source.h"
#include "ir/lang/typed.h"

namespace prunerc::lang {

/// Proves and lowers `op` (null after errors), and renders all diagnostics.
LangResult finish_compile(const BoundOp* op, const SourceSet& sources, DiagSink& sink);

}  // namespace prunerc::lang

#endif  // PRUNERC_IR_LANG_PIPELINE_H_
