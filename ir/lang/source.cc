#include "ir/lang/source.h"

#include "ir/support/file.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

namespace prunerc::lang {
namespace {

/// Longer source lines are cut around the caret, so that one line of a megabyte is not printed for
/// each error.
constexpr size_t kMaxLineLength = 240;
constexpr size_t kContextBeforeCaret = 100;

class Renderer {
 public:
  explicit Renderer(const SourceSet& sources) : sources_(sources), out_(buffer_) {
    for (uint32_t file = 0; file < sources.num_files(); ++file) {
      ids_.push_back(manager_.AddNewSourceBuffer(
          llvm::MemoryBuffer::getMemBuffer(sources.text(file), sources.name(file), true),
          llvm::SMLoc()));
    }
  }

  void print(const SourceDiagnostic& diagnostic) {
    const Severity severity = kLangDiagRows[static_cast<size_t>(diagnostic.id)].severity;
    const auto kind =
        severity == Severity::kError ? llvm::SourceMgr::DK_Error : llvm::SourceMgr::DK_Warning;
    // SourceMgr can only show edits of the line it prints; the others are told in notes.
    std::vector<llvm::SMFixIt> here;
    std::vector<const FixIt*> elsewhere;
    for (const FixIt& fix : diagnostic.fix_its) {
      if (same_line(fix.range, diagnostic.range)) {
        here.emplace_back(range_of(fix.range), fix.text);
      } else {
        elsewhere.push_back(&fix);
      }
    }
    print_message(kind, diagnostic.range, diagnostic.message, merge(here));
    for (const FixIt* fix : elsewhere) {
      print_message(llvm::SourceMgr::DK_Note, fix->range,
                    fmt::format("{} '{}' here",
                                fix->range.begin == fix->range.end ? "insert" : "write", fix->text),
                    {});
    }
    for (const SourceNote& note : diagnostic.notes) {
      print_message(llvm::SourceMgr::DK_Note, note.range, note.message, {});
    }
  }

  std::string take() { return buffer_; }

 private:
  llvm::SMLoc location(uint32_t file, uint32_t offset) const {
    const llvm::MemoryBuffer* text = manager_.getMemoryBuffer(ids_[file]);
    const size_t clamped = std::min<size_t>(offset, text->getBufferSize());
    return llvm::SMLoc::getFromPointer(text->getBufferStart() + clamped);
  }

  llvm::SMRange range_of(SourceRange range) const {
    return {location(range.file, range.begin), location(range.file, range.end)};
  }

  bool same_line(SourceRange a, SourceRange b) const {
    return a.file == b.file && sources_.line_column(a).first == sources_.line_column(b).first;
  }

  /// Insertions whose texts would overlap when printed below the line become one replacement.
  static std::vector<llvm::SMFixIt> merge(std::vector<llvm::SMFixIt> fixes) {
    std::sort(fixes.begin(), fixes.end());
    std::vector<llvm::SMFixIt> merged;
    for (const llvm::SMFixIt& fix : fixes) {
      if (merged.empty()) {
        merged.push_back(fix);
        continue;
      }
      const llvm::SMFixIt last = merged.back();
      const char* end = last.getRange().End.getPointer();
      const char* begin = fix.getRange().Start.getPointer();
      const auto gap = static_cast<size_t>(begin - end);
      if (begin < end || gap > last.getText().size()) {
        merged.push_back(fix);
        continue;
      }
      merged.back() = llvm::SMFixIt(llvm::SMRange(last.getRange().Start, fix.getRange().End),
                                    last.getText() + llvm::StringRef(end, gap) + fix.getText());
    }
    return merged;
  }

  void print_message(llvm::SourceMgr::DiagKind kind, SourceRange range, const std::string& message,
                     const std::vector<llvm::SMFixIt>& fix_its) {
    if (ids_.empty()) return;
    std::vector<llvm::SMRange> ranges;
    if (range.end > range.begin) ranges.push_back(range_of(range));
    llvm::SMDiagnostic full =
        manager_.GetMessage(location(range.file, range.begin), kind, message, ranges, fix_its);
    if (full.getLineContents().size() <= kMaxLineLength) {
      full.print(nullptr, out_, /*ShowColors=*/false);
    } else {
      cut(full).print(nullptr, out_, /*ShowColors=*/false);
    }
  }

  /// The same diagnostic with only the part of its line around the caret.
  static llvm::SMDiagnostic cut(const llvm::SMDiagnostic& full) {
    const auto column = static_cast<size_t>(std::max(full.getColumnNo(), 0));
    const size_t from = column > kContextBeforeCaret ? column - kContextBeforeCaret : 0;
    const std::string line = full.getLineContents().substr(from, kMaxLineLength).str();
    std::vector<std::pair<unsigned, unsigned>> ranges;
    for (const auto& [begin, end] : full.getRanges()) {
      const size_t first = std::clamp<size_t>(begin, from, from + line.size());
      const size_t last = std::clamp<size_t>(end, from, from + line.size());
      ranges.emplace_back(static_cast<unsigned>(first - from), static_cast<unsigned>(last - from));
    }
    // The column shown to the reader would be that of the cut line, so the message names the real
    // one.
    return llvm::SMDiagnostic(
        *full.getSourceMgr(), full.getLoc(), full.getFilename(), full.getLineNo(),
        static_cast<int>(column - from), full.getKind(),
        fmt::format("{} (column {} of a long line)", full.getMessage().str(), column + 1), line,
        ranges);
  }

  const SourceSet& sources_;
  llvm::SourceMgr manager_;
  std::vector<unsigned> ids_;
  std::string buffer_;
  llvm::raw_string_ostream out_;
};

}  // namespace

std::string counted(size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

uint32_t SourceSet::add(std::string name, std::string text) {
  std::vector<uint32_t> lines = {0};
  for (std::size_t at = text.find('\n'); at != text.npos; at = text.find('\n', at + 1)) {
    lines.push_back(static_cast<uint32_t>(at) + 1);
  }
  files_.push_back({std::move(name), std::move(text), std::move(lines)});
  return static_cast<uint32_t>(files_.size() - 1);
}

std::string_view SourceSet::text(SourceRange range) const {
  return std::string_view(files_[range.file].text).substr(range.begin, range.end - range.begin);
}

std::pair<int, int> SourceSet::line_column(SourceRange range) const {
  if (range.file >= files_.size()) return {1, 1};
  const std::vector<uint32_t>& lines = files_[range.file].lines;
  const auto after = std::upper_bound(lines.begin(), lines.end(), range.begin);
  return {static_cast<int>(after - lines.begin()),
          static_cast<int>(range.begin - *(after - 1)) + 1};
}

SourceDiagnostic& DiagSink::add(LangDiag id, SourceRange range, std::string message) {
  const bool is_error = kLangDiagRows[static_cast<size_t>(id)].severity == Severity::kError;
  if (is_error && ++num_errors_ > kMaxErrors) {
    if (num_errors_ == kMaxErrors + 1) {
      constexpr auto kFull = LangDiag::kTooManyErrors;
      const std::string_view text = kLangDiagRows[static_cast<size_t>(kFull)].text;
      diagnostics_.push_back({kFull, range, fmt::format(fmt::runtime(text), kMaxErrors), {}, {}});
    }
    discarded_ = {};
    return discarded_;
  }
  diagnostics_.push_back({id, range, std::move(message), {}, {}});
  return diagnostics_.back();
}

void DiagSink::annotate_last(SourceRange range, std::string note) {
  constexpr size_t kMaxNotes = 6;
  if (!diagnostics_.empty() && diagnostics_.back().notes.size() < kMaxNotes) {
    diagnostics_.back().note(range, std::move(note));
  }
}

std::string render(const SourceSet& sources, const DiagSink& sink) {
  Renderer renderer(sources);
  for (const SourceDiagnostic& diagnostic : sink.all()) renderer.print(diagnostic);
  return printable(renderer.take());
}

}  // namespace prunerc::lang
