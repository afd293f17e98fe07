// Files of weights: what is written is read, and no bytes are believed.
#include "ir/net/weights.h"

#include "ir/support/file.h"
#include "ir/support/rng.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <cstring>

namespace prunerc::net {
namespace {

std::string file_of(const std::string& header, std::size_t data_bytes) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header +
         std::string(data_bytes, '\1');
}

std::string entry(const std::string& fields) { return R"({"a":{)" + fields + "}}"; }

}  // namespace

TEST_CASE("weights are read as they were written") {
  const float values[] = {1, 2, 3, 4, 5, 6};
  const std::string_view bytes(reinterpret_cast<const char*>(values), sizeof values);
  const Result<std::string> written =
      weight_file_bytes({{"layer.1/weight", ir::DType::kF32, {2, 3}, bytes},
                         {"scalar", ir::DType::kI8, {}, "x"},
                         {"empty", ir::DType::kF16, {0, 4}, ""}});
  REQUIRE(written.ok());
  uint64_t length = 0;
  std::memcpy(&length, written->data(), sizeof length);
  CHECK((length + 8) % 64 == 0);
  const Result<WeightFile> file = WeightFile::parse(*written, "w");
  REQUIRE(file.ok());
  CHECK(file->all().size() == 3);
  const Weight* weight = file->find("layer.1/weight");
  REQUIRE(weight != nullptr);
  CHECK(weight->type == "F32");
  CHECK(weight->shape == std::vector<int64_t>{2, 3});
  CHECK(weight->bytes == bytes);
  CHECK(file->find("scalar")->bytes == "x");
  CHECK(file->find("empty")->bytes.empty());
  CHECK(file->find("layer") == nullptr);
}

TEST_CASE("a file on disk is mapped; what is none says so") {
  const std::string folder = std::getenv("TEST_TMPDIR");
  const std::string path = folder + "/w.safetensors";
  const Result<std::string> bytes = weight_file_bytes({{"w", ir::DType::kU8, {3}, "abc"}});
  REQUIRE(bytes.ok());
  REQUIRE(replace_file(path, *bytes).ok());
  const Result<WeightFile> file = WeightFile::open(path);
  REQUIRE(file.ok());
  CHECK(file->find("w")->bytes == "abc");
  CHECK(file->path() == path);
  CHECK(WeightFile::open(folder + "/none").error().id() == Diag::kIoError);
  CHECK(WeightFile::open(folder).error().id() == Diag::kFileKind);
  REQUIRE(replace_file(path, "").ok());
  CHECK(WeightFile::open(path).error().id() == Diag::kWeightsMalformed);
}

TEST_CASE("headers that lie about the file are refused") {
  const std::string good = R"("dtype":"F32","shape":[2],"data_offsets":[0,8])";
  CHECK(WeightFile::parse(file_of(entry(good), 8), "w").ok());
  CHECK(WeightFile::parse(file_of(R"({"__metadata__":{"format":"pt"}})", 0), "w").ok());
  const std::string bad[] = {
      "",
      "1234567",
      std::string(8, '\xff'),
      file_of("", 0),
      file_of("[]", 0),
      file_of("{", 0),
      file_of(entry(good), 7),
      file_of(entry(R"("dtype":"F32","shape":[2])"), 8),
      file_of(entry(R"("dtype":"F33","shape":[2],"data_offsets":[0,8])"), 8),
      file_of(entry(R"("dtype":4,"shape":[2],"data_offsets":[0,8])"), 8),
      file_of(entry(R"("dtype":"F32","shape":2,"data_offsets":[0,8])"), 8),
      file_of(entry(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"), 8),
      file_of(entry(R"("dtype":"F32","shape":[2.5],"data_offsets":[0,8])"), 8),
      file_of(entry(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"), 8),
      file_of(entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), 8),
      file_of(entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,8,9])"), 8),
      file_of(entry(R"("dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0])"), 8),
      file_of(entry(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])"), 8),
      file_of(R"({"a":3})", 8),
      file_of("{\"a\":{" + good + "},\"a\":{" + good + "}}", 8),
      file_of(std::string(1000, '['), 0),
      file_of(
          R"({"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}})",
          8),
  };
  for (const std::string& bytes : bad) {
    INFO(printable(bytes));
    const Result<WeightFile> file = WeightFile::parse(bytes, "w");
    REQUIRE(!file.ok());
    CHECK(file.error().id() == Diag::kWeightsMalformed);
  }
}

TEST_CASE("any bytes give a file or an error") {
  const std::string good = *weight_file_bytes(
      {{"a", ir::DType::kF32, {2}, "12345678"}, {"b", ir::DType::kI64, {1}, "12345678"}});
  Rng rng(7, 7);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = good;
    for (int64_t edits = rng.between(1, 4); edits > 0; --edits) {
      const auto at =
          static_cast<std::size_t>(rng.between(0, static_cast<int64_t>(bytes.size()) - 1));
      bytes[at] = static_cast<char>(rng.between(0, 255));
    }
    bytes.resize(static_cast<std::size_t>(rng.between(0, static_cast<int64_t>(bytes.size()))));
    const Result<WeightFile> file = WeightFile::parse(bytes, "w");
    if (!file.ok()) continue;
    for (const auto& [name, weight] : file->all()) {
      if (weight.bytes.empty()) continue;
      CHECK(weight.bytes.data() >= bytes.data());
      CHECK(weight.bytes.data() + weight.bytes.size() <= bytes.data() + bytes.size());
    }
  }
}

}  // namespace prunerc::net
