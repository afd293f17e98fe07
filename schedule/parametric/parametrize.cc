#include "ir/verify.h"
#include "schedule/parametric/parametric.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/attributes.h"
#include "schedule/rewrite/site.h"
#include "schedule/schedule.h"

#include <algorithm>
#include <utility>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace): this file is about ir nodes throughout

Expr Call::size(IrBuilder& b, const Int& item) const {
  if (open == nullptr || !item.ref.valid()) return b.int_imm(item.value);
  const OpenValue& value = open->values[static_cast<std::size_t>(item.ref.value)];
  Expr product;
  for (const ParamId id : value.params) {
    product = product.defined() ? b.mul(product, b.param(id)) : b.param(id);
  }
  if (!product.defined()) return b.int_imm(value.factor);
  return value.factor == 1 ? product : b.mul(product, b.int_imm(value.factor));
}

int64_t OpenAttr::value(std::span<const int64_t> values) const {
  int64_t product = factor;
  for (const ParamId id : params) product *= values[static_cast<std::size_t>(id.value)];
  return offset + std::max(least, product);
}

namespace {

bool is_tile(PrimitiveKind kind) {
  return kind == PrimitiveKind::kSamplePerfectTile ||
         kind == PrimitiveKind::kSamplePartitionedTile ||
         kind == PrimitiveKind::kSampleCoveringTile;
}

/// The outermost level of a covering tiling, which a decision leaves to be inferred.
int64_t outermost(int64_t extent, const Decision& inner) {
  int64_t product = 1;
  for (const int64_t tile : inner) {
    if (tile < 1 || __builtin_mul_overflow(product, tile, &product)) return 0;  // fits no extent
  }
  return extent / product + (extent % product != 0 ? 1 : 0);
}

/// Primitives whose integer operands may be parameters.
bool takes_params(PrimitiveKind kind) {
  switch (kind) {
    case PrimitiveKind::kSplit:
    case PrimitiveKind::kProduct:
    case PrimitiveKind::kPadEinsum:
    case PrimitiveKind::kSoftwarePipeline:
    case PrimitiveKind::kAnnotateLoop:
    case PrimitiveKind::kAnnotateBlock: return true;
    default: return false;
  }
}

/// Replays the trace twice side by side: as recorded, which is the witness, and open.
class Parametrizer {
 public:
  explicit Parametrizer(const Program& base) : witness_(base), program_(base) {}

  Result<void> step(const Instruction& recorded, const Decision* decision) {
    const Program before = witness_.program();
    Instruction closed = recorded;
    closed.outputs.clear();
    PRUNERC_TRY(const std::vector<Output> outputs,
                witness_.apply(std::move(closed), decision == nullptr ? Decision() : *decision));
    if (!recorded.outputs.empty() && outputs != recorded.outputs) return malformed("its ids");
    std::vector<Operand> operands = recorded.operands;
    for (Operand& operand : operands) resolve(&operand);
    if (decision != nullptr) return sample(recorded.primitive, operands, *decision);
    if (recorded.primitive == PrimitiveKind::kProduct) return multiply(operands);
    PRUNERC_TRY_VOID(check_operands(recorded.primitive, operands));
    const OpenValues open{values_, &before};
    const Call call{operands, nullptr, program_.domain().empty() ? nullptr : &open};
    PRUNERC_TRY(Applied applied, primitive(recorded.primitive).apply(program_, call));
    if (applied.outputs != outputs) return malformed("its ids with parameters");
    program_ = std::move(applied.program);
    return keep_attributes(recorded.primitive, operands);
  }

  Result<Parametric> finish(const Trace& trace) && {
    PRUNERC_TRY_VOID(verify(program_));
    Program program = compact(program_);
    DomainSpace space(program.domain());
    return Parametric{std::move(program), std::move(params_), std::move(attrs_), std::move(space),
                      trace.decisions};
  }

 private:
  Error malformed(const char* what) const {
    const auto place = static_cast<int64_t>(witness_.trace().instructions.size()) - 1;
    return error(Diag::kTraceMalformed, place,
                 std::string(to_string(witness_.trace().instructions.back().primitive)),
                 std::string(what));
  }

  void resolve(Operand* operand) const {
    const auto set = [&](Int& item) {
      if (item.ref.valid()) item.value = numbers_[static_cast<std::size_t>(item.ref.value)];
    };
    if (Int* item = std::get_if<Int>(operand)) set(*item);
    if (auto* items = std::get_if<std::vector<Int>>(operand)) {
      for (Int& item : *items) set(item);
    }
  }

  OpenValue open_value(const Int& item) const {
    return item.ref.valid() ? values_[static_cast<std::size_t>(item.ref.value)]
                            : OpenValue{item.value, {}};
  }

  void add_value(OpenValue value, int64_t number) {
    values_.push_back(std::move(value));
    numbers_.push_back(number);
  }

  Result<void> sample(PrimitiveKind kind, const std::vector<Operand>& operands,
                      const Decision& decision) {
    PRUNERC_TRY(const DecisionSpace space, sample_space(program_, kind, Call{operands}));
    if (is_tile(kind)) return open_tiles(space, decision);
    if (kind == PrimitiveKind::kSampleCategorical) return open_choice(space, decision);
    params_.emplace_back();
    add_value({decision[0], {}}, decision[0]);
    return {};
  }

  ParamId add_param(IrBuilder& b, int64_t number) {
    const ParamId id = b.add_param("v" + std::to_string(values_.size()));
    add_value({1, {id}}, number);
    return id;
  }

  Result<void> open_tiles(const DecisionSpace& space, const Decision& decision) {
    IrBuilder b(program_);
    std::vector<ParamId> ids;
    const bool covers = space.primitive == PrimitiveKind::kSampleCoveringTile;
    if (covers) ids.push_back(b.add_param("t" + std::to_string(values_.size())));
    for (const int64_t tile : decision) ids.push_back(add_param(b, tile));
    b.add_tiles({ids, space.extent, covers ? TileKind::kCovering : TileKind::kPerfect,
                 space.max_innermost});
    if (space.primitive == PrimitiveKind::kSamplePartitionedTile) {
      Expr inner = b.int_imm(1);
      for (std::size_t i = static_cast<std::size_t>(space.partition); i < ids.size(); ++i) {
        inner = times(b, inner, b.param(ids[i]));
      }
      b.add_constraint(b.eq(b.floormod(inner, b.int_imm(space.inner_factor)), b.int_imm(0)));
    }
    params_.push_back(std::move(ids));
    program_ = b.finish(program_.root());
    return {};
  }

  Result<void> open_choice(const DecisionSpace& space, const Decision& decision) {
    IrBuilder b(program_);
    const ParamId id = add_param(b, space.values[static_cast<std::size_t>(decision[0])]);
    b.add_choice({id, space.values});
    params_.push_back({id});
    program_ = b.finish(program_.root());
    return {};
  }

  Result<void> multiply(const std::vector<Operand>& operands) {
    OpenValue product;
    int64_t number = 1;
    for (const Int& item : std::get<std::vector<Int>>(operands[0])) {
      const OpenValue factor = open_value(item);
      product.factor *= factor.factor;
      product.params.insert(product.params.end(), factor.params.begin(), factor.params.end());
      number *= item.value;
    }
    add_value(std::move(product), number);
    return {};
  }

  Result<void> check_operands(PrimitiveKind kind, const std::vector<Operand>& operands) const {
    if (takes_params(kind)) return {};
    std::vector<Int> items;
    for (const Operand& operand : operands) {
      // The bytes of a swizzle are an attribute's value.
      if (kind == PrimitiveKind::kSwizzle && &operand == &operands.back()) continue;
      if (const Int* item = std::get_if<Int>(&operand)) items.push_back(*item);
      if (const auto* many = std::get_if<std::vector<Int>>(&operand)) {
        items.insert(items.end(), many->begin(), many->end());
      }
    }
    for (const Int& item : items) {
      const OpenValue value = open_value(item);
      if (value.params.empty()) continue;
      return error(Diag::kParamOperand, std::string(to_string(kind)),
                   "v" + std::to_string(item.ref.value));
    }
    return {};
  }

  // Attributes hold numbers, so those that are parameters are kept beside the program.
  Result<void> keep_attributes(PrimitiveKind kind, const std::vector<Operand>& operands) {
    if (kind == PrimitiveKind::kSoftwarePipeline) return keep_pipeline(operands);
    const bool swizzles = kind == PrimitiveKind::kSwizzle;
    const bool annotates =
        kind == PrimitiveKind::kAnnotateLoop || kind == PrimitiveKind::kAnnotateBlock;
    // What is taken away is open no more.
    const bool drops =
        kind == PrimitiveKind::kUnannotateLoop || kind == PrimitiveKind::kUnannotateBlock;
    if (!swizzles && !annotates && !drops) return {};
    OpenAttr attr;
    attr.key = swizzles ? std::string(kSwizzle) + std::to_string(std::get<Int>(operands[1]).value)
                        : std::get<std::string>(operands[1]);
    if (const LoopId* loop = std::get_if<LoopId>(&operands[0])) attr.loop = *loop;
    if (const BlockId* block = std::get_if<BlockId>(&operands[0])) attr.block = *block;
    keep(std::move(attr), drops ? OpenValue{} : open_value(std::get<Int>(operands[2])));
    return {};
  }

  void keep(OpenAttr attr, const OpenValue& value) {
    std::erase_if(attrs_, [&](const OpenAttr& other) {
      return other.loop == attr.loop && other.block == attr.block && other.key == attr.key;
    });
    attr.factor = value.factor;
    attr.params = value.params;
    if (!value.params.empty()) attrs_.push_back(std::move(attr));
  }

  // The stages of the statements, and their number on the loop: one more than the latest.
  Result<void> keep_pipeline(const std::vector<Operand>& operands) {
    PRUNERC_TRY(const Site site, find_loop(program_, std::get<LoopId>(operands[0])));
    const std::vector<Stmt> children = children_of(site.loop()->body);
    const std::vector<Int>& stages = std::get<std::vector<Int>>(operands[1]);
    OpenAttr depth;
    depth.loop = site.loop()->id;
    depth.key = kPipeline;
    depth.offset = 1;
    OpenValue latest;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      const OpenValue value = open_value(stages[i]);
      if (value.params.empty()) {
        depth.least = std::max(depth.least, value.factor);
        continue;
      }
      if (!latest.params.empty()) {
        return error(Diag::kParamOperand, std::string("a second stage of software_pipeline"),
                     "v" + std::to_string(stages[i].ref.value));
      }
      latest = value;
      OpenAttr stage;
      if (const Loop* loop = children[i].as<Loop>()) stage.loop = loop->id;
      if (const Block* block = children[i].as<Block>()) stage.block = block->id;
      stage.key = kPipelineStage;
      keep(std::move(stage), value);
    }
    keep(std::move(depth), latest);
    return {};
  }

  Schedule witness_;
  Program program_;
  std::vector<OpenValue> values_;  // by ValueId
  std::vector<int64_t> numbers_;   // the same as recorded
  std::vector<std::vector<ParamId>> params_;
  std::vector<OpenAttr> attrs_;
};

const TileVector* tiles_of(const Parametric& sketch, ParamId id) {
  for (const TileVector& tiles : sketch.program.domain().tiles) {
    if (tiles.params[0] == id) return &tiles;
  }
  return nullptr;
}

bool infers_outermost(const Parametric& sketch, ParamId id) {
  const TileVector* tiles = tiles_of(sketch, id);
  return tiles != nullptr && tiles->kind == TileKind::kCovering;
}

const Choice* choice_of(const Parametric& sketch, ParamId id) {
  for (const Choice& choice : sketch.program.domain().choices) {
    if (choice.param == id) return &choice;
  }
  return nullptr;
}

}  // namespace

Result<Parametric> parametrize(const Program& base, const Trace& trace) {
  if (!base.domain().empty()) return error(Diag::kParamBase, std::string(base.name()));
  Parametrizer opening(base);
  std::size_t next_decision = 0;
  for (std::size_t i = 0; i < trace.instructions.size(); ++i) {
    const Instruction& instruction = trace.instructions[i];
    const Decision* decision = nullptr;
    if (instruction.is_sample()) {
      if (next_decision >= trace.decisions.size()) {
        return error(Diag::kTraceMalformed, static_cast<int64_t>(i),
                     std::string(to_string(instruction.primitive)), std::string("no decision"));
      }
      decision = &trace.decisions[next_decision++];
    }
    PRUNERC_TRY_VOID(opening.step(instruction, decision));
  }
  return std::move(opening).finish(trace);
}

Result<std::vector<int64_t>> param_values(const Parametric& sketch,
                                          std::span<const Decision> decisions) {
  const auto count = static_cast<int64_t>(sketch.params.size());
  if (decisions.size() != sketch.params.size()) {
    return error(Diag::kParamCount, std::string(sketch.program.name()), count,
                 static_cast<int64_t>(decisions.size()));
  }
  std::vector<int64_t> values(sketch.program.domain().names.size(), 1);
  for (std::size_t d = 0; d < decisions.size(); ++d) {
    const std::vector<ParamId>& ids = sketch.params[d];
    if (ids.empty()) {
      if (decisions[d] == sketch.decisions[d]) continue;
      return error(Diag::kParamStructure, static_cast<int64_t>(d));
    }
    const Choice* choice = choice_of(sketch, ids[0]);
    Decision levels = decisions[d];
    if (choice != nullptr) {
      const bool fits = levels.size() == 1 && levels[0] >= 0 &&
                        levels[0] < static_cast<int64_t>(choice->values.size());
      if (fits) levels[0] = choice->values[static_cast<std::size_t>(levels[0])];
      if (!fits) levels.clear();
    } else if (infers_outermost(sketch, ids[0])) {
      levels.insert(levels.begin(), outermost(tiles_of(sketch, ids[0])->extent, levels));
    }
    if (levels.size() != ids.size()) {
      return error(Diag::kParamDomain, "of decision " + std::to_string(d));
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
      values[static_cast<std::size_t>(ids[i].value)] = levels[i];
    }
  }
  return values;
}

std::vector<Decision> decisions_of(const Parametric& sketch, std::span<const int64_t> values) {
  std::vector<Decision> out = sketch.decisions;
  for (std::size_t d = 0; d < out.size(); ++d) {
    const std::vector<ParamId>& ids = sketch.params[d];
    if (ids.empty()) continue;
    out[d].clear();
    for (const ParamId id : ids) out[d].push_back(values[static_cast<std::size_t>(id.value)]);
    if (const Choice* choice = choice_of(sketch, ids[0])) {
      const auto at = std::find(choice->values.begin(), choice->values.end(), out[d][0]);
      out[d] = {at - choice->values.begin()};
    } else if (infers_outermost(sketch, ids[0])) {
      out[d].erase(out[d].begin());
    }
  }
  return out;
}

Result<void> check_values(const Parametric& sketch, std::span<const int64_t> values) {
  const Domain& domain = sketch.program.domain();
  const auto text = [&] {
    std::string out;
    for (const int64_t value : values) out += (out.empty() ? "[" : ", ") + std::to_string(value);
    return out + "]";
  };
  if (values.size() != domain.names.size()) {
    return error(Diag::kParamCount, std::string(sketch.program.name()),
                 static_cast<int64_t>(domain.names.size()), static_cast<int64_t>(values.size()));
  }
  if (!sketch.space.contains(values)) return error(Diag::kParamDomain, text());
  for (std::size_t i = 0; i < domain.constraints.size(); ++i) {
    if (evaluate_params(domain.constraints[i], values).value_or(0) != 0) continue;
    return error(Diag::kParamConstraint, "constraint " + std::to_string(i) + " of the sketch");
  }
  return {};
}

}  // namespace prunerc::schedule
