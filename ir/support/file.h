// Files, which anybody may have written: read at once and within bounds, replaced at once, and shown
// on a terminal as what they are.
#ifndef PRUNERC_IR_SUPPORT_FILE_H_
#define PRUNERC_IR_SUPPORT_FILE_H_

#include "ir/support/result.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace prunerc {

/// Most bytes that are read of a file unless its reader says less. Units: bytes.
inline constexpr uint64_t kMaxReadBytes = uint64_t{256} << 20;
/// The same of a text that people write. Units: bytes.
inline constexpr uint64_t kMaxTextBytes = uint64_t{4} << 20;

/// A regular file that is open: whatever becomes of its name, what is read is what was asked about.
/// Threads: one call at a time.
class InputFile {
 public:
  /// Links are followed; /dev/null is an empty file. Errors: IoError; FileKind for a folder, a
  /// pipe, a device, a socket, of which nothing is read.
  static Result<InputFile> open(const std::string& path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  uint64_t size_bytes() const { return size_bytes_; }
  /// The path of the opened file itself, without links. Errors: IoError.
  Result<std::string> real_path() const;
  /// Fills `into` with the next bytes; fewer only at the end. Errors: IoError.
  Result<std::size_t> read(std::span<char> into);
  /// All that follows. Errors: IoError; TooMany beyond `most_bytes`.
  Result<std::string> read_all(uint64_t most_bytes);
  /// The same of a text, without the byte order mark that some editors put before it.
  Result<std::string> read_text(uint64_t most_bytes = kMaxTextBytes);

 private:
  InputFile(int file, uint64_t size_bytes, std::string path);
  int file_;
  uint64_t size_bytes_;
  std::string path_;
};

/// Errors: those of InputFile; TooMany.
Result<std::string> read_file(const std::string& path, uint64_t most_bytes = kMaxReadBytes);
/// The same of a text, as InputFile::read_text.
Result<std::string> read_text_file(const std::string& path, uint64_t most_bytes = kMaxTextBytes);

/// Writes beside the file, then takes its name: a reader, or who comes after a crash or a power
/// failure, finds the old bytes or the new ones. Links are followed; a device or a pipe that is read is
/// written to. Leaves nothing beside the file if it fails. Errors: IoError; FileKind.
Result<void> replace_file(const std::string& path, std::string_view bytes);

/// "16 MiB", "1.5 KiB", "12 bytes".
std::string bytes_text(uint64_t bytes);

/// Levels of JSON that are read anywhere; what we write has fewer than ten.
inline constexpr int kMaxJsonNesting = 64;
/// Whether brackets outside of strings open deeper than that: to be asked before a parser makes an
/// object of each level.
bool nests_deeper(std::string_view json, int levels = kMaxJsonNesting);

/// The text with everything spelled out that would do something to a terminal instead of showing:
/// control characters other than line feeds and tabs, marks that turn the direction of writing or
/// have no width, and bytes that are no UTF-8. "\x1b[2J" shows as `\x1b[2J`. All diagnostics pass
/// through here, and so does what is printed of records and pools.
std::string printable(std::string_view text);
/// The same as a part of one line: line feeds and tabs are spelled out, too.
std::string printable_line(std::string_view text);

}  // namespace prunerc

#endif  // PRUNERC_IR_SUPPORT_FILE_H_
