#include "tools/driver/npy.h"

#include <catch2/catch.hpp>
#include <rapidcheck.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace prunerc {
namespace {

using ir::DType;
using ir::Tensor;

constexpr DType kAll[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64,
                          DType::kI32, DType::kI8,  DType::kU8,  DType::kBool};

std::string npy(const std::string& header, const std::string& data, char version = 1) {
  std::string out = "\x93NUMPY";
  out += version;
  out += '\0';
  out += static_cast<char>(header.size() & 255);
  out += static_cast<char>(header.size() >> 8);
  if (version > 1) out.append(2, '\0');
  return out + header + data;
}

std::string dict(const std::string& descr, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
}

std::string refusal(const std::string& bytes) {
  const Result<Tensor> read = parse_npy(bytes);
  REQUIRE_FALSE(read.ok());
  REQUIRE(read.error().id() == Diag::kNpyMalformed);
  return read.error().message();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("arrays of every type and rank survive writing and reading") {
  for (const DType dtype : kAll) {
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{}, {7}, {0}, {3, 4}, {2, 1, 5}, {1, 1, 1, 1}}) {
      Tensor tensor(dtype, shape);
      for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.set(i, static_cast<double>(i % 2));
      const std::string bytes = npy_bytes(tensor);
      CHECK((bytes.size() - tensor.data.size()) % 64 == 0);
      const Result<Tensor> read = parse_npy(bytes);
      REQUIRE(read.ok());
      CHECK(*read == tensor);
    }
  }
}

TEST_CASE("random bits of arrays survive writing and reading") {
  CHECK(rc::check("parse(bytes(t)) == t", [] {
    const DType dtype = kAll[*rc::gen::inRange<std::size_t>(0, std::size(kAll))];
    const auto shape = *rc::gen::resize(
        4, rc::gen::container<std::vector<int64_t>>(rc::gen::inRange<int64_t>(0, 5)));
    Tensor tensor(dtype, shape);
    for (std::byte& b : tensor.data) b = static_cast<std::byte>(*rc::gen::arbitrary<uint8_t>());
    const Result<Tensor> read = parse_npy(npy_bytes(tensor));
    RC_ASSERT(read.ok());
    RC_ASSERT(*read == tensor);
  }));
}

TEST_CASE("files keep their values") {
  const char* folder = std::getenv("TEST_TMPDIR");
  const std::string path = std::string(folder == nullptr ? "/tmp" : folder) + "/kept.npy";
  Tensor tensor(DType::kBF16, {2, 2});
  tensor.set(3, -1.5);
  REQUIRE(write_npy(path, tensor).ok());
  const Result<Tensor> read = read_npy(path);
  REQUIRE(read.ok());
  CHECK(*read == tensor);
  CHECK(std::filesystem::file_size(path) == npy_bytes(tensor).size());
  std::filesystem::remove(path);
  const Result<Tensor> gone = read_npy(path);
  REQUIRE_FALSE(gone.ok());
  CHECK(gone.error().id() == Diag::kIoError);
}

TEST_CASE("a file that cannot be written leaves nothing behind") {
  const Result<void> written = write_npy("/nonexistent/folder/x.npy", Tensor(DType::kF32, {1}));
  REQUIRE_FALSE(written.ok());
  CHECK(written.error().id() == Diag::kIoError);
}

TEST_CASE("versions 2 and 3 and both spellings of bf16 are read") {
  CHECK(parse_npy(npy(dict("<V2", "(1,)"), "ab", 2)).ok());
  const Result<Tensor> read = parse_npy(npy(dict("|V2", "()"), std::string("\x80\x3f", 2), 3));
  REQUIRE(read.ok());
  CHECK(read->dtype == DType::kBF16);
  CHECK(read->get(0) == 1.0);
}

TEST_CASE("headers that are cut off or lack something are refused with a cause") {
  CHECK(contains(refusal(""), "signature"));
  CHECK(contains(refusal("PK\x03\x04 a zip file, maybe an npz"), "signature"));
  CHECK(contains(refusal(npy("", "", 9)), "version"));
  CHECK(contains(refusal(npy(dict("<f4", "(1,)"), "abcd").substr(0, 20)), "cut off"));
  CHECK(contains(refusal(npy("{'descr': '<f4', 'shape': (1,)}", "abcd")), "lacks"));
  CHECK(contains(refusal(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1,)}", "abcd")),
                 "order"));
  CHECK(contains(refusal(npy(dict(">c8", "(1,)"), "abcdefgh")), "type '>c8' is not supported"));
  CHECK(contains(refusal(npy(dict(">V2", "(1,)"), "ab")), "type '>V2' is not supported"));
  CHECK(contains(refusal(npy(dict("<c8", "(1,)"), "abcdefgh")), "type '<c8' is not supported"));
  CHECK(contains(refusal(npy(dict("", "(1,)"), "abcd")), "type '' is not supported"));
  CHECK(contains(refusal(npy("{'descr':", "abcd")), "lacks"));
  CHECK(contains(refusal(npy(dict("|O", "(1,)"), "abcdefgh")), "not supported"));
}

TEST_CASE("numbers with their high byte first are turned round") {
  const Result<Tensor> floats =
      parse_npy(npy(dict(">f4", "(2,)"), std::string("\x3f\x80\0\0\xc0\x20\0\0", 8)));
  REQUIRE(floats.ok());
  CHECK(floats->dtype == DType::kF32);
  CHECK(floats->get(0) == 1.0);
  CHECK(floats->get(1) == -2.5);
  const Result<Tensor> ints = parse_npy(npy(dict(">i8", "()"), std::string("\0\0\0\0\0\0\1\2", 8)));
  REQUIRE(ints.ok());
  CHECK(ints->get(0) == 258);
}

TEST_CASE("shapes that are none, or larger than the data, are refused with a cause") {
  CHECK(contains(refusal(npy(dict("<f4", "4"), "abcd")), "tuple"));
  CHECK(contains(refusal(npy(dict("<f4", "(-1,)"), "abcd")), "numbers"));
  CHECK(contains(refusal(npy(dict("<f4", "(2.0,)"), "abcd")), "numbers"));
  CHECK(contains(refusal(npy(dict("<f4", "(99999999999999999999,)"), "abcd")), "large"));
  CHECK(contains(refusal(npy(dict("<f4", "(1048576, 1048576, 1048576)"), "abcd")), "large"));
  CHECK(contains(refusal(npy(dict("<f4", "(2, 3)"), "abcd")), "has 4 bytes, needs 24"));
  std::string many = "(";
  for (int i = 0; i < 100; ++i) many += "1, ";
  CHECK(contains(refusal(npy(dict("<f4", many + ")"), "abcd")), "dimensions"));
}

TEST_CASE("any bytes give an array or an error") {
  CHECK(rc::check("parse_npy is total", [] {
    const auto noise = *rc::gen::arbitrary<std::string>();
    (void)parse_npy(noise).ok();
    (void)parse_npy(npy(noise, "")).ok();
    // One byte of a good file changed.
    std::string bytes = npy(dict("<f4", "(2, 3)"), std::string(24, 'x'));
    bytes[*rc::gen::inRange<std::size_t>(0, bytes.size())] = *rc::gen::arbitrary<char>();
    const Result<Tensor> read = parse_npy(bytes);
    if (read.ok()) RC_ASSERT(read->data.size() <= 24u);
  }));
}

std::vector<double> filled(DType dtype, int64_t n, const std::string& description) {
  Tensor tensor(dtype, {n});
  const Result<void> done = fill(tensor, description);
  REQUIRE(done.ok());
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(tensor.get(i));
  return values;
}

TEST_CASE("fills without chance") {
  CHECK(filled(DType::kF32, 3, "zeros") == std::vector<double>{0, 0, 0});
  CHECK(filled(DType::kI8, 3, "ones") == std::vector<double>{1, 1, 1});
  CHECK(filled(DType::kI64, 4, "arange") == std::vector<double>{0, 1, 2, 3});
}

TEST_CASE("random fills stay in their range and are the same for the same seed") {
  const auto one = filled(DType::kF32, 4000, "rand:uniform(-2,3):seed=7");
  double low = 9, high = -9, sum = 0;
  for (double v : one) {
    low = std::min(low, v);
    high = std::max(high, v);
    sum += v;
  }
  CHECK(low >= -2);
  CHECK(low < -1.9);
  CHECK(high <= 3);
  CHECK(high > 2.9);
  CHECK(std::fabs(sum / 4000 - 0.5) < 0.1);
  CHECK(one == filled(DType::kF32, 4000, "rand:uniform(-2,3):seed=7"));
  CHECK(one != filled(DType::kF32, 4000, "rand:uniform(-2,3):seed=8"));
}

TEST_CASE("a normal fill has the mean and the spread that were asked for") {
  const auto values = filled(DType::kF64, 20000, "rand:normal(5,2):seed=1");
  double sum = 0, squares = 0;
  for (double v : values) {
    sum += v;
    squares += (v - 5) * (v - 5);
  }
  CHECK(std::fabs(sum / 20000 - 5) < 0.1);
  CHECK(std::fabs(std::sqrt(squares / 20000) - 2) < 0.1);
}

TEST_CASE("integers get whole numbers and reach both ends") {
  for (const std::string kind : {"rand:int(-3,3)", "rand:uniform(-3,3)"}) {
    const auto values = filled(DType::kI32, 1000, kind);
    CHECK(*std::min_element(values.begin(), values.end()) == -3);
    CHECK(*std::max_element(values.begin(), values.end()) == 3);
  }
}

TEST_CASE("descriptions that are none are refused") {
  for (const std::string description : {"",
                                        "rand",
                                        "rand:",
                                        "rand:dice",
                                        "rand:uniform(",
                                        "rand:uniform(1",
                                        "rand:uniform(1)",
                                        "rand:uniform(1,2,3)",
                                        "rand:uniform(2,1)",
                                        "rand:uniform(a,b)",
                                        "rand:uniform(1,2)x",
                                        "rand:normal(0,-1)",
                                        "rand:uniform(nan,1)",
                                        "rand:uniform(-inf,inf)",
                                        "rand:uniform:seed=",
                                        "rand:uniform:seed=-1",
                                        "rand:uniform:seed=1x",
                                        "rand:int(0.2,0.8)",
                                        "rand:int(1e300,1e301)",
                                        "zeros "}) {
    INFO(description);
    Tensor tensor(DType::kF32, {3});
    const Result<void> done = fill(tensor, description);
    REQUIRE_FALSE(done.ok());
    CHECK(done.error().id() == Diag::kFillUnknown);
  }
}

TEST_CASE("any text is a fill or an error") {
  CHECK(rc::check("fill is total", [] {
    Tensor tensor(DType::kI8, {2});
    (void)fill(tensor, *rc::gen::arbitrary<std::string>()).ok();
    (void)fill(tensor, "rand:uniform" + *rc::gen::arbitrary<std::string>()).ok();
    (void)fill(tensor, "rand:int(" + *rc::gen::arbitrary<std::string>() + ")").ok();
  }));
}

}  // namespace
}  // namespace prunerc
