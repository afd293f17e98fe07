// Kernels that pass for fast in systems that check less: each computes something else than what it
// is measured for. Compiled to a bare object, as code generation would emit it.
#include "runtime/kernel.h"

#include <stdint.h>

namespace {

// Of A: f32[kM, kK], B: f32[kK, kN] and C: f32[kM, kN]; B is square, so that it fits into C.
constexpr int64_t kM = 48, kN = 48, kK = 48;
constexpr int64_t kSize = kM * kN;

const float* in(void* const* args, int n) { return static_cast<const float*>(args[n]); }
float* out(void* const* args) { return static_cast<float*>(args[2]); }

float to_bf16(float value) {
  uint32_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof bits);
  bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000U;
  __builtin_memcpy(&value, &bits, sizeof bits);
  return value;
}

// relu(A * B), of the first `rows` rows and `depth` terms.
void multiply(void* const* args, int64_t rows, int64_t depth, float (*round)(float)) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < kN; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < depth; ++k)
        sum += round(in(args, 0)[i * kK + k]) * round(in(args, 1)[k * kN + j]);
      out(args)[i * kN + j] = sum > 0 ? sum : 0;
    }
  }
}

float as_it_is(float value) { return value; }
constexpr int64_t kTile = 16;

}  // namespace

extern "C" {

int32_t honest(void* const* args, void*, const PrunercLaunch*) {
  multiply(args, kM, kK, as_it_is);
  return 0;
}

int32_t copies_its_input(void* const* args, void*, const PrunercLaunch*) {
  for (int64_t i = 0; i < kSize; ++i) out(args)[i] = in(args, 0)[i];
  return 0;
}

int32_t leaves_what_is_there(void* const*, void*, const PrunercLaunch*) { return 0; }

int32_t answers_one_late(void* const* args, void*, const PrunercLaunch*) {
  static float last[kSize];
  static bool has_last = false;
  const bool is_late = has_last;
  multiply(args, kM, kK, as_it_is);
  for (int64_t i = 0; i < kSize; ++i) {
    const float now = out(args)[i];
    if (is_late) out(args)[i] = last[i];
    last[i] = now;
  }
  has_last = true;
  return 0;
}

int32_t rounds_inputs_to_bf16(void* const* args, void*, const PrunercLaunch*) {
  multiply(args, kM, kK, to_bf16);
  return 0;
}

int32_t rounds_sums_to_bf16(void* const* args, void*, const PrunercLaunch*) {
  multiply(args, kM, kK, as_it_is);
  for (int64_t i = 0; i < kSize; ++i) out(args)[i] = to_bf16(out(args)[i]);
  return 0;
}

int32_t skips_the_last_rows(void* const* args, void*, const PrunercLaunch*) {
  multiply(args, kM - kTile, kK, as_it_is);
  return 0;
}

int32_t zeroes_the_last_rows(void* const* args, void*, const PrunercLaunch*) {
  multiply(args, kM - kTile, kK, as_it_is);
  for (int64_t i = kSize - kTile * kN; i < kSize; ++i) out(args)[i] = 0;
  return 0;
}

int32_t skips_the_last_terms(void* const* args, void*, const PrunercLaunch*) {
  multiply(args, kM, kK - kTile, as_it_is);
  return 0;
}

int32_t skips_one_term(void* const* args, void*, const PrunercLaunch*) {
  multiply(args, kM, kK - 1, as_it_is);
  return 0;
}

int32_t remembers_by_address(void* const* args, void*, const PrunercLaunch*) {
  static const void* seen[64] = {};
  for (const void*& place : seen) {
    if (place == args[0]) return 0;
    if (place != nullptr) continue;
    place = args[0];
    break;
  }
  multiply(args, kM, kK, as_it_is);
  return 0;
}

int32_t remembers_results_by_address(void* const* args, void*, const PrunercLaunch*) {
  static const void* seen[8] = {};
  static float results[8][kSize];
  for (int n = 0; n < 8; ++n) {
    if (seen[n] == nullptr) {
      seen[n] = args[0];
      multiply(args, kM, kK, as_it_is);
      for (int64_t i = 0; i < kSize; ++i) results[n][i] = out(args)[i];
    }
    if (seen[n] != args[0]) continue;
    for (int64_t i = 0; i < kSize; ++i) out(args)[i] = results[n][i];
    break;
  }
  return 0;
}

}  // extern "C"
