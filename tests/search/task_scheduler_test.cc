#include "search/tune/task_scheduler.h"

#include "tests/search/programs.h"
#include "tests/support/check.h"

#include <cmath>

namespace prunerc {
namespace {

using namespace search;   // NOLINT: a test
using namespace testing;  // NOLINT: a test

TaskProgress progress(double weight, const std::vector<double>& history, double flops = 1e6,
                      std::string group = "") {
  TaskProgress out;
  out.weight = weight;
  for (const double ns : history) {
    out.history.push_back({static_cast<double>(out.history.size() + 1), ns});
  }
  out.rounds = static_cast<int>(out.history.size());
  out.effort = out.rounds;
  out.flops = flops;
  out.group = std::move(group);
  return out;
}

TEST_CASE("every task has its first turn, in order; closed ones have none") {
  std::vector<TaskProgress> tasks(3);
  CHECK(choose_task(tasks) == 0);
  tasks[0].rounds = 1;
  CHECK(choose_task(tasks) == 1);
  tasks[1].is_open = false;
  CHECK(choose_task(tasks) == 2);
  for (TaskProgress& task : tasks) task.is_open = false;
  CHECK(choose_task(tasks) == -1);
  CHECK(choose_task({}) == -1);
}

TEST_CASE("the gradient is what the formula says") {
  // backward: (60 - 90) / 3 a round; ahead: 60 / 4 may still be gained; 3 times in the network.
  const std::vector<TaskProgress> tasks = {progress(3, {90, 80, 70, 60})};
  CHECK(expected_change(tasks, 0) == Approx(3 * (0.2 * -10 + 0.8 * -15)));
  // Two rounds are too few for the window.
  const std::vector<TaskProgress> young = {progress(1, {90, 80})};
  CHECK(expected_change(young, 0) == Approx(0.8 * -40));
}

TEST_CASE("batches of different sizes count by their trials") {
  // A quarter of a batch, then full ones: (60 - 90) over the last three, 60 / 3.25 ahead.
  TaskProgress task = progress(2, {90, 80, 70, 60});
  for (TaskProgress::Point& point : task.history) point.effort -= 0.75;
  task.effort = 3.25;
  CHECK(expected_change({&task, 1}, 0) == Approx(2 * (0.2 * -10 + 0.8 * -60 / 3.25)));
  // Quarters alone: "lately" is three full batches, so all twelve of them, and no less.
  task = progress(1, {});
  for (int i = 1; i <= 13; ++i) task.history.push_back({0.25 * i, 100.0 - i});
  task.effort = 3.25;
  CHECK(expected_change({&task, 1}, 0) == Approx(0.2 * -12.0 / 3 + 0.8 * -87 / 3.25));
  task.history.erase(task.history.begin());
  CHECK(expected_change({&task, 1}, 0) == Approx(0.8 * -87 / 3.25));
  // A task with a quarter of a batch promises no more than one with a whole.
  std::vector<TaskProgress> tasks = {progress(1, {100}), progress(1, {100})};
  tasks[1].effort = tasks[1].history[0].effort = 0.25;
  CHECK(expected_change(tasks, 0) == expected_change(tasks, 1));
}

TEST_CASE("a task whose first batch is still out is not asked again before others are") {
  std::vector<TaskProgress> tasks = {progress(1, {}), progress(1, {50, 40})};
  tasks[0].rounds = 1;
  CHECK(choose_task(tasks) == 1);
  tasks[1].is_open = false;
  CHECK(choose_task(tasks) == 0);
}

TEST_CASE("a similar task that is faster promises a gain, within the factor beta") {
  // 1000 FLOP in 100 ns here, in 10 ns there: at most 2 * 1000 / 100 = 20 ns are expected.
  const std::vector<TaskProgress> tasks = {
      progress(1, std::vector<double>(8, 100.0), 1000, "conv"),
      progress(1, std::vector<double>(8, 10.0), 1000, "conv"),
      progress(1, std::vector<double>(8, 100.0), 1000, "softmax")};
  CHECK(expected_change(tasks, 0) == Approx(0.8 * (20 - 100)));
  CHECK(expected_change(tasks, 2) == Approx(0.8 * -100 / 8));
  CHECK(choose_task(tasks) == 0);
  // The fastest has nobody to look up to.
  CHECK(expected_change(tasks, 1) == Approx(0.8 * -10.0 / 8));
}

TEST_CASE("a task that stays slow leaves its group") {
  std::vector<TaskProgress> tasks = {progress(1, std::vector<double>(13, 100.0), 1000, "conv"),
                                     progress(1, std::vector<double>(8, 10.0), 1000, "conv")};
  CHECK(expected_change(tasks, 0) == Approx(0.8 * (20 - 100)));
  tasks[0] = progress(1, std::vector<double>(14, 100.0), 1000, "conv");
  CHECK(expected_change(tasks, 0) == Approx(0.8 * -100 / 14));
}

TEST_CASE("a task of which nothing runs is tried again, but not for ever") {
  std::vector<TaskProgress> tasks = {progress(1, {0, 0}), progress(1, {50, 40})};
  CHECK(choose_task(tasks) == 0);
  tasks[0] = progress(1, {0, 0, 0});
  CHECK(choose_task(tasks) == 1);
  tasks[1].is_open = false;
  CHECK(choose_task(tasks) == 0);
}

// Best time after t rounds: falls from 4 times to `limit`, at a rate.
double curve(double limit, double rate, int t) { return limit * (1 + 3 * std::exp(-rate * t)); }

TEST_CASE("on synthetic curves the rounds go where they save most, and beat equal shares") {
  struct Kind {
    double weight, limit, rate;
  };
  // A heavy task that is slow to improve, light ones, and one that is at its limit at once.
  const std::vector<Kind> kinds = {{8, 1000, 0.15}, {1, 1000, 0.15}, {1, 50, 0.3}, {4, 800, 5}};
  constexpr int kRounds = 80;
  std::vector<TaskProgress> tasks(kinds.size());
  const auto total = [&](auto&& rounds_of) {
    double sum = 0;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      sum += kinds[i].weight * curve(kinds[i].limit, kinds[i].rate, rounds_of(i));
    }
    return sum;
  };
  for (std::size_t i = 0; i < kinds.size(); ++i) tasks[i].weight = kinds[i].weight;
  for (int round = 0; round < kRounds; ++round) {
    const auto chosen = static_cast<std::size_t>(choose_task(tasks));
    TaskProgress& task = tasks[chosen];
    task.effort = ++task.rounds;
    task.history.push_back(
        {task.effort, curve(kinds[chosen].limit, kinds[chosen].rate, task.rounds)});
  }
  CHECK(tasks[0].rounds > tasks[1].rounds);
  CHECK(tasks[1].rounds > tasks[2].rounds);
  for (const TaskProgress& task : tasks) CHECK(task.rounds >= 1);
  const double ours = total([&](std::size_t i) { return tasks[i].rounds; });
  const double equal = total([&](std::size_t) { return kRounds / 4; });
  CHECK(ours < equal);
}

TEST_CASE("tasks are alike if they differ in sizes alone, by less than a factor of 1.6") {
  const Task a = make_test_task("gemm");
  Task b = a;
  CHECK(similarity_group(a) == similarity_group(b));
  b.flops = a.flops * 3;
  CHECK(similarity_group(a) != similarity_group(b));
  CHECK(similarity_group(a) != similarity_group(make_test_task("softmax_like")));
}

}  // namespace
}  // namespace prunerc
