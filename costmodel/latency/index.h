// How far a subscript reaches, what moves it and in which steps, as symbols for each loop of a
// nest.
#ifndef PRUNERC_COSTMODEL_LATENCY_INDEX_H_
#define PRUNERC_COSTMODEL_LATENCY_INDEX_H_

#include "costmodel/latency/poly.h"
#include "ir/expr.h"
#include "ir/stmt.h"

#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace prunerc::costmodel {

struct NestLoop {
  const ir::Loop* loop = nullptr;
  ir::LoopId id;
  ir::VarId var;
  Sym extent = 1;
  Poly trips = 1;  // the same number
  ir::LoopKind kind = ir::LoopKind::kSerial;
  bool in_instruction =
      false;     // of a CPU's tensor instruction, its lanes aside: no copies of anything
  Sym runs = 1;  // truth: not only its first iteration passes the guard
};

/// Loops by depth, outermost first. Loops that make one iteration move nothing that counts.
struct IndexFacts {
  /// reach[d]: largest minus smallest value, plus 1, while the loops from depth d inwards run and
  /// the others stand still. One more entry than loops: the last is 1.
  std::vector<Sym> reach;
  /// distinct[d]: number of different values then: bounded by the reach and the iterations.
  std::vector<Sym> distinct;
  std::vector<Sym> step;   // change for one step of the loop; 0 if it does not depend on it
  std::vector<Sym> moves;  // truth: whether the loop changes it
};

/// Reads subscripts of one nest. Borrows everything.
class IndexReader {
 public:
  /// bindings: by VarId, what iteration variables stand for.
  IndexReader(ParamSpace& space, std::span<const NestLoop> loops,
              std::span<const ir::Expr> bindings)
      : space_(space), loops_(loops), bindings_(bindings) {}

  IndexFacts read(ir::Expr e);
  /// From now on e is known not to exceed its smallest value by more than this where it is divided:
  /// what the guard of a fused copy says.
  void limit(ir::Expr e, Sym most);
  /// Truth, by loop: whether it changes e.
  std::vector<Sym> moves(ir::Expr e) { return form(e).moves; }

 private:
  // Spans while the loops from each depth inwards run, and steps and moves of each loop.
  struct Form {
    std::vector<Poly> span;
    std::vector<Poly> step;
    std::vector<Sym> moves;
  };
  struct Limit {
    ir::Expr e;
    Sym most;
    std::optional<std::vector<Poly>> steps;  // if e is a sum over loops
  };
  Form still() const;
  Form form(ir::Expr e);
  Form limited(ir::Expr e);
  Form of_select(const ir::Select& e);
  /// A sum of loops times polynomials: its steps are all there is to know.
  bool is_linear(ir::Expr e);
  bool is_limited_by(const Limit& limit, ir::Expr e, const Form& f);
  Form of_var(const ir::Var& var);
  Form of_binary(ir::ExprKind kind, const ir::BinaryNode& e);
  Form scaled(const Form& f, const Poly& factor);
  Form quotient(const Form& f, Sym divisor);
  Form remainder(const Form& f, Sym divisor);
  Form of_data(std::span<const ir::Expr> indices);
  void add(Form* sum, const Form& f, double sign);
  /// Spans of what moves alone.
  void recompute_spans(Form* f, const std::vector<Poly>& steps);
  Poly magnitude(const Poly& p);

  ParamSpace& space_;
  std::span<const NestLoop> loops_;
  std::span<const ir::Expr> bindings_;
  std::unordered_map<ir::VarId, Form> known_;
  std::vector<Limit> limits_;
};

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_LATENCY_INDEX_H_
