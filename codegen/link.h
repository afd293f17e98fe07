// Linking one object into a shared library with the system's linker.
#ifndef PRUNERC_CODEGEN_LINK_H_
#define PRUNERC_CODEGEN_LINK_H_

#include "ir/support/result.h"

#include <string>
#include <string_view>

namespace prunerc::codegen {

/// The bytes of a shared library with the object's global symbols. Tries ld.lld, then gcc, then cc.
/// Errors: IoError (no linker, or it failed).
Result<std::string> link_shared(std::string_view object);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_LINK_H_
