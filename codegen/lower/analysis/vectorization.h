// What may run in lanes: accumulations, and loops whose iterations can go in lockstep.
#ifndef PRUNERC_CODEGEN_LOWER_ANALYSIS_VECTORIZATION_H_
#define PRUNERC_CODEGEN_LOWER_ANALYSIS_VECTORIZATION_H_

#include "ir/program.h"

#include <cstdint>
#include <optional>

namespace prunerc::codegen {

/// element = element op term, with term free of the stored buffer.
struct Accumulation {
  ir::ExprKind kind;  // Add, Mul, Min or Max
  ir::Expr term;
};
std::optional<Accumulation> accumulation(const ir::Store& store);

/// Whether the iterations of `loop` may run as lanes of vectors, in lockstep. A loop for which this
/// does not hold is emitted as a serial loop, whatever its kind.
bool can_vectorize(const ir::Program& program, const ir::Loop& loop);

/// Size of the widest register element that the values stored in s need. Units: bytes.
int64_t widest_bytes(ir::Stmt s);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_LOWER_ANALYSIS_VECTORIZATION_H_
