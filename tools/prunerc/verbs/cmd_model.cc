#include "costmodel/model/checkpoint.h"
#include "ir/support/file.h"
#include "search/model/dataset.h"
#include "search/model/inputs.h"
#include "search/model/quality.h"
#include "search/model/ranker.h"
#include "search/record/rows_file.h"
#include "search/strategy/network_use.h"
#include "tools/driver/npy.h"
#include "tools/prunerc/cli.h"
#include "tools/prunerc/json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

namespace prunerc::cli {
namespace {

using Json = nlohmann::ordered_json;
using costmodel::model::Dataset;
using costmodel::model::Model;

struct ModelVerb {
  std::vector<std::string> data;  // pools and rows files
  std::string kind = "pacm";
  std::string model;  // checkpoint to read
  std::string out;
  int epochs = 0, members = 0, threads = 0;
  uint64_t seed = 0;
  bool json = false;
};

// Of the first pool, which stands for all.
Result<ir::TargetKind> target_of(const search::Selection& from) {
  if (from.corpus.pools.empty()) return ir::TargetKind::kCpu;
  PRUNERC_TRY(const search::Task task, from.corpus.pools.front().task());
  return task.target.kind;
}

Result<void> check_model(const Model& model, const std::string& path,
                         const search::Selection& data) {
  PRUNERC_TRY(const ir::TargetKind target, target_of(data));
  return search::check_features(model, path, target);
}

void show_epoch(int member, int epoch, const costmodel::model::EpochStats& stats) {
  fmt::print(stderr, "member {}, epoch {}: loss {:.4f}", member, epoch, stats.loss);
  if (!std::isnan(stats.pairwise)) fmt::print(stderr, ", held out {:.4f}", stats.pairwise);
  fmt::print(stderr, "\n");
}

// --- train

// Of the rows that train, behind those of the checkpoint that training goes on from.
void add_platforms(const search::Selection& from, Model* model) {
  for (const search::CorpusRow& row : from.split.train) {
    const int32_t platform = from.corpus.platform[static_cast<std::size_t>(row.pool)];
    const std::string& name = from.corpus.platforms[static_cast<std::size_t>(platform)];
    std::vector<std::string>& known = model->platforms;
    if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
  }
}

// A model to go on from, as the options ask for it.
Result<Model> read_start(const ModelVerb& verb, const search::Selection& from) {
  PRUNERC_TRY(Model start, costmodel::model::read_checkpoint(verb.model));
  PRUNERC_TRY_VOID(check_model(start, verb.model, from));
  const std::string_view kind = to_string(start.options.kind);
  if (kind != verb.kind) {
    return error(Diag::kUsageOption, "--from", fmt::format("'{}' is a {}", verb.model, kind));
  }
  if (verb.members > 0 && static_cast<std::size_t>(verb.members) != start.members.size()) {
    return error(Diag::kUsageOption, "--members",
                 fmt::format("'{}' has {}", verb.model, start.members.size()));
  }
  return start;
}

int train(const ModelVerb& verb) {
  const auto kind = costmodel::model::network_kind_from_string(verb.kind);
  const Result<search::Selection> from = search::read_selection(verb.data);
  if (!from.ok()) return fail(from.error());
  const Result<ir::TargetKind> target = target_of(*from);
  if (!target.ok()) return fail(target.error());
  search::Recipe recipe = search::recipe_of(*kind, *target);
  if (verb.members > 0) recipe.members = verb.members;
  Model model = costmodel::model::make_model(recipe.network, recipe.members, verb.seed);
  if (!verb.model.empty()) {
    Result<Model> start = read_start(verb, *from);
    if (!start.ok()) return fail(start.error());
    model = std::move(start).value();
    recipe.train.start = costmodel::model::Start::kWarm;
  }
  if (verb.epochs > 0) recipe.train.epochs = verb.epochs;
  recipe.train.seed = verb.seed;
  recipe.train.validation = 0.1;
  ThreadPool threads(verb.threads);
  const Result<Dataset> data =
      search::make_dataset(from->corpus, from->split.train, model.options, threads);
  if (!data.ok()) return fail(data.error());
  add_platforms(*from, &model);
  fmt::print(stderr, "{} programs of {} tasks\n", data->size(),
             costmodel::model::groups_of(*data).size());
  const auto report = costmodel::model::train(*data, recipe.train, &threads, &model, show_epoch);
  if (!report.ok()) return fail(report.error());
  model.feature_set = search::feature_set(*kind);
  const Result<void> written = costmodel::model::write_checkpoint(model, kVersion, verb.out);
  if (!written.ok()) return fail(written.error(), kDeviceProblem);
  const double last = report->members.back().back().pairwise;
  const std::string judged = std::isnan(last)
                                 ? "too few held-out ones to compare"
                                 : fmt::format("pairwise accuracy of held-out ones {:.4f}", last);
  fmt::print("{}: {} of {} member(s), {} programs, {}\n", verb.out, to_string(*kind),
             model.members.size(), report->train_programs, judged);
  return kSuccess;
}

// --- eval

int eval(const ModelVerb& verb) {
  Result<Model> model = costmodel::model::read_checkpoint(verb.model);
  if (!model.ok()) return fail(model.error());
  const Result<search::Selection> from = search::read_selection(verb.data);
  if (!from.ok()) return fail(from.error());
  const Result<void> fits = check_model(*model, verb.model, *from);
  if (!fits.ok()) return fail(fits.error());
  ThreadPool threads(verb.threads);
  const Result<Dataset> data =
      search::make_dataset(from->corpus, from->split.test, model->options, threads);
  if (!data.ok()) return fail(data.error());
  const std::vector<float> scores = search::make_ranker(std::move(model).value())(*data, threads);
  const std::vector<search::TaskQuality> tasks = search::quality_of(*data, scores);
  if (tasks.empty()) {
    return fail(error(Diag::kModelData, std::string("no task has two rows that ran")));
  }
  const search::TaskQuality mean = search::mean_quality(tasks);
  if (verb.json) {
    Json rows = Json::array();
    for (const search::TaskQuality& t : tasks) {
      rows.push_back({{"task", from->corpus.tasks[static_cast<std::size_t>(t.task)]},
                      {"programs", t.programs},
                      {"top1", t.top1},
                      {"top5", t.top5},
                      {"pairwise", t.pairwise}});
    }
    fmt::print("{}\n", json_line(Json({{"schema", "prunerc.model_eval/1"},
                                       {"programs", data->size()},
                                       {"top1", mean.top1},
                                       {"top5", mean.top5},
                                       {"pairwise", mean.pairwise},
                                       {"tasks", rows}})));
    return kSuccess;
  }
  fmt::print("{:<44}{:>9}{:>8}{:>8}{:>10}\n", "task", "programs", "top-1", "top-5", "pairwise");
  const auto line = [](const std::string& name, const search::TaskQuality& q) {
    fmt::print("{:<44}{:>9}{:>8.3f}{:>8.3f}{:>10.3f}\n", name, q.programs, q.top1, q.top5,
               q.pairwise);
  };
  for (const search::TaskQuality& t : tasks) {
    line(from->corpus.tasks[static_cast<std::size_t>(t.task)], t);
  }
  line(fmt::format("mean of {} tasks", tasks.size()), mean);
  return kSuccess;
}

// --- export

// model.json and one .npy file for each tensor of each member.
int export_to(const ModelVerb& verb) {
  const Result<Model> model = costmodel::model::read_checkpoint(verb.model);
  if (!model.ok()) return fail(model.error());
  const std::filesystem::path folder = verb.out;
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  Json members = Json::array();
  for (std::size_t m = 0; m < model->members.size(); ++m) {
    Json tensors = Json::array();
    for (const auto* part : {&model->members[m]->parameters, &model->members[m]->buffers}) {
      for (const costmodel::nn::Tensor& slot : part->tensors) {
        const std::string file = fmt::format("{}.{}.npy", m, slot.name);
        ir::Tensor tensor(ir::DType::kF32, {slot.rows, slot.cols});
        std::memcpy(tensor.data.data(), part->values.data() + slot.offset, tensor.data.size());
        const Result<void> written = write_npy((folder / file).string(), tensor);
        if (!written.ok()) return fail(written.error(), kDeviceProblem);
        tensors.push_back({{"name", slot.name}, {"file", file}, {"shape", {slot.rows, slot.cols}}});
      }
    }
    members.push_back(std::move(tensors));
  }
  const auto normaliser = [](const costmodel::model::Normaliser& n) {
    return Json({{"kind", static_cast<int>(n.kind)}, {"mean", n.mean}, {"scale", n.scale}});
  };
  const Json text = {{"schema", "prunerc.model/1"},
                     {"kind", std::string(to_string(model->options.kind))},
                     {"feature_set", model->feature_set},
                     {"platforms", model->platforms},
                     {"normalisers",
                      {{"statements", normaliser(model->normalisers.statements)},
                       {"flow", normaliser(model->normalisers.flow)},
                       {"context", normaliser(model->normalisers.context)},
                       {"tokens", normaliser(model->normalisers.tokens)}}},
                     {"members", members}};
  const Result<void> written =
      replace_file((folder / "model.json").string(),
                   text.dump(1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace) + "\n");
  if (!written.ok()) return fail(written.error(), kDeviceProblem);
  fmt::print("{}: {} member(s)\n", verb.out, members.size());
  return kSuccess;
}

using Work = int (*)(const ModelVerb& verb);

std::shared_ptr<ModelVerb> add(CLI::App& verb, Action& action, Work work) {
  auto args = std::make_shared<ModelVerb>();
  verb.callback([args, work, &action] { action = [args, work] { return work(*args); }; });
  return args;
}

void add_checkpoint(CLI::App& verb, const std::shared_ptr<ModelVerb>& args) {
  verb.add_option("model", args->model, "checkpoint")->type_name("FILE.model")->required();
}

void add_data(CLI::App& verb, const std::shared_ptr<ModelVerb>& args) {
  verb.add_option("data", args->data, "pools, or rows files of `dataset split` and `prune`")
      ->type_name("FILE.pool|json")
      ->required();
  verb.add_option("--threads", args->threads, "of the work itself (default: all)")
      ->type_name("N")
      ->check(CLI::Range(0, 4096));
}

}  // namespace

void add_model_train(CLI::App& verb, Action& action) {
  auto args = add(verb, action, train);
  add_data(verb, args);
  verb.add_option("--model", args->kind, "the network")
      ->type_name("KIND")
      ->check(CLI::IsMember({"pacm", "pacm-paper", "tenset-mlp", "tlp"}))
      ->capture_default_str();
  verb.add_option("-o,--output", args->out, "checkpoint to write")
      ->type_name("FILE.model")
      ->required();
  verb.add_option("--from", args->model, "checkpoint to go on from")->type_name("FILE.model");
  verb.add_option("--epochs", args->epochs, "passes over the data (default: as published, or ours)")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  verb.add_option("--members", args->members, "networks of the ensemble (default: the model's)")
      ->type_name("N")
      ->check(CLI::Range(1, 16));
  verb.add_option("--seed", args->seed, "of initial values and batches")
      ->type_name("N")
      ->capture_default_str();
}

void add_model_eval(CLI::App& verb, Action& action) {
  auto args = add(verb, action, eval);
  add_checkpoint(verb, args);
  add_data(verb, args);
  verb.add_flag("--json", args->json, "one JSON object");
}

void add_model_export(CLI::App& verb, Action& action) {
  auto args = add(verb, action, export_to);
  add_checkpoint(verb, args);
  verb.add_option("-o,--output", args->out, "folder to write")->type_name("FOLDER")->required();
}

}  // namespace prunerc::cli
