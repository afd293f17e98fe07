#include "ir/support/file.h"

#include "tests/support/check.h"

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace prunerc {
namespace {

namespace fs = std::filesystem;

fs::path fresh_folder(const std::string& name) {
  const fs::path folder = testing::scratch_path(name);
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

std::size_t num_entries(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST_CASE("a file is replaced whole, and through links") {
  const fs::path folder = fresh_folder("replaced");
  const fs::path file = folder / "a", link = folder / "b";
  REQUIRE(replace_file(file, "one").ok());
  REQUIRE(replace_file(file, "two").ok());
  CHECK(read_file(file).value() == "two");
  fs::create_symlink("a", link);
  REQUIRE(replace_file(link, "three").ok());
  CHECK(fs::is_symlink(link));
  CHECK(read_file(file).value() == "three");
  fs::create_symlink("new", folder / "dangling");
  REQUIRE(replace_file(folder / "dangling", "four").ok());
  CHECK(read_file(folder / "new").value() == "four");
  CHECK(num_entries(folder) == 4);
}

TEST_CASE("a pipe is written to and stays one") {
  const fs::path pipe = fresh_folder("pipe") / "p";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_DIAG(replace_file(pipe, "nobody reads"), FileKind);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(reader >= 0);
  CHECK(replace_file(pipe, "hello").ok());
  std::array<char, 16> got = {};
  CHECK(::read(reader, got.data(), got.size()) == 5);
  ::close(reader);
  CHECK(std::string(got.data()) == "hello");
  CHECK(fs::is_fifo(pipe));
}

TEST_CASE("what cannot be written leaves nothing beside it") {
  const fs::path folder = fresh_folder("refused");
  fs::create_directories(folder / "full" / "inside");
  CHECK_DIAG(replace_file(folder / "full", "x"), IoError);
  CHECK_DIAG(replace_file(folder / "nowhere" / "x", "x"), IoError);
  fs::create_symlink("loop", folder / "loop");
  CHECK_DIAG(replace_file(folder / "loop" / "x", "x"), IoError);
  CHECK(num_entries(folder) == 2);
}

TEST_CASE("several writers leave what one of them wrote") {
  const fs::path folder = fresh_folder("writers");
  std::vector<std::thread> writers;
  for (const char letter : {'a', 'b', 'c', 'd'}) {
    writers.emplace_back([&folder, letter] {
      for (int i = 0; i < 8; ++i) {
        if (!replace_file(folder / "x", std::string(40000, letter)).ok()) std::abort();
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  const std::string found = read_file(folder / "x").value();
  CHECK(found == std::string(40000, found[0]));
  CHECK(num_entries(folder) == 1);
}

}  // namespace
}  // namespace prunerc
