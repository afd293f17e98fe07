#include "tools/driver/report/hot_loop.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>

namespace prunerc {
namespace {

constexpr std::string_view kBlanks = " \t";

struct Line {
  std::string_view label;     // of a line "label:"
  std::string_view mnemonic;  // of an instruction
  std::string_view operands;
};

Line read_line(std::string_view text) {
  text = text.substr(0, text.find('#'));
  const std::size_t start = text.find_first_not_of(kBlanks);
  if (start == text.npos) return {};
  if (start == 0) return {text.substr(0, text.find(':')), "", ""};
  text.remove_prefix(start);
  if (text[0] == '.') return {};  // a directive
  const std::size_t end = text.find_first_of(kBlanks);
  if (end == text.npos) return {"", text, ""};
  const std::size_t rest = text.find_first_not_of(kBlanks, end);
  return {"", text.substr(0, end), rest == text.npos ? "" : text.substr(rest)};
}

bool starts_with_any(std::string_view word, std::span<const std::string_view> starts) {
  return std::any_of(starts.begin(), starts.end(),
                     [&](std::string_view s) { return word.starts_with(s); });
}

bool touches_memory(const Line& line) {
  return line.operands.find('(') != line.operands.npos && !line.mnemonic.starts_with("lea") &&
         !line.mnemonic.starts_with("nop");
}

HotLoop count(std::span<const Line> lines, std::size_t first, std::size_t last) {
  HotLoop loop = {.first = first, .last = last};
  for (std::size_t i = first; i <= last; ++i) {
    if (lines[i].mnemonic.empty()) continue;
    ++loop.mix[static_cast<std::size_t>(instruction_kind(lines[i].mnemonic))];
    ++loop.num_instructions;
    loop.num_memory_operands += touches_memory(lines[i]) ? 1 : 0;
  }
  return loop;
}

auto rank(const HotLoop& loop) {
  const auto of = [&](InstructionKind kind) { return loop.mix[static_cast<std::size_t>(kind)]; };
  return std::tuple(of(InstructionKind::kMultiplyAdd), of(InstructionKind::kVector),
                    of(InstructionKind::kMove), loop.num_instructions);
}

/// From a line to the line of its label.
struct Jump {
  std::size_t from = 0, to = 0;
};

std::vector<Jump> jumps_of(std::span<const Line> lines,
                           const std::map<std::string_view, std::size_t>& labels) {
  std::vector<Jump> jumps;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].mnemonic.starts_with("j")) continue;
    const std::string_view operands = lines[i].operands;
    const auto target = labels.find(operands.substr(0, operands.find_first_of(kBlanks)));
    if (target != labels.end()) jumps.push_back({i, target->second});
  }
  return jumps;
}

std::vector<HotLoop> innermost_loops(std::span<const Line> lines, std::span<const Jump> jumps) {
  std::vector<HotLoop> loops;
  for (const Jump& jump : jumps) {
    if (jump.to > jump.from) continue;
    // A jump back over an earlier one belongs to an outer loop.
    const bool is_outer = std::any_of(loops.begin(), loops.end(),
                                      [&](const HotLoop& inner) { return inner.first > jump.to; });
    if (is_outer) continue;
    // Several jumps to one label are one loop.
    std::erase_if(loops, [&](const HotLoop& same) { return same.first == jump.to; });
    loops.push_back(count(lines, jump.to, jump.from));
  }
  return loops;
}

// Then its lines are not what it runs: blocks of others lie between its own.
bool is_entered_inside(const HotLoop& loop, std::span<const Jump> jumps) {
  return std::any_of(jumps.begin(), jumps.end(), [&](const Jump& jump) {
    const bool is_outside = jump.from < loop.first || jump.from > loop.last;
    return is_outside && jump.to > loop.first && jump.to <= loop.last;
  });
}

}  // namespace

std::string_view to_string(InstructionKind kind) {
  constexpr std::array<std::string_view, kNumInstructionKinds> kNames = {"multiply-add",
                                                                         "other vector arithmetic",
                                                                         "vector load, store, move",
                                                                         "broadcast or shuffle",
                                                                         "prefetch",
                                                                         "integer and addresses",
                                                                         "branch"};
  return kNames[static_cast<std::size_t>(kind)];
}

InstructionKind instruction_kind(std::string_view m) {
  constexpr std::string_view kMultiplyAdds[] = {"vfmadd",  "vfmsub",   "vfnmadd", "vfnmsub",
                                                "vdpbf16", "vpdpbusd", "vpdpwss", "vpmadd",
                                                "pmadd",   "tdp"};
  constexpr std::string_view kMoves[] = {
      "vmov",   "mova", "movu",     "movs",      "movd",     "movq",      "movhps",  "movlps",
      "vlddqu", "kmov", "vmaskmov", "vpmaskmov", "tileload", "tilestore", "vgather", "vpgather"};
  constexpr std::string_view kShuffles[] = {
      "vbroadcast", "vpbroadcast", "vperm",     "vpperm",  "vshuf",   "vpshuf",  "vunpck",
      "vpunpck",    "vinsert",     "vextract",  "vcvt",    "vpack",   "valign",  "vpalign",
      "vblend",     "vpblend",     "vpinsr",    "vpextr",  "vpmovzx", "vpmovsx", "shuf",
      "unpck",      "pshuf",       "punpck",    "cvt",     "pmovzx",  "pmovsx",  "vpmovdb",
      "vpmovdw",    "vmovshdup",   "vmovsldup", "vmovddup"};
  constexpr std::string_view kScalars[] = {"add", "mul", "sub", "div", "max", "min", "sqrt"};
  if (starts_with_any(m, kMultiplyAdds)) return InstructionKind::kMultiplyAdd;
  if (m.starts_with("prefetch")) return InstructionKind::kPrefetch;
  if (m.starts_with("j") || m.starts_with("call") || m.starts_with("ret")) {
    return InstructionKind::kBranch;
  }
  if (starts_with_any(m, kShuffles)) return InstructionKind::kShuffle;
  // "movslq", "movsbl" and the like extend integers.
  const bool extends = m.starts_with("movs") && m.size() == 6 && m[4] != 's' && m[4] != 'd';
  if (starts_with_any(m, kMoves) && !extends && m != "movq" && m != "movl") {
    return InstructionKind::kMove;
  }
  if (m.starts_with("v")) return InstructionKind::kVector;
  // SSE: "addps", "mulss".
  const bool is_float =
      m.ends_with("ps") || m.ends_with("pd") || m.ends_with("ss") || m.ends_with("sd");
  if (is_float && starts_with_any(m, kScalars)) return InstructionKind::kVector;
  return InstructionKind::kInteger;
}

HotLoop find_hot_loop(const std::vector<std::string_view>& texts) {
  std::vector<Line> lines;
  std::map<std::string_view, std::size_t> labels;
  for (const std::string_view text : texts) {
    lines.push_back(read_line(text));
    if (!lines.back().label.empty()) labels[lines.back().label] = lines.size() - 1;
  }
  const std::vector<Jump> jumps = jumps_of(lines, labels);
  std::vector<HotLoop> loops = innermost_loops(lines, jumps);
  std::erase_if(loops, [&](const HotLoop& loop) { return is_entered_inside(loop, jumps); });
  const auto best =
      std::max_element(loops.begin(), loops.end(),
                       [](const HotLoop& a, const HotLoop& b) { return rank(a) < rank(b); });
  return best == loops.end() ? HotLoop{} : *best;
}

}  // namespace prunerc
