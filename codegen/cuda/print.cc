#include "codegen/cuda/print.h"

#include "codegen/cuda/drop_guards.h"
#include "codegen/cuda/printer.h"
#include "codegen/lower/analysis/statements.h"
#include "codegen/storage_plan.h"
#include "ir/arith/simplify.h"
#include "ir/evaluate_int.h"
#include "ir/thread_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace prunerc::codegen {

using namespace ir;

namespace {

constexpr std::string_view kThreadNames[] = {"tx", "ty", "tz"};
constexpr std::string_view kBlockNames[] = {"bx", "by", "bz"};
constexpr std::string_view kAxisLetters[] = {"x", "y", "z"};
constexpr std::string_view kUnrollAttr = "unroll_max_step";
constexpr int64_t kConditionVolume = 4;

}  // namespace

KernelPrinter::KernelPrinter(const Program& program, const GpuStorage& storage,
                             const Kernel& kernel, const Target& target)
    : b_(program),
      storage_(storage),
      kernel_(kernel),
      target_(target),
      is_continuous_(is_continuous(program)),
      stored_(stored_buffers(kernel.body)) {
  for (const Loop* loop : kernel.grid) {
    unroll_limit_ = std::max(unroll_limit_, attr_of(*loop, kUnrollAttr).value_or(0));
  }
}

std::string KernelPrinter::fresh(std::string_view prefix) {
  auto it = num_names_.find(prefix);
  if (it == num_names_.end()) it = num_names_.emplace(std::string(prefix), 0).first;
  return fmt::format("{}{}", prefix, it->second++);
}

void KernelPrinter::line(const std::string& text) {
  out_.append(static_cast<std::size_t>(indent_) * 2, ' ');
  out_ += text;
  out_ += '\n';
}

void KernelPrinter::open(const std::string& text) {
  line(text + " {");
  ++indent_;
}

void KernelPrinter::close() {
  --indent_;
  line("}");
}

// Registers cannot be indexed: loops whose variables index local buffers must disappear.
void KernelPrinter::find_unrolled() {
  auto note = [&](BufferId id, std::span<const Expr> indices) {
    if (buffer(id).scope != Scope::kLocal) return;
    for (Expr index : indices) collect_vars(index, &unrolled_);
  };
  auto in_expr = [&](Expr e) {
    walk(e, [&](Expr x) {
      if (const Load* load = x.as<Load>()) note(load->buffer, load->indices);
      return true;
    });
  };
  walk(
      kernel_.body,
      [&](Stmt s) {
        if (const Store* store = s.as<Store>()) note(store->buffer, store->indices);
        return true;
      },
      in_expr);
}

// Number of statements after unrolling all of s. A condition counts as several: copies of a guarded
// tile took NVRTC eight times as long as those of a plain one.
int64_t KernelPrinter::volume(Stmt s) const {
  if (!s.defined()) return 0;
  const Loop* loop = s.as<Loop>();
  const IntImm* extent = loop != nullptr ? loop->extent.as<IntImm>() : nullptr;
  if (loop != nullptr) {
    const bool lanes = is_lane_axis(loop->loop_kind);
    return volume(loop->body) * (extent != nullptr && !lanes ? extent->value : 1);
  }
  int64_t sum = s.as<Store>() != nullptr ? 1 : 0;
  if (const If* branch = s.as<If>()) {
    sum += kConditionVolume * static_cast<int64_t>(conjuncts(branch->condition).size());
  }
  for_each_child(
      s, [&](Stmt child) { sum += volume(child); }, [](Expr) {});
  return sum;
}

bool KernelPrinter::must_unroll(const Loop& loop) const {
  switch (loop.loop_kind) {
    case LoopKind::kUnrolled:
    case LoopKind::kVectorized:
    case LoopKind::kVThreadX:
    case LoopKind::kVThreadY:
    case LoopKind::kVThreadZ: return true;
    default: break;
  }
  if (in_products_ || unrolled_.count(loop.var->id) != 0) return true;
  return !has_thread_loop(loop.body) && volume(Stmt(&loop)) * copies_ <= unroll_limit_;
}

void KernelPrinter::declare_arguments(KernelText* out) {
  std::set<BufferId> used = loaded_buffers(own_statements());
  used.insert(stored_.begin(), stored_.end());
  std::string params;
  for (BufferId id : used) {
    const Buffer& arg = buffer(id);
    if (arg.scope != Scope::kGlobal) continue;
    const bool is_stored = stored_.count(id) != 0;
    const std::string_view prefix = arg.role == BufferRole::kInput    ? "in"
                                    : arg.role == BufferRole::kOutput ? "out"
                                                                      : "tmp";
    buffers_[id] = fresh(prefix);
    params += fmt::format("{}{}{}* PR_RESTRICT {}", params.empty() ? "" : ", ",
                          is_stored ? "" : "const ", memory_type(arg.dtype), buffers_[id]);
    out->args.push_back(id);
  }
  out->maps = maps_;
  for (std::size_t i = 0; i < maps_.size(); ++i) {
    params +=
        fmt::format("{}const PR_GRID_CONSTANT pr_tensor_map map{}", params.empty() ? "" : ", ", i);
  }
  if (!ring_buffers_.empty()) ++out->threads[producer_axis()];
  const int64_t threads = out->threads[0] * out->threads[1] * out->threads[2];
  out->cluster = cluster_;
  out_ += cluster_ == 1 ? fmt::format("PR_KERNEL({}, 1)", threads)
                        : fmt::format("PR_CLUSTER_KERNEL({}, 1, {})", threads, cluster_);
  out_ += fmt::format(" void {}({}) {{\n", out->name, params);
}

Result<std::string> KernelPrinter::print(KernelText* out) {
  for (const Loop* loop : kernel_.grid) ranges_.bind(loop->var, loop->extent);
  PRUNERC_TRY(fragments_, find_fragments(b_, kernel_.body));
  find_unrolled();
  find_lane_dims(kernel_.body);
  find_cluster();
  find_ring_buffers(kernel_.body);
  if (!std::any_of(loads_.begin(), loads_.end(),
                   [](const auto& l) { return l.second.is_shared; })) {
    cluster_ = 1;
  }
  for (BufferId id : stored_) {
    if (buffer(id).scope != Scope::kShared) continue;
    const Extent& extent = storage_.extents.at(id);
    out->shared_bytes = std::max(out->shared_bytes, extent.offset + extent.size_bytes);
  }
  find_staged_stores(kernel_.body);
  place_mbarriers(out);
  place_staged_stores(out);
  PRUNERC_TRY_VOID(check_specialised());
  if (failed_) return *failed_;
  writes_factors_ = multiplies_in_warpgroups() && stores_swizzled(own_statements());
  declare_arguments(out);
  ++indent_;
  if (out->shared_bytes > 0) line(fmt::format("PR_SHARED(smem, {});", out->shared_bytes));
  for (const Loop* loop : kernel_.grid) {
    const std::size_t axis = static_cast<std::size_t>(axis_of(loop->loop_kind));
    vars_[loop->var->id] = kBlockNames[axis];
    // Blocks start in the order of their numbers: those that have most to do come first.
    const bool turns = cluster_ == 1 && grows_along(*loop);
    const std::string last = turns ? fmt::format("{} - ", kernel_.blocks[axis] - 1) : "";
    line(fmt::format("const int {} = {}pr_block_{}();", kBlockNames[axis], last,
                     kAxisLetters[axis]));
  }
  for (std::size_t axis = 0; axis < kernel_.threads.size(); ++axis) {
    if (out->threads[axis] == 1) continue;
    line(fmt::format("const int {} = pr_thread_{}();", kThreadNames[axis], kAxisLetters[axis]));
  }
  ring_buffers_.empty() ? one_role(kernel_.body) : both_roles(kernel_.body);
  close();
  if (failed_) return *failed_;
  return std::move(out_);
}

// Has the last block along the axis more iterations than the first?
bool KernelPrinter::grows_along(const Loop& axis) const {
  const int64_t last = kernel_.blocks[static_cast<std::size_t>(axis_of(axis.loop_kind))] - 1;
  int64_t growth = 0;
  walk(
      kernel_.body,
      [&](Stmt s) {
        const Loop* loop = s.as<Loop>();
        if (loop == nullptr || !mentions(loop->extent, axis.var->id)) return true;
        const auto iterations = [&](int64_t block) {
          return evaluate_int(loop->extent, [&](Expr leaf) -> std::optional<int64_t> {
            const Var* var = leaf.as<Var>();
            if (var == nullptr) return std::nullopt;
            return var->id == axis.var->id ? block : 0;
          });
        };
        growth += iterations(last).value_or(0) - iterations(0).value_or(0);
        return true;
      },
      [](Expr) {});
  return growth > 0;
}

void KernelPrinter::statement(Stmt s) {
  if (!s.defined() || failed_ || belongs_to_other_role(s)) return;
  visit(s, Overload{
               [&](const Seq& n) { sequence(n); },
               [&](const Loop& n) { loop(n); },
               [&](const Block& n) {
                 failed_ = prunerc::error(Diag::kInternal,
                                          "block " + std::string(n.name) + " was not lowered");
               },
               [&](const Store& n) { store(n); },
               [&](const If& n) { branch(n); },
               [&](const Alloc& n) { alloc(n); },
           });
}

// Waits and the barrier in front of the loop.
void KernelPrinter::meet(const Loop& loop) {
  if (const std::optional<int64_t> pending = attr_of(loop, kWaitAttr)) {
    line(fmt::format("pr_cp_async_wait<{}>();", *pending));
  }
  const int64_t sync = attr_of(loop, kSyncAttr).value_or(0);
  if (sync == kWarpSync) line("pr_sync_warp();");
  if (sync != kBlockSync) return;
  // wgmma reads memory past the way that stores take.
  if (writes_factors_) line("pr_fence_proxy_async();");
  line(role_ == Role::kConsumer ? fmt::format("pr_bar_sync(1, {});", kernel_.num_threads())
                                : "pr_sync();");
}

void KernelPrinter::loop(const Loop& loop) {
  if (is_bulk_copy(loop)) return bulk_loop(loop);
  if (role_ != Role::kProducer) meet(loop);
  const bool opens = !in_products_ && is_product_nest(Stmt(&loop));
  if (opens) {
    in_products_ = true;
    line("pr_wgmma_fence();");
  }
  nest_of(loop);
  if (opens) {
    in_products_ = false;
    line("pr_wgmma_commit();");
    const bool overlaps = current_ring_ != nullptr && current_ring_->overlaps;
    if (!waits_later_) line(fmt::format("pr_wgmma_wait<{:d}>();", overlaps));
  }
  end_ring(loop);
}

void KernelPrinter::nest_of(const Loop& loop) {
  const VarRanges::Mark mark = ranges_.mark();
  const bool was_async = is_async_;
  is_async_ = is_async_ || attr_of(loop, kAsyncAttr);
  ranges_.bind(loop.var, loop.extent);
  const IntImm* extent = loop.extent.as<IntImm>();
  const Var* const saved_lane = lane_;
  const Var* const saved_row = row_;
  const Expr saved_register = register_;
  if (loop.loop_kind == LoopKind::kThreadX) lane_ = loop.var;
  if (loop.loop_kind == LoopKind::kThreadY) row_ = loop.var;
  if (const std::optional<int64_t> run = attr_of(loop, kFragmentAttr)) {
    const Loop* inner = loop.body.as<Loop>();
    register_ = Expr(loop.var);
    if (*run > 1 && inner != nullptr) {
      register_ = b_.add(b_.mul(register_, b_.int_imm(*run)), Expr(inner->var));
      ranges_.bind(inner->var, inner->extent);
    }
  }
  if (const TensorIntrinsic* intrinsic = warp_intrinsic(loop)) {
    tensor_loop(loop, *intrinsic);
  } else if (const auto staged = staged_.find(loop.id); staged != staged_.end()) {
    staged_store(loop, staged->second);
  } else if (is_lane_axis(loop.loop_kind)) {
    const std::size_t axis = static_cast<std::size_t>(axis_of(loop.loop_kind));
    vars_[loop.var->id] = kernel_.threads[axis] == 1 ? "0" : kThreadNames[axis];
    thread_vars_.insert(loop.var->id);
    if (!shuffle_loop(loop)) statement(loop.body);
  } else if (extent != nullptr && extent->value == 1) {
    vars_[loop.var->id] = "0";
    loop_body(loop);
  } else if (loop.loop_kind == LoopKind::kVectorized || is_update(loop)) {
    vector_loop(loop);
  } else if (!transposed_copy(loop)) {
    serial_loop(loop);
  }
  if (attr_of(loop, kCommitAttr)) line("pr_cp_async_commit();");
  is_async_ = was_async;
  lane_ = saved_lane;
  row_ = saved_row;
  register_ = saved_register;
  ranges_.rewind(mark);
}

void KernelPrinter::serial_loop(const Loop& loop) {
  const std::string name = vars_[loop.var->id] = fresh("i");
  const bool unrolls = must_unroll(loop);
  const IntImm* extent = loop.extent.as<IntImm>();
  const int64_t copies = copies_;
  if (unrolls) copied_vars_.insert(loop.var->id);
  if (unrolls && extent != nullptr) copies_ *= extent->value;
  line(unrolls ? "#pragma unroll" : fmt::format("#pragma unroll {}", copies_in_flight(loop)));
  const bool is_long = extent != nullptr && extent->value > std::numeric_limits<int32_t>::max();
  open(fmt::format("for ({2} {0} = 0; {0} < {1}; ++{0})", name,
                   within(index_value(loop.extent), Prec::kAdd), is_long ? "pr_i64" : "int"));
  loop_body(loop);
  close();
  copies_ = copies;
}

void KernelPrinter::declare_shared(BufferId id) {
  const std::string_view type = memory_type(buffer(id).dtype);
  buffers_[id] = fresh("sh");
  line(fmt::format("{0}* const {1} = ({0}*)(smem + {2});", type, buffers_[id],
                   storage_.extents.at(id).offset));
}

void KernelPrinter::alloc(const Alloc& alloc) {
  const Buffer& here = buffer(alloc.buffer);
  if (here.scope == Scope::kGlobal) return statement(alloc.body);
  if (here.scope == Scope::kShared) {
    if (role_ != Role::kProducer) declare_shared(alloc.buffer);
    return statement(alloc.body);
  }
  if (role_ == Role::kProducer) return statement(alloc.body);
  buffers_[alloc.buffer] = fresh("r");
  line("{");
  ++indent_;
  // Operands of tensor instructions are what the instruction reads, several elements to a register.
  const bool is_fragment = fragments_.count(alloc.buffer) != 0;
  line(fmt::format("{}{} {}[{}];", is_fragment ? "PR_ALIGN(16) " : "",
                   is_fragment ? memory_type(here.dtype) : register_type(here.dtype),
                   buffers_[alloc.buffer], num_registers(alloc.buffer)));
  statement(alloc.body);
  close();
}

void KernelPrinter::branch(const If& branch) {
  const VarRanges::Mark mark = ranges_.mark();
  open(fmt::format("if ({})", value(branch.condition).text));
  ranges_.assume(branch.condition);
  statement(branch.then_body);
  ranges_.rewind(mark);
  if (branch.else_body.defined()) {
    --indent_;
    line("} else {");
    ++indent_;
    ranges_.assume_not(branch.condition);
    statement(branch.else_body);
    ranges_.rewind(mark);
  }
  close();
}

void KernelPrinter::store(const Store& store) {
  if (element_copy(store)) return;
  const std::optional<Text> fused = contracted(store);
  const Text reg = fused ? *fused : value(store.value);
  const bool is_local =
      buffer(store.buffer).scope == Scope::kLocal && fragments_.count(store.buffer) == 0;
  line(fmt::format("{} = {};", element(store.buffer, store.indices),
                   (is_local ? reg : to_memory(store.value.dtype(), reg)).text));
}

namespace {

Result<void> check_limits(const KernelText& kernel, const Target& target) {
  const int64_t threads = kernel.threads[0] * kernel.threads[1] * kernel.threads[2];
  if (target.max_threads_per_block > 0 && threads > target.max_threads_per_block) {
    return error(Diag::kGpuLimit, kernel.name, fmt::format("{} threads in a block", threads),
                 target.max_threads_per_block);
  }
  for (std::size_t d = 0; d < kMostBlocks.size(); ++d) {
    if (kernel.blocks[d] > kMostBlocks[d]) {
      return error(Diag::kGpuLimit, kernel.name,
                   fmt::format("{} blocks along {}", kernel.blocks[d], "xyz"[d]), kMostBlocks[d]);
    }
    if (kernel.threads[d] > kMostThreads[d]) {
      return error(Diag::kGpuLimit, kernel.name,
                   fmt::format("{} threads of a block along {}", kernel.threads[d], "xyz"[d]),
                   kMostThreads[d]);
    }
  }
  if (target.smem_bytes_per_block > 0 && kernel.shared_bytes > target.smem_bytes_per_block) {
    return error(Diag::kGpuLimit, kernel.name,
                 fmt::format("{} bytes of shared memory", kernel.shared_bytes),
                 target.smem_bytes_per_block);
  }
  return {};
}

}  // namespace

Result<CudaText> print_cuda(const Program& program, const Target& target, std::string_view symbol) {
  const Program lowered = drop_guards(program);
  for (const Buffer& buffer : lowered.buffers()) PRUNERC_TRY_VOID(buffer_bytes(buffer));
  PRUNERC_TRY(const std::vector<Kernel> kernels, find_kernels(lowered));
  CudaText out;
  PRUNERC_TRY(out.storage, plan_gpu_storage(lowered));
  for (const Kernel& kernel : kernels) {
    KernelText text;
    text.name = fmt::format("{}_k{}", symbol, out.kernels.size());
    text.blocks = kernel.blocks;
    text.threads = kernel.threads;
    PRUNERC_TRY(const std::string body,
                KernelPrinter(lowered, out.storage, kernel, target).print(&text));
    PRUNERC_TRY_VOID(check_limits(text, target));
    if (!out.text.empty()) out.text += '\n';
    out.text += body;
    out.kernels.push_back(std::move(text));
  }
  return out;
}

}  // namespace prunerc::codegen
