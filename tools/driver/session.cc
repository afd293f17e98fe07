#include "codegen/codegen.h"
#include "ir/equal.h"
#include "runtime/cpu/cpus.h"
#include "runtime/cpu/float_mode.h"
#include "runtime/cpu/orc.h"
#include "runtime/cpu/pool.h"
#include "runtime/cpu/worker.h"
#include "runtime/cuda/worker.h"
#include "runtime/cuda_host/worker.h"
#include "schedule/schedule.h"
#include "search/space/space.h"
#include "search/tune/inbox.h"
#include "search/tune/instant.h"
#include "search/tune/sampled.h"
#include "tools/driver/algebra.h"
#include "tools/driver/aligned.h"
#include "tools/driver/backend.h"
#include "tools/driver/call_arrays.h"
#include "tools/driver/measurer.h"
#include "tools/driver/platform.h"
#include "tools/driver/prunerc.h"
#include "tools/driver/stored.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <utility>

namespace prunerc {
namespace {

// Units: ns; 0: it was not timed alone.
Result<double> time_alone(search::Database& database, const search::Task& task,
                          const ir::Program& program) {
  PRUNERC_TRY(const std::optional<search::Record> record,
              record_of(database, task, ir::fingerprint(program).to_string(), false));
  return record ? record->measurement.median_ns : 0.0;
}

std::shared_ptr<runtime::Pool> make_pool(int num_threads) {
  return std::make_shared<runtime::Pool>(runtime::PoolOptions{.num_threads = num_threads});
}

std::string timer_description(int threads) {
  return fmt::format(
      "CLOCK_MONOTONIC, {} thread(s), warm caches (constants as the target says), median of >=7 "
      "samples of >=1 ms",
      threads);
}

/// Pools hold every candidate, also the slow ones: what is clearly slower than the best is sampled
/// twice, and what is far slower runs once.
constexpr double kPoolEarlyStop = 1.5;
constexpr double kPoolCut = 10;
/// A recording keeps as many kernels for its finals, some ten kilobytes each; of more it builds
/// some twice.
constexpr int64_t kMostKept = 1000;

Result<void> check_same_target(const search::Pool& pool, const std::string& target_key) {
  const Result<ir::Target> target = ir::target_from_string(pool.platform);
  if (target.ok() && search::target_key(*target) == target_key) return {};
  return error(Diag::kPoolMismatch, pool.op, std::string("target"), pool.platform);
}

// Rows of one file must be comparable.
Result<void> check_same_recording(const search::Pool& pool, const search::Task& task,
                                  const search::SearchSpace& space) {
  const auto differs = [&](const char* what, const std::string& how) {
    return error(Diag::kPoolMismatch, pool.op, std::string(what), how);
  };
  if (pool.program != task.key.program) return differs("operator", "start a new one");
  PRUNERC_TRY_VOID(check_same_target(pool, task.key.target));
  bool same = pool.sketches.size() == space.sketches.size();
  for (std::size_t i = 0; same && i < space.sketches.size(); ++i) {
    same = pool.sketches[i].trace == space.sketches[i].trace;
  }
  return same ? Result<void>() : differs("space", "this build has other sketches");
}

}  // namespace

std::string default_database() {
  const char* const chosen = std::getenv("PRUNERC_DB");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  const std::string folder = cache_folder();
  return folder.empty() ? ":memory:" : folder + "/db.sqlite";
}

std::optional<int> serve_worker(int argc, char** argv) {
  if (const auto status = runtime::dispatch_worker(argc, argv)) return status;
  if (const auto status = runtime::cuda_host::dispatch_host_worker(argc, argv)) return status;
  return runtime::cuda::dispatch_cuda_worker(argc, argv);
}

std::string_view to_string(Choice::Origin origin) {
  switch (origin) {
    case Choice::Origin::kRecord: return "record";
    case Choice::Origin::kHeuristic: return "heuristic";
    case Choice::Origin::kModel: return "model";
    case Choice::Origin::kScript: return "script";
  }
  PRUNERC_UNREACHABLE("origin");
}

struct Session::Impl {
  ir::Target target;
  int threads = 1;
  search::Database database;
  std::vector<std::string> worker_command;
  std::shared_ptr<runtime::Pool> pool;  // of its kernels, once there is one
};

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Session> Session::open(const SessionOptions& options) {
  PRUNERC_TRY(ir::Target target, resolve_target(options.target, options.threads, options.limits));
  const std::string path = options.database.empty() ? default_database() : options.database;
  Result<search::Database> opened =
      search::is_export(path) ? search::Database::open_to_read(path) : search::Database::open(path);
  // Records that may only be read choose schedules all the same; storing any fails.
  std::error_code ignored;
  if (!opened.ok() && std::filesystem::exists(path, ignored)) {
    opened = search::Database::open_to_read(path);
  }
  PRUNERC_TRY(search::Database database, std::move(opened));
  const int threads = static_cast<int>(std::max<int64_t>(1, target.num_threads));
  return Session(std::make_unique<Impl>(
      Impl{std::move(target), threads, std::move(database), options.worker_command, nullptr}));
}

const ir::Target& Session::target() const { return impl_->target; }
search::Database& Session::database() { return impl_->database; }
int Session::num_threads() const { return impl_->threads; }
bool Session::is_host() const { return runs_here(impl_->target); }

namespace {

// Target::constants_bytes of an operator in its network: a power of two, so that networks of about
// the same size share records; more than any cache holds is enough, and a virtual machine need not
// know how large its last one is. 0 where a core's own cache keeps them.
int64_t constants_bytes_of(const Operator& op, const ir::Target& target) {
  constexpr int64_t kEnough = int64_t{256} << 20;
  if (target.kind != ir::TargetKind::kCpu || op.net_constants_bytes <= target.l2_bytes / 2)
    return 0;
  const std::span<const ir::BufferId> params = op.program.params();
  const bool reads_any = std::any_of(params.begin(), params.end(), [&](ir::BufferId id) {
    return op.program.buffer(id).is_const;
  });
  if (!reads_any) return 0;
  const auto bytes = static_cast<uint64_t>(std::min(op.net_constants_bytes, kEnough));
  return static_cast<int64_t>(std::bit_ceil(bytes));
}

search::Task task_on(const Operator& op, ir::Target target) {
  search::Task task = search::make_task(op.name, op.program, std::move(target));
  task.op_text = op.source;
  task.bindings = op.bindings;
  task.weight = op.weight;
  return task;
}

}  // namespace

search::Task Session::task(const Operator& op) const {
  ir::Target target = impl_->target;
  target.constants_bytes = constants_bytes_of(op, target);
  return task_on(op, std::move(target));
}

namespace {

search::Task task_of_choice(search::Task spec, const Choice& choice) {
  if (!choice.derivation) return spec;
  return search::algebra::task_of_link(spec, choice.derivation->base, choice.derivation->link);
}

}  // namespace

search::Task Session::task(const Operator& op, const Choice& choice) const {
  return task_of_choice(task(op), choice);
}

search::Task Session::network_task(const Operator& op, const Choice& choice) const {
  return task_of_choice(network_task(op), choice);
}

// What measuring takes: the device, the CPU that knows the right results, and who uses both.
struct Session::Bench {
  std::unique_ptr<runtime::Device> device, cpu;
  std::unique_ptr<DeviceMeasurer> measurer;
  std::string timer;
};

Result<Session::Bench> Session::open_bench(MeasurerOptions options) const {
  const ir::Target& target = impl_->target;
  PRUNERC_TRY_VOID(check_runs_here(target));
  if (target.kind == ir::TargetKind::kCudaHost) {
    return error(Diag::kUnsupported, "tuning for " + target.name +
                                         ", whose kernels run here but have no times that mean "
                                         "anything,");
  }
  Bench bench;
  PRUNERC_TRY(bench.device, open_device(target, impl_->threads, impl_->worker_command));
  PRUNERC_TRY(bench.cpu, open_device(ir::Target{}, impl_->threads, impl_->worker_command));
  const int hardware = runtime::usable_cpus();
  const bool on_cpu = target.kind == ir::TargetKind::kCpu;
  options.exclusive_timing = on_cpu && impl_->threads >= hardware;
  options.num_builders = !on_cpu || options.exclusive_timing ? hardware : hardware - impl_->threads;
  bench.measurer =
      std::make_unique<DeviceMeasurer>(*bench.device, on_cpu ? *bench.device : *bench.cpu, options);
  bench.timer = on_cpu ? timer_description(impl_->threads) : "on the device, cold L2";
  return bench;
}

Result<search::TuneReport> Session::tune(std::span<const Operator> ops,
                                         search::TuneOptions options) {
  // Before the bench: builders may still look at them when a search was stopped.
  std::vector<search::Task> tasks;
  for (const Operator& op : ops) tasks.push_back(task(op));
  PRUNERC_TRY(const Bench bench, open_bench({}));
  options.timer = bench.timer;
  options.version = kVersion;
  return search::tune(tasks, *bench.measurer, impl_->database, options);
}

Result<AlgebraTuneReport> Session::tune(std::span<const Operator> ops, search::TuneOptions options,
                                        const AlgebraOptions& algebra) {
  std::vector<search::Task> tasks;
  for (const Operator& op : ops) tasks.push_back(task(op));
  PRUNERC_TRY(const Bench bench, open_bench({}));
  options.timer = bench.timer;
  options.version = kVersion;
  return tune_with_algebra(tasks, *bench.measurer, impl_->database, options, algebra);
}

Result<int64_t> Session::settle_claims(const Operator& op) {
  PRUNERC_TRY(std::vector<StoredTask> stored, stored_tasks(impl_->database, task(op)));
  std::vector<search::Task> claimed;
  for (StoredTask& one : stored) {
    PRUNERC_TRY(const std::optional<search::Record> best, impl_->database.best(one.id));
    PRUNERC_TRY(const std::vector<search::Record> claims,
                impl_->database.claims(one.id, kMostClaims));
    if (best) return int64_t{0};
    if (claims.empty()) continue;
    PRUNERC_TRY(const bool shown, show_link(impl_->database, stored[0], one, claims[0].id));
    if (shown) claimed.push_back(one.task);
  }
  if (claimed.empty()) return int64_t{0};
  search::TuneOptions options;
  options.claims_only = true;
  options.trials = kMostClaims;
  options.strategy = search::StrategyKind::kRandom;
  PRUNERC_TRY(const Bench bench, open_bench({}));
  options.timer = bench.timer;
  options.version = kVersion;
  PRUNERC_TRY(const search::TuneReport report,
              search::tune(claimed, *bench.measurer, impl_->database, options));
  int64_t looked_at = 0;
  for (const search::TaskReport& row : report.tasks) looked_at += row.trials;
  return looked_at;
}

Result<search::RecordEnd> Session::record(const Operator& op, const search::RecordOptions& options,
                                          search::Pool* pool) {
  MeasurerOptions measuring;
  measuring.timing.early_stop_factor = kPoolEarlyStop;
  measuring.cut_factor = kPoolCut;
  measuring.kept_kernels = static_cast<int>(std::min(options.candidates, kMostKept));
  const search::Task own = task(op);
  PRUNERC_TRY(const Bench bench, open_bench(measuring));
  PRUNERC_TRY(const search::SearchSpace space, search::make_space(own));
  if (pool->sketches.empty()) {
    search::Pool fresh = search::make_pool(own, space);
    fresh.seed = pool->seed;
    fresh.share_searched = pool->share_searched;
    fresh.timer = fmt::format("{}; beyond {} times the best 2 samples, beyond {} times one run",
                              bench.timer, kPoolEarlyStop, kPoolCut);
    fresh.version = kVersion;
    fresh.created = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
    *pool = std::move(fresh);
  }
  PRUNERC_TRY_VOID(check_same_recording(*pool, own, space));
  return search::record_pool(own, *bench.measurer, options, pool);
}

Result<search::RemeasureEnd> Session::remeasure(const search::RemeasureOptions& options,
                                                const std::atomic<bool>* cancel,
                                                search::Pool* pool) {
  PRUNERC_TRY(const search::Task own, pool->task());
  PRUNERC_TRY_VOID(check_same_target(*pool, search::target_key(impl_->target)));
  MeasurerOptions measuring;
  measuring.kept_kernels = static_cast<int>(search::contenders(*pool, options).size());
  PRUNERC_TRY(const Bench bench, open_bench(measuring));
  search::Inbox inbox(*bench.measurer, cancel);
  return search::remeasure(own, inbox, options, pool);
}

Result<Choice> Session::choose(const Operator& op, Effort effort) {
  const search::Task task = this->task(op);
  std::string note;
  search::LeftAside left;
  const auto with_left = [&left](Choice choice) {
    choice.left_aside = search::to_string(left);
    return choice;
  };
  if (effort != Effort::kO1) {
    if (!op.network.empty()) {
      PRUNERC_TRY(std::optional<Choice> ranked,
                  ranked_choice(impl_->database, network_task(op), &left));
      if (ranked) {
        PRUNERC_TRY(ranked->best_ns,
                    time_alone(impl_->database, this->task(op, *ranked), ranked->program));
        return with_left(*std::move(ranked));
      }
    }
    PRUNERC_TRY(std::optional<Choice> stored, stored_choice(impl_->database, task, &note, &left));
    if (!stored && task.target.constants_bytes != impl_->target.constants_bytes) {
      const search::Task warm = search::make_task(op.name, op.program, impl_->target);
      PRUNERC_TRY(stored, stored_choice(impl_->database, warm, &note, &left));
      // Its time is of another regime.
      if (stored) stored->best_ns = 0;
    }
    if (stored) return with_left(*std::move(stored));
  }
  PRUNERC_TRY(const search::SearchSpace space, search::make_space(task));
  PRUNERC_TRY(search::Candidate heuristic, search::heuristic_candidate(task, space));
  if (effort != Effort::kO1) {
    return with_left({Choice::Origin::kHeuristic, heuristic.program, std::move(heuristic.trace), 0,
                      0, std::move(note)});
  }
  ThreadPool pool(runtime::usable_cpus());
  PRUNERC_TRY(search::Candidate drafted, search::instant_candidate(task, space, pool));
  return Choice{Choice::Origin::kModel, drafted.program, std::move(drafted.trace), 0, 0, ""};
}

search::Task Session::network_task(const Operator& op) const {
  search::Task alone = task(op);
  alone.target.network = op.network;
  return task_on(op, std::move(alone.target));
}

Result<search::Measurement> Session::verify(const Operator& op, const Choice& choice) const {
  constexpr std::chrono::minutes kLongest(2);
  const search::Task own = task(op, choice);
  search::SampleOptions options;
  options.log2_error = search::kStoredLog2Error;
  const search::SampledVerdict shown =
      search::check_schedule(own, choice.trace, choice.program, options);
  search::Measurement verdict;
  verdict.status = MeasureStatus::kNotEqual;
  if (search::is_refuted(shown.verdict)) {
    verdict.detail = search::to_string(shown);
    return verdict;
  }
  // What the schedule is of has to be the operator, too.
  if (own.is_derived() &&
      !search::algebra::is_shown(search::algebra::check_own_link(task(op), own, options.seed))) {
    verdict.detail = "the derived program is not shown to be the operator";
    return verdict;
  }
  PRUNERC_TRY(const Bench bench, open_bench({}));
  search::MeasureInput input;
  input.kind = search::MeasureKind::kVerify;
  input.task = &own;
  input.program = choice.program;
  input.trace = choice.trace;
  bench.measurer->submit(std::move(input));
  const std::optional<search::MeasureOutcome> outcome =
      bench.measurer->next(std::chrono::steady_clock::now() + kLongest);
  if (!outcome) {
    verdict.status = MeasureStatus::kTimeout;
    verdict.detail = "no verdict within two minutes";
    return verdict;
  }
  verdict = outcome->measurement;
  if (verdict.ok() && shown.verdict.ok()) verdict.evidence += "; " + search::to_string(shown);
  return verdict;
}

Result<std::vector<OtherRecord>> Session::other_records(const Operator& op) {
  const search::Task own = task(op);
  PRUNERC_TRY(const std::vector<search::TaskRow> rows,
              impl_->database.tasks_of_program(own.key.program));
  std::vector<OtherRecord> out;
  for (const search::TaskRow& row : rows) {
    if (row.key.target == own.key.target) continue;
    const Result<ir::Target> target = ir::target_from_string(row.key.target);
    if (!target.ok() || target->kind != own.target.kind) continue;
    // Times within a network are of no target of their own.
    if (!target->network.empty()) continue;
    PRUNERC_TRY(const std::optional<search::Record> best, impl_->database.best(row.id));
    if (!best) continue;
    ir::Target with_threads = *target;
    with_threads.num_threads = own.target.num_threads;
    with_threads.num_cores = own.target.num_cores;
    const bool same = search::target_key(with_threads) == own.key.target;
    out.push_back({*target, same, best->measurement.median_ns});
  }
  std::stable_partition(out.begin(), out.end(),
                        [](const OtherRecord& other) { return other.differs_in_threads; });
  return out;
}

Result<codegen::Artifact> Session::compile(const Choice& choice) const {
  return build_kernel(choice.program, impl_->target);
}

Result<Kernel> Session::kernel(const Operator& op) {
  PRUNERC_TRY_VOID(check_runs_here(impl_->target));
  if (impl_->target.kind != ir::TargetKind::kCpu) {
    return error(Diag::kUnsupported, "loading a kernel for " + impl_->target.name);
  }
  PRUNERC_TRY(const Choice choice, choose(op));
  PRUNERC_TRY(codegen::Artifact artifact, compile(choice));
  if (impl_->pool == nullptr) impl_->pool = make_pool(impl_->threads);
  return Kernel::load(std::move(artifact), impl_->pool);
}

struct Kernel::Impl {
  codegen::Artifact artifact;
  runtime::LoadedKernel loaded;
  std::shared_ptr<runtime::Pool> pool;
  AlignedArray workspace, prepared;
  bool is_prepared = false;

  Result<void> call(PrunercKernel entry, bool constants, std::span<const void* const> inputs,
                    std::span<void* const> outputs);
};

Kernel::Kernel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Kernel::Kernel(Kernel&&) noexcept = default;
Kernel& Kernel::operator=(Kernel&&) noexcept = default;
Kernel::~Kernel() = default;

Result<Kernel> Kernel::load(codegen::Artifact artifact, int num_threads) {
  return load(std::move(artifact),
              make_pool(num_threads > 0 ? num_threads : runtime::usable_cpus()));
}

Result<Kernel> Kernel::load(codegen::Artifact artifact, std::shared_ptr<runtime::Pool> pool) {
  PRUNERC_TRY_VOID(codegen::validate(artifact));
  PRUNERC_TRY(runtime::LoadedKernel loaded, runtime::load_kernel(artifact));
  std::unique_ptr<Impl> impl(
      new Impl{std::move(artifact), std::move(loaded), std::move(pool), {}, {}});
  const int64_t workspace_bytes =
      codegen::total_workspace_bytes(impl->artifact, impl->pool->num_threads());
  PRUNERC_TRY(impl->workspace, AlignedArray::make(workspace_bytes));
  PRUNERC_TRY(impl->prepared, AlignedArray::make(impl->artifact.prepared_bytes));
  return Kernel(std::move(impl));
}

const codegen::Artifact& Kernel::artifact() const { return impl_->artifact; }

// The arrays of the const inputs, or of all other parameters.
Result<void> Kernel::Impl::call(PrunercKernel entry, bool constants,
                                std::span<const void* const> inputs,
                                std::span<void* const> outputs) {
  std::vector<void*> args;
  std::vector<CallArray> arrays;
  std::size_t num_inputs = 0, num_outputs = 0, num_wanted = 0;
  for (const codegen::ArtifactParam& param : artifact.params) {
    if (param.is_const != constants) {
      args.push_back(nullptr);
      continue;
    }
    ++num_wanted;
    const bool is_input = param.role == codegen::ParamRole::kInput;
    std::size_t& used = is_input ? num_inputs : num_outputs;
    if (used >= (is_input ? inputs.size() : outputs.size())) continue;
    // The ABI has one array of pointers; kernels do not write to inputs.
    void* const array = is_input ? const_cast<void*>(inputs[used]) : outputs[used];
    arrays.push_back(
        {array, codegen::size_bytes(param), ir::byte_size(param.dtype), !is_input, param.name});
    args.push_back(array);
    ++used;
  }
  if (num_inputs + num_outputs != num_wanted || num_inputs != inputs.size() ||
      num_outputs != outputs.size()) {
    return error(
        Diag::kKernelArguments,
        fmt::format("{} inputs and {} outputs were given to a kernel of {} {}", inputs.size(),
                    outputs.size(), num_wanted, constants ? "const inputs" : "parameters"));
  }
  PRUNERC_TRY_VOID(check_arrays(arrays));
  args.push_back(prepared.data());
  const runtime::DefaultFloatMode mode;
  const int32_t code = entry(args.data(), workspace.data(), pool->launch());
  if (code != 0) return error(Diag::kKernelFailed, int64_t{code});
  return {};
}

Result<void> Kernel::prepare(std::span<const void* const> constants) {
  if (impl_->loaded.prepare_entry() == nullptr)
    return error(Diag::kKernelArguments, "the kernel has no const input to prepare");
  impl_->is_prepared = false;  // should this fail half way
  PRUNERC_TRY_VOID(impl_->call(impl_->loaded.prepare_entry(), true, constants, {}));
  impl_->is_prepared = true;
  return {};
}

Result<void> Kernel::run(std::span<const void* const> inputs, std::span<void* const> outputs) {
  if (impl_->loaded.prepare_entry() != nullptr && !impl_->is_prepared)
    return error(Diag::kKernelArguments, "the kernel's const inputs were not prepared");
  return impl_->call(impl_->loaded.entry(), false, inputs, outputs);
}

}  // namespace prunerc
