// Reads program text (.prc) as printer.h writes it. Total: any input gives a Program or a located
// Error.
#ifndef PRUNERC_IR_PARSER_H_
#define PRUNERC_IR_PARSER_H_

#include "ir/program.h"
#include "ir/support/result.h"

#include <string_view>

namespace prunerc::ir {

/// Loop and block ids may be left out (fresh ones are taken). A block that declares neither reads
/// nor writes gets those of its body. Errors: Parse*, Type*. Well-formedness is verify's concern.
/// Cost: O(length).
Result<Program> parse(std::string_view text);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_PARSER_H_
