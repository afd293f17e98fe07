#include "tests/support/half_products.h"

#include "ir/parser.h"
#include "ir/support/check.h"
#include "ir/verify.h"

#include <fmt/format.h>

#include <cstdio>
#include <span>
#include <string>

namespace prunerc::testing {
namespace {

enum class Epilogue { kNone, kNarrow, kBiasRelu, kResidual };

struct Row {
  const char* type;
  int batch;  // 0: no such dimension
  int m, n, k;
  char a, b;  // 't': stored with its columns as rows
  Epilogue epilogue;
};

// Rows at multiples of 16 bytes come by TMA, others by threads.
constexpr Row kRows[] = {
    {"f16", 0, 64, 64, 640, 'n', 'n', Epilogue::kNone},
    {"f16", 0, 128, 64, 576, 'n', 't', Epilogue::kNarrow},
    {"f16", 0, 100, 72, 328, 'n', 'n', Epilogue::kBiasRelu},
    {"f16", 0, 70, 50, 333, 'n', 'n', Epilogue::kNone},
    {"f16", 0, 33, 200, 264, 'n', 't', Epilogue::kNone},
    {"f16", 0, 192, 40, 320, 'n', 'n', Epilogue::kResidual},
    {"f16", 0, 1, 256, 640, 'n', 'n', Epilogue::kNarrow},
    {"f16", 0, 16, 96, 520, 'n', 't', Epilogue::kBiasRelu},
    {"f16", 0, 72, 64, 400, 't', 'n', Epilogue::kNone},
    {"f16", 0, 65, 40, 450, 't', 't', Epilogue::kNarrow},
    {"f16", 0, 8, 320, 384, 't', 't', Epilogue::kNone},
    {"f16", 0, 257, 24, 200, 'n', 'n', Epilogue::kBiasRelu},
    {"f16", 3, 64, 40, 200, 'n', 'n', Epilogue::kNone},
    {"f16", 2, 50, 64, 256, 'n', 't', Epilogue::kBiasRelu},
    {"bf16", 0, 64, 96, 448, 'n', 'n', Epilogue::kNarrow},
    {"bf16", 0, 120, 56, 360, 'n', 't', Epilogue::kNone},
    {"bf16", 0, 31, 67, 515, 'n', 'n', Epilogue::kResidual},
    {"bf16", 0, 128, 128, 192, 't', 'n', Epilogue::kNarrow},
    {"bf16", 0, 96, 32, 704, 't', 't', Epilogue::kBiasRelu},
    {"bf16", 4, 24, 48, 320, 'n', 't', Epilogue::kNarrow},
    {"bf16", 2, 64, 128, 130, 't', 'n', Epilogue::kNone},
    {"bf16", 0, 320, 16, 256, 'n', 'n', Epilogue::kResidual},
};

constexpr Row kSingleRows[] = {
    {"f32", 0, 64, 64, 320, 'n', 't', Epilogue::kNone},
    {"f32", 0, 100, 72, 164, 'n', 't', Epilogue::kBiasRelu},
    {"f32", 0, 70, 50, 131, 'n', 't', Epilogue::kNone},
    {"f32", 0, 128, 64, 288, 'n', 'n', Epilogue::kNone},
    {"f32", 0, 33, 200, 133, 'n', 'n', Epilogue::kResidual},
    {"f32", 0, 72, 40, 200, 't', 'n', Epilogue::kNone},
    {"f32", 0, 65, 96, 160, 't', 't', Epilogue::kBiasRelu},
    {"f32", 3, 64, 40, 100, 'n', 'n', Epilogue::kNone},
    {"f32", 2, 50, 64, 128, 'n', 't', Epilogue::kResidual},
};

// A loop nest around a block "name", over i and j and perhaps a batch.
std::string nest(const Row& r, std::string_view name, std::string_view suffix, bool sums,
                 const std::string& body) {
  std::string loops = r.batch > 0 ? fmt::format("for b{} in {} {{ ", suffix, r.batch) : "";
  std::string iters = r.batch > 0 ? fmt::format("vb: S({}) = b{}, ", r.batch, suffix) : "";
  loops += fmt::format("for i{0} in {1} {{ for j{0} in {2} {{ ", suffix, r.m, r.n);
  iters += fmt::format("vi: S({}) = i{}, vj: S({}) = j{}", r.m, suffix, r.n, suffix);
  if (sums) {
    loops += fmt::format("for k in {} {{ ", r.k);
    iters += fmt::format(", vk: R({}) = k", r.k);
  }
  const int depth = 2 + (r.batch > 0 ? 1 : 0) + (sums ? 1 : 0);
  return fmt::format("  {}block \"{}\" [{}] {{ {} }}{}\n", loops, name, iters, body,
                     std::string(static_cast<std::size_t>(depth), '}'));
}

std::string epilogue_of(const Row& r, const std::string& at) {
  switch (r.epilogue) {
    case Epilogue::kNarrow: return fmt::format("C[{0}] = {1}(T[{0}])", at, r.type);
    case Epilogue::kBiasRelu:
      return fmt::format("C[{0}] = {1}(max(T[{0}] + bias[vj], 0f32))", at, r.type);
    default: return fmt::format("C[{0}] = T[{0}] + old[{0}]", at);
  }
}

std::string text_of(const Row& r) {
  const std::string batch = r.batch > 0 ? fmt::format("{}, ", r.batch) : "";
  const std::string vb = r.batch > 0 ? "vb, " : "";
  const auto dims = [&](char order, int x, int y) {
    return order == 'n' ? fmt::format("{}{}, {}", batch, x, y)
                        : fmt::format("{}{}, {}", batch, y, x);
  };
  const std::string at = vb + "vi, vj";
  const std::string a = r.a == 'n' ? vb + "vi, vk" : vb + "vk, vi";
  const std::string b = r.b == 'n' ? vb + "vk, vj" : vb + "vj, vk";
  const bool is_plain = r.epilogue == Epilogue::kNone;
  const bool is_narrow = r.epilogue == Epilogue::kNarrow || r.epilogue == Epilogue::kBiasRelu;
  std::string inputs =
      fmt::format("A: {0}[{1}], B: {0}[{2}]", r.type, dims(r.a, r.m, r.k), dims(r.b, r.k, r.n));
  if (r.epilogue == Epilogue::kBiasRelu) inputs += fmt::format(", bias: f32[{}]", r.n);
  if (r.epilogue == Epilogue::kResidual)
    inputs += fmt::format(", old: f32[{}]", dims('n', r.m, r.n));
  std::string out = fmt::format("program product({}) -> (C: {}[{}]) {{\n", inputs,
                                is_narrow ? r.type : "f32", dims('n', r.m, r.n));
  const char* sum = is_plain ? "C" : "T";
  if (!is_plain) out += fmt::format("  buffer T: f32[{}] global\n", dims('n', r.m, r.n));
  out +=
      nest(r, sum, "", true,
           fmt::format("init {{ {0}[{1}] = 0f32 }} {0}[{1}] = {0}[{1}] + f32(A[{2}])*f32(B[{3}])",
                       sum, at, a, b));
  if (!is_plain) out += nest(r, "C", "2", false, epilogue_of(r, at));
  return out + "}\n";
}

std::string name_of(const Row& r) {
  const char* const kinds[] = {"", "_narrow", "_bias_relu", "_residual"};
  return fmt::format("{}gemm_{}{}_{}{}{} M={} N={} K={}", r.batch > 0 ? "batch_" : "", r.a, r.b,
                     r.type, kinds[static_cast<std::size_t>(r.epilogue)],
                     r.batch > 0 ? fmt::format(" B={}", r.batch) : "", r.m, r.n, r.k);
}

std::vector<NamedProgram> products_of(std::span<const Row> rows) {
  std::vector<NamedProgram> out;
  for (const Row& row : rows) {
    const Result<ir::Program> program = ir::parse(text_of(row));
    const bool ok = program.ok() && ir::verify(*program).ok();
    if (!ok) std::fprintf(stderr, "%s", text_of(row).c_str());
    PRUNERC_CHECK(ok, "a product is a program");
    out.push_back({name_of(row), *program});
  }
  return out;
}

}  // namespace

std::vector<NamedProgram> half_products() { return products_of(kRows); }

std::vector<NamedProgram> single_products() { return products_of(kSingleRows); }

}  // namespace prunerc::testing
