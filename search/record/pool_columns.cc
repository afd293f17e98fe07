#include "search/record/pool_columns.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace prunerc::search {
namespace {

/// Steps of a factor two: a time is kept to half a step. Both are more than measuring is worth.
constexpr double kTimeSteps = 1024;
constexpr double kSecondsSteps = 32;
constexpr double kSpreadSteps = 1000;
constexpr double kNsPerSecond = 1e9;

/// Those that every row has, apart from its decisions.
constexpr std::size_t kNumColumns = 9;

constexpr uint64_t kDisturbed = 1, kFinal = 2, kVerified = 4, kSearched = 8;

uint64_t log_code(double value, double steps) {
  return value < 1 ? 0 : 1 + static_cast<uint64_t>(std::llround(std::log2(value) * steps));
}

double from_log_code(uint64_t code, double steps) {
  return code == 0 ? 0 : std::exp2(static_cast<double>(code - 1) / steps);
}

uint64_t spread_code(double spread) {
  return static_cast<uint64_t>(std::llround(std::clamp(spread, 0.0, 1e6) * kSpreadSteps));
}

// Seven bits a byte, the low ones first.
class ColumnWriter {
 public:
  void put(uint64_t value) {
    while (value >= 0x80) {
      bytes_ += static_cast<char>(value | 0x80);
      value >>= 7;
    }
    bytes_ += static_cast<char>(value);
  }
  void put_signed(int64_t value) {
    put((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class ColumnReader {
 public:
  explicit ColumnReader(std::string_view bytes) : bytes_(bytes) {}

  /// 0 after the end, or where a number has no end.
  uint64_t get() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == bytes_.size()) break;
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    ok_ = false;
    return 0;
  }
  int64_t get_signed() {
    const uint64_t value = get();
    return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }
  /// A number below `limit`, else the column is wrong.
  uint64_t get_below(uint64_t limit) {
    const uint64_t value = get();
    ok_ = ok_ && value < limit;
    return ok_ ? value : 0;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && at_ == bytes_.size(); }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

uint64_t flags_of(const PoolRow& row) {
  return (row.disturbed ? kDisturbed : 0) | (row.is_final ? kFinal : 0) |
         (row.verified ? kVerified : 0) | (row.origin == PoolOrigin::kSearched ? kSearched : 0);
}

void set_flags(uint64_t flags, PoolRow* row) {
  row->disturbed = (flags & kDisturbed) != 0;
  row->is_final = (flags & kFinal) != 0;
  row->verified = (flags & kVerified) != 0;
  row->origin = (flags & kSearched) != 0 ? PoolOrigin::kSearched : PoolOrigin::kUniform;
}

// Calls f(row, decision, part) for every number of every decision, those of one place of one sketch
// together.
template <typename Rows, typename F>
void for_each_decision(const std::vector<Sketch>& sketches, Rows& rows, F&& f) {
  std::vector<std::vector<std::size_t>> rows_of(sketches.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    // A row of a sketch that is not there is for the reader to refuse.
    const auto sketch = static_cast<std::size_t>(rows[i].sketch);
    if (sketch < sketches.size()) rows_of[sketch].push_back(i);
  }
  for (std::size_t s = 0; s < sketches.size(); ++s) {
    if (rows_of[s].empty()) continue;
    const std::vector<schedule::Decision>& shape = sketches[s].trace.decisions;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      for (std::size_t part = 0; part < shape[d].size(); ++part) {
        for (const std::size_t i : rows_of[s]) f(rows[i], d, part);
      }
    }
  }
}

// Numbers in all decisions of a row, by sketch.
std::vector<std::size_t> num_parts_of(const std::vector<Sketch>& sketches) {
  std::vector<std::size_t> out;
  for (const Sketch& sketch : sketches) {
    std::size_t num_parts = 0;
    for (const schedule::Decision& decision : sketch.trace.decisions) num_parts += decision.size();
    out.push_back(num_parts);
  }
  return out;
}

bool fits_space(const Sketch& sketch, const PoolRow& row) {
  for (std::size_t d = 0; d < row.decisions.size(); ++d) {
    if (!sketch.spaces[d].contains(row.decisions[d])) return false;
  }
  return true;
}

}  // namespace

std::string encode_rows(const Pool& pool) {
  ColumnWriter out;
  const auto column = [&](auto&& value_of) {
    for (const PoolRow& row : pool.rows) out.put(value_of(row));
  };
  column([](const PoolRow& r) { return static_cast<uint64_t>(r.sketch); });
  column([](const PoolRow& r) { return static_cast<uint64_t>(r.status); });
  column(flags_of);
  column([](const PoolRow& r) { return static_cast<uint64_t>(r.num_samples); });
  column([](const PoolRow& r) { return log_code(r.median_ns, kTimeSteps); });
  column([](const PoolRow& r) { return spread_code(r.spread); });
  column([](const PoolRow& r) { return log_code(r.build_s * kNsPerSecond, kSecondsSteps); });
  column([](const PoolRow& r) { return log_code(r.measure_s * kNsPerSecond, kSecondsSteps); });
  column([](const PoolRow& r) { return uint64_t{r.fingerprint}; });
  for_each_decision(pool.sketches, pool.rows,
                    [&](const PoolRow& row, std::size_t d, std::size_t part) {
                      out.put_signed(row.decisions[d][part]);
                    });
  return out.take();
}

const char* decode_rows(std::string_view bytes, std::size_t num_rows, Pool* pool) {
  constexpr const char* kMisfit = "its columns do not fit its sketches";
  // Each row takes at least one byte of each column.
  if (num_rows > bytes.size() / kNumColumns) return "it has fewer bytes than rows";
  ColumnReader in(bytes);
  std::vector<PoolRow> rows(num_rows);
  const auto column = [&](uint64_t limit, auto&& set) {
    for (PoolRow& row : rows) set(row, in.get_below(limit));
  };
  constexpr uint64_t kAny = ~uint64_t{0};
  constexpr uint64_t kMaxCode = uint64_t{1} << 20;
  column(pool->sketches.size(), [](PoolRow& r, uint64_t v) { r.sketch = static_cast<int>(v); });
  column(kNumMeasureStatuses,
         [](PoolRow& r, uint64_t v) { r.status = static_cast<MeasureStatus>(v); });
  column(16, [](PoolRow& r, uint64_t v) { set_flags(v, &r); });
  column(kMaxCode, [](PoolRow& r, uint64_t v) { r.num_samples = static_cast<int>(v); });
  column(64 * kTimeSteps,
         [](PoolRow& r, uint64_t v) { r.median_ns = from_log_code(v, kTimeSteps); });
  column(kAny, [](PoolRow& r, uint64_t v) { r.spread = static_cast<double>(v) / kSpreadSteps; });
  column(64 * kSecondsSteps, [](PoolRow& r, uint64_t v) {
    r.build_s = from_log_code(v, kSecondsSteps) / kNsPerSecond;
  });
  column(64 * kSecondsSteps, [](PoolRow& r, uint64_t v) {
    r.measure_s = from_log_code(v, kSecondsSteps) / kNsPerSecond;
  });
  column(uint64_t{1} << 32,
         [](PoolRow& r, uint64_t v) { r.fingerprint = static_cast<uint32_t>(v); });
  if (!in.ok()) return kMisfit;
  const std::vector<std::size_t> parts = num_parts_of(pool->sketches);
  std::size_t num_decisions = 0, num_parts = 0;
  for (const PoolRow& row : rows) {
    const auto sketch = static_cast<std::size_t>(row.sketch);
    num_decisions += pool->sketches[sketch].trace.decisions.size();
    num_parts += parts[sketch];
  }
  if (num_parts > bytes.size()) return "it has fewer bytes than decisions";
  if (num_decisions > kMaxPoolDecisions) return "its rows have more decisions than are read";
  for (PoolRow& row : rows) {
    row.decisions = pool->sketches[static_cast<std::size_t>(row.sketch)].trace.decisions;
  }
  for_each_decision(pool->sketches, rows, [&](PoolRow& row, std::size_t d, std::size_t part) {
    row.decisions[d][part] = in.get_signed();
  });
  if (!in.at_end()) return kMisfit;
  for (const PoolRow& row : rows) {
    const bool has_time = row.median_ns > 0 && row.num_samples > 0;
    if (row.ok() && !has_time) return "a row that ran has no time";
    if (!fits_space(pool->sketches[static_cast<std::size_t>(row.sketch)], row)) return kMisfit;
  }
  pool->rows = std::move(rows);
  return nullptr;
}

PoolRow rounded(PoolRow row) {
  row.median_ns = from_log_code(log_code(row.median_ns, kTimeSteps), kTimeSteps);
  row.spread = static_cast<double>(spread_code(row.spread)) / kSpreadSteps;
  for (double PoolRow::*field : {&PoolRow::build_s, &PoolRow::measure_s}) {
    row.*field = from_log_code(log_code(row.*field * kNsPerSecond, kSecondsSteps), kSecondsSteps) /
                 kNsPerSecond;
  }
  return row;
}

}  // namespace prunerc::search
