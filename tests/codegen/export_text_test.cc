// Names of exported functions.
#include "codegen/export_text.h"

#include "codegen/host_compiler.h"
#include "codegen/subprocess.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>
#include <dlfcn.h>

#include <string>

namespace prunerc {

TEST_CASE("a symbol may be a name that this process has loaded, but none of the C library's") {
  const Result<std::string> compiler = codegen::find_c_compiler();
  REQUIRE_OK(compiler);
  const Result<std::string> library =
      codegen::run_compiler(*compiler, {"-shared", "-fPIC"}, {{"loaded.c", "int loaded_here;"}});
  REQUIRE_OK(library);
  const Result<codegen::ScratchFolder> folder = codegen::ScratchFolder::make();
  REQUIRE_OK(folder);
  const std::string path = folder->file("loaded.so");
  REQUIRE_OK(codegen::write_file(path, *library));
  void* const loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  REQUIRE(loaded != nullptr);
  CHECK(dlsym(RTLD_DEFAULT, "loaded_here") != nullptr);
  CHECK(codegen::check_symbol("loaded_here").ok());
  dlclose(loaded);
  for (const char* const symbol : {"exp", "read"})
    CHECK_DIAG(codegen::check_symbol(symbol), UsageOption);
}

}  // namespace prunerc
