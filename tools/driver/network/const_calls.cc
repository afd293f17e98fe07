#include "tools/driver/network/const_calls.h"

#include "codegen/codegen.h"
#include "ir/support/check.h"
#include "tools/driver/reference.h"

#include <algorithm>
#include <set>
#include <utility>

namespace prunerc {

ConstCalls::ConstCalls(const net::Net& net, const ir::Target& target, const WeightSource& weights,
                       runtime::Pool& pool, ConstKernels& kernels)
    : net_(net),
      target_(target),
      weights_(weights),
      pool_(pool),
      kernels_(kernels),
      maker_(net.tensors.size(), kNoTask),
      num_readers_(net.tensors.size()) {
  for (std::size_t i = 0; i < net.calls.size(); ++i) {
    for (const std::size_t arg : net.calls[i].args) ++num_readers_[arg];
    if (!net::is_const(net, net.calls[i])) continue;
    for (const std::size_t result : net.calls[i].results) maker_[result] = i;
  }
}

std::vector<std::size_t> ConstCalls::calls_before(std::size_t call) const {
  std::set<std::size_t> needed;
  std::vector<std::size_t> pending = net_.calls[call].args;
  while (!pending.empty()) {
    const std::size_t tensor = pending.back();
    pending.pop_back();
    const std::size_t maker = maker_[tensor];
    if (maker == kNoTask || made_.contains(tensor) || !needed.insert(maker).second) continue;
    const std::vector<std::size_t>& args = net_.calls[maker].args;
    pending.insert(pending.end(), args.begin(), args.end());
  }
  // Calls stand behind those that give their arguments.
  return {needed.begin(), needed.end()};
}

Result<const ConstKernel*> ConstCalls::kernel_of(std::size_t program) {
  auto known = kernels_.find(program);
  if (known == kernels_.end()) {
    const ir::Program scheduled = reference_schedule(net_.programs[program], target_);
    PRUNERC_TRY(codegen::Artifact artifact, codegen::compile_cpu(scheduled, target_, {}));
    PRUNERC_TRY_VOID(codegen::validate(artifact));
    PRUNERC_CHECK(artifact.prepare_entry.empty(), "the program of a const call has no const input");
    PRUNERC_TRY(runtime::LoadedKernel loaded, runtime::load_kernel(artifact));
    known = kernels_.emplace(program, ConstKernel{std::move(artifact), std::move(loaded)}).first;
  }
  return &known->second;
}

Result<std::vector<void*>> ConstCalls::gather(std::size_t call) {
  const std::vector<std::size_t>& args = net_.calls[call].args;
  read_.clear();
  read_.reserve(args.size());
  std::vector<void*> arrays;
  for (const std::size_t arg : args) {
    if (!net_.tensors[arg].is_const) {
      arrays.push_back(nullptr);
    } else if (maker_[arg] != kNoTask) {
      arrays.push_back(made_.at(arg).data());
    } else {
      PRUNERC_TRY(ir::Tensor weight, weights_.get(net_.tensors[arg]));
      read_.push_back(std::move(weight));
      arrays.push_back(read_.back().data.data());
    }
  }
  return arrays;
}

Result<void> ConstCalls::make(std::size_t call) {
  PRUNERC_TRY(const ConstKernel* const kernel, kernel_of(net_.calls[call].program));
  PRUNERC_TRY(std::vector<void*> arrays, gather(call));
  for (const std::size_t result : net_.calls[call].results) {
    PRUNERC_TRY(AlignedArray array, AlignedArray::make(net::size_bytes(net_.tensors[result])));
    arrays.push_back(array.data());
    made_.insert_or_assign(result, std::move(array));
  }
  PRUNERC_TRY(const AlignedArray workspace, AlignedArray::make(codegen::total_workspace_bytes(
                                                kernel->artifact, pool_.num_threads())));
  const int32_t code = kernel->loaded.entry()(arrays.data(), workspace.data(), pool_.launch());
  release(call);
  if (code != 0) return error(Diag::kKernelFailed, int64_t{code});
  return {};
}

Result<std::vector<void*>> ConstCalls::arguments(std::size_t call) {
  for (const std::size_t before : calls_before(call)) PRUNERC_TRY_VOID(make(before));
  return gather(call);
}

void ConstCalls::release(std::size_t call) {
  read_.clear();
  for (const std::size_t arg : net_.calls[call].args) {
    if (--num_readers_[arg] == 0) made_.erase(arg);
  }
}

}  // namespace prunerc
