// Source texts, ranges in them, and the diagnostics that point at them.
#ifndef PRUNERC_IR_LANG_SOURCE_H_
#define PRUNERC_IR_LANG_SOURCE_H_

#include <fmt/format.h>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace prunerc::lang {

/// A half-open byte range of one source text.
struct SourceRange {
  uint32_t file = 0;
  uint32_t begin = 0;
  uint32_t end = 0;
  bool operator==(const SourceRange&) const = default;
};

/// The smallest range that covers both; the two must lie in the same file, otherwise `a`.
inline SourceRange join(SourceRange a, SourceRange b) {
  if (a.file != b.file) return a;
  return {a.file, a.begin < b.begin ? a.begin : b.begin, a.end > b.end ? a.end : b.end};
}

/// The empty range where `range` starts, for insertions before it.
inline SourceRange start_of(SourceRange range) { return {range.file, range.begin, range.begin}; }
/// The empty range where `range` ends, for insertions after it.
inline SourceRange end_of(SourceRange range) { return {range.file, range.end, range.end}; }

/// Owns the texts of one compilation; views into them stay valid while it lives.
class SourceSet {
 public:
  /// Adds a text and returns its file number.
  uint32_t add(std::string name, std::string text);
  size_t num_files() const { return files_.size(); }
  const std::string& name(uint32_t file) const { return files_[file].name; }
  const std::string& text(uint32_t file) const { return files_[file].text; }
  std::string_view text(SourceRange range) const;
  /// One-based line and column of the start of `range`.
  std::pair<int, int> line_column(SourceRange range) const;

 private:
  struct File {
    std::string name, text;
    std::vector<uint32_t> lines;  // where each begins
  };
  std::deque<File> files_;
};

enum class Severity : uint8_t { kError, kWarning };

enum class LangDiag : uint16_t {
#define PRUNERC_LANG_DIAG(id, severity, text) k##id,
#include "ir/lang/lang_diag.def"
#undef PRUNERC_LANG_DIAG
};

/// One row of lang_diag.def.
struct LangDiagRow {
  std::string_view name;
  Severity severity;
  std::string_view text;
};

inline constexpr LangDiagRow kLangDiagRows[] = {
#define PRUNERC_LANG_DIAG(id, severity, text) {#id, Severity::severity, text},
#include "ir/lang/lang_diag.def"
#undef PRUNERC_LANG_DIAG
};

/// A remark at another place involved in a diagnostic.
struct SourceNote {
  SourceRange range;
  std::string message;
};

/// A proposed replacement of `range` by `text`.
struct FixIt {
  SourceRange range;
  std::string text;
};

/// One reported problem, before rendering.
struct SourceDiagnostic {
  LangDiag id;
  SourceRange range;
  std::string message;
  std::vector<SourceNote> notes;
  std::vector<FixIt> fix_its;

  SourceDiagnostic& note(SourceRange at, std::string text) {
    notes.push_back({at, std::move(text)});
    return *this;
  }
  SourceDiagnostic& fix(SourceRange at, std::string text) {
    fix_its.push_back({at, std::move(text)});
    return *this;
  }
};

/// "1 dimension", "2 dimensions".
std::string counted(size_t count, std::string_view noun);

/// Collects the diagnostics of one compilation, at most `kMaxErrors` errors.
class DiagSink {
 public:
  static constexpr int kMaxErrors = 20;

  /// Reports row `D` at `range`; the result may be given notes and fix-its until the next report.
  template <LangDiag D, typename... Args>
  SourceDiagnostic& report(SourceRange range, Args&&... args) {
    constexpr std::string_view kText = kLangDiagRows[static_cast<size_t>(D)].text;
    return add(D, range,
               fmt::format(fmt::format_string<Args...>(kText), std::forward<Args>(args)...));
  }

  /// Adds a note to the last diagnostic, unless it has many: function calls may nest.
  void annotate_last(SourceRange range, std::string note);

  int num_errors() const { return num_errors_; }
  bool has_errors() const { return num_errors_ > 0; }
  /// True once no further error is recorded; callers stop early.
  bool is_full() const { return num_errors_ > kMaxErrors; }
  const std::deque<SourceDiagnostic>& all() const { return diagnostics_; }

 private:
  SourceDiagnostic& add(LangDiag id, SourceRange range, std::string message);

  std::deque<SourceDiagnostic> diagnostics_;
  SourceDiagnostic discarded_{};
  int num_errors_ = 0;
};

/// Renders all diagnostics as `file:line:col: error: message` with source lines, ranges, notes and
/// fix-its.
std::string render(const SourceSet& sources, const DiagSink& sink);

}  // namespace prunerc::lang

#endif  // PRUNERC_IR_LANG_SOURCE_H_
