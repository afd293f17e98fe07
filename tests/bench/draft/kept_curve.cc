#include "tests/bench/draft/kept_curve.h"

#include "runtime/cpu/host.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace prunerc::bench {
namespace {

using Json = nlohmann::json;
using search::PhaseSeconds;

constexpr std::array kSeconds = {
    &PhaseSeconds::build,  &PhaseSeconds::measure, &PhaseSeconds::search, &PhaseSeconds::learn,
    &PhaseSeconds::verify, &PhaseSeconds::total,   &PhaseSeconds::busy};

// Empty where the code is none that was committed.
std::string commit() {
  const char* const given = std::getenv("PRUNERC_COMMIT");
  const std::string name = given != nullptr ? given : "";
  const auto is_digit = [](unsigned char c) { return std::isxdigit(c) != 0; };
  return std::all_of(name.begin(), name.end(), is_digit) ? name : "";
}

}  // namespace

KeptCurve::KeptCurve(const std::string& folder, const std::string& name)
    : path_(folder.empty() ? "" : fmt::format("{}/{}.json", folder, name)) {}

std::optional<Curve> KeptCurve::read() const {
  if (path_.empty() || commit().empty()) return std::nullopt;
  std::ifstream file(path_);
  const Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("commit", "") != commit() ||
      json.value("machine", "") != runtime::host_name()) {
    return std::nullopt;
  }
  Curve out;
  for (const Json& point : json.at("points")) {
    out.points.push_back({.trial = point[0].get<int64_t>(),
                          .best_ns = point[1].get<double>(),
                          .seconds = point[2].get<double>()});
  }
  if (!out.points.empty()) out.final_ns = out.points.back().best_ns;
  out.trials = json.at("trials").get<int64_t>();
  for (std::size_t i = 0; i < kSeconds.size(); ++i) {
    out.seconds.*kSeconds[i] = json.at("seconds")[i].get<double>();
  }
  return out;
}

void KeptCurve::write(const Curve& curve) const {
  if (path_.empty()) return;
  Json points = Json::array(), seconds = Json::array();
  for (const search::CurvePoint& point : curve.points) {
    points.push_back({point.trial, point.best_ns, point.seconds});
  }
  for (const auto field : kSeconds) seconds.push_back(curve.seconds.*field);
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path());
  std::ofstream(path_) << Json{{"commit", commit()},
                               {"machine", runtime::host_name()},
                               {"trials", curve.trials},
                               {"seconds", seconds},
                               {"points", points}};
}

}  // namespace prunerc::bench
