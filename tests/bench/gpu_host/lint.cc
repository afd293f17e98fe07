#include "tests/bench/gpu_host/lint.h"

#include "codegen/cuda/nvrtc.h"
#include "ir/dtype.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace prunerc::bench {
namespace {

constexpr int64_t kRegisterFile = 65536;  // of a multiprocessor
constexpr int64_t kRegisterUnit = 8;
constexpr int64_t kWarpgroup = 128;
constexpr int64_t kMapAlignment = 16;  // bytes

using Violations = std::vector<Violation>;

int64_t threads_of(const codegen::Launch& launch) {
  return launch.block[0] * launch.block[1] * launch.block[2];
}

int64_t number_at(std::string_view text, size_t at, int base) {
  int64_t value = 0;
  std::from_chars(text.data() + at, text.data() + text.size(), value, base);
  return value;
}

bool is_wgmma(const Instruction& i) {
  return i.name() == "HGMMA" || i.name() == "IGMMA" || i.name() == "QGMMA";
}
bool is(const Instruction& i, std::string_view name, std::string_view modifier) {
  return i.name() == name && i.has(modifier);
}
bool is_local(const Instruction& i) { return i.name() == "LDL" || i.name() == "STL"; }
bool closes_group(const Instruction& i) { return i.operands.find("gsb0") != std::string::npos; }

// The registers that a warpgroup has after a USETMAXREG; nothing for others.
std::optional<int64_t> traded(const Instruction& i, std::string_view how) {
  if (!is(i, "USETMAXREG", how)) return std::nullopt;
  const size_t at = i.operands.rfind("0x");
  return at == std::string::npos ? 0 : number_at(i.operands, at + 2, 16);
}

void check_resources(const LintedKernel& k, Violations* out) {
  const bool spills = std::any_of(k.sass.code.begin(), k.sass.code.end(), is_local);
  if (spills || k.resources.stack_bytes > 0)
    out->push_back({LintRule::kLocal, fmt::format("{} bytes of stack", k.resources.stack_bytes)});
  const int64_t threads = threads_of(k.launch);
  const int64_t each = (k.resources.registers + kRegisterUnit - 1) / kRegisterUnit * kRegisterUnit;
  if (each * threads > kRegisterFile)
    out->push_back({LintRule::kRegisters, fmt::format("{} threads of {}", threads, each)});
  int64_t least = 0, most = 0;
  for (const Instruction& i : k.sass.code) {
    if (const auto n = traded(i, "DEALLOC")) least = std::max(least, *n);
    if (const auto n = traded(i, "TRY_ALLOC")) most = std::max(most, *n);
  }
  if (most == 0) return;
  // One warpgroup copies, the others compute.
  const int64_t all = kWarpgroup * (least + most * (threads / kWarpgroup - 1));
  if (least == 0 || all > kRegisterFile)
    out->push_back(
        {LintRule::kSetmaxnreg, fmt::format("{} and {}: {} together", least, most, all)});
}

void check_wgmma(const SassKernel& sass, Violations* out) {
  bool has_arrived = false, is_open = false, is_pending = false;
  for (const Instruction& i : sass.code) {
    if (is(i, "WARPGROUP", "ARRIVE")) has_arrived = true;
    if (is(i, "WARPGROUP", "DEPBAR")) {
      if (is_open) out->push_back({LintRule::kCommit, "a group is waited for that none closed"});
      is_open = has_arrived = false;
      if (i.operands.find("0x0") != std::string::npos) is_pending = false;
    }
    if (!is_wgmma(i)) continue;
    if (!has_arrived) out->push_back({LintRule::kArrive, "wgmma reads what other warps may write"});
    has_arrived = true;  // said once for a batch
    is_open = !closes_group(i);
    is_pending = true;
  }
  if (is_pending) out->push_back({LintRule::kDepbar, "the last wgmma is never waited for"});
}

bool reads_by_proxy(const Instruction& i) { return is_wgmma(i) || i.name() == "UTMASTG"; }
bool writes_shared(const Instruction& i) {
  return i.name() == "STS" || i.name() == "STSM" || i.name() == "LDGSTS";
}

// In a pipeline plain writes of a later tile stand between the fence and what reads this one, so it
// is asked of each batch that there is a fence since the one before, if there are writes since then:
// the assembler may make two batches of one.
void check_fences(const SassKernel& sass, Violations* out) {
  bool is_written = false, is_fenced = false;
  for (const Instruction& i : sass.code) {
    if (writes_shared(i)) is_written = true;
    if (is(i, "FENCE", "ASYNC")) is_fenced = true;
    if (!reads_by_proxy(i)) continue;
    if (is_written && !is_fenced) {
      out->push_back({LintRule::kFence, i.opcode + " behind plain writes to shared memory"});
      is_fenced = true;  // said once for a batch
    }
    if (closes_group(i)) is_fenced = is_written = false;
    if (i.name() == "UTMASTG") is_fenced = is_written = false;
  }
}

// Empty if there is no loop.
CodeRange loop_of(const SassKernel& sass) {
  const CodeRange loop = main_loop(sass);
  return loop.end - loop.begin < sass.code.size() ? loop : CodeRange{0, 0};
}

void check_gpu_fences(const SassKernel& sass, Violations* out) {
  if (count(sass, loop_of(sass), "MEMBAR", "GPU") > 0)
    out->push_back({LintRule::kGpuFence, "each iteration waits for all of the GPU's memory"});
}

int64_t box_bytes(const codegen::TensorMap& map) {
  return map.box_rows * map.box_cols * ir::byte_size(map.dtype);
}

// Lines of the text: `pr_mbar_expect_tx(bar, BYTES);`, then its copies one by one.
void check_expected(const LintedKernel& k, Violations* out) {
  int64_t expected = -1, sum = 0;
  const auto close = [&] {
    if (expected >= 0 && sum > 0 && sum != expected)
      out->push_back({LintRule::kExpectTx, fmt::format("{} bytes for boxes of {}", expected, sum)});
    expected = -1;
    sum = 0;
  };
  std::string_view rest = k.text;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (const size_t at = line.find("pr_mbar_expect_tx("); at != std::string_view::npos) {
      close();
      expected = number_at(line, line.rfind(", ") + 2, 10);
    } else if (line.find("pr_tma_load_") != std::string_view::npos) {
      const size_t map = line.find("&map");
      const auto idx = static_cast<size_t>(number_at(line, map + 4, 10));
      if (map == std::string_view::npos || idx >= k.launch.tensor_maps.size()) continue;
      sum += box_bytes(k.launch.tensor_maps[idx]);
    } else if (line.find_first_not_of(' ') != std::string_view::npos) {
      close();
    }
  }
  close();
}

void check_maps(const codegen::Launch& launch, Violations* out) {
  for (const codegen::TensorMap& map : launch.tensor_maps) {
    const bool is_workspace = map.base.kind == codegen::LaunchArgKind::kWorkspace;
    const bool is_aligned = map.pitch_bytes % kMapAlignment == 0 &&
                            (!is_workspace || map.base.value % kMapAlignment == 0);
    if (!is_aligned)
      out->push_back({LintRule::kMapPitch, fmt::format("a pitch of {} bytes", map.pitch_bytes)});
  }
}

// The text of one kernel of several.
std::string text_of(std::string_view all, const std::string& name) {
  const size_t at = all.find(" " + name + "(");
  if (at == std::string_view::npos) return "";
  const size_t end = std::min(all.find("\nPR_KERNEL(", at), all.find("\nPR_CLUSTER_KERNEL(", at));
  return std::string(all.substr(at, end == std::string_view::npos ? end : end - at));
}

// ---- Violations. ----

template <typename Fn>
bool remove_first(std::vector<Instruction>& code, Fn&& matches) {
  const auto found = std::find_if(code.begin(), code.end(), matches);
  if (found == code.end()) return false;
  found->opcode = "NOP";
  found->operands.clear();
  return true;
}

bool remove_all(std::vector<Instruction>& code, std::string_view modifier) {
  const auto matches = [modifier](const Instruction& i) { return is(i, "WARPGROUP", modifier); };
  bool any = false;
  while (remove_first(code, matches)) any = true;
  return any;
}

bool plant_expected(std::string* text) {
  const size_t at = text->find("pr_mbar_expect_tx(");
  if (at == std::string::npos) return false;
  const size_t number = text->find(", ", at) + 2;
  text->replace(number, text->find(')', number) - number, "16");
  return true;
}

// Only where something is written plainly: what copies by TMA alone needs none.
bool plant_fence(std::vector<Instruction>& code) {
  const auto reader = std::find_if(code.begin(), code.end(), reads_by_proxy);
  if (reader == code.end() || std::none_of(code.begin(), reader, writes_shared)) return false;
  for (Instruction& i : code) {
    if (is(i, "FENCE", "ASYNC")) i.opcode = "NOP";
  }
  return true;
}

bool plant_gpu_fence(SassKernel& sass) {
  const CodeRange loop = loop_of(sass);
  for (size_t i = loop.begin; i < loop.end; ++i) {
    if (is_math(sass.code[i]) || sass.code[i].branches_to >= 0) continue;
    sass.code[i].opcode = "MEMBAR.ALL.GPU";
    return true;
  }
  return false;
}

}  // namespace

std::string_view to_string(LintRule rule) {
  constexpr std::string_view kNames[kNumLintRules] = {
      "local memory", "registers", "setmaxnreg", "no arrive", "no depbar",
      "no commit",    "no fence",  "expect_tx",  "GPU fence", "map pitch",
  };
  return kNames[static_cast<size_t>(rule)];
}

Result<std::vector<LintedKernel>> linted_kernels(const codegen::Artifact& source,
                                                 const std::string& arch) {
  PRUNERC_TRY(const codegen::Cubin cubin, codegen::compile_cubin(source.bytes, arch, {}));
  PRUNERC_TRY(const std::vector<SassKernel> all, disassemble(cubin.bytes));
  std::vector<LintedKernel> out;
  for (const codegen::Launch& launch : source.launches) {
    LintedKernel kernel;
    kernel.launch = launch;
    kernel.text = text_of(source.bytes, launch.kernel);
    for (const SassKernel& sass : all) {
      if (sass.name == launch.kernel) kernel.sass = sass;
    }
    for (const codegen::KernelResources& resources : cubin.info.kernels) {
      if (resources.kernel == launch.kernel) kernel.resources = resources;
    }
    out.push_back(std::move(kernel));
  }
  return out;
}

std::vector<Violation> lint(const LintedKernel& kernel) {
  Violations out;
  check_resources(kernel, &out);
  check_wgmma(kernel.sass, &out);
  check_fences(kernel.sass, &out);
  check_gpu_fences(kernel.sass, &out);
  check_expected(kernel, &out);
  check_maps(kernel.launch, &out);
  return out;
}

bool plant_violation(LintRule rule, LintedKernel* kernel) {
  std::vector<Instruction>& code = kernel->sass.code;
  switch (rule) {
    case LintRule::kLocal: code.push_back({.opcode = "STL", .operands = "[R1], R2"}); return true;
    case LintRule::kRegisters:
      kernel->resources.registers = 255;
      kernel->launch.block[0] *= 8;
      return threads_of(kernel->launch) * 256 > kRegisterFile;
    case LintRule::kSetmaxnreg:
      return remove_first(code, [](const auto& i) { return traded(i, "DEALLOC").has_value(); });
    case LintRule::kArrive: return remove_all(code, "ARRIVE");
    case LintRule::kDepbar: return remove_all(code, "DEPBAR");
    case LintRule::kCommit: {
      bool any = false;
      for (Instruction& i : code) {
        if (!is_wgmma(i) || !closes_group(i)) continue;
        i.operands.erase(i.operands.find("gsb0"));
        any = true;
      }
      return any;
    }
    case LintRule::kFence: return plant_fence(code);
    case LintRule::kGpuFence: return plant_gpu_fence(kernel->sass);
    case LintRule::kExpectTx: return plant_expected(&kernel->text);
    case LintRule::kMapPitch:
      if (kernel->launch.tensor_maps.empty()) return false;
      kernel->launch.tensor_maps.front().pitch_bytes += 8;
      return true;
  }
  return false;
}

}  // namespace prunerc::bench
