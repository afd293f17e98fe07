// The texts of tools/std, built into the library by a generated file.
#ifndef PRUNERC_IR_LANG_STD_TABLE_H_
#define PRUNERC_IR_LANG_STD_TABLE_H_

#include <span>
#include <string_view>

namespace prunerc::lang {

struct StdFile {
  std::string_view path;  // "std/gemm.prn"
  std::string_view text;
};

/// All files, by path.
std::span<const StdFile> std_table();
/// The path of the file that defines a function; empty if none does.
std::string_view std_file_with_fn(std::string_view name);

}  // namespace prunerc::lang

#endif  // PRUNERC_IR_LANG_STD_TABLE_H_
