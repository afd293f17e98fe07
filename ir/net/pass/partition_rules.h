// What rules of the partition see and change.
#ifndef PRUNERC_IR_NET_PASS_PARTITION_RULES_H_
#define PRUNERC_IR_NET_PASS_PARTITION_RULES_H_

#include "ir/net/net.h"
#include "ir/net/pass/classify.h"
#include "ir/net/pass/graph.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string_view>
#include <vector>

namespace prunerc::net {

enum class GroupKind : uint8_t {
  kSingle,     ///< one call that nothing joins
  kChain,      ///< pointwise of one shape
  kView,       ///< a view, and what is read by it
  kRows,       ///< reductions over rows and what is pointwise with them
  kLinear,     ///< an anchor with what follows it
  kReduce,     ///< a window or another reduction with what follows it
  kAttention,  ///< linear, rows, linear
};

struct Group {
  GroupKind kind = GroupKind::kSingle;
  std::vector<std::size_t> calls;  ///< the first is the last in the net
  std::size_t anchor = kNone;
  std::vector<int64_t> shape;      ///< of a chain; of rows: the whole; as Plan::shapes has it
  int64_t row_elems = 0;           ///< of rows
  int64_t num_before = 0;          ///< operations before the anchor
  bool has_second = false;         ///< a result beside the last call's
  std::set<std::size_t> outside;   ///< tensors that it reads and does not give
  std::size_t num_statements = 0;  ///< of the operator that is made of it
};

struct Plan {
  explicit Plan(const Net& net_in);

  const Net& net;
  Graph graph;
  std::vector<CallFacts> facts;              ///< by call
  std::vector<std::vector<int64_t>> shapes;  ///< by tensor, without axes of one element
  std::vector<Group> groups;
  std::vector<std::size_t> group_of;  ///< by call; kNone: not yet

  const std::vector<int64_t>& result_shape(std::size_t call) const {
    return shapes[net.calls[call].results[0]];
  }
  /// The group that all readers of what the call gives are in; kNone if there is no such one, or
  /// the net gives it too.
  std::size_t group_of_readers(std::size_t call) const;
  /// How the call reads a tensor; kElsewhere too if it does not.
  PortRead read_of(std::size_t call, std::size_t tensor) const;
  /// Whether the group, or a new one (kNone), is still an operator that can be written and called
  /// with these calls in it.
  bool has_room(const std::vector<std::size_t>& more, std::size_t group) const;
  void start(std::size_t call);
  void join(std::size_t call, std::size_t group);

 private:
  void add_to(Group& grown, std::size_t call, std::size_t group) const;
};

/// Puts the call in a group, maybe others with it, and says so; or changes nothing.
struct FuseRule {
  std::string_view name;
  bool (*apply)(Plan& plan, std::size_t call);
};
std::span<const FuseRule> fuse_rules();

int64_t num_elements(const std::vector<int64_t>& shape);

bool join_attention(Plan& plan, std::size_t call);

}  // namespace prunerc::net

#endif  // PRUNERC_IR_NET_PASS_PARTITION_RULES_H_
