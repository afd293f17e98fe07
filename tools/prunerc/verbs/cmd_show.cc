#include "codegen/codegen.h"
#include "ir/lang/lang.h"
#include "ir/printer.h"
#include "ir/support/file.h"
#include "schedule/schedule.h"
#include "search/space/space.h"
#include "tools/prunerc/cli.h"
#include "tools/prunerc/json.h"
#include "tools/prunerc/mappings.h"
#include "tools/prunerc/network.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <vector>

namespace prunerc::cli {
namespace {

struct ShowVerb {
  OperatorOptions op;
  MachineOptions machine;
  std::string stage;  // empty: net or prc
  MappingOptions mapping;
};

// The operators of a file as declared: what can be bound, what goes in and out.
int show_ast(const ShowVerb& verb) {
  const Result<std::string> text = read_text_file(verb.op.file);
  if (!text.ok()) return fail(text.error());
  const lang::ListResult listed =
      lang::list_ops(verb.op.file, *text, lang::import_near(verb.op.file, verb.op.import_folders));
  fmt::print(stderr, "{}", listed.rendered);
  if (!listed.ok) return kBadInput;
  const auto ports = [](const std::vector<lang::PortInfo>& infos) {
    std::string out;
    for (const lang::PortInfo& p : infos) {
      out += fmt::format("{}{}{}: {}", out.empty() ? "" : ", ", p.is_const ? "const " : "", p.name,
                         p.type);
    }
    return out;
  };
  for (const lang::OpInfo& op : listed.ops) {
    if (!verb.op.op.empty() && op.name != verb.op.op) continue;
    std::string params;
    for (const lang::ParamInfo& p : op.params) {
      params += fmt::format("{}{}: {}{}", params.empty() ? "" : ", ", p.name, p.kind,
                            p.default_text.empty() ? "" : " = " + p.default_text);
    }
    fmt::print("{}:{}: op {}<{}>({}) -> ({})\n", verb.op.file, op.line, op.name, params,
               ports(op.inputs), ports(op.outputs));
  }
  return kSuccess;
}

int show_sketches(const search::Task& task) {
  const Result<search::SearchSpace> space = search::make_space(task);
  if (!space.ok()) return fail(space.error(), kNoCandidate);
  fmt::print("# {}: {} sketches, {} candidates\n", task.name, space->sketches.size(),
             space->size());
  for (const search::Sketch& sketch : space->sketches) {
    fmt::print("\n# sketch {} ({} decisions)\n{}", sketch.name, sketch.spaces.size(),
               schedule::print(sketch.trace));
  }
  return kSuccess;
}

int show_code(const Choice& choice, const ir::Target& target, codegen::EmitKind kind) {
  const Result<std::string> text = codegen::emit_cpu(choice.program, target, kind);
  if (!text.ok()) return fail(text.error(), kNoCandidate);
  fmt::print("{}", *text);
  return kSuccess;
}

int show_lowered(const Choice& choice, const ir::Target& target) {
  if (target.kind != ir::TargetKind::kCpu) {
    const Result<ir::Program> lowered = codegen::lower_gpu(choice.program, target);
    if (!lowered.ok()) return fail(lowered.error(), kNoCandidate);
    fmt::print("{}", ir::print(*lowered));
    return kSuccess;
  }
  const Result<std::vector<ir::Program>> lowered = codegen::lower_functions(choice.program, target);
  if (!lowered.ok()) return fail(lowered.error(), kNoCandidate);
  for (const ir::Program& program : *lowered) fmt::print("{}", ir::print(program));
  return kSuccess;
}

int show_cuda(const Choice& choice, const ir::Target& target) {
  const Result<codegen::Artifact> artifact = codegen::print_cuda_artifact(choice.program, target);
  if (!artifact.ok()) return fail(artifact.error(), kNoCandidate);
  fmt::print("{}", artifact->bytes);
  return kSuccess;
}

int show_scheduled(const ShowVerb& verb, Session& session, const Operator& op) {
  const Result<Choice> choice = choose(session, op, verb.machine);
  if (!choice.ok()) return fail(choice.error(), choice_code(choice.error(), verb.machine));
  fmt::print(stderr, "target: {}\nschedule: {}{}\n", describe(session.target()),
             to_string(choice->origin), recipe_text(*choice));
  // As a script it fits that program alone.
  if (choice->derivation && verb.stage == "trace") {
    fmt::print(stderr, "the trace is of this program:\n{}", ir::print(choice->derivation->base));
  }
  if (verb.stage == "lowered") return show_lowered(*choice, session.target());
  if (verb.stage == "cuda") return show_cuda(*choice, session.target());
  if (verb.stage == "llvm")
    return show_code(*choice, session.target(), codegen::EmitKind::kLlvmText);
  if (verb.stage == "asm")
    return show_code(*choice, session.target(), codegen::EmitKind::kAssembly);
  fmt::print("{}",
             verb.stage == "trace" ? schedule::print(choice->trace) : ir::print(choice->program));
  return kSuccess;
}

int show(const ShowVerb& verb) {
  if (verb.stage == "ast") {
    if (verb.op.file.ends_with(".prn")) return show_ast(verb);
    return fail(error(Diag::kUsageOption, "--stage", "ast is of a .prn file; leave it out"),
                kUsage);
  }
  const Result<OperatorRequest> request = verb.op.request();
  if (!request.ok()) return fail(request.error(), kUsage);
  const Result<std::optional<LoadedNet>> net = load_net(*request);
  if (!net.ok()) return fail(net.error());
  const bool of_net = verb.stage == "net" || verb.stage == "fused" || verb.stage == "tasks" ||
                      verb.stage == "plan" || verb.stage == "kernels";
  if (*net) {
    if (of_net || verb.stage.empty()) return show_network(**net, verb.machine, verb.stage);
    return fail(error(Diag::kUsageOption, "--stage",
                      "of a net is one of net, fused, tasks, plan, kernels; --op chooses an "
                      "operator of a .prn file"),
                kUsage);
  }
  if (of_net)
    return fail(error(Diag::kUsageOption, "--stage", "the file has no net with ports"), kUsage);
  const Result<Operator> op = load_operator(*request);
  if (!op.ok()) return fail(op.error());
  fmt::print(stderr, "{}", op->warnings);
  if (verb.stage.empty() || verb.stage == "prc") {
    if (!verb.machine.script.empty())
      return fail(error(Diag::kUsageOption, "--schedule",
                        "makes a program that --stage scheduled prints; prc is before it"),
                  kUsage);
    fmt::print("{}", ir::print(op->program));
    return kSuccess;
  }
  if (verb.stage == "mappings") {
    MappingOptions options = verb.mapping;
    options.target = verb.machine.target;
    return show_mappings(op->program, options);
  }
  Result<Session> session = verb.machine.open();
  if (!session.ok()) return fail(session.error());
  if (verb.stage == "sketches") return show_sketches(session->task(*op));
  return show_scheduled(verb, *session, *op);
}

}  // namespace

void add_show(CLI::App& verb, Action& action) {
  auto args = std::make_shared<ShowVerb>();
  args->op.add_to(verb);
  args->machine.add_to(verb);
  args->machine.add_script_to(verb);
  in_group(verb, "Schedule");
  verb.add_option(
          "--stage", args->stage,
          "ast: operators of the file; prc: program; mappings: onto tensor instructions; "
          "sketches: the search space; trace, scheduled: of the stored best or the "
          "heuristic; lowered; llvm; asm; cuda: the kernels; of a net: net, its text; fused, its "
          "text after passes; tasks; "
          "plan: where tensors lie; kernels: their traces (default: prc, net)")
      ->type_name("STAGE")
      ->check(CLI::IsMember({"ast", "prc", "mappings", "sketches", "trace", "scheduled", "lowered",
                             "llvm", "asm", "cuda", "net", "fused", "tasks", "plan", "kernels"}));
  verb.add_option("--tensor", args->mapping.tensor,
                  "mappings: onto this instruction alone, and a script that applies one")
      ->type_name("NAME");
  verb.add_option("--rank", args->mapping.rank, "mappings: which one the script applies")
      ->type_name("N")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  in_group(verb, "Output");
  verb.callback([args, &action] { action = [args] { return show(*args); }; });
}

}  // namespace prunerc::cli
