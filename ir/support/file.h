// Whole files: read at once, replaced at once.
#ifndef PRUNERC_IR_SUPPORT_FILE_H_
#define PRUNERC_IR_SUPPORT_FILE_H_

#include "ir/support/result.h"

#include <string>
#include <string_view>

namespace prunerc {

/// Errors: IoError; FileKind for a folder.
Result<std::string> read_file(const std::string& path);
/// The same for a text: without the byte order mark that some editors put before it.
Result<std::string> read_text_file(const std::string& path);

/// Writes beside the file, then takes its name: a reader, or who comes after a crash or a power
/// failure, finds the old bytes or the new ones. Errors: IoError.
Result<void> replace_file(const std::string& path, std::string_view bytes);

}  // namespace prunerc

#endif  // PRUNERC_IR_SUPPORT_FILE_H_
