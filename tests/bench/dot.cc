// ./dev bench dot [--json OUT]: matrix products by dot-product instructions beside the rate of the
// instruction alone.
#include "tests/bench/dot_fraction.h"

#include <cstdio>
#include <cstring>

int main(int argc, char** argv) {
  const bool has_json = argc == 3 && std::strcmp(argv[1], "--json") == 0;
  if (argc != 1 && !has_json) {
    std::fprintf(stderr, "usage: dot [--json OUT]\n");
    return 2;
  }
  const auto rows = prunerc::bench::dot_fraction_rows();
  if (!rows.ok()) {
    std::fprintf(stderr, "%s\n", rows.error().message().c_str());
    return 1;
  }
  for (const prunerc::bench::DotRow& row : *rows) {
    std::printf("%-20s %6.3f  goal %.2f  (%.1f of %.1f GOP/s, every element checked)\n",
                row.name.c_str(), row.fraction, row.goal, row.gops, row.peak_gops);
  }
  if (!has_json) return 0;
  std::FILE* out = std::fopen(argv[2], "w");
  if (out == nullptr) {
    std::perror(argv[2]);
    return 1;
  }
  std::fprintf(out, "{\"bench\": \"dot\", \"rows\": [");
  for (std::size_t i = 0; i < rows->size(); ++i) {
    const prunerc::bench::DotRow& row = (*rows)[i];
    std::fprintf(out, "%s\n  {\"name\": \"%s\", \"value\": %.4f, \"unit\": \"\", \"goal\": %.2f}",
                 i == 0 ? "" : ",", row.name.c_str(), row.fraction, row.goal);
  }
  std::fprintf(out, "\n]}\n");
  std::fclose(out);
  return 0;
}
