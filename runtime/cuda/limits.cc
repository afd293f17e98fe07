#include "runtime/cuda/limits.h"

#include "runtime/cuda/limits_kernels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

namespace prunerc::runtime::cuda {
namespace {

using codegen::LaunchArg;
using codegen::LaunchArgKind;
using codegen::ParamRole;
using ir::DType;

constexpr int64_t kThreads = 256;
constexpr int64_t kWarp = 32;
/// Blocks for each multiprocessor: as many as its registers and threads hold, or as saturate it.
constexpr int64_t kFmaBlocks = 8, kWmmaBlocks = 2, kWgmmaBlocks = 1, kMemoryBlocks = 8,
                  kL2Blocks = 4, kSharedBlocks = 4;
constexpr double kFmaSteps = 1024, kWmmaSteps = 512, kWgmmaSteps = 64, kSharedSteps = 4096;
/// Per iteration of a kernel's loop and thread, or instruction; see limits_kernels.h.
constexpr int64_t kFmasPerStep = 128, kMmasPerStep = 16, kLoadsPerStep = 4, kLoadBytes = 16;
constexpr int64_t kWmmaMacs = 16 * 16 * 16, kWgmmaMacs = 64 * 256 * 16;
constexpr int64_t kTile = 16, kWgmmaColumns = 256, kWgmmaDepth = 64;
constexpr int64_t kWgmmaSharedBytes = 4 * (2048 + 8192);
constexpr int64_t kMinMemoryBytes = int64_t{512} << 20;
/// Of what L2 holds: a device may keep a copy of everything in each of its two halves.
constexpr int64_t kL2Share = 2, kL2Overflow = 4;
constexpr int64_t kWorkspaceWord = -1;  // what 0xFF everywhere reads as
constexpr double kGiga = 1e9;

int64_t scaled(double full, double scale) {
  return std::max<int64_t>(1, std::llround(full * scale));
}

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<float> small_ints(uint64_t seed, int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  fill_tensor(Fill::kSmallInt, seed, DType::kF32, count, values.data());
  return values;
}

/// How often each kernel's loops run, and over what.
struct Sizes {
  int64_t fma_steps, wmma_steps, wgmma_steps, shared_steps, memory_steps, l2_steps;
  int64_t sms;
  bool has_wgmma;
};

Sizes sizes_of(const ir::Target& target, double scale) {
  Sizes out{};
  out.sms = std::max<int64_t>(1, target.num_sms);
  out.has_wgmma = target.name.ends_with("sm_90a");
  out.fma_steps = scaled(kFmaSteps, scale);
  out.wmma_steps = scaled(kWmmaSteps, scale);
  out.wgmma_steps = scaled(kWgmmaSteps, scale);
  out.shared_steps = scaled(kSharedSteps, scale);
  const int64_t step_bytes = kThreads * kLoadsPerStep * kLoadBytes;
  const auto l2_bytes = static_cast<double>(std::max<int64_t>(target.l2_bytes, 1 << 20));
  const double memory =
      std::max(static_cast<double>(kMinMemoryBytes), kL2Overflow * l2_bytes) * scale;
  // Even: a copy takes half of the steps.
  out.memory_steps =
      2 * scaled(memory / static_cast<double>(2 * step_bytes * kMemoryBlocks * out.sms), 1);
  const double l2_steps = scale * l2_bytes / kL2Share / static_cast<double>(step_bytes);
  out.l2_steps = static_cast<int64_t>(
      std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(1, std::llround(l2_steps)))));
  return out;
}

std::string text_of(const Sizes& sizes) {
  std::string text;
  for (const auto& [name, value] : {std::pair<const char*, int64_t>{"THREADS", kThreads},
                                    {"FMA_STEPS", sizes.fma_steps},
                                    {"WMMA_STEPS", sizes.wmma_steps},
                                    {"WGMMA_STEPS", sizes.wgmma_steps},
                                    {"SHARED_STEPS", sizes.shared_steps},
                                    {"MEMORY_STEPS", sizes.memory_steps},
                                    {"MEMORY_BLOCKS", kMemoryBlocks * sizes.sms},
                                    {"L2_STEPS", sizes.l2_steps}}) {
    text += "constexpr int " + std::string(name) + " = " + std::to_string(value) + ";\n";
  }
  text += kLimitsKernels;
  if (sizes.has_wgmma) text += kLimitsWgmmaKernel;
  return text;
}

class ProbeList {
 public:
  ProbeList(const ir::Target& target, double scale)
      : sizes_(sizes_of(target, scale)),
        text_(text_of(sizes_)),
        arch_(target.name.substr(target.name.find(':') + 1)) {}

  std::vector<LimitProbe> make() {
    add_launch();
    add_fma();
    add_wmma();
    if (sizes_.has_wgmma) add_wgmma();
    add_memory();
    add_l2();
    add_shared();
    return std::move(probes_);
  }

 private:
  /// Inputs and workspace come before the output in the kernel's arguments.
  LimitProbe& add(LimitKind kind, const char* kernel, int64_t blocks, DType out,
                  int64_t out_elems) {
    LimitProbe& probe = probes_.emplace_back();
    probe.kind = kind;
    codegen::Artifact& a = probe.source;
    a.kind = codegen::ArtifactKind::kCudaSource;
    a.bytes = text_;
    a.entry = kernel;
    a.cpu = arch_;
    a.params = {{.name = "out", .dtype = out, .shape = {out_elems}, .role = ParamRole::kOutput}};
    a.launches = {{.kernel = kernel,
                   .grid = {blocks, 1, 1},
                   .block = {kThreads, 1, 1},
                   .args = {{LaunchArgKind::kParam, 0}},
                   .tensor_maps = {}}};
    return probe;
  }
  static void add_input(LimitProbe& probe, const char* name, DType dtype,
                        std::vector<int64_t> shape, InputSpec spec) {
    codegen::Artifact& a = probe.source;
    const auto at = static_cast<int64_t>(probe.inputs.size());
    a.params.insert(a.params.begin() + at,
                    {.name = name, .dtype = dtype, .shape = std::move(shape)});
    std::vector<LaunchArg>& args = a.launches[0].args;
    args.back().value = at + 1;
    args.insert(args.end() - 1, {LaunchArgKind::kParam, at});
    probe.inputs.push_back(spec);
  }
  static void add_workspace(LimitProbe& probe, int64_t bytes, int64_t parts) {
    codegen::Artifact& a = probe.source;
    a.workspace_bytes = bytes;
    for (int64_t part = 0; part < parts; ++part) {
      a.launches[0].args.insert(a.launches[0].args.end() - 1,
                                {LaunchArgKind::kWorkspace, part * (bytes / parts)});
    }
  }

  void add_launch() {
    LimitProbe& probe = add(LimitKind::kLaunch, "limit_launch", 1, DType::kF32, kWarp);
    probe.source.launches[0].block = {kWarp, 1, 1};
    probe.expected = bytes_of(std::vector<float>(kWarp, 1.0F));
  }

  void add_fma() {
    constexpr int kChains = 16, kPeriod = 64;
    const int64_t threads = kFmaBlocks * sizes_.sms * kThreads;
    LimitProbe& probe =
        add(LimitKind::kFma, "limit_fma", kFmaBlocks * sizes_.sms, DType::kF32, threads);
    add_input(probe, "one", DType::kF32, {1}, {.fill = Fill::kOne, .seed = 0, .bytes = {}});
    probe.work = 2.0 * static_cast<double>(threads * sizes_.fma_steps * kFmasPerStep);
    std::vector<float> out(static_cast<std::size_t>(threads));
    for (std::size_t t = 0; t < out.size(); ++t) {
      for (int i = 0; i < kChains; ++i) out[t] += static_cast<float>(t % kPeriod + i);
    }
    probe.expected = bytes_of(out);
  }

  void add_wmma() {
    const int64_t warps = kWmmaBlocks * sizes_.sms * kThreads / kWarp;
    LimitProbe& probe = add(LimitKind::kTensor, "limit_wmma", kWmmaBlocks * sizes_.sms, DType::kF32,
                            warps * kTile * kTile);
    const auto spec = [](uint64_t seed) {
      return InputSpec{.fill = Fill::kSmallInt, .seed = seed, .bytes = {}};
    };
    add_input(probe, "a", DType::kF16, {kTile, kTile}, spec(1));
    add_input(probe, "b", DType::kF16, {kTile, kTile}, spec(2));
    const int64_t products = sizes_.wmma_steps * kMmasPerStep;
    probe.work = 2.0 * static_cast<double>(warps * products * kWmmaMacs);
    const std::vector<float> a = small_ints(1, kTile * kTile), b = small_ints(2, kTile * kTile);
    std::vector<float> tile;
    for (int64_t at = 0; at < kTile * kTile; ++at) {
      float sum = 0;
      for (int64_t k = 0; k < kTile; ++k) {
        sum += a[static_cast<std::size_t>(at / kTile * kTile + k)] *
               b[static_cast<std::size_t>(k * kTile + at % kTile)];
      }
      tile.push_back(sum * static_cast<float>(products));
    }
    std::vector<float> out;
    for (int64_t w = 0; w < warps; ++w) out.insert(out.end(), tile.begin(), tile.end());
    probe.expected = bytes_of(out);
  }

  void add_wgmma() {
    constexpr int64_t kGroup = 128;
    const int64_t threads = kWgmmaBlocks * sizes_.sms * kThreads;
    LimitProbe& probe =
        add(LimitKind::kTensor, "limit_wgmma", kWgmmaBlocks * sizes_.sms, DType::kF32, threads);
    probe.source.launches[0].shared_bytes = kWgmmaSharedBytes;
    add_input(probe, "b", DType::kF16, {kWgmmaDepth, kWgmmaColumns},
              {.fill = Fill::kSmallInt, .seed = 3, .bytes = {}});
    probe.work = 2.0 * static_cast<double>(threads / kGroup * sizes_.wgmma_steps * kMmasPerStep *
                                           kWgmmaMacs);
    float sum = 0;
    for (const float value : small_ints(3, kWgmmaDepth * kWgmmaColumns)) sum += value;
    // Two rows, and each part of B four times a step.
    sum *= static_cast<float>(2 * 4 * sizes_.wgmma_steps);
    probe.expected = bytes_of(std::vector<float>(static_cast<std::size_t>(threads), sum));
  }

  /// A reader's sum over `words` words of the workspace.
  static std::string sums(int64_t threads, int64_t words) {
    const auto sum = static_cast<uint32_t>(kWorkspaceWord * words);
    return bytes_of(std::vector<uint32_t>(static_cast<std::size_t>(threads), sum));
  }

  void add_memory() {
    const int64_t threads = kMemoryBlocks * sizes_.sms * kThreads;
    const int64_t bytes = threads * sizes_.memory_steps * kLoadsPerStep * kLoadBytes;
    LimitProbe& read = add(LimitKind::kMemoryRead, "limit_memory_read", kMemoryBlocks * sizes_.sms,
                           DType::kI32, threads);
    add_workspace(read, bytes, 1);
    read.work = static_cast<double>(bytes);
    read.expected = sums(threads, sizes_.memory_steps * kLoadsPerStep * 4);
    LimitProbe& copy = add(LimitKind::kMemoryCopy, "limit_memory_copy", kMemoryBlocks * sizes_.sms,
                           DType::kI32, threads);
    add_workspace(copy, bytes, 2);
    copy.work = static_cast<double>(bytes);
    copy.expected = sums(threads, sizes_.memory_steps / 2);
  }

  void add_l2() {
    const int64_t blocks = kL2Blocks * sizes_.sms;
    const int64_t bytes = kThreads * sizes_.l2_steps * kLoadsPerStep * kLoadBytes;
    LimitProbe& probe =
        add(LimitKind::kL2Read, "limit_l2_read", blocks, DType::kI32, blocks * kThreads);
    add_workspace(probe, bytes, 1);
    probe.work = static_cast<double>(bytes) * static_cast<double>(blocks);
    probe.expected = sums(blocks * kThreads, sizes_.l2_steps * kLoadsPerStep * 4);
  }

  void add_shared() {
    constexpr int64_t kWords = 4, kRotations = 8;
    const int64_t blocks = kSharedBlocks * sizes_.sms;
    LimitProbe& probe =
        add(LimitKind::kSharedRead, "limit_shared_read", blocks, DType::kI32, blocks * kThreads);
    probe.source.launches[0].shared_bytes = kLoadsPerStep * kLoadBytes * kThreads;
    probe.work = static_cast<double>(blocks * kThreads) *
                 static_cast<double>(sizes_.shared_steps * kLoadsPerStep * kLoadBytes);
    std::vector<uint32_t> block;
    for (int64_t t = 0; t < kThreads; ++t) {
      uint32_t sum = 0;
      for (int64_t n = 0; n < sizes_.shared_steps; ++n) {
        for (int64_t u = 0; u < kLoadsPerStep; ++u) {
          const int64_t vector = (t ^ (n % kRotations)) + u * kThreads;
          for (int64_t word = 0; word < kWords; ++word) {
            sum += static_cast<uint32_t>(vector * kWords + word);
          }
        }
      }
      block.push_back(sum);
    }
    std::vector<uint32_t> out;
    for (int64_t b = 0; b < blocks; ++b) out.insert(out.end(), block.begin(), block.end());
    probe.expected = bytes_of(out);
  }

  Sizes sizes_;
  std::string text_;
  std::string arch_;
  std::vector<LimitProbe> probes_;
};

double* field_of(GpuLimits& limits, LimitKind kind) {
  switch (kind) {
    case LimitKind::kLaunch: return &limits.launch_ns;
    case LimitKind::kFma: return &limits.fma_gflops;
    case LimitKind::kTensor: return &limits.tensor_gflops;
    case LimitKind::kMemoryRead: return &limits.memory_read_gbps;
    case LimitKind::kMemoryCopy: return &limits.memory_copy_gbps;
    case LimitKind::kL2Read: return &limits.l2_read_gbps;
    case LimitKind::kSharedRead: return &limits.shared_read_gbps;
  }
  PRUNERC_UNREACHABLE("limit kind");
}

struct LimitField {
  const char* name;
  double GpuLimits::*value;
};
constexpr LimitField kFields[] = {
    {"launch_ns", &GpuLimits::launch_ns},
    {"fma_gflops", &GpuLimits::fma_gflops},
    {"tensor_gflops", &GpuLimits::tensor_gflops},
    {"memory_read_gbps", &GpuLimits::memory_read_gbps},
    {"memory_copy_gbps", &GpuLimits::memory_copy_gbps},
    {"l2_read_gbps", &GpuLimits::l2_read_gbps},
    {"shared_read_gbps", &GpuLimits::shared_read_gbps},
};
constexpr std::string_view kTimerField = "timer=";

Result<Measurement> run_probe(Device& device, const LimitProbe& probe, const std::string& cubin) {
  codegen::Artifact compiled = probe.source;
  compiled.kind = codegen::ArtifactKind::kCudaCubin;
  compiled.bytes = cubin;
  Job job;
  job.artifact = &compiled;
  job.inputs = probe.inputs;
  job.check = Check::kNone;
  job.want_outputs = true;
  job.timing = TimingOptions{};
  JobOutcome outcome = device.run(job);
  const Measurement& m = outcome.measurement;
  const auto failed = [&](const std::string& why) {
    return error(Diag::kCudaCall, "measuring " + std::string(to_string(probe.kind)), why);
  };
  if (!m.ok() || m.min_ns <= 0) return failed(std::string(to_string(m.status)) + ": " + m.detail);
  if (outcome.outputs.size() != 1) return failed("it gave no output");
  if (!probe.expected.empty() && outcome.outputs[0] != probe.expected) {
    return failed(probe.source.entry + " computed something else");
  }
  return std::move(outcome.measurement);
}

}  // namespace

std::string_view to_string(LimitKind kind) {
  switch (kind) {
    case LimitKind::kLaunch: return "launch of an empty kernel";
    case LimitKind::kFma: return "f32 multiply-adds";
    case LimitKind::kTensor: return "f16 TensorCores";
    case LimitKind::kMemoryRead: return "memory, read";
    case LimitKind::kMemoryCopy: return "memory, copy";
    case LimitKind::kL2Read: return "L2, read";
    case LimitKind::kSharedRead: return "shared memory, read";
  }
  PRUNERC_UNREACHABLE("limit kind");
}

std::string to_string(const GpuLimits& limits) {
  std::string text;
  for (const LimitField& field : kFields) {
    std::array<char, 32> digits{};
    const auto end =
        std::to_chars(digits.data(), digits.data() + digits.size(), limits.*field.value).ptr;
    text += std::string(field.name) + "=" + std::string(digits.data(), end) + " ";
  }
  return text + std::string(kTimerField) + limits.timer;
}

std::optional<GpuLimits> limits_from_string(std::string_view text) {
  GpuLimits limits;
  for (const LimitField& field : kFields) {
    const std::string start = std::string(field.name) + "=";
    if (!text.starts_with(start)) return std::nullopt;
    text.remove_prefix(start.size());
    double& value = limits.*field.value;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || !std::isfinite(value) || value <= 0) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!text.starts_with(" ")) return std::nullopt;
    text.remove_prefix(1);
  }
  if (!text.starts_with(kTimerField)) return std::nullopt;
  limits.timer = text.substr(kTimerField.size(), text.find('\n') - kTimerField.size());
  return limits;
}

std::vector<LimitProbe> limit_probes(const ir::Target& target, const ProbeSizes& sizes) {
  return ProbeList(target, sizes.scale).make();
}

Result<GpuLimits> measure_limits(Device& device, const std::vector<LimitProbe>& probes,
                                 const CompileProbe& compile) {
  GpuLimits limits;
  if (probes.empty()) return limits;
  PRUNERC_TRY(const std::string cubin, compile(probes[0].source));
  for (const LimitProbe& probe : probes) {
    PRUNERC_TRY(const Measurement m, run_probe(device, probe, cubin));
    double* const field = field_of(limits, probe.kind);
    // An operation a nanosecond is a billion a second. What a launch costs is no limit but a usual
    // value.
    *field =
        probe.kind == LimitKind::kLaunch ? m.median_ns : std::max(*field, probe.work / m.min_ns);
    limits.timer = m.detail;
  }
  return limits;
}

ir::Target with_limits(ir::Target target, const GpuLimits& limits) {
  ir::Platform& p = target.platform;
  p.fma_gflops = limits.fma_gflops;
  p.l1_bandwidth = limits.shared_read_gbps * kGiga;
  p.l2_bandwidth = limits.l2_read_gbps * kGiga;
  p.l2_bandwidth_all = p.l2_bandwidth;
  p.memory_bandwidth = limits.memory_read_gbps * kGiga;
  p.memory_bandwidth_all = p.memory_bandwidth;
  p.launch_ns = limits.launch_ns;
  const double macs_at_clock =
      limits.tensor_gflops / 2 / (static_cast<double>(target.num_sms) * p.clock_ghz);
  if (std::isfinite(macs_at_clock) && macs_at_clock >= 1) {
    target.tensor_macs_per_sm = std::llround(macs_at_clock);
  }
  return target;
}

}  // namespace prunerc::runtime::cuda
