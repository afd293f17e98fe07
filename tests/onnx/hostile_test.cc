// Models that lie: each is refused, soon, with little memory.
#include "ir/onnx/import.h"
#include "ir/support/rng.h"
#include "tests/onnx/model_builder.h"

#include <catch2/catch.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace prunerc::onnx {
namespace {

namespace fs = std::filesystem;

Result<ImportedNet> import_bytes(const std::string& bytes, const std::string& path = "test.onnx") {
  PRUNERC_TRY(const Model model, parse_model(bytes, path));
  return import_model(model);
}

void refused(const ModelBuilder& builder, Diag id) {
  const Result<ImportedNet> net = import_bytes(builder.bytes());
  REQUIRE_FALSE(net.ok());
  INFO(net.error().message());
  CHECK(net.error().id() == id);
}

ModelBuilder small() {
  ModelBuilder model;
  model.input("x", {2, 3}).output("y").floats("w", {3}, {1, 2, 3});
  model.node("Add", {"x", "w"}, {"s"});
  model.node("Relu", {"s"}, {"y"});
  return model;
}

TEST_CASE("no model at all") {
  for (const char* text : {"", "\n", "not a model", "\xff\xff\xff\xff"})
    CHECK_FALSE(import_bytes(text).ok());
  CHECK(import_bytes("not a model").error().id() == Diag::kOnnxMalformed);
  const std::string bytes = small().bytes();
  const std::string said = import_bytes(bytes.substr(0, bytes.size() / 2)).error().message();
  CHECK(said.find("no model, or a part of one") != std::string::npos);
  CHECK_FALSE(read_model("/nonexistent/model.onnx").ok());
  CHECK_FALSE(read_model("/").ok());
}

TEST_CASE("no elements are no reason for other extents that cannot be") {
  const int64_t large = int64_t{1} << 40;
  ModelBuilder model = small();
  model.input("e", {0, large, large});
  refused(model, Diag::kOnnxMalformed);
  model = small();
  model.floats("e", {0, large, large}, {});
  refused(model, Diag::kOnnxMalformed);
  model = small();
  model.floats("e", {0, 4}, {});
  CHECK(import_bytes(model.bytes()).ok());
  model.ints("shape", {0, large, large});
  model.node("Reshape", {"e", "shape"}, {"r"});
  refused(model, Diag::kOnnxUnsupported);
}

TEST_CASE("names that nothing gives, or two give; cycles") {
  ModelBuilder model = small();
  model.graph().mutable_node(1)->set_input(0, "nothing");
  refused(model, Diag::kOnnxMalformed);
  model = small();
  model.graph().mutable_node(0)->set_input(0, "y");
  refused(model, Diag::kOnnxMalformed);
  model = small();
  model.graph().mutable_node(1)->set_output(0, "s");
  refused(model, Diag::kOnnxMalformed);
  model = small();
  model.graph().mutable_output(0)->set_name("other");
  refused(model, Diag::kOnnxMalformed);
  model = small();
  model.output("y");
  refused(model, Diag::kOnnxMalformed);
  model = small();
  model.graph().add_sparse_initializer();
  refused(model, Diag::kOnnxMalformed);
}

TEST_CASE("sizes that cannot be") {
  for (const int64_t extent : {int64_t{1} << 62, int64_t{1} << 40, INT64_MAX, int64_t{-5}}) {
    ModelBuilder model = small();
    model.graph().mutable_initializer(0)->set_dims(0, extent);
    refused(model, Diag::kOnnxMalformed);
    model = small();
    model.graph()
        .mutable_input(0)
        ->mutable_type()
        ->mutable_tensor_type()
        ->mutable_shape()
        ->mutable_dim(0)
        ->set_dim_value(extent);
    const Result<ImportedNet> net = import_bytes(model.bytes());
    CHECK_FALSE(net.ok());
  }
  ModelBuilder model = small();
  model.graph().mutable_initializer(0)->add_float_data(4);
  refused(model, Diag::kOnnxMalformed);
  model = small();
  model.graph().mutable_initializer(0)->set_raw_data("12345");
  refused(model, Diag::kOnnxMalformed);
  model = small();
  for (int i = 0; i < 20; ++i) model.graph().mutable_initializer(0)->add_dims(1);
  refused(model, Diag::kOnnxMalformed);
}

TEST_CASE("graphs that nest, and many nodes") {
  ModelBuilder model = small();
  ::onnx::NodeProto* node = model.graph().mutable_node(1);
  for (int i = 0; i < 40; ++i) {
    auto& attribute = *node->add_attribute();
    attribute.set_name("then_branch");
    node = attribute.mutable_g()->add_node();
    node->set_op_type("If");
    node->add_output("y");
  }
  CHECK_FALSE(import_bytes(model.bytes()).ok());
  ModelBuilder many;
  many.input("x", {2}).output("y");
  std::string last = "x";
  for (int i = 0; i < 100'010; ++i) {
    const std::string next = "v" + std::to_string(i);
    many.node("Relu", {last}, {next});
    last = next;
  }
  many.node("Relu", {last}, {"y"});
  refused(many, Diag::kOnnxMalformed);
}

TEST_CASE("loops within loops, of few nodes") {
  ModelBuilder model;
  model.input("x", {2}).output("y").ints("most", {4096});
  ::onnx::NodeProto* node = &model.node("Loop", {"most", "", "x"}, {"y"});
  for (int depth = 0; depth < 3; ++depth) {
    ::onnx::AttributeProto& attribute = *node->add_attribute();
    attribute.set_name("body");
    attribute.set_type(::onnx::AttributeProto::GRAPH);
    ::onnx::GraphProto& body = *attribute.mutable_g();
    for (const char* name : {"i", "c", "v"}) body.add_input()->set_name(name);
    body.add_output()->set_name("c");
    body.add_output()->set_name(depth == 2 ? "v" : "w");
    if (depth == 2) break;
    node = body.add_node();
    node->set_op_type("Loop");
    for (const char* name : {"most", "", "v"}) node->add_input(name);
    node->add_output("w");
  }
  refused(model, Diag::kOnnxMalformed);
}

TEST_CASE("a loop whose body holds many constants") {
  ModelBuilder model;
  model.input("x", {2}).output("y").ints("most", {4096});
  ::onnx::AttributeProto& attribute = *model.node("Loop", {"most", "", "x"}, {"y"}).add_attribute();
  attribute.set_name("body");
  attribute.set_type(::onnx::AttributeProto::GRAPH);
  ::onnx::GraphProto& body = *attribute.mutable_g();
  for (const char* name : {"i", "c", "v"}) body.add_input()->set_name(name);
  for (const char* name : {"c", "v"}) body.add_output()->set_name(name);
  for (int i = 0; i < 50'000; ++i) {
    ::onnx::TensorProto& tensor = *body.add_initializer();
    tensor.set_name("k" + std::to_string(i));
    tensor.set_data_type(1);
    tensor.add_float_data(1);
  }
  const Result<ImportedNet> net = import_bytes(model.bytes());
  REQUIRE_FALSE(net.ok());
  CHECK(net.error().id() == Diag::kOnnxUnsupported);
  CHECK(net.error().message().find("so many names in its graphs") != std::string::npos);
}

TEST_CASE("a loop whose body names one value many times") {
  ModelBuilder model;
  model.input("x", {2}).output("y").ints("most", {4096});
  ::onnx::AttributeProto& attribute = *model.node("Loop", {"most", "", "x"}, {"y"}).add_attribute();
  attribute.set_name("body");
  attribute.set_type(::onnx::AttributeProto::GRAPH);
  ::onnx::GraphProto& body = *attribute.mutable_g();
  for (const char* name : {"i", "c", "v"}) body.add_input()->set_name(name);
  for (const char* name : {"c", "w"}) body.add_output()->set_name(name);
  ::onnx::NodeProto& node = *body.add_node();
  node.set_op_type("Identity");
  node.add_output("w");
  for (int i = 0; i < 1000; ++i) node.add_input("v");
  const Result<ImportedNet> net = import_bytes(model.bytes());
  REQUIRE_FALSE(net.ok());
  CHECK(net.error().message().find("so many names in its graphs") != std::string::npos);
}

TEST_CASE("a chain of longer and longer sequences ends") {
  ModelBuilder model;
  model.input("x", {2}).output("y");
  model.node("SequenceConstruct", {"x"}, {"s0"});
  constexpr int kParts = 9000;
  for (int i = 0; i < kParts; ++i)
    model.node("SequenceInsert", {"s" + std::to_string(i), "x"}, {"s" + std::to_string(i + 1)});
  model.node("SequenceLength", {"s" + std::to_string(kParts)}, {"y"});
  refused(model, Diag::kOnnxUnsupported);
}

TEST_CASE("many long sequences end") {
  constexpr std::size_t kParts = 4000;
  ModelBuilder model;
  model.input("x", {2}).output("y");
  model.node("SequenceConstruct", std::vector<std::string>(kParts, "x"), {"s"});
  for (int i = 0; i < 9000; ++i)
    model.node("SequenceInsert", {"s", "x"}, {"s" + std::to_string(i)});
  model.node("SequenceLength", {"s0"}, {"y"});
  refused(model, Diag::kOnnxMalformed);
}

TEST_CASE("any prefix and any changed byte is a model or an error") {
  const std::string bytes = small().bytes();
  for (std::size_t n = 0; n < bytes.size(); ++n) (void)import_bytes(bytes.substr(0, n)).ok();
  Rng rng(7);
  int refused_count = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string changed = bytes;
    for (int k = 0; k < 1 + i % 4; ++k)
      changed[rng.below(changed.size())] = static_cast<char>(rng.below(256));
    const Result<ImportedNet> net = import_bytes(changed);
    refused_count += net.ok() ? 0 : 1;
    if (!net.ok()) CHECK_FALSE(net.error().message().empty());
  }
  CHECK(refused_count > 1000);
}

void lay_out(::onnx::TensorProto& tensor, const std::string& location, const std::string& offset,
             const std::string& length) {
  tensor.set_data_location(::onnx::TensorProto::EXTERNAL);
  const std::pair<const char*, std::string> entries[] = {
      {"location", location}, {"offset", offset}, {"length", length}};
  for (const auto& [key, value] : entries) {
    if (value.empty()) continue;
    auto& entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }
}

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "onnx_XXXXXX").string();
    path_ = ::mkdtemp(name.data());
    fs::create_directory(path_ / "in");
    write("secret", std::string(64, 's'));
    write("in/data", std::string(64, '\0'));
    fs::create_symlink("data", path_ / "in/link");
    fs::create_symlink("..", path_ / "in/up");
    fs::create_directory(path_ / "in/folder");
    ::mkfifo((path_ / "in/pipe").c_str(), 0600);
    write("in/twice", std::string(64, 't'));
    fs::create_hard_link(path_ / "in/twice", path_ / "in/again");
  }
  ~Folder() { fs::remove_all(path_); }
  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
  }
  Result<ImportedNet> import(const std::string& location, const std::string& offset = "",
                             const std::string& length = "") const {
    ModelBuilder model = small();
    auto& tensor = *model.graph().mutable_initializer(0);
    tensor.clear_float_data();
    lay_out(tensor, location, offset, length);
    return import_bytes(model.bytes(), model_path());
  }
  std::string model_path() const { return (path_ / "in/model.onnx").string(); }

 private:
  fs::path path_;
};

TEST_CASE("files of data lie beside the model and are as large as they say") {
  const Folder folder;
  CHECK(folder.import("data").ok());
  CHECK(folder.import("data", "52", "12").ok());
  CHECK(folder.import("./data").ok());
  for (const char* location : {"../secret", "/etc/passwd", "up/secret", "link", "pipe", "folder",
                               "twice", "again", "missing", "", "folder/../../secret"}) {
    INFO(location);
    const Result<ImportedNet> net = folder.import(location);
    REQUIRE_FALSE(net.ok());
    CHECK(net.error().id() == Diag::kOnnxExternal);
  }
  const std::pair<const char*, const char*> lies[] = {
      {"53", "12"}, {"64", ""},  {"18446744073709551615", ""},  {"18446744073709551604", "12"},
      {"-1", ""},   {"0", "13"}, {"0", "99999999999999999999"}, {"0x10", ""}};
  for (const auto& [offset, length] : lies) {
    INFO(offset << " " << length);
    const Result<ImportedNet> net = folder.import("data", offset, length);
    REQUIRE_FALSE(net.ok());
    CHECK(net.error().id() == Diag::kOnnxExternal);
  }
}

TEST_CASE("numbers of 16 bits that share the bytes of a file are there once") {
  const Folder folder;
  ModelBuilder model = small();
  const auto add = [&](const std::string& location, int64_t count, const std::string& offset) {
    ::onnx::TensorProto& tensor = *model.graph().add_initializer();
    tensor.set_name("t" + location + offset);
    tensor.set_data_type(5);
    tensor.add_dims(count);
    lay_out(tensor, location, offset, "");
    return import_bytes(model.bytes(), folder.model_path());
  };
  CHECK(add("data", 32, "").ok());
  CHECK(add("./data", 32, "0").ok());
  const Result<Model> read = parse_model(model.bytes(), folder.model_path());
  REQUIRE(read.ok());
  CHECK(read->files == std::vector<std::string>{"data"});
  const Result<ImportedNet> net = add("data", 31, "2");
  REQUIRE_FALSE(net.ok());
  CHECK(net.error().id() == Diag::kOnnxMalformed);
  CHECK(net.error().message().find("share the bytes of a file") != std::string::npos);
}

}  // namespace
}  // namespace prunerc::onnx
