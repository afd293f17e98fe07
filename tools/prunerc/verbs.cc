#include "tools/prunerc/verbs.h"

#include "tools/prunerc/cli.h"

#include <string>

namespace prunerc::cli {
namespace {

using Examples = std::string_view[];

constexpr Examples kTune = {
    "prunerc tune tools/examples/dense_relu.prn",
    "prunerc tune tools/std/gemm.prn --op gemm_nn -D M=256,N=256,K=256 --time 10s",
    "prunerc tune -e 'C[i,j] = sum[k] A[i,k] * B[k,j]' -D i=64,j=64,k=64 --trials 16 --json"};
constexpr Examples kCompile = {
    "prunerc compile tools/examples/dense_relu.prn -o dense_relu.so",
    "prunerc compile tools/examples/dense_relu.prn --target cpu:haswell -o dense_relu.s"};
constexpr Examples kRun = {
    "prunerc run tools/examples/dense_relu.prn --input X=rand:normal:seed=7 --input W=ones"
    " --input bias=zeros --output Y=y.npy",
    "prunerc run -e 'B[i,j] = A[i,j] * 2' -D i=512,j=512 --input A=@y.npy --timeout 10s"};
constexpr Examples kBench = {"prunerc bench tools/examples/dense_relu.prn --threads 1,2",
                             "prunerc bench tools/examples/softmax.prn --heuristic --cold"};
constexpr Examples kVerify = {
    "prunerc verify tools/examples/dense_relu.prn -D M=32,N=32,K=32 --interpret",
    "prunerc verify ~/.cache/prunerc/db.sqlite"};
constexpr Examples kShow = {
    "prunerc show tools/examples/dense_relu.prn --stage asm",
    "prunerc show tools/examples/dense_relu.prn --stage trace > dense_relu.trace",
    "prunerc show tools/examples/qgemm.prn --stage mappings"};
constexpr Examples kApply = {
    "prunerc apply tools/examples/dense_relu.prn dense_relu.trace",
    "prunerc apply tools/examples/dense_relu.prn dense_relu.trace --print json"};
constexpr Examples kExplain = {
    "prunerc explain tools/examples/dense_relu.prn",
    "prunerc explain tools/examples/dense_relu.prn --schedule dense_relu.trace --threads 1"};
constexpr Examples kAlgebra = {
    "prunerc algebra tools/std/algebra.prn --op lora_merged",
    "prunerc algebra tools/std/algebra.prn --op chain3 -D N=64 -o forms",
    "prunerc verify forms/1.prc --schedule /dev/null --against forms/spec.prc"};
constexpr Examples kReport = {"prunerc report tools/examples/dense_relu.prn -o report.html",
                              "prunerc report -o all.html",
                              "prunerc report tools/examples/dense_relu.prn --json"};
constexpr Examples kDb = {"prunerc db ls", "prunerc db best --op dense_relu"};
constexpr Examples kDbLs = {"prunerc db ls", "prunerc db ls --op dense_relu"};
constexpr Examples kDbBest = {"prunerc db best", "prunerc db best --op dense_relu"};
constexpr Examples kDbExport = {"prunerc db export records.jsonl",
                                "prunerc db export --best tuned.jsonl"};
constexpr Examples kDbImport = {"prunerc db import records.jsonl --db other.sqlite"};
constexpr Examples kDbStats = {"prunerc db stats"};
constexpr Examples kDbValidate = {"prunerc db validate"};
constexpr Examples kDataset = {
    "prunerc dataset record tools/examples/softmax.prn --candidates 20 --out softmax.pool",
    "prunerc dataset stats softmax.pool"};
constexpr Examples kRecord = {
    "prunerc dataset record tools/examples/dense_relu.prn -D M=32,N=32,K=32 --threads 1"
    " --candidates 40 --out dense.pool",
    "prunerc dataset record tools/examples/dense_relu.prn -D M=32,N=32,K=32 --threads 1"
    " --candidates 60 --out dense.pool --resume"};
constexpr Examples kRemeasure = {
    "prunerc dataset remeasure dense.pool --threads 1 --best 8 --turns 3"};
constexpr Examples kImport = {
    "prunerc dataset import --t4 tools/examples/convolution_t4.json --device cuda:a100-40"
    " -o convolution.pool"};
constexpr Examples kList = {"prunerc dataset list dense.pool"};
constexpr Examples kStats = {"prunerc dataset stats dense.pool"};
constexpr Examples kSplit = {
    "prunerc dataset split dense.pool --by within-task --share 0.3 -o rows.json"};
constexpr Examples kPrune = {
    "prunerc dataset prune rows.json --by quantile --keep 0.5 -o half.json"};
constexpr Examples kExport = {"prunerc dataset export dense.pool -o dense.jsonl"};
constexpr Examples kModel = {
    "prunerc model train dense.pool --epochs 2 -o dense.model",
    "prunerc tune --replay dense.pool --strategy pruner-offline --checkpoint dense.model"};
constexpr Examples kTrain = {
    "prunerc model train rows.json --model pacm --epochs 2 --members 1 -o pacm.model",
    "prunerc tune --replay dense.pool --strategy pruner-offline --checkpoint pacm.model --trials "
    "20"};
constexpr Examples kEval = {"prunerc model eval pacm.model rows.json"};
constexpr Examples kModelExport = {"prunerc model export pacm.model -o pacm"};
constexpr Examples kDevices = {"prunerc devices", "prunerc devices --json"};
constexpr Examples kDoctor = {"prunerc doctor", "prunerc doctor --db other.sqlite"};
constexpr Examples kHelp = {"prunerc help tune", "prunerc help --man > prunerc.1"};
constexpr Examples kCompletion = {"source <(prunerc completion bash)",
                                  "prunerc completion zsh > _prunerc"};

constexpr std::string_view kSearch = "Find a schedule";
constexpr std::string_view kUse = "Use what was found";
constexpr std::string_view kLook = "Look inside";
constexpr std::string_view kData = "Records, data and models";
constexpr std::string_view kHere = "This machine and this program";

constexpr Verb kVerbs[] = {
    {"tune", kSearch, "search for a fast schedule of an operator and store it", add_tune, kTune},
    {"compile", kUse, "write the kernel as a library, an object, a header, assembly or CUDA text",
     add_compile, kCompile},
    {"run", kUse, "run an operator on .npy files or named fills", add_run, kRun},
    {"bench", kUse, "time the stored best or another schedule", add_bench, kBench},
    {"verify", kUse, "compare the stored best, or every best of a database, with the operator",
     add_verify, kVerify},
    {"show", kLook, "print an operator at any stage of its way to code", add_show, kShow},
    {"apply", kLook, "apply a schedule script to an operator or program", add_apply, kApply},
    {"algebra", kLook, "other programs that compute the same for less, each shown to be equal",
     add_algebra, kAlgebra},
    {"explain", kLook, "each part of the analyzer's estimate beside what was measured", add_explain,
     kExplain},
    {"report", kLook,
     "a page with curves, predictions, failures, limits and code of tuned operators", add_report,
     kReport},
    {"db", kData, "look into, check, export and import tuning records", nullptr, kDb},
    {"db ls", "", "tasks with their number of records and best time", add_db_ls, kDbLs},
    {"db best", "", "the fastest verified record of each task, with its trace", add_db_best,
     kDbBest},
    {"db export", "", "records as JSON lines", add_db_export, kDbExport},
    {"db import", "", "add records that were exported", add_db_import, kDbImport},
    {"db stats", "", "how many records of which outcome", add_db_stats, kDbStats},
    {"db validate", "", "check the file, the checksums, and that programs and traces can be read",
     add_db_validate, kDbValidate},
    {"dataset", kData, "record pools of measured candidates, look into them, split and export them",
     nullptr, kDataset},
    {"dataset record", "", "measure candidates of an operator from all over its space into a pool",
     add_dataset_record, kRecord},
    {"dataset remeasure", "", "time the best rows of pools anew, round by round",
     add_dataset_remeasure, kRemeasure},
    {"dataset import", "", "make a pool of what another autotuner measured", add_dataset_import,
     kImport},
    {"dataset list", "", "one line per pool", add_dataset_list, kList},
    {"dataset stats", "", "outcomes, times and sketches of pools", add_dataset_stats, kStats},
    {"dataset split", "", "divide rows into training and testing, into a rows file",
     add_dataset_split, kSplit},
    {"dataset prune", "", "keep a part of the training rows, into a rows file", add_dataset_prune,
     kPrune},
    {"dataset export", "", "pools as JSON lines: a header, then the rows", add_dataset_export,
     kExport},
    {"model", kData, "train, judge and export learned cost models", nullptr, kModel},
    {"model train", "", "train a model on pools", add_model_train, kTrain},
    {"model eval", "", "top-1, top-5 and pairwise accuracy of a model by task", add_model_eval,
     kEval},
    {"model export", "", "a checkpoint as model.json and .npy files", add_model_export,
     kModelExport},
    {"devices", kHere, "describe this machine and its measured limits", add_devices, kDevices},
    {"doctor", kHere, "check that this machine can compile, run and time", add_doctor, kDoctor},
    {"help", kHere, "explain a verb, or print all of it: --man, --markdown", add_help, kHelp},
    {"completion", kHere, "print what completes command lines in bash, zsh or fish", add_completion,
     kCompletion},
};

constexpr Meaning kExitCodes[] = {
    {"0", "done"},
    {"1", "the operator, an array or a record file is wrong; the diagnostic says where"},
    {"2", "the command line is wrong"},
    {"3", "no schedule ran and gave the right result"},
    {"4",
     "verification failed: a result differs, or a database does not hold what it says; a kernel "
     "outlasted run --timeout"},
    {"5", "the machine, a file or the database cannot be used; something was not checked"},
    {"6", "there is no record: compile --require-tuned, db best, explain, report"},
    {"130", "interrupted; what was measured is kept in the database"},
};

constexpr Meaning kVariables[] = {
    {"PRUNERC_DB", "the database of records, unless --db names one"},
    {"PRUNERC_CXX",
     "the compiler for libraries (default: cc, gcc, clang) and cuda-host (g++, clang++, c++)"},
    {"PRUNERC_NVRTC",
     "the NVRTC library (default: that of `./dev setup --cuda`, or of the system)"},
    {"PRUNERC_CUPTI", "the CUPTI library, looked for like NVRTC"},
    {"PRUNERC_LIBCUDA",
     "the CUDA driver's library, of exported libraries too (default: the system's libcuda.so.1)"},
    {"PRUNERC_IN_WORKER", "set by prunerc in the processes in which kernels run; do not set it"},
};

constexpr Meaning kFiles[] = {
    {"$XDG_CACHE_HOME/prunerc, else ~/.cache/prunerc", "the cache folder, which holds:"},
    {"db.sqlite", "records of tuning"},
    {"platform-*.txt",
     "measured limits of this machine; `prunerc devices --remeasure` renews them"},
};

}  // namespace

std::span<const Verb> verbs() { return kVerbs; }
std::span<const Meaning> exit_codes() { return kExitCodes; }
std::span<const Meaning> variables() { return kVariables; }
std::span<const Meaning> files() { return kFiles; }

const Verb* find_verb(std::string_view name) {
  for (const Verb& verb : kVerbs) {
    if (verb.name == name) return &verb;
  }
  return nullptr;
}

void add_verbs(CLI::App& app, Action& action) {
  CLI::App* parent = &app;
  for (const Verb& row : kVerbs) {
    const std::size_t space = row.name.find(' ');
    const bool is_nested = space != std::string_view::npos;
    CLI::App* const verb =
        (is_nested ? parent : &app)
            ->add_subcommand(std::string(is_nested ? row.name.substr(space + 1) : row.name),
                             std::string(row.purpose));
    if (row.add != nullptr) {
      row.add(*verb, action);
    } else {
      verb->require_subcommand(1);
      parent = verb;
    }
  }
}

}  // namespace prunerc::cli
