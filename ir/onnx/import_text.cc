// Calls, what is computed at once, and the text.
#include "ir/interp/interpreter.h"
#include "ir/lang/lang.h"
#include "ir/onnx/importer.h"
#include "ir/query.h"
#include "ir/stmt.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace prunerc::onnx {
namespace {

/// What is computed while importing. Units: elements of arguments and results together.
constexpr int64_t kMaxFolded = 100'000;
/// The same of a call, and of all together: seconds of the interpreter. Units: its steps.
constexpr double kMaxFoldSteps = 1 << 22, kMaxAllFoldSteps = 1 << 25;
/// What a new operator takes before its first step: a loop may write one in each iteration.
constexpr double kCompileSteps = 1 << 10;
constexpr std::size_t kMaxName = 48;

std::string type_text(ir::DType dtype, const std::vector<int64_t>& shape) {
  if (shape.empty()) return std::string(ir::to_string(dtype));
  return fmt::format("{}[{}]", ir::to_string(dtype), fmt::join(shape, ","));
}

// What the interpreter counts, if no condition spares anything.
double num_steps(ir::Stmt s) {
  if (!s.defined()) return 0;
  switch (s.kind()) {
    case ir::StmtKind::kSeq: {
      double sum = 0;
      for (const ir::Stmt child : s.as<ir::Seq>()->stmts) sum += num_steps(child);
      return sum;
    }
    case ir::StmtKind::kLoop: {
      const ir::Loop* const loop = s.as<ir::Loop>();
      const std::optional<int64_t> extent = ir::constant_value(loop->extent);
      if (!extent) return std::numeric_limits<double>::infinity();
      return static_cast<double>(*extent) * (1 + num_steps(loop->body));
    }
    case ir::StmtKind::kBlock:
      return 1 + num_steps(s.as<ir::Block>()->init) + num_steps(s.as<ir::Block>()->body);
    case ir::StmtKind::kStore: return 1;
    case ir::StmtKind::kIf:
      return num_steps(s.as<ir::If>()->then_body) + num_steps(s.as<ir::If>()->else_body);
    case ir::StmtKind::kAlloc: return num_steps(s.as<ir::Alloc>()->body);
  }
  return std::numeric_limits<double>::infinity();
}

}  // namespace

std::string Importer::sanitized(std::string_view wanted) {
  std::string name;
  for (const char c : wanted) {
    const bool is_letter =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (is_letter) {
      name += c;
    } else if (!name.empty() && name.back() != '_') {
      name += '_';
    }
  }
  // The end of a path says more than its begin.
  std::string_view kept = name;
  if (kept.size() > kMaxName) kept.remove_prefix(kept.size() - kMaxName);
  kept.remove_prefix(std::min(kept.find_first_not_of('_'), kept.size()));
  if (kept.empty()) kept = "t";
  const bool starts_with_digit = kept[0] >= '0' && kept[0] <= '9';
  return fmt::format("{}{}{}", starts_with_digit ? "t" : "", kept,
                     starts_with_digit || lang::is_free_name(kept) ? "" : "_");
}

std::string Importer::free_name(std::string_view wanted) {
  const std::string stem = sanitized(wanted);
  if (names_.insert(stem).second) return stem;
  int& number = next_number_[stem];
  for (number = std::max(number, 1);;) {
    std::string name = fmt::format("{}_{}", stem, ++number);
    if (names_.insert(name).second) return name;
  }
}

// Names that the model gives its outputs are theirs.
std::string Importer::free_name_beside_outputs(std::string_view wanted) {
  const std::string plain = sanitized(wanted);
  const auto& outputs = model_.graph.outputs;
  const bool is_output = std::any_of(outputs.begin(), outputs.end(), [&](const ValueInfo& info) {
    return sanitized(info.name) == plain;
  });
  const bool is_kept = is_output && names_.insert(plain).second;
  std::string name = free_name(wanted);
  if (is_kept) names_.erase(plain);
  return name;
}

Value* Importer::new_value(ir::DType dtype, std::vector<int64_t> shape) {
  values_.push_back({{}, dtype, std::move(shape), std::nullopt, false, false, false, {}, 0});
  return &values_.back();
}

void Importer::name_value(const Value* value, std::string_view wanted) {
  // Ours, though rows see it as const.
  auto* const own = const_cast<Value*>(value);
  if (own->name.empty()) own->name = free_name(wanted);
}

const Value* Importer::constant(const ir::Tensor& tensor) {
  auto bytes = std::make_shared<std::string>(reinterpret_cast<const char*>(tensor.data.data()),
                                             tensor.data.size());
  Value* const value = new_value(tensor.dtype, tensor.shape);
  value->known = Constant{0, tensor.dtype, tensor.shape, *bytes, bytes};
  made_bytes_ += static_cast<int64_t>(bytes->size());
  return value;
}

const Value* Importer::constant(const Constant& constant) {
  Value* const value =
      new_value(constant.dtype ? *constant.dtype : *constant.stand_in, constant.shape);
  value->known = constant;
  value->known->dtype = value->dtype;
  if (!constant.dtype) value->stands_for = constant.onnx_type;
  return value;
}

const Value* Importer::held(const Constant& constant) {
  const Value*& value = held_[{constant.bytes.data(), constant.onnx_type, constant.shape}];
  if (value == nullptr) value = this->constant(constant);
  return value;
}

const Value* Importer::sequence(std::vector<const Value*> parts) {
  Value* const value = new_value(parts.empty() ? ir::DType::kF32 : parts[0]->dtype, {});
  value->is_sequence = true;
  value->parts = std::move(parts);
  // As constants: chains of longer and longer sequences end, too.
  made_bytes_ += static_cast<int64_t>(value->parts.size() * sizeof(const Value*));
  return value;
}

std::string Importer::op_for(std::string_view stem, const std::vector<Arg>& args,
                             const std::vector<Out>& outs, std::string_view body) {
  std::string ports, results;
  for (const Arg& arg : args) {
    ports += fmt::format("{}{}: {}", ports.empty() ? "" : ", ", arg.name,
                         type_text(arg.value->dtype, arg.value->shape));
  }
  for (const Out& out : outs) {
    results += fmt::format("{}{}: {}", results.empty() ? "" : ", ", out.name,
                           type_text(out.dtype, out.shape));
  }
  std::string rest = fmt::format("({}) -> ({}) {{\n  {}\n}}\n", ports, results, body);
  const auto [found, is_new] = op_of_.emplace(std::move(rest), std::string());
  if (is_new) {
    found->second = free_name_beside_outputs(stem);
    ops_[found->second] = fmt::format("op {}{}", found->second, found->first);
  }
  return found->second;
}

std::optional<std::vector<const Value*>> Importer::fold(const std::string& op,
                                                        const std::vector<Arg>& args,
                                                        const std::vector<Out>& outs) {
  int64_t elements = 0;
  for (const Arg& arg : args) {
    if (!arg.value->known) return std::nullopt;
    elements += arg.value->num_elements();
  }
  for (const Out& out : outs) elements += product(out.shape);
  if (elements > kMaxFolded) return std::nullopt;
  auto known = folded_.find(op);
  if (known == folded_.end()) {
    if (kCompileSteps > kMaxAllFoldSteps - fold_steps_) return std::nullopt;
    fold_steps_ += kCompileSteps;
    lang::CompileInput input;
    input.text = ops_[op];
    lang::LangResult compiled = lang::compile(input);
    known = folded_.emplace(op, std::move(compiled.program)).first;
  }
  if (!known->second) return std::nullopt;
  const double steps = num_steps(known->second->root());
  if (steps > kMaxFoldSteps || steps > kMaxAllFoldSteps - fold_steps_) return std::nullopt;
  fold_steps_ += steps;
  std::vector<ir::Tensor> tensors;
  for (const Arg& arg : args) tensors.push_back(tensor_of(*arg.value->known));
  const Result<std::vector<ir::Tensor>> results = ir::interpret(*known->second, tensors);
  if (!results.ok()) return std::nullopt;
  std::vector<const Value*> values;
  for (const ir::Tensor& tensor : *results) values.push_back(constant(tensor));
  return values;
}

Result<std::vector<const Value*>> Importer::write_call(std::string_view stem,
                                                       const std::vector<Arg>& args,
                                                       const std::vector<Out>& outs,
                                                       std::string_view body) {
  if (calls_.size() >= lang::kMaxNetCalls) {
    return error(Diag::kOnnxNode, std::string(stem), std::string(),
                 fmt::format("more than {} calls in all", lang::kMaxNetCalls));
  }
  Call call;
  call.op = op_for(stem, args, outs, body);
  std::vector<const Value*> results;
  for (const Arg& arg : args) call.args.push_back(arg.value);
  for (const Out& out : outs) {
    call.results.push_back(new_value(out.dtype, out.shape));
    call.results.back()->is_result = true;
    results.push_back(call.results.back());
  }
  calls_.push_back(std::move(call));
  return results;
}

Result<std::vector<const Value*>> Importer::call(std::string_view stem,
                                                 const std::vector<Arg>& args,
                                                 const std::vector<Out>& outs,
                                                 std::string_view body) {
  const auto refuse = [&](std::string why) {
    return error(Diag::kOnnxNode, std::string(stem), std::string(), std::move(why));
  };
  if (std::max(args.size(), outs.size()) > lang::kMaxListLength)
    return refuse(fmt::format("more than {} operands", lang::kMaxListLength));
  bool is_empty = true;
  for (const Out& out : outs) {
    if (out.shape.size() > kMaxRank) return refuse("a tensor of more than 16 dimensions");
    const std::optional<int64_t> bytes = tensor_bytes(ir::byte_size(out.dtype), out.shape);
    if (!bytes) return refuse("a result of a shape that cannot be");
    is_empty = is_empty && *bytes == 0;
  }
  if (is_empty) {
    std::vector<const Value*> results;
    for (const Out& out : outs) results.push_back(constant(ir::Tensor(out.dtype, out.shape)));
    return results;
  }
  for (const Arg& arg : args) {
    if (arg.value->num_elements() == 0) return refuse("an empty tensor");
  }
  for (const Out& out : outs) {
    if (product(out.shape) == 0) return refuse("an empty tensor");
  }
  if (auto folded = fold(op_for(stem, args, outs, body), args, outs)) return std::move(*folded);
  return write_call(stem, args, outs, body);
}

void Importer::drop_dead() {
  std::set<const Value*> read;
  std::vector<Call> kept;
  for (auto call = calls_.rbegin(); call != calls_.rend(); ++call) {
    const bool is_read = std::any_of(call->results.begin(), call->results.end(), [&](Value* value) {
      return value->is_output || read.contains(value);
    });
    if (!is_read) continue;
    read.insert(call->args.begin(), call->args.end());
    kept.push_back(std::move(*call));
  }
  std::reverse(kept.begin(), kept.end());
  calls_ = std::move(kept);
}

std::string Importer::const_item(const Value& value,
                                 std::map<std::string, net::Weight>& weights) const {
  const std::string head =
      fmt::format("  const {}: {}", value.name, type_text(value.dtype, value.shape));
  const std::string_view bytes = value.known->bytes;
  const auto element = static_cast<std::size_t>(ir::byte_size(value.dtype));
  const bool is_splat = bytes.substr(element) == bytes.substr(0, bytes.size() - element);
  if (is_splat && !ir::is_bool(value.dtype)) {
    const double number = value.element(0);
    const bool is_exact = ir::is_float(value.dtype) || std::fabs(number) < 1e15;
    if (std::isfinite(number) && !std::signbit(number) && is_exact)
      return fmt::format("{} = {};\n", head, number_text(value.dtype, number));
  }
  weights.emplace(value.name,
                  net::Weight{std::string(net::weight_type(value.dtype)), value.shape, bytes});
  return head + ";\n";
}

ImportedNet Importer::finish() {
  std::map<std::string, net::Weight> weights;
  auto owners = std::make_shared<std::vector<std::shared_ptr<const void>>>();
  std::string consts, items, ops;
  std::set<const Value*> seen;
  std::set<std::string> used;
  for (const Call& call : calls_) {
    if (used.insert(call.op).second) ops += ops_[call.op];
    std::string results, args;
    bool gives_let = false;
    for (const Value* const value : call.args) {
      args += (args.empty() ? "" : ", ") + value->name;
      if (!value->known || !seen.insert(value).second) continue;
      consts += const_item(*value, weights);
      owners->push_back(value->known->owner);
    }
    for (const Value* const value : call.results) {
      gives_let |= !value->is_output;
      results += (results.empty() ? "" : ", ") + value->name;
    }
    items += fmt::format("  {}{} = {}({});\n", gives_let ? "let " : "", results, call.op, args);
  }
  std::string inputs, outputs;
  for (const Value* const value : inputs_) {
    inputs += fmt::format("{}{}: {}", inputs.empty() ? "" : ", ", value->name,
                          type_text(value->dtype, value->shape));
  }
  for (const Value* const value : outputs_) {
    outputs += fmt::format("{}{}: {}", outputs.empty() ? "" : ", ", value->name,
                           type_text(value->dtype, value->shape));
  }
  return {fmt::format("{}net {}({}) -> ({}) {{\n{}{}}}\n", ops, net_name_, inputs, outputs, consts,
                      items),
          net::WeightFile::of(model_.path, std::move(weights), std::move(owners)),
          std::move(input_names_),
          std::move(output_names_),
          std::move(fed_names_),
          lines_of(missing_),
          lines_of(in_floats_)};
}

}  // namespace prunerc::onnx
