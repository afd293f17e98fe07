// The embeddable API: load an operator, tune it, compile it, run it. //:prunerc is this library.
//
//   if (const auto status = prunerc::serve_worker(argc, argv)) return *status;  // first in main
//   prunerc::Operator op = *prunerc::load_operator({.file = "dense_relu.prn"});
//   prunerc::Session session = *prunerc::Session::open({.target = "cpu"});
//   prunerc::search::TuneReport report = *session.tune({&op, 1}, {.trials = 200});
//   prunerc::Kernel kernel = *session.kernel(op);
//   const void* const inputs[] = {x, w, bias};
//   void* const outputs[] = {y};
//   const bool ran = kernel.run(inputs, outputs).ok();
#ifndef PRUNERC_TOOLS_DRIVER_PRUNERC_H_
#define PRUNERC_TOOLS_DRIVER_PRUNERC_H_

#include "codegen/artifact.h"
#include "ir/program.h"
#include "ir/support/result.h"
#include "ir/target.h"
#include "search/record/database.h"
#include "search/space/task.h"
#include "search/tune/recorder.h"
#include "search/tune/tuner.h"
#include "tools/driver/platform.h"

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::runtime {
class Pool;
}

namespace prunerc {

inline constexpr const char* kVersion = "0.1.0";

/// To be called first in main of a program that tunes: kernels under test run in a child that is
/// the same program, started once more. Returns that child's exit status, or nothing in the program
/// itself.
std::optional<int> serve_worker(int argc, char** argv);

/// Whether a program that is not valid is refused, or given as it is to who says what is wrong with it.
enum class Validity : uint8_t { kRequired, kNotAsked };

/// Which operator, with which sizes.
struct OperatorRequest {
  std::string file;  ///< path of a .prn or .prc file; empty if `text` or `expression` is given
  std::string text;  ///< operator text; `file` then only names it in messages
  std::string op;    ///< name, if the text has several operators
  std::string expression;  ///< "C[i,j] = sum[k] A[i,k] * B[k,j]" instead of a text
  std::vector<std::string>
      import_folders;  ///< imports may lead here, not only below the file's folder
  std::map<std::string, std::string> bindings;            ///< "M" -> "512"
  std::map<std::string, std::vector<std::string>> lists;  ///< of a model: "seq" -> "32", "64"
  std::map<std::string, std::string> dtypes;  ///< expression inputs; "" -> "f32" for all
  std::map<std::string, std::string>
      shapes;  ///< of inputs: "A" -> "64x64"; an expression's with `or`
  std::map<std::string, std::string> constants;  ///< inputs of a model: "shape" -> "@shape.npy"
  bool partial = false;                          ///< of a model: leave out what is not supported
  bool passes = false;                           ///< over a net that is not imported, too
  std::vector<std::string> no_passes, no_fuse;   ///< passes, and rules of fusing, that are left out
  Validity validity = Validity::kRequired;       ///< of a .prc program; see validity.h
};

/// An operator whose sizes are bound. A value.
struct Operator {
  std::string name;
  std::string source;               ///< its text, kept in records
  std::string bindings;             ///< "M=512,N=512"
  std::string warnings;             ///< rendered; empty if there are none
  double weight = 1;                ///< how many times its net runs it
  int64_t net_constants_bytes = 0;  ///< that its net reads in a run
  std::string network;              ///< its net's fingerprint
  ir::Program program;              ///< unscheduled
};

/// Reads, checks and binds one operator. Errors: IoError; OperatorText, whose detail holds all
/// diagnostics rendered with their source lines; ProgramInvalid; UsageOption (a shape that is none, -D
/// or another name for a .prc program).
Result<Operator> load_operator(const OperatorRequest& request);

/// Every operator of the file, with those of these sizes that it knows, else its defaults; one name in
/// `op` selects it. Of a file with nets: their lines, each an operator named by its label, with those
/// sizes that the line names. Errors: as load_operator, of the first that fails; UsageOption for a size
/// that none of them knows.
Result<std::vector<Operator>> load_operators(const OperatorRequest& request);
/// Those of several files; a size need be known in one of them.
Result<std::vector<Operator>> load_operators(std::span<const OperatorRequest> requests);

/// "$PRUNERC_DB", else prunerc/db.sqlite in the user's cache folder (created on first use).
std::string default_database();

/// How much may be spent to find a schedule (`-O0` .. `-O3`).
enum class Effort : uint8_t {
  kO0,  ///< the heuristic schedule, at once
  kO1,  ///< the best of the space by the cost model, nothing is run
  kO2,  ///< 64 measured trials
  kO3,  ///< 1000 measured trials
};

/// What a derived program is: another way to compute an operator, which a chosen schedule is of.
struct Derivation {
  ir::Program base;          ///< unscheduled, with the operator's parameters
  search::DerivedLink link;  ///< its recipe in words, the bound of its proof, its numeric class
  double spec_ns = 0;        ///< stored best of the operator as it is written; 0: there is none
};

/// A schedule for an operator and where it comes from.
struct Choice {
  enum class Origin : uint8_t { kRecord, kHeuristic, kModel, kScript };
  Origin origin = Origin::kHeuristic;
  ir::Program program;  ///< scheduled
  schedule::Trace trace;
  double best_ns = 0;               ///< of a record that was measured here; 0 otherwise
  int64_t record_id = 0;            ///< of the record; 0 otherwise; of exported records the line
  std::string note;                 ///< what was shown of an imported record, or why none is used
  std::string record_version = {};  ///< of the prunerc that measured it; empty without a record
  std::string recipe = {};          ///< of a derived program; empty: the operator as written
  std::optional<Derivation> derivation = {};  ///< where there is a recipe: what `trace` is of
  std::string left_aside =
      {};  ///< faster stored records of which this build makes no program, and why
};
std::string_view to_string(Choice::Origin origin);

/// The stored best of the same operator for something else than was asked for.
struct OtherRecord {
  ir::Target target;                ///< as in the key: without measured numbers
  bool differs_in_threads = false;  ///< and in nothing else
  double best_ns = 0;
};

struct SessionOptions {
  std::string target = "cpu";
  int threads = 0;       ///< of a kernel; 0: one per CPU that the process may use
  std::string database;  ///< empty: default_database(); a `.jsonl` of exported records is only read
  std::vector<std::string>
      worker_command;  ///< argv of the measuring child; empty: this executable's `__worker`
  Limits limits = Limits::kMeasured;  ///< what only chooses and compiles needs none
};

/// The schedule that the script in a file makes (one primitive per line, as traces print; an empty
/// one leaves the program as it is written). Every step is checked.
/// Errors: IoError; OperatorText with the line of the script.
Result<Choice> apply_script(const Operator& op, const std::string& file);

class Kernel;
struct MeasurerOptions;
struct AlgebraOptions;
struct AlgebraTuneReport;

/// A target, a store and the means to measure. Threads: one call at a time.
class Session {
 public:
  /// Errors: TargetUnknown, TargetField; those of the database.
  static Result<Session> open(const SessionOptions& options);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  const ir::Target& target() const;
  search::Database& database();
  int num_threads() const;
  /// Whether kernels for the target run on this machine.
  bool is_host() const;

  /// What records are stored of: the operator on the target, with the session's number of threads.
  search::Task task(const Operator& op) const;
  /// The task that a choice is of: the operator's, or the derived one.
  search::Task task(const Operator& op, const Choice& choice) const;
  /// The same, timed within its network: what is stored of it goes before what was timed alone.
  search::Task network_task(const Operator& op) const;
  search::Task network_task(const Operator& op, const Choice& choice) const;

  /// Searches; trials and time as in `options` (its model, timer, version are filled in here).
  /// Errors: those of search::tune; TargetNotHost.
  Result<search::TuneReport> tune(std::span<const Operator> ops, search::TuneOptions options);
  /// The same over each operator's derived programs too (driver/algebra.h), with no more trials.
  Result<AlgebraTuneReport> tune(std::span<const Operator> ops, search::TuneOptions options,
                                 const AlgebraOptions& algebra);

  /// Fills a pool with measured candidates of an operator, going on where it ends. An empty pool
  /// (no sketches) becomes one of this operator and target; its seed and share_searched stay.
  /// Errors: PoolMismatch; those of search::record_pool; TargetNotHost.
  Result<search::RecordEnd> record(const Operator& op, const search::RecordOptions& options,
                                   search::Pool* pool);

  /// Times the pool's best rows anew, on the machine at hand. `cancel` may be null; only what is
  /// complete changes the pool. Errors: PoolMismatch if the pool is of another target; those of
  /// search::remeasure; TargetNotHost.
  Result<search::RemeasureEnd> remeasure(const search::RemeasureOptions& options,
                                         const std::atomic<bool>* cancel, search::Pool* pool);

  /// Verifies and times the imported records of an operator that has no best of this machine, so that
  /// there is one; how many were looked at. Errors: those of tune.
  Result<int64_t> settle_claims(const Operator& op);

  /// The stored best of the operator and of the programs derived from it, or the heuristic schedule
  /// (kO0), or the model's choice (kO1). Never measures.
  /// Where nothing was measured here, the first imported record (by its own account) that finite
  /// fields show to be equal to the operator; those that they refute are marked. Deterministic.
  /// One of a file of exported records ends the choice instead: RecordImport.
  Result<Choice> choose(const Operator& op, Effort effort = Effort::kO0);
  /// Compares a choice with the operator: in finite fields, and what it computes here with what the
  /// unscheduled program does. The measurement has evidence if it is right. Errors: as tune.
  Result<search::Measurement> verify(const Operator& op, const Choice& choice) const;
  /// Verified records of the operator for other numbers of threads, then for other targets of the
  /// same kind.
  Result<std::vector<OtherRecord>> other_records(const Operator& op);
  /// The kernel of a choice, in memory. Errors: those of build_kernel (backend.h).
  Result<codegen::Artifact> compile(const Choice& choice) const;

  /// Chooses, compiles and loads into this process. Its kernels share the session's threads and may outlive it; of
  /// calls at a time from several threads one has them, the others run on their callers alone. Errors: TargetNotHost; Unsupported (a GPU's);
  /// those of choose, compile, loading.
  Result<Kernel> kernel(const Operator& op);

 private:
  struct Impl;
  struct Bench;
  explicit Session(std::unique_ptr<Impl> impl);
  Result<Bench> open_bench(MeasurerOptions options) const;
  std::unique_ptr<Impl> impl_;
};

/// A compiled operator in this process. Movable. Threads: run may be called from one thread at a
/// time.
class Kernel {
 public:
  /// `num_threads` of 0: one per CPU that the process may use. The artifact is to be of a session whose
  /// is_host() is true: what it needs of a CPU is not looked at here. Errors: those of loading;
  /// KernelArguments (memory).
  static Result<Kernel> load(codegen::Artifact artifact, int num_threads);
  /// With threads that others may have too.
  static Result<Kernel> load(codegen::Artifact artifact, std::shared_ptr<runtime::Pool> pool);
  Kernel(Kernel&&) noexcept;
  Kernel& operator=(Kernel&&) noexcept;
  ~Kernel();

  const codegen::Artifact& artifact() const;
  /// What a kernel with const inputs needs once before `run`: one pointer per const input in declared
  /// order, arrays as for `run`, which may go away afterwards. Errors: KernelArguments, KernelFailed.
  Result<void> prepare(std::span<const void* const> constants);
  /// One pointer per parameter that is not const, in declared order; each array dense, row-major,
  /// aligned as its elements are and of the declared size, and no output overlaps another array.
  /// Errors: KernelArguments (also: not prepared), KernelFailed.
  Result<void> run(std::span<const void* const> inputs, std::span<void* const> outputs);

 private:
  struct Impl;
  explicit Kernel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_PRUNERC_H_
