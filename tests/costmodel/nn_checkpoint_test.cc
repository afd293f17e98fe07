#include "costmodel/model/checkpoint.h"
#include "ir/support/hash.h"
#include "ir/support/wire.h"
#include "tests/costmodel/nn_programs.h"
#include "tests/support/check.h"

#include <cstring>
#include <limits>

namespace prunerc {
namespace {

using namespace costmodel;         // NOLINT: a test
using namespace costmodel::model;  // NOLINT: a test
using namespace testing;           // NOLINT: a test

constexpr std::size_t kPreamble = 28;

Model fitted_model(NetworkKind kind) {
  const NetworkOptions options = small_options(kind);
  Model model = make_model(options, 2, 3);
  const Batch<float> batch = random_programs(6, 20, 2, options).inputs;
  model.normalisers = fit_normalisers(NormaliserKind::kStandard, batch);
  model.has_normalisers = true;
  model.feature_set = "statements 1, flow 1";
  model.platforms = {"avx2, 1 thread", "avx512 \"two\" threads"};
  return model;
}

// The file with another header and rest, and a checksum that is right.
std::string signed_file(const std::string& header, std::string_view tensors) {
  const std::string body = header + std::string(tensors);
  WireWriter out;
  out.put(static_cast<uint32_t>(kCheckpointFormat));
  out.put(static_cast<uint64_t>(header.size()));
  out.put(hash_combine(header.size(), hash_bytes(body)));
  return "PRNMODL\n" + out.take() + body;
}

struct File {
  std::string header, tensors;

  explicit File(const std::string& bytes) {
    WireReader in(std::string_view(bytes).substr(12));
    const auto size = static_cast<std::size_t>(in.get<uint64_t>());
    header = bytes.substr(kPreamble, size);
    tensors = bytes.substr(kPreamble + size);
  }
  std::string bytes() const { return signed_file(header, tensors); }
};

TEST_CASE("a checkpoint gives back the model to the bit") {
  for (const NetworkKind kind : kAllNetworks) {
    INFO(to_string(kind));
    const Model model = fitted_model(kind);
    const std::string bytes = serialize(model, "1.0");
    CHECK(File(bytes).bytes() == bytes);
    const Result<Model> back = parse_checkpoint(bytes, "m");
    REQUIRE_OK(back);
    CHECK(serialize(*back, "1.0") == bytes);
    CHECK(back->options == model.options);
    CHECK(back->normalisers == model.normalisers);
    CHECK(back->feature_set == model.feature_set);
    CHECK(back->platforms == model.platforms);
    const Batch<float> batch = random_programs(7, 30, 2, model.options).inputs;
    std::vector<Prediction> a(30), b(30);
    predict(model, batch, {}, nullptr, a);
    predict(*back, batch, {}, nullptr, b);
    for (std::size_t i = 0; i < 30; ++i) {
      CHECK(a[i].score == b[i].score);
      CHECK(a[i].stddev == b[i].stddev);
    }
  }
}

TEST_CASE("checkpoints are files, and a missing one is an error") {
  const std::string path = scratch_path("nn_checkpoint");
  const Model model = fitted_model(NetworkKind::kPacm);
  REQUIRE_OK(write_checkpoint(model, "1.0", path));
  const Result<Model> back = read_checkpoint(path);
  REQUIRE_OK(back);
  CHECK(serialize(*back, "1.0") == serialize(model, "1.0"));
  CHECK_DIAG(read_checkpoint(path + ".none"), IoError);
  CHECK_DIAG(write_checkpoint(model, "1.0", path + ".none/x"), IoError);
}

TEST_CASE("a checkpoint that ends early is damaged, wherever it ends") {
  const std::string bytes = serialize(fitted_model(NetworkKind::kPacm), "1.0");
  Rng rng(first_seed());
  for (int i = 0; i < num_cases(); ++i) {
    const std::size_t size = i < 40 ? static_cast<std::size_t>(i) : rng.below(bytes.size());
    CHECK_DIAG(parse_checkpoint(std::string_view(bytes).substr(0, size), "m"), ModelDamaged);
  }
  CHECK_DIAG(parse_checkpoint(bytes + "x", "m"), ModelDamaged);
}

TEST_CASE("no bit of a checkpoint can change unnoticed") {
  const std::string bytes = serialize(fitted_model(NetworkKind::kPacm), "1.0");
  Rng rng(first_seed());
  for (int i = 0; i < 224 + num_cases(); ++i) {
    // All bits of the preamble, then some of the rest.
    const std::size_t bit = i < 224 ? static_cast<std::size_t>(i) : rng.below(bytes.size() * 8);
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    const Result<Model> back = parse_checkpoint(damaged, "m");
    const bool in_format = bit >= 64 && bit < 96;
    if (in_format) {
      CHECK_DIAG(back, ModelVersion);
    } else {
      CHECK_DIAG(back, ModelDamaged);
    }
  }
}

TEST_CASE("values that are no numbers are refused, even under a right checksum") {
  const File file(serialize(fitted_model(NetworkKind::kPacm), "1.0"));
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const std::size_t at : {std::size_t{0}, file.tensors.size() - sizeof(float)}) {
      File bad = file;
      std::memcpy(bad.tensors.data() + at, &value, sizeof value);
      CHECK_DIAG(parse_checkpoint(bad.bytes(), "m"), ModelDamaged);
    }
  }
}

TEST_CASE("a variance below zero is refused") {
  Model model = fitted_model(NetworkKind::kPacmPaper);
  model.members[0]->buffers.values.back() = -1;
  CHECK_DIAG(parse_checkpoint(serialize(model, "1.0"), "m"), ModelDamaged);
}

TEST_CASE("a normaliser of another width than its inputs is refused") {
  for (Normaliser Normalisers::*which : {&Normalisers::statements, &Normalisers::flow,
                                         &Normalisers::context, &Normalisers::tokens}) {
    Model model = fitted_model(NetworkKind::kPacm);
    (model.normalisers.*which).mean.push_back(0);
    (model.normalisers.*which).scale.push_back(1);
    const std::string bytes = serialize(model, "1.0");
    CHECK_DIAG(parse_checkpoint(bytes, "m"), ModelDamaged);
    (model.normalisers.*which).kind = NormaliserKind::kNone;
    CHECK(parse_checkpoint(serialize(model, "1.0"), "m").ok());
  }
}

TEST_CASE("a header that would take gigabytes once parsed is not parsed") {
  File file(serialize(fitted_model(NetworkKind::kPacm), "1.0"));
  file.header.insert(1, std::string(std::size_t{1} << 20, ' '));
  const Result<Model> back = parse_checkpoint(file.bytes(), "m");
  CHECK_DIAG(back, ModelDamaged);
  CHECK(back.error().message().find("size of the header") != std::string::npos);
}

TEST_CASE("headers that say something else than the file holds are refused") {
  const File file(serialize(fitted_model(NetworkKind::kPacm), "1.0"));
  const std::pair<const char*, const char*> changes[] = {
      {"\"pacm\"", "\"pacn\""},
      {"\"pacm\"", "\"tlp\""},
      {"\"members\":2", "\"members\":1"},
      {"\"members\":2", "\"members\":3"},
      {"\"members\":2", "\"members\":0"},
      {"\"members\":2", "\"members\":-2"},
      {"\"members\":2", "\"members\":\"2\""},
      {"\"width\":16", "\"width\":17"},
      {"\"width\":16", "\"width\":1000000000000"},
      {"\"heads\":2", "\"heads\":5"},
      {"\"heads\":2", "\"heads\":0"},
      {"\"blocks\":2", "\"blocks\":8"},
      {"\"blocks\":2", "\"blocks\":2.5"},
      {"\"columns\":12", "\"columns\":11"},
      {"\"kind\":\"standard\"", "\"kind\":\"other\""},
      {"\"kind\":\"standard\"", "\"kind\":1"},
      {"\"feature_set\"", "\"feature\""},
      {"\"platforms\":[", "\"platforms\":[1,"},
      {"\"has_normalisers\":true", "\"has_normalisers\":1"},
      {"\"batch_statistics\":true", "\"batch_statistics\":null"},
      {"member.0.head.bias", "member.0.head.bios"},
      {"\"size\":12", "\"size\":13"},
      {"\"tensors\":[", "\"tensors\":[{},"},
      {"{", "["},
  };
  for (const auto& [from, to] : changes) {
    INFO(from << " -> " << to);
    File bad = file;
    const std::size_t at = bad.header.find(from);
    REQUIRE(at != std::string::npos);
    bad.header.replace(at, std::strlen(from), to);
    CHECK_DIAG(parse_checkpoint(bad.bytes(), "m"), ModelDamaged);
  }
  File bad = file;
  bad.tensors.resize(bad.tensors.size() - 4);
  CHECK_DIAG(parse_checkpoint(bad.bytes(), "m"), ModelDamaged);
  bad.tensors.append(8, '\0');
  CHECK_DIAG(parse_checkpoint(bad.bytes(), "m"), ModelDamaged);
  CHECK_DIAG(parse_checkpoint(signed_file(std::string(100000, '['), ""), "m"), ModelDamaged);
}

}  // namespace
}  // namespace prunerc
