// Before: statements at the root, some of which follow from const inputs alone.
// After: these in `prepare`, the others in `run`.
//
//     W_reindex[..] = W[..]                    prepare(W) -> (W_reindex, b_prepared)
//     Y[..] += X[..] * W_reindex[..]    ~>       W_reindex[..] = W[..]; b_prepared[..] = b[..]
//     Z[..] = Y[..] + b[..]                    run(X, const b, const W_reindex) -> (Z)
//                                                Y[..] += X[..] * W_reindex[..]; Z[..] = Y[..] + b[..]
#include "codegen/hoist.h"

#include "codegen/lifetimes.h"
#include "ir/analysis/prologue.h"
#include "ir/builder.h"
#include "ir/visit.h"

#include <algorithm>
#include <set>
#include <string>

namespace prunerc::codegen {
namespace {

using namespace ir;

std::set<BufferId> buffers_read(Stmt s) {
  std::set<BufferId> read;
  walk(
      s, [](Stmt) { return true; },
      [&](Expr e) {
        walk(e, [&](Expr part) {
          if (const Load* load = part.as<Load>()) read.insert(load->buffer);
          return true;
        });
      });
  return read;
}

class Hoisting {
 public:
  explicit Hoisting(const Program& program)
      : program_(program),
        prologue_(find_prologue(program)),
        prepared_arg_(static_cast<int32_t>(program.params().size())) {}

  Result<Hoisted> run() {
    make_run();
    PRUNERC_TRY_VOID(place_prepared());
    make_prepare();
    return std::move(out_);
  }

 private:
  // The repeated part with the parameters that it reads or writes; the others are not passed on.
  void make_run() {
    const Program repeated = without_prologue(program_);
    const std::set<BufferId> read = buffers_read(repeated.root());
    for (BufferId id : repeated.params()) {
      const bool is_const = repeated.buffer(id).is_const;
      if (is_const && read.count(id) == 0) continue;
      run_params_.push_back(id);
      if (is_const) prepared_.push_back(id);
    }
    IrBuilder b(repeated);
    set_params(b, repeated, run_params_);
    out_.run = b.finish(repeated.root());
  }

  Result<void> place_prepared() {
    for (BufferId id : prepared_) {
      PRUNERC_TRY(const int64_t bytes, buffer_bytes(program_.buffer(id)));
      offsets_.push_back(out_.prepared_bytes);
      out_.prepared_bytes += align_up(bytes, kStorageAlignment);
    }
    for (BufferId id : run_params_) out_.run_places.push_back(place_of(id));
    return {};
  }

  // What was a parameter and is none any more is touched by nobody.
  static void set_params(IrBuilder& b, const Program& before, const std::vector<BufferId>& params) {
    for (BufferId id : before.params()) {
      if (std::find(params.begin(), params.end(), id) != params.end()) continue;
      Buffer buffer = before.buffer(id);
      buffer.role = BufferRole::kIntermediate;
      buffer.is_const = false;
      b.set_buffer(buffer);
    }
    b.set_params(params);
  }

  ParamPlace place_of(BufferId id) const {
    const auto at = std::find(prepared_.begin(), prepared_.end(), id);
    if (at != prepared_.end()) {
      return {prepared_arg_, offsets_[static_cast<std::size_t>(at - prepared_.begin())]};
    }
    return argument(id);
  }

  ParamPlace argument(BufferId id) const {
    const auto param = std::find(program_.params().begin(), program_.params().end(), id);
    return {static_cast<int32_t>(param - program_.params().begin()), 0};
  }

  void make_prepare() {
    IrBuilder b(program_);
    const std::vector<Stmt> all = root_stmts(program_);
    std::vector<Stmt> stmts;
    for (const std::size_t at : prologue_.stmts) stmts.push_back(all[at]);
    std::vector<BufferId> params;
    for (BufferId id : program_.params()) {
      if (!program_.buffer(id).is_const) continue;
      params.push_back(id);
      // An argument of `prepare` even where `run` finds a copy of it.
      out_.prepare_places.push_back(argument(id));
    }
    for (std::size_t i = 0; i < prepared_.size(); ++i) {
      BufferId id = prepared_[i];
      Buffer buffer = program_.buffer(id);
      if (buffer.role == BufferRole::kInput) {
        id = b.add_buffer(std::string(buffer.name) + "_prepared", buffer.dtype, buffer.shape,
                          Scope::kGlobal, BufferRole::kOutput);
        stmts.push_back(copy(b, buffer, id));
      } else {
        buffer.role = BufferRole::kOutput;
        b.set_buffer(buffer);
      }
      params.push_back(id);
      out_.prepare_places.push_back({prepared_arg_, offsets_[i]});
    }
    set_params(b, program_, params);
    out_.prepare = b.finish(b.seq(stmts));
  }

  static Stmt copy(IrBuilder& b, const Buffer& from, BufferId to) {
    std::vector<Expr> indices;
    for (std::size_t d = 0; d < from.shape.size(); ++d) {
      indices.push_back(b.fresh_var("c" + std::to_string(d)));
    }
    Stmt nest = b.store(to, indices, b.load(from.id, indices));
    for (std::size_t d = from.shape.size(); d-- > 0;) {
      Loop loop{};
      loop.id = b.fresh_loop_id();
      loop.var = indices[d].as<Var>();
      loop.extent = from.shape[d];
      loop.loop_kind = d + 1 == from.shape.size() ? LoopKind::kVectorized : LoopKind::kSerial;
      loop.body = nest;
      nest = b.loop(loop);
    }
    return nest;
  }

  const Program& program_;
  const Prologue prologue_;
  const int32_t prepared_arg_;
  std::vector<BufferId> run_params_, prepared_;
  std::vector<int64_t> offsets_;  // of prepared_
  Hoisted out_;
};

}  // namespace

bool has_const_inputs(const Program& program) {
  return std::any_of(program.params().begin(), program.params().end(),
                     [&](BufferId id) { return program.buffer(id).is_const; });
}

Result<Hoisted> hoist(const Program& scheduled) { return Hoisting(scheduled).run(); }

}  // namespace prunerc::codegen
