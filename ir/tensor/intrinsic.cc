#include "ir/tensor/intrinsic.h"

#include "ir/parser.h"
#include "ir/tensor/registry.h"
#include "ir/verify.h"
#include "ir/visit.h"

#include <algorithm>
#include <charconv>

namespace prunerc::ir {
namespace {

Error malformed(std::string what) { return error(Diag::kTensorText, std::move(what)); }

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\r'))
    s.remove_suffix(1);
  return s;
}

// The first word of s, which is consumed.
std::string_view take_word(std::string_view& s) {
  s = trimmed(s);
  const std::size_t end = std::min(s.find(' '), s.size());
  const std::string_view word = s.substr(0, end);
  s = trimmed(s.substr(end));
  return word;
}

Result<int64_t> number(std::string_view s) {
  int64_t value = 0;
  const auto read = std::from_chars(s.data(), s.data() + s.size(), value);
  if (read.ec != std::errc() || read.ptr != s.data() + s.size() || value < 0 || value > 1 << 20) {
    return malformed("'" + std::string(s) + "' is no number");
  }
  return value;
}

// C [4, 1] splat 4: (lane, reg) -> (lane, reg)
Result<TensorOperand> parse_operand(std::string_view s) {
  TensorOperand out;
  out.name = take_word(s);
  const std::size_t open = s.find('['), close = s.find(']');
  if (open != 0 || close == std::string_view::npos) return malformed("an operand needs strides");
  std::string_view list = s.substr(1, close - 1);
  while (!trimmed(list).empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view one = trimmed(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
    if (one == "*") {
      out.strides.push_back(TensorOperand::kAnyStride);
      continue;
    }
    PRUNERC_TRY(const int64_t stride, number(one));
    out.strides.push_back(stride);
  }
  s = trimmed(s.substr(close + 1));
  if (s == "shared" || s == "tile") {
    (s == "tile" ? out.in_tile : out.in_shared) = true;
    out.registers = 0;
    return out;
  }
  const std::size_t colon = s.find(':');
  if (colon == std::string_view::npos) return malformed("an operand needs a fragment");
  std::string_view head = s.substr(0, colon);
  std::string_view word = take_word(head);
  if (word == "splat") {
    out.splat = true;
    word = take_word(head);
  }
  PRUNERC_TRY(const int64_t registers, number(word));
  out.registers = static_cast<int>(registers);
  PRUNERC_TRY(out.fragment, IndexMap::parse(trimmed(s.substr(colon + 1))));
  return out;
}

Result<void> header_line(std::string_view line, TensorIntrinsic& out) {
  std::string_view rest = line;
  const std::string_view key = take_word(rest);
  if (key == "tensor") {
    out.name = rest;
  } else if (key == "needs") {
    out.family = take_word(rest);
    out.features = rest;
  } else if (key == "call") {
    out.call = rest;
  } else if (key == "rounds") {
    out.rounds = rest;
  } else if (key == "slots") {
    PRUNERC_TRY(const int64_t tenths, number(rest));
    out.slots = static_cast<double>(tenths) / 10;
  } else if (key == "lanes") {
    PRUNERC_TRY(const int64_t lanes, number(rest));
    out.lanes = static_cast<int>(lanes);
  } else if (key == "operand") {
    PRUNERC_TRY(TensorOperand operand, parse_operand(rest));
    out.operands.push_back(std::move(operand));
  } else {
    return malformed("unknown line '" + std::string(line) + "'");
  }
  return {};
}

const Block* only_block(Stmt s) {
  while (const Loop* loop = s.as<Loop>()) s = loop->body;
  return s.as<Block>();
}

// Loops straight around one block with one store: the form that match_tensor compares with.
Result<void> check_description(TensorIntrinsic& t) {
  const Block* block = only_block(t.description.root());
  if (block == nullptr || block->body.as<Store>() == nullptr) {
    return malformed(t.name + ": the description is loops around one block with one store");
  }
  for (const IterVar& iter : block->iters) {
    if (iter.binding.as<Var>() == nullptr || iter.extent.as<IntImm>() == nullptr) {
      return malformed(t.name + ": each variable of the description is one loop");
    }
  }
  if (t.operands.size() != t.description.params().size()) {
    return malformed(t.name + ": each parameter of the description is one operand");
  }
  for (TensorOperand& operand : t.operands) {
    for (BufferId id : t.description.params()) {
      const Buffer& buffer = t.description.buffer(id);
      if (buffer.name != operand.name) continue;
      operand.buffer = id;
      operand.is_output = buffer.role == BufferRole::kOutput;
      const std::size_t rank = buffer.shape.size();
      const bool fits = operand.in_shared || operand.in_tile ||
                        (operand.fragment.num_inputs() == 2 &&
                         operand.fragment.num_outputs() == static_cast<int>(rank));
      if (operand.strides.size() != rank || !fits) {
        return malformed(t.name + ": operand " + operand.name + " has another rank");
      }
    }
    if (!operand.buffer.valid()) {
      return malformed(t.name + ": the description has no parameter '" + operand.name + "'");
    }
    if (operand.in_tile != t.operands.front().in_tile) {
      return malformed(t.name + ": all operands are in tile registers, or none");
    }
  }
  return {};
}

// The description's parameters, as registers of lanes.
Result<void> check_implementation(const TensorIntrinsic& t) {
  const std::span<const BufferId> params = t.implementation.params();
  bool fits = params.size() == t.description.params().size();
  for (std::size_t i = 0; fits && i < params.size(); ++i) {
    const Buffer& whole = t.description.buffer(t.description.params()[i]);
    const Buffer& held = t.implementation.buffer(params[i]);
    const auto operand = std::find_if(t.operands.begin(), t.operands.end(),
                                      [&](const TensorOperand& o) { return o.buffer == whole.id; });
    const auto extent = [&](std::size_t d) {
      const IntImm* imm = held.shape[d].as<IntImm>();
      return imm == nullptr ? -1 : imm->value;
    };
    fits = held.name == whole.name && held.dtype == whole.dtype && held.role == whole.role &&
           held.shape.size() == 2 && extent(0) == t.lanes && extent(1) == operand->registers;
  }
  if (fits) return {};
  return malformed(t.name + ": the implementation has the same parameters, as [lane, register]");
}

// All but the proofs that its programs are sound.
Result<TensorIntrinsic> read_tensor(std::string_view text) {
  TensorIntrinsic out;
  bool described = false;
  while (!described) {
    if (text.empty()) return malformed("the text ends before 'describes'");
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    described = line == "describes";
    if (!described) PRUNERC_TRY_VOID(header_line(line, out));
  }
  constexpr std::string_view kImplements = "\nimplements\n";
  const std::size_t end = std::min(text.find(kImplements), text.size());
  PRUNERC_TRY(out.description, parse(text.substr(0, end)));
  PRUNERC_TRY_VOID(check_description(out));
  if (end == text.size()) return out;
  PRUNERC_TRY(out.implementation, parse(text.substr(end + kImplements.size())));
  PRUNERC_TRY_VOID(check_implementation(out));
  return out;
}

// A test proves each of them: a program that wants one would wait for the proofs of all.
std::vector<TensorIntrinsic> load_registry() {
  std::vector<TensorIntrinsic> out;
  for (const std::string& text : tensor_texts()) {
    Result<TensorIntrinsic> one = read_tensor(text);
    PRUNERC_CHECK(one.ok(), "every registered text is read by a test");
    out.push_back(std::move(one).value());
  }
  return out;
}

}  // namespace

const Block& TensorIntrinsic::block() const { return *only_block(description.root()); }

const Store& TensorIntrinsic::store() const { return *block().body.as<Store>(); }

std::string TensorIntrinsic::needs() const {
  return features.empty() ? family : family + " with " + features;
}

Result<TensorIntrinsic> parse_tensor(std::string_view text) {
  PRUNERC_TRY(TensorIntrinsic out, read_tensor(text));
  PRUNERC_TRY_VOID(verify(out.description));
  if (out.implementation.defined()) PRUNERC_TRY_VOID(verify(out.implementation));
  return out;
}

std::span<const TensorIntrinsic> tensor_intrinsics() {
  static const std::vector<TensorIntrinsic> all = load_registry();
  return all;
}

Result<const TensorIntrinsic*> find_tensor(std::string_view name) {
  for (const TensorIntrinsic& one : tensor_intrinsics()) {
    if (one.name == name) return &one;
  }
  return error(Diag::kTensorUnknown, std::string(name));
}

std::string tensor_attr(const TensorIntrinsic& intrinsic) {
  return std::string(kTensorAttr) + intrinsic.name;
}

std::optional<std::string_view> tensor_of(const Loop& loop) {
  for (const Attr& attr : loop.attrs) {
    if (attr.key.substr(0, kTensorAttr.size()) == kTensorAttr) {
      return attr.key.substr(kTensorAttr.size());
    }
  }
  return std::nullopt;
}

const TensorIntrinsic* tile_product_of(const Loop& loop) {
  const std::optional<std::string_view> name = tensor_of(loop);
  if (!name) return nullptr;
  const Result<const TensorIntrinsic*> found = find_tensor(*name);
  return found.ok() && (*found)->uses_tiles() ? *found : nullptr;
}

}  // namespace prunerc::ir
