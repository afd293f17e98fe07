// Task: one operator with bound extents on one target, the unit of tuning and of the database.
#ifndef PRUNERC_SEARCH_SPACE_TASK_H_
#define PRUNERC_SEARCH_SPACE_TASK_H_

#include "ir/program.h"
#include "ir/support/hash.h"
#include "ir/target.h"
#include "search/space/work.h"

#include <string>

namespace prunerc::search {

/// What the database compares on a hit; `hash` only finds the place.
struct TaskKey {
  std::string hash;     // of the program's fingerprint and the target
  std::string program;  // canonical text of the unscheduled program (ir/canonical.h)
  std::string target;   // text form without measured platform numbers, which differ from run to run
  bool operator==(const TaskKey&) const = default;
};

struct Task {
  std::string name;
  ir::Program base;  // unscheduled; loops and blocks numbered in program order
  ir::Target target;
  TaskKey key;
  std::string op_text;   // operator source, if any: kept in records
  std::string bindings;  // "M=512,N=512"
  double weight = 1;     // multiplicity in a network
  double flops = 0;      // of one run
  double bytes = 0;      // compulsory traffic of one run: parameters once
  Work work;
  /// Of a derived task: the operator's program, which `base` computes in another way; outputs are
  /// compared with it too. Undefined: base is the operator's own.
  ir::Program spec;
  std::string recipe;     // of a derived task, in words
  double spec_error = 1;  // how far it may be from `spec`, in units of what rounding does to that
  bool is_derived() const { return spec.defined(); }
};

/// Fills in key, flops, bytes and work.
Task make_task(std::string name, ir::Program base, ir::Target target);

/// Another program of the same parameters as a task of the operator's target, names and weight;
/// `recipe` is added to its name.
Task derived_task(const Task& spec, const ir::Program& program, std::string recipe);

/// The key's target text.
std::string target_key(const ir::Target& target);

/// Of its const inputs. Units: bytes.
double const_bytes(const Task& task);

/// Lower limit of the task's time from peak arithmetic rate and memory bandwidth.
/// Units: ns; 0 if the target knows neither.
double limit_ns(const Task& task);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_SPACE_TASK_H_
