#include "tools/driver/t4/t4_kernel.h"

#include "ir/lang/lang.h"
#include "schedule/schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

namespace prunerc {
namespace {

using ir::BlockId;
using ir::LoopId;
using schedule::Int;
using schedule::Schedule;

// --- what both kernels do

// A decision among values that files have; the first is the default.
Result<Int> decide(Schedule& s, std::vector<int64_t> values) {
  const std::vector<int64_t> weights(values.size(), 1);
  return s.decide_categorical(std::move(values), weights, 0);
}

Result<void> bind_both(Schedule& s, LoopId y, LoopId x, const char* axis_y, const char* axis_x) {
  PRUNERC_TRY_VOID(s.bind(y, axis_y));
  return s.bind(x, axis_x);
}

Result<void> bind_threads(Schedule& s, LoopId y, LoopId x) {
  return bind_both(s, y, x, "thread.y", "thread.x");
}

Result<void> unroll_all(Schedule& s, std::span<const LoopId> loops) {
  for (const LoopId loop : loops) PRUNERC_TRY_VOID(s.unroll(loop));
  return {};
}

// --- CLBlast's matrix product
//
//     blocks of MWG x NWG elements, threads MDIMC x NDIMC:
//       for k in steps of KWG = 32 {
//         SA: A's tile to shared memory by threads MDIMA x KDIMA, vectors of VWM   SB: B's, likewise
//         for k in steps of KWI = 2 { A and B to registers, by vectors; multiply-adds }
//       }
//       C = alpha*P + beta*D
//
// Matrices are stored by columns: A[k][m], B[k][n], C[n][m]. C is updated in place there; here D is
// what it was. Source: CLBlast's kernels (Nugteren, arXiv:1705.05249), xgemm_part1 to 3.

constexpr std::string_view kXgemmText =
    R"(op xgemm<M=4096, N=4096, K=4096>(A: f32[K,M], B: f32[K,N], D: f32[N,M], alpha: f32, beta: f32)
    -> (C: f32[N,M]) {
  let P[n,m] = sum[k] A[k,m] * B[k,n];
  C[n,m] = alpha * P[n,m] + beta * D[n,m];
}
)";
constexpr std::string_view kXgemmParams[] = {"KWG",   "KWI",   "MDIMA", "MDIMC",     "MWG",
                                             "NDIMB", "NDIMC", "NWG",   "PRECISION", "SA",
                                             "SB",    "STRM",  "STRN",  "VWM",       "VWN"};
constexpr int64_t kKwg = 32, kKwi = 2;

struct XgemmDecisions {
  Int mdimc, ndimc, m_vectors, vwm, n_vectors, vwn, mdima, ndimb;
  Int kwa = 1, kwb = 1;  // rows that one thread fetches
};

Result<XgemmDecisions> decide_xgemm(Schedule& s, bool sa, bool sb) {
  const std::vector<int64_t> threads = {8, 16, 32};
  const std::vector<int64_t> vectors = {1, 2, 4, 8, 16};  // of a thread's MWG / MDIMC elements
  const std::vector<int64_t> widths = {1, 2, 4, 8};
  const std::vector<int64_t> rows = {4, 1, 2, 8, 16};  // KWG * MDIMA / (MDIMC * NDIMC)
  XgemmDecisions d;
  PRUNERC_TRY(d.mdimc, decide(s, threads));
  PRUNERC_TRY(d.ndimc, decide(s, threads));
  PRUNERC_TRY(d.m_vectors, decide(s, vectors));
  PRUNERC_TRY(d.vwm, decide(s, widths));
  PRUNERC_TRY(d.n_vectors, decide(s, vectors));
  PRUNERC_TRY(d.vwn, decide(s, widths));
  // Where an operand is not fetched its threads are nobody's, but a configuration has them.
  PRUNERC_TRY(d.mdima, decide(s, threads));
  PRUNERC_TRY(d.ndimb, decide(s, threads));
  if (sa) {
    PRUNERC_TRY(d.kwa, decide(s, rows));
  }
  if (sb) {
    PRUNERC_TRY(d.kwb, decide(s, rows));
  }
  return d;
}

// loops: [k, row] of a tile, by all threads of the block: `across` of them along the row, each with
// `rows` rows and vectors of `width`.
Result<void> fetch(Schedule& s, const std::vector<LoopId>& loops, const XgemmDecisions& d, Int rows,
                   Int across, Int width) {
  PRUNERC_TRY(const std::vector<LoopId> k, s.split(loops[0], {Int(-1), rows}));
  PRUNERC_TRY(const std::vector<LoopId> row, s.split(loops[1], {across, Int(-1), width}));
  PRUNERC_TRY_VOID(s.reorder({k[0], row[0], k[1], row[1], row[2]}));
  PRUNERC_TRY(const LoopId fused, s.fuse({k[0], row[0]}));
  PRUNERC_TRY(const std::vector<LoopId> threads, s.split(fused, {d.ndimc, d.mdimc}));
  PRUNERC_TRY_VOID(bind_threads(s, threads[0], threads[1]));
  PRUNERC_TRY_VOID(unroll_all(s, std::array{k[1], row[1]}));
  return s.vectorize(row[2]);
}

Result<void> to_registers(Schedule& s, BlockId copy, LoopId at, Int vectors, Int width) {
  PRUNERC_TRY(const std::vector<LoopId> loops, s.compute_at(copy, at));
  PRUNERC_TRY(const std::vector<LoopId> parts, s.split(loops[1], {vectors, width}));
  PRUNERC_TRY_VOID(s.unroll(parts[0]));
  return s.vectorize(parts[1]);
}

Result<void> xgemm(Schedule& s, bool sa, bool sb) {
  PRUNERC_TRY(const XgemmDecisions d, decide_xgemm(s, sa, sb));
  PRUNERC_TRY(const BlockId product, s.block_by_name("P"));
  PRUNERC_TRY(const BlockId result, s.block_by_name("C"));
  const std::vector<LoopId> loops = s.loops_of(product);  // n, m, k
  PRUNERC_TRY_VOID(s.set_scope(product, 0, ir::Scope::kLocal));
  PRUNERC_TRY(const std::vector<LoopId> n,
              s.split(loops[0], {Int(-1), d.ndimc, d.n_vectors, d.vwn}));
  PRUNERC_TRY(const std::vector<LoopId> m,
              s.split(loops[1], {Int(-1), d.mdimc, d.m_vectors, d.vwm}));
  PRUNERC_TRY(const std::vector<LoopId> k,
              s.split(loops[2], {Int(-1), Int(kKwg / kKwi), Int(kKwi)}));
  PRUNERC_TRY_VOID(s.reorder({n[0], m[0], k[0], n[1], m[1], k[1], k[2], n[2], n[3], m[2], m[3]}));

  PRUNERC_TRY(const std::vector<LoopId> out, s.reverse_compute_at(result, m[0]));
  PRUNERC_TRY(const std::vector<LoopId> out_n, s.split(out[0], {d.ndimc, Int(-1)}));
  PRUNERC_TRY(const std::vector<LoopId> out_m, s.split(out[1], {d.mdimc, d.m_vectors, d.vwm}));
  PRUNERC_TRY_VOID(s.reorder({out_n[0], out_m[0], out_n[1], out_m[1], out_m[2]}));
  PRUNERC_TRY_VOID(bind_threads(s, out_n[0], out_m[0]));
  PRUNERC_TRY_VOID(unroll_all(s, std::array{out_n[1], out_m[1]}));
  PRUNERC_TRY_VOID(s.vectorize(out_m[2]));

  BlockId shared_a, shared_b;
  if (sa) {
    PRUNERC_TRY(shared_a, s.cache_read(product, 0, ir::Scope::kShared));
  }
  if (sb) {
    PRUNERC_TRY(shared_b, s.cache_read(product, 1, ir::Scope::kShared));
  }
  PRUNERC_TRY(const BlockId local_a, s.cache_read(product, 0, ir::Scope::kLocal));
  PRUNERC_TRY(const BlockId local_b, s.cache_read(product, 1, ir::Scope::kLocal));
  PRUNERC_TRY_VOID(to_registers(s, local_a, k[2], d.m_vectors, d.vwm));
  PRUNERC_TRY_VOID(to_registers(s, local_b, k[2], d.n_vectors, d.vwn));
  if (sa) {
    PRUNERC_TRY(const std::vector<LoopId> tile, s.compute_at(shared_a, k[0]));
    PRUNERC_TRY_VOID(fetch(s, tile, d, d.kwa, d.mdima, d.vwm));
  }
  if (sb) {
    PRUNERC_TRY(const std::vector<LoopId> tile, s.compute_at(shared_b, k[0]));
    PRUNERC_TRY_VOID(fetch(s, tile, d, d.kwb, d.ndimb, d.vwn));
  }

  PRUNERC_TRY(const BlockId init, s.decompose_reduction(product, k[0]));
  const std::vector<LoopId> start = s.loops_of(init);  // blocks, threads, registers
  PRUNERC_TRY_VOID(bind_threads(s, start[2], start[3]));
  PRUNERC_TRY_VOID(bind_threads(s, n[1], m[1]));
  PRUNERC_TRY_VOID(unroll_all(s, std::array{k[2], n[2], n[3], m[2], m[3]}));
  return bind_both(s, n[0], m[0], "block.y", "block.x");
}

Result<std::vector<search::Sketch>> xgemm_sketches(const ir::Program& base) {
  std::vector<search::Sketch> out;
  for (const bool sa : {false, true}) {
    for (const bool sb : {false, true}) {
      Schedule s(base);
      PRUNERC_TRY_VOID(xgemm(s, sa, sb));
      out.push_back(search::make_sketch(fmt::format("SA{:d}+SB{:d}", sa, sb), s.trace()));
    }
  }
  return out;
}

std::optional<T4Point> xgemm_point(const T4Values& values) {
  const auto v = [&](std::string_view name) { return values.find(name)->second; };
  const bool is_ours = v("KWG") == kKwg && v("KWI") == kKwi && v("STRM") == 0 && v("STRN") == 0 &&
                       v("PRECISION") == 32;
  const bool is_positive = std::all_of(values.begin(), values.end(), [](const auto& item) {
    return item.second >= 0 && item.second <= 4096;
  });
  for (const char* name : {"MDIMC", "NDIMC", "MDIMA", "NDIMB", "VWM", "VWN"}) {
    if (v(name) == 0) return std::nullopt;
  }
  if (!is_ours || !is_positive) return std::nullopt;
  const int64_t threads = v("MDIMC") * v("NDIMC");
  const bool divides =
      v("MWG") % (v("MDIMC") * v("VWM")) == 0 && v("NWG") % (v("NDIMC") * v("VWN")) == 0 &&
      v("MWG") % (v("MDIMA") * v("VWM")) == 0 && v("NWG") % (v("NDIMB") * v("VWN")) == 0 &&
      (kKwg * v("MDIMA")) % threads == 0 && (kKwg * v("NDIMB")) % threads == 0;
  const bool is_flag = v("SA") <= 1 && v("SB") <= 1;
  if (!divides || !is_flag) return std::nullopt;
  T4Point point;
  point.sketch = static_cast<int>(2 * v("SA") + v("SB"));
  point.chosen = {v("MDIMC"),
                  v("NDIMC"),
                  v("MWG") / (v("MDIMC") * v("VWM")),
                  v("VWM"),
                  v("NWG") / (v("NDIMC") * v("VWN")),
                  v("VWN"),
                  v("MDIMA"),
                  v("NDIMB")};
  if (v("SA") == 1) point.chosen.push_back(kKwg * v("MDIMA") / threads);
  if (v("SB") == 1) point.chosen.push_back(kKwg * v("NDIMB") / threads);
  return point;
}

// --- Kernel Tuner's convolution of an image
//
//     blocks of block_size_x x block_size_y threads, each with tile_size_x x tile_size_y pixels that
//     are a block's width (height) apart:
//       use_shmem: the window of the block to shared memory, rows padded if use_padding
//       for i, j of the filter, written out { multiply-adds }
//
// Source: van Werkhoven et al., "Optimizing convolution operations on GPUs using adaptive tiling"
// (2014), and the kernel `convolution_milo` of benchmark_hub. Its filter lies in constant memory;
// here it is an input like others. `read_only` (loads through the read-only cache) changes nothing
// here, but a configuration has it.

constexpr std::string_view kConvolutionText =
    R"(op convolution<H=4096, W=4096, FH=15, FW=15>(X: f32[H + FH - 1, W + FW - 1], const F: f32[FH, FW])
    -> (Y: f32[H,W]) {
  Y[y,x] = sum[i in 0..FH, j in 0..FW] X[y + i, x + j] * F[i,j];
}
)";
constexpr std::string_view kConvolutionParams[] = {
    "block_size_x", "block_size_y", "filter_height", "filter_width", "read_only",
    "tile_size_x",  "tile_size_y",  "use_cmem",      "use_padding",  "use_shmem"};
constexpr int64_t kFilter = 15;
/// Banks of shared memory; padding makes a row half of them longer than a multiple, since it is for
/// blocks whose width is an odd multiple of that.
constexpr int64_t kBanks = 32;

Result<void> convolution(Schedule& s, bool shared, bool padded) {
  std::vector<int64_t> widths;
  for (int64_t width = 16; width <= 256; width += 16) widths.push_back(width);
  const std::vector<int64_t> tiles = {1, 2, 3, 4};
  PRUNERC_TRY(const Int width, decide(s, widths));
  PRUNERC_TRY(const Int height, decide(s, {1, 2, 4, 8, 16}));
  PRUNERC_TRY(const Int tile_x, decide(s, tiles));
  PRUNERC_TRY(const Int tile_y, decide(s, tiles));
  PRUNERC_TRY_VOID(decide(s, {0, 1}));  // read_only
  PRUNERC_TRY(const BlockId sum, s.block_by_name("Y"));
  const std::vector<LoopId> loops = s.loops_of(sum);  // y, x, i, j
  PRUNERC_TRY(const BlockId result, s.cache_write(sum, 0, ir::Scope::kLocal));
  PRUNERC_TRY(const std::vector<LoopId> y, s.split(loops[0], {Int(-1), tile_y, height}));
  PRUNERC_TRY(const std::vector<LoopId> x, s.split(loops[1], {Int(-1), tile_x, width}));
  PRUNERC_TRY_VOID(s.reorder({y[0], x[0], y[2], x[2], loops[2], loops[3], y[1], x[1]}));

  PRUNERC_TRY(const std::vector<LoopId> out, s.reverse_compute_at(result, x[0]));
  PRUNERC_TRY(const std::vector<LoopId> out_y, s.split(out[0], {tile_y, height}));
  PRUNERC_TRY(const std::vector<LoopId> out_x, s.split(out[1], {tile_x, width}));
  PRUNERC_TRY_VOID(s.reorder({out_y[1], out_x[1], out_y[0], out_x[0]}));
  PRUNERC_TRY_VOID(bind_threads(s, out_y[1], out_x[1]));
  PRUNERC_TRY_VOID(unroll_all(s, std::array{out_y[0], out_x[0]}));

  if (shared) {
    PRUNERC_TRY(const BlockId copy, s.cache_read(sum, 0, ir::Scope::kShared));
    PRUNERC_TRY(const std::vector<LoopId> window, s.compute_at(copy, x[0]));
    PRUNERC_TRY(const std::vector<LoopId> rows, s.split(window[0], {Int(-1), height}));
    PRUNERC_TRY(const std::vector<LoopId> columns, s.split(window[1], {Int(-1), width}));
    PRUNERC_TRY_VOID(s.reorder({rows[1], columns[1], rows[0], columns[0]}));
    PRUNERC_TRY_VOID(bind_threads(s, rows[1], columns[1]));
    if (padded) PRUNERC_TRY_VOID(s.storage_align(copy, 0, 0, kBanks, kBanks / 2));
  }
  PRUNERC_TRY_VOID(s.decompose_reduction(sum, loops[2]));
  PRUNERC_TRY_VOID(bind_threads(s, y[2], x[2]));
  PRUNERC_TRY_VOID(unroll_all(s, std::array{loops[2], loops[3], y[1], x[1]}));
  return bind_both(s, y[0], x[0], "block.y", "block.x");
}

Result<std::vector<search::Sketch>> convolution_sketches(const ir::Program& base) {
  struct Form {
    const char* name;
    bool shared, padded;
  };
  constexpr Form kForms[] = {
      {"global", false, false}, {"shared", true, false}, {"shared+padding", true, true}};
  std::vector<search::Sketch> out;
  for (const Form& form : kForms) {
    Schedule s(base);
    PRUNERC_TRY_VOID(convolution(s, form.shared, form.padded));
    out.push_back(search::make_sketch(form.name, s.trace()));
  }
  return out;
}

std::optional<T4Point> convolution_point(const T4Values& values) {
  const auto v = [&](std::string_view name) { return values.find(name)->second; };
  const bool is_ours =
      v("filter_height") == kFilter && v("filter_width") == kFilter && v("use_cmem") == 1;
  const bool padded = v("use_padding") == 1, shared = v("use_shmem") == 1;
  const bool is_flag = (padded || v("use_padding") == 0) && (shared || v("use_shmem") == 0);
  const bool can_pad = shared && v("block_size_x") % kBanks != 0;
  if (!is_ours || !is_flag || (padded && !can_pad)) return std::nullopt;
  return T4Point{
      shared ? 1 + (padded ? 1 : 0) : 0,
      {v("block_size_x"), v("block_size_y"), v("tile_size_x"), v("tile_size_y"), v("read_only")}};
}

}  // namespace

std::span<const T4Kernel> t4_kernels() {
  static const T4Kernel kKernels[] = {
      {"xgemm", kXgemmText, kXgemmParams, {4096, 4096}, xgemm_sketches, xgemm_point},
      {"convolution",
       kConvolutionText,
       kConvolutionParams,
       {4096, 4096},
       convolution_sketches,
       convolution_point},
  };
  return kKernels;
}

Result<const T4Kernel*> find_t4_kernel(std::vector<std::string> params) {
  std::sort(params.begin(), params.end());
  for (const T4Kernel& kernel : t4_kernels()) {
    if (std::equal(params.begin(), params.end(), kernel.params.begin(), kernel.params.end())) {
      return &kernel;
    }
  }
  return error(Diag::kT4Kernel, fmt::format("{}", fmt::join(params, ", ")));
}

Result<ir::Program> t4_program(const T4Kernel& kernel,
                               const std::map<std::string, std::string>& bindings) {
  lang::CompileInput input;
  input.file_name = fmt::format("{}.prn", kernel.op);
  input.text = kernel.text;
  input.bindings = bindings;
  lang::LangResult result = lang::compile(input);
  if (!result.program) return error(Diag::kOperatorText, result.rendered);
  return *std::move(result.program);
}

std::optional<std::vector<schedule::Decision>> t4_decisions(const search::Sketch& sketch,
                                                            const T4Point& point) {
  if (point.chosen.size() != sketch.spaces.size()) return std::nullopt;
  std::vector<schedule::Decision> out;
  for (std::size_t d = 0; d < point.chosen.size(); ++d) {
    const std::vector<int64_t>& values = sketch.spaces[d].values;
    const auto at = std::find(values.begin(), values.end(), point.chosen[d]);
    if (at == values.end()) return std::nullopt;
    out.push_back({at - values.begin()});
  }
  return out;
}

}  // namespace prunerc
