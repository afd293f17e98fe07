#include "tests/bench/gpu_host/sass.h"

#include "codegen/subprocess.h"
#include "ir/support/cuda_paths.h"

#include <algorithm>
#include <filesystem>
#include <map>

namespace prunerc::bench {
namespace {

constexpr std::string_view kTextHead = ".text.";

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t;") - begin + 1);
}

// "@!P0 BRA `(.L_x_3)" of what stands behind an address.
Instruction read_instruction(std::string_view text, std::string* label) {
  text = trim(text);
  if (!text.empty() && text.front() == '{') text = trim(text.substr(1));
  if (!text.empty() && text.front() == '@')
    text = trim(text.substr(std::min(text.find(' '), text.size())));
  Instruction out;
  const size_t end = std::min(text.find(' '), text.size());
  out.opcode = text.substr(0, end);
  out.operands = trim(text.substr(end));
  const size_t at = out.operands.find("`(");
  if (out.name() == "BRA" && at != std::string::npos)
    *label = out.operands.substr(at + 2, out.operands.find(')', at) - at - 2);
  return out;
}

// Resolves labels once a kernel is complete.
struct Reading {
  SassKernel kernel;
  std::map<std::string, int64_t, std::less<>> labels;
  std::vector<std::pair<size_t, std::string>> branches;

  void finish(std::vector<SassKernel>* out) {
    for (const auto& [from, label] : branches) {
      const auto found = labels.find(label);
      if (found != labels.end()) kernel.code[from].branches_to = found->second;
    }
    if (!kernel.name.empty()) out->push_back(std::move(kernel));
    *this = {};
  }
  void read(std::string_view line) {
    const size_t address = line.find("/*");
    if (address == std::string_view::npos) {
      line = trim(line);
      if (line.size() > 1 && line.back() == ':')
        labels.emplace(line.substr(0, line.size() - 1), static_cast<int64_t>(kernel.code.size()));
      return;
    }
    const size_t behind = line.find("*/", address);
    if (behind == std::string_view::npos) return;
    std::string label;
    Instruction instruction = read_instruction(line.substr(behind + 2), &label);
    if (instruction.opcode.empty()) return;
    if (!label.empty()) branches.emplace_back(kernel.code.size(), label);
    kernel.code.push_back(std::move(instruction));
  }
};

std::string nvdisasm() {
  // Beside the folders of libraries of a toolkit or package.
  constexpr std::string_view kNames[] = {"../bin/nvdisasm"};
  for (const std::string& path : cuda_library_candidates("PRUNERC_NVDISASM", kNames)) {
    if (std::filesystem::exists(path)) return path;
  }
  return "";
}

}  // namespace

bool Instruction::has(std::string_view modifier) const {
  std::string_view rest = opcode;
  while (true) {
    const size_t dot = rest.find('.');
    if (dot == std::string_view::npos) return false;
    rest.remove_prefix(dot + 1);
    if (rest.substr(0, rest.find('.')) == modifier) return true;
  }
}

std::vector<SassKernel> parse_sass(std::string_view text) {
  std::vector<SassKernel> kernels;
  Reading reading;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.rfind(kTextHead, 0) == 0) {
      reading.finish(&kernels);
      const std::string_view name = line.substr(kTextHead.size());
      reading.kernel.name = name.substr(0, name.find(':'));
    } else if (!reading.kernel.name.empty()) {
      reading.read(line);
    }
  }
  reading.finish(&kernels);
  return kernels;
}

Result<std::vector<SassKernel>> disassemble(std::string_view cubin) {
  const std::string tool = nvdisasm();
  if (tool.empty()) return error(Diag::kNvrtcMissing, "nvdisasm is not there either");
  PRUNERC_TRY(const codegen::ScratchFolder folder, codegen::ScratchFolder::make());
  const std::string in = folder.file("kernel.cubin"), out = folder.file("kernel.sass");
  PRUNERC_TRY_VOID(codegen::write_file(in, cubin));
  if (const int code = codegen::run_program({tool, "-c", in}, out); code != 0)
    return error(Diag::kIoError, "disassemble", in, "exit status " + std::to_string(code));
  return parse_sass(codegen::read_file(out));
}

bool is_math(const Instruction& instruction) {
  constexpr std::string_view kNames[] = {"HGMMA", "IGMMA", "QGMMA", "HMMA", "IMMA",
                                         "DMMA",  "FFMA",  "DFMA",  "HFMA2"};
  return std::find(std::begin(kNames), std::end(kNames), instruction.name()) != std::end(kNames);
}

CodeRange main_loop(const SassKernel& kernel) {
  CodeRange best{0, kernel.code.size()};
  int64_t most = 0;
  for (size_t i = 0; i < kernel.code.size(); ++i) {
    const int64_t to = kernel.code[i].branches_to;
    if (to < 0 || to > static_cast<int64_t>(i)) continue;
    const CodeRange loop{static_cast<size_t>(to), i + 1};
    const auto first = kernel.code.begin() + to;
    const auto last = kernel.code.begin() + static_cast<std::ptrdiff_t>(loop.end);
    const int64_t math = std::count_if(first, last, is_math);
    const bool is_inside = loop.begin >= best.begin && loop.end <= best.end;
    // Of nested loops the inner one, unless the outer one computes much more.
    const bool is_better = 2 * math > 3 * most || (math == most && math > 0 && is_inside);
    if (!is_better) continue;
    most = math;
    best = loop;
  }
  return best;
}

int64_t count(const SassKernel& kernel, CodeRange range, std::string_view name,
              std::string_view modifier) {
  int64_t found = 0;
  for (size_t i = range.begin; i < range.end; ++i) {
    const Instruction& one = kernel.code[i];
    found += one.name() == name && (modifier.empty() || one.has(modifier)) ? 1 : 0;
  }
  return found;
}

}  // namespace prunerc::bench
