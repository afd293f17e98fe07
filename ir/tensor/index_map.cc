#include "ir/tensor/index_map.h"

#include <cctype>
#include <charconv>
#include <numeric>

namespace prunerc::ir {
namespace {

/// Larger maps are a mistake; the bound keeps every recursion shallow.
constexpr std::size_t kMaxNodes = 512;
constexpr int kMaxDepth = 64;
constexpr int64_t kMaxConstant = int64_t{1} << 40;
constexpr int64_t kMaxExtent = int64_t{1} << 40;

int64_t wrapped(uint64_t v) { return static_cast<int64_t>(v); }

}  // namespace

class IndexMapParser {
 public:
  explicit IndexMapParser(std::string_view text) : text_(text) {}

  Result<IndexMap> run() {
    if (!inputs() || !accept("->") || !outputs() || peek() != '\0') {
      return error(
          Diag::kIndexMapText, std::string(text_.substr(0, 200)),
          problem_.empty() ? "unexpected text at offset " + std::to_string(pos_) : problem_);
    }
    return std::move(map_);
  }

 private:
  using Op = IndexMap::Op;

  bool fail(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
    return false;
  }
  char peek() {
    while (pos_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[pos_])) != 0) {
      ++pos_;
    }
    return pos_ < text_.size() ? text_[pos_] : '\0';
  }
  bool accept(std::string_view symbol) {
    if (peek() == '\0' || text_.substr(pos_, symbol.size()) != symbol) return false;
    pos_ += symbol.size();
    return true;
  }
  bool name(std::string* out) {
    peek();
    const std::size_t start = pos_;
    while (pos_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[pos_])) != 0 || text_[pos_] == '_')) {
      ++pos_;
    }
    *out = text_.substr(start, pos_ - start);
    return !out->empty() && std::isdigit(static_cast<unsigned char>((*out)[0])) == 0;
  }

  bool inputs() {
    if (!accept("(")) return fail("an index map begins with '('");
    if (accept(")")) return true;
    do {
      std::string one;
      if (!name(&one)) return fail("expected the name of an index");
      if (find(one) >= 0) return fail("index '" + one + "' is named twice");
      map_.names_.push_back(std::move(one));
      if (map_.names_.size() > kMaxNodes) return fail("too many indices");
    } while (accept(","));
    return accept(")") || fail("expected ')'");
  }

  bool outputs() {
    if (!accept("(")) return fail("expected '(' after '->'");
    if (accept(")")) return true;
    do {
      int id = -1;
      if (!sum(&id, 0)) return false;
      map_.outputs_.push_back(id);
    } while (accept(","));
    return accept(")") || fail("expected ')'");
  }

  int find(const std::string& wanted) const {
    for (std::size_t i = 0; i < map_.names_.size(); ++i) {
      if (map_.names_[i] == wanted) return static_cast<int>(i);
    }
    return -1;
  }

  bool put(IndexMap::Node node, int* id) {
    if (map_.nodes_.size() >= kMaxNodes) return fail("the map is too large");
    *id = static_cast<int>(map_.nodes_.size());
    map_.nodes_.push_back(node);
    return true;
  }

  bool sum(int* id, int depth) {
    if (depth > kMaxDepth) return fail("nested too deep");
    if (!product(id, depth)) return false;
    for (;;) {
      if (peek() == '-' && text_.substr(pos_, 2) == "->") return fail("unexpected '->'");
      const bool plus = accept("+");
      if (!plus && !accept("-")) return true;
      int rhs = -1;
      if (!product(&rhs, depth)) return false;
      if (!put({plus ? Op::kAdd : Op::kSub, 0, *id, rhs}, id)) return false;
    }
  }

  bool product(int* id, int depth) {
    if (!atom(id, depth)) return false;
    for (;;) {
      const Op op = accept("//")  ? Op::kDiv
                    : accept("*") ? Op::kMul
                    : accept("%") ? Op::kMod
                                  : Op::kConst;
      if (op == Op::kConst) return true;
      int rhs = -1;
      if (!atom(&rhs, depth)) return false;
      const bool is_const = map_.node(rhs).op == Op::kConst;
      if (op == Op::kMul && !is_const && map_.node(*id).op != Op::kConst) {
        return fail("a product needs a constant factor");
      }
      if (op != Op::kMul && (!is_const || map_.node(rhs).value < 1)) {
        return fail("a divisor is a positive constant");
      }
      if (!put({op, 0, *id, rhs}, id)) return false;
    }
  }

  bool atom(int* id, int depth) {
    if (accept("(")) return sum(id, depth + 1) && (accept(")") || fail("expected ')'"));
    if (std::isdigit(static_cast<unsigned char>(peek())) != 0) {
      int64_t value = 0;
      const auto read = std::from_chars(text_.data() + pos_, text_.data() + text_.size(), value);
      if (read.ec != std::errc() || value > kMaxConstant) return fail("a constant is too large");
      pos_ = static_cast<std::size_t>(read.ptr - text_.data());
      return put({Op::kConst, value, -1, -1}, id);
    }
    std::string one;
    if (!name(&one)) return fail("expected an index, a number or '('");
    const int input = find(one);
    if (input < 0) return fail("'" + one + "' is no index of the map");
    return put({Op::kInput, input, -1, -1}, id);
  }

  std::string_view text_;
  std::size_t pos_ = 0;
  std::string problem_;
  IndexMap map_;
};

Result<IndexMap> IndexMap::parse(std::string_view text) { return IndexMapParser(text).run(); }

IndexMap IndexMap::identity(int num_inputs) {
  IndexMap map;
  for (int i = 0; i < num_inputs; ++i) {
    map.names_.push_back("i" + std::to_string(i));
    map.nodes_.push_back({Op::kInput, i, -1, -1});
    map.outputs_.push_back(i);
  }
  return map;
}

// `outer`: 0 as an operand of nothing, 1 of + and -, 2 on the left and 3 on the right of *, //, %.
std::string IndexMap::text_of(int id, int outer) const {
  const Node& n = node(id);
  if (n.op == Op::kInput) return names_[static_cast<std::size_t>(n.value)];
  if (n.op == Op::kConst) return std::to_string(n.value);
  const bool is_sum = n.op == Op::kAdd || n.op == Op::kSub;
  const char* symbol = n.op == Op::kAdd   ? " + "
                       : n.op == Op::kSub ? " - "
                       : n.op == Op::kMul ? "*"
                       : n.op == Op::kDiv ? " // "
                                          : " % ";
  const int right = is_sum ? 2 : 3;
  const std::string out = text_of(n.lhs, is_sum ? 1 : 2) + symbol +
                          text_of(n.rhs, is_sum && n.op == Op::kAdd ? 2 : right);
  const bool bare = is_sum ? outer <= 1 : outer <= 2;
  return bare ? out : "(" + out + ")";
}

std::string IndexMap::text() const {
  std::string out = "(";
  for (std::size_t i = 0; i < names_.size(); ++i) out += (i > 0 ? ", " : "") + names_[i];
  out += ") -> (";
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    out += (i > 0 ? ", " : "") + text_of(outputs_[i], 0);
  }
  return out + ")";
}

std::vector<Expr> IndexMap::apply(IrBuilder& b, std::span<const Expr> inputs) const {
  PRUNERC_CHECK(inputs.size() == names_.size(), "one expression per index");
  std::vector<Expr> values;
  for (const Node& n : nodes_) {
    const auto at = [&](int id) { return values[static_cast<std::size_t>(id)]; };
    switch (n.op) {
      case Op::kInput: values.push_back(inputs[static_cast<std::size_t>(n.value)]); break;
      case Op::kConst: values.push_back(b.int_imm(n.value)); break;
      case Op::kAdd: values.push_back(b.add(at(n.lhs), at(n.rhs))); break;
      case Op::kSub: values.push_back(b.sub(at(n.lhs), at(n.rhs))); break;
      case Op::kMul: values.push_back(b.mul(at(n.lhs), at(n.rhs))); break;
      case Op::kDiv: values.push_back(b.floordiv(at(n.lhs), at(n.rhs))); break;
      case Op::kMod: values.push_back(b.floormod(at(n.lhs), at(n.rhs))); break;
    }
  }
  std::vector<Expr> out;
  for (int id : outputs_) out.push_back(values[static_cast<std::size_t>(id)]);
  return out;
}

std::vector<int64_t> IndexMap::at(std::span<const int64_t> inputs) const {
  PRUNERC_CHECK(inputs.size() == names_.size(), "one value per index");
  std::vector<int64_t> values;
  for (const Node& n : nodes_) {
    const auto at = [&](int id) { return values[static_cast<std::size_t>(id)]; };
    const auto bits = [&](int id) { return static_cast<uint64_t>(at(id)); };
    switch (n.op) {
      case Op::kInput: values.push_back(inputs[static_cast<std::size_t>(n.value)]); break;
      case Op::kConst: values.push_back(n.value); break;
      case Op::kAdd: values.push_back(wrapped(bits(n.lhs) + bits(n.rhs))); break;
      case Op::kSub: values.push_back(wrapped(bits(n.lhs) - bits(n.rhs))); break;
      case Op::kMul: values.push_back(wrapped(bits(n.lhs) * bits(n.rhs))); break;
      case Op::kDiv: values.push_back(floor_div(at(n.lhs), at(n.rhs))); break;
      case Op::kMod: values.push_back(floor_mod(at(n.lhs), at(n.rhs))); break;
    }
  }
  std::vector<int64_t> out;
  for (int id : outputs_) out.push_back(values[static_cast<std::size_t>(id)]);
  return out;
}

bool IndexMap::mentions(int id, int input) const {
  const Node& n = node(id);
  if (n.op == Op::kInput) return n.value == input;
  return n.lhs >= 0 && (mentions(n.lhs, input) || mentions(n.rhs, input));
}

bool IndexMap::uses(int output, int input) const {
  return mentions(outputs_[static_cast<std::size_t>(output)], input);
}

int64_t IndexMap::round_up(int input, int64_t extent) const {
  if (extent > kMaxExtent) return extent;
  int64_t multiple = 1;
  for (const Node& n : nodes_) {
    if (n.op != Op::kDiv && n.op != Op::kMod) continue;
    const Node& value = node(n.lhs);
    if (value.op != Op::kInput || value.value != input) continue;
    const int64_t divisor = node(n.rhs).value;
    const int64_t more = divisor / std::gcd(multiple, divisor);
    if (more > kMaxExtent / multiple) return extent;
    multiple *= more;
  }
  return (extent + multiple - 1) / multiple * multiple;
}

}  // namespace prunerc::ir
