#include "tests/support/program_gen.h"

#include "tests/support/program_gen_impl.h"

namespace prunerc::testing {
namespace program_gen {

double exact_limit(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kI64: return 0x1p50;
    case DType::kF32: return 0x1p24;
    case DType::kI32: return 0x1p31;
    case DType::kF16: return 2048;
    case DType::kBF16: return 256;
    case DType::kI8: return 127;
    case DType::kU8: return 255;
    case DType::kBool: return 1;
  }
  return 1;
}

int64_t product(const std::vector<int64_t>& extents) {
  int64_t out = 1;
  for (int64_t e : extents) out *= e;
  return out;
}

void Generator::operation() {
  switch (pick_int(0, policy_.unusual ? 13 : 10)) {
    case 0:
    case 1: return map_unary();
    case 2:
    case 3: return map_binary();
    case 4: return permute();
    case 5: return reduce();
    case 6:
    case 7: return contract();
    case 8: return convolve();
    case 9: return slice_or_pad();
    case 10: return rng_.chance(0.5) ? reshape() : cast();
    case 11: return concat();
    case 12: return gather();
    default: return scan();
  }
}

}  // namespace program_gen

using namespace program_gen;  // NOLINT: a source file of tests

GenPolicy random_policy(Rng& rng) {
  GenPolicy policy;
  policy.max_ops = static_cast<int>(rng.between(1, 8));
  policy.max_rank = static_cast<int>(rng.between(1, 4));
  policy.max_elements = rng.chance(0.3) ? 32 : 256;
  policy.max_iterations = 2048;
  policy.odd_extents = rng.chance(0.3) ? 0.9 : rng.chance(0.5) ? 0.5 : 0.1;
  policy.only_f32 = rng.chance(0.4);
  policy.transcendental = rng.chance(0.5);
  policy.unusual = rng.chance(0.5);
  return policy;
}

Program random_program(Rng& rng, const GenPolicy& policy) {
  const Rng start(rng.next());
  Roles roles;
  (void)Generator(start, policy, nullptr).run(&roles);
  Roles again;
  return Generator(start, policy, &roles).run(&again);
}

Program with_const_inputs(const Program& program, Rng& rng) {
  std::vector<BufferId> inputs;
  for (BufferId id : program.params()) {
    if (program.buffer(id).role == BufferRole::kInput) inputs.push_back(id);
  }
  IrBuilder b(program);
  if (inputs.empty()) return program;
  b.mark_const(inputs[static_cast<std::size_t>(rng.below(inputs.size()))]);
  for (BufferId id : inputs) {
    if (rng.chance(0.5)) b.mark_const(id);
  }
  return b.finish(program.root());
}

std::vector<Tensor> random_inputs(const Program& program, Rng& rng) {
  std::vector<Tensor> inputs;
  for (BufferId id : program.params()) {
    const Buffer& buffer = program.buffer(id);
    if (buffer.role != BufferRole::kInput) continue;
    const auto limit = static_cast<int64_t>(kInputBound);
    const bool has_sign = buffer.dtype != DType::kU8 && !is_bool(buffer.dtype);
    inputs.push_back(random_ints(buffer.dtype, shape_of(buffer), has_sign ? -limit : 0,
                                 is_bool(buffer.dtype) ? 1 : limit, rng));
  }
  return inputs;
}

}  // namespace prunerc::testing
