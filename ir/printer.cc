#include "ir/printer.h"

#include "ir/canonical.h"
#include "ir/thread_axis.h"
#include "ir/visit.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

namespace prunerc::ir {
namespace {

// Binding strength, as in the parser. A child weaker than its place is put in parentheses.
enum Precedence { kOrLevel, kAndLevel, kCompareLevel, kAddLevel, kMulLevel, kUnaryLevel };

int level(ExprKind kind) {
  switch (kind) {
    case ExprKind::kOr: return kOrLevel;
    case ExprKind::kAnd: return kAndLevel;
    case ExprKind::kEq:
    case ExprKind::kNe:
    case ExprKind::kLt:
    case ExprKind::kLe: return kCompareLevel;
    case ExprKind::kAdd:
    case ExprKind::kSub: return kAddLevel;
    case ExprKind::kMul:
    case ExprKind::kDiv:
    case ExprKind::kFloorDiv:
    case ExprKind::kFloorMod: return kMulLevel;
    default: return kUnaryLevel;
  }
}

bool is_reserved(std::string_view name) {
  static const std::unordered_set<std::string_view> kWords = {
      "program", "buffer", "param",  "tiles",  "choice", "require", "for",  "in",
      "block",   "where",  "reads",  "writes", "init",   "combine", "if",   "else",
      "alloc",   "true",   "false",  "min",    "max",    "select",  "f64",  "f32",
      "f16",     "bf16",   "i64",    "i32",    "i8",     "u8",      "bool", "S",
      "R",       "O",      "global", "shared", "local"};
  return kWords.count(name) > 0;
}

std::string identifier(std::string_view name) {
  std::string out;
  for (char c : name) {
    out += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ? c : '_';
  }
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) != 0) out = "v" + out;
  if (is_reserved(out)) out += "_";
  return out;
}

std::string float_text(const FloatImm& imm) {
  const std::string_view type = to_string(imm.dtype);
  if (std::isnan(imm.value)) return fmt::format("{}.nan", type);
  if (std::isinf(imm.value)) return fmt::format("{}.{}", type, imm.value > 0 ? "inf" : "ninf");
  // The shortest decimal that reads back; the 16-bit types are exact in f32.
  if (imm.dtype == DType::kF64) return fmt::format("{}{}", imm.value, type);
  return fmt::format("{}{}", static_cast<float>(imm.value), type);
}

/// As in the program, or by order of appearance (canonical.h).
enum class Naming : uint8_t { kOwn, kCanonical };

class Printer {
 public:
  explicit Printer(const Program& program, Naming naming = Naming::kOwn)
      : program_(program), naming_(naming) {}

  std::string program() {
    line("program {}({}) -> ({}) {{", own(program_.name(), "p"), ports(BufferRole::kInput),
         ports(BufferRole::kOutput));
    ++depth_;
    for (const Buffer& b : program_.buffers()) {
      if (b.role != BufferRole::kIntermediate) continue;
      line("buffer {} {}", port(b), to_string(b.scope));
    }
    domain();
    stmt(program_.root());
    --depth_;
    line("}}");
    return std::move(out_);
  }

  std::string one(Stmt s) {
    stmt(s);
    return std::move(out_);
  }

  std::string expr(Expr e, int place = kOrLevel) {
    if (const BinaryNode* n = as_binary(e)) return binary(e, *n, place);
    return visit(e, Overload{[&](const Var& v) { return var_name(&v); },
                             [&](const TileParam& p) { return "$" + std::to_string(p.id.value); },
                             [&](const IntImm& i) { return int_text(i); },
                             [&](const FloatImm& f) { return float_text(f); },
                             [&](const Not& n) { return "!" + expr(n.operand, kUnaryLevel); },
                             [&](const Select& s) {
                               return fmt::format("select({}, {}, {})", expr(s.condition),
                                                  expr(s.on_true), expr(s.on_false));
                             },
                             [&](const Cast& c) {
                               return fmt::format("{}({})", to_string(c.dtype), expr(c.operand));
                             },
                             [&](const Load& l) { return element(l.buffer, l.indices); },
                             [&](const Call& c) {
                               return fmt::format("{}({})", to_string(c.intrinsic), list(c.args));
                             },
                             [&](const BinaryNode&) -> std::string {
                               PRUNERC_UNREACHABLE("binary handled above");
                             }});
  }

 private:
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    out_.append(static_cast<std::size_t>(depth_) * 2, ' ');
    out_ += fmt::format(format, std::forward<Args>(args)...);
    out_ += '\n';
  }

  static std::string int_text(const IntImm& i) {
    if (i.dtype == DType::kBool) return i.value != 0 ? "true" : "false";
    if (i.dtype == DType::kI64) return std::to_string(i.value);
    return fmt::format("{}{}", i.value, to_string(i.dtype));
  }

  std::string binary(Expr e, const BinaryNode& n, int place) {
    if (e.kind() == ExprKind::kMin || e.kind() == ExprKind::kMax) {
      return fmt::format("{}({}, {})", to_string(e.kind()), expr(n.lhs), expr(n.rhs));
    }
    const int mine = level(e.kind());
    // All operators associate to the left; comparisons do not chain, so both their sides are one
    // level up.
    const int left = mine == kCompareLevel ? mine + 1 : mine;
    const bool tight = e.kind() == ExprKind::kMul;
    const std::string text =
        fmt::format("{}{}{}{}{}", expr(n.lhs, left), tight ? "" : " ", to_string(e.kind()),
                    tight ? "" : " ", expr(n.rhs, mine + 1));
    return mine < place ? "(" + text + ")" : text;
  }

  std::string list(std::span<const Expr> items) {
    std::string out;
    for (Expr e : items) out += (out.empty() ? "" : ", ") + expr(e);
    return out;
  }

  std::string own(std::string_view name, std::string_view canonical) const {
    return naming_ == Naming::kOwn ? identifier(name) : std::string(canonical);
  }

  // Numbers of loops and blocks.
  int32_t number(std::unordered_map<int32_t, int32_t>& seen, int32_t id) const {
    if (naming_ == Naming::kOwn) return id;
    return seen.try_emplace(id, static_cast<int32_t>(seen.size())).first->second;
  }

  const std::string& unique(std::unordered_map<int32_t, std::string>& names, int32_t id,
                            std::string_view name) {
    const auto [entry, is_new] = names.try_emplace(id);
    if (!is_new) return entry->second;
    const std::string base = own(name, &names == &vars_ ? "v" : "t");
    std::string candidate = base;
    // What was taken for this base stays taken.
    for (int& i = next_suffix_[base]; !used_.insert(candidate).second;) {
      candidate = fmt::format("{}_{}", base, ++i);
    }
    return entry->second = candidate;
  }

  std::string var_name(const Var* v) { return unique(vars_, v->id.value, v->name); }
  std::string buffer_name(BufferId id) {
    return unique(buffers_, id.value, program_.buffer(id).name);
  }

  std::string element(BufferId id, std::span<const Expr> indices) {
    return fmt::format("{}[{}]", buffer_name(id), list(indices));
  }

  std::string port(const Buffer& b) {
    std::string text = fmt::format("{}: {}", buffer_name(b.id), to_string(b.dtype));
    if (!b.shape.empty()) text += fmt::format("[{}]", list(b.shape));
    return text;
  }

  std::string ports(BufferRole role) {
    std::string out;
    for (BufferId id : program_.params()) {
      const Buffer& b = program_.buffer(id);
      if (b.role != role) continue;
      out += (out.empty() ? "" : ", ") + std::string(b.is_const ? "const " : "") + port(b);
    }
    return out;
  }

  void domain() {
    const Domain& d = program_.domain();
    for (const std::string_view name : d.names) line("param {}", identifier(name));
    for (const TileVector& t : d.tiles) {
      std::string params;
      for (ParamId p : t.params)
        params += fmt::format("{}${}", params.empty() ? "" : ", ", p.value);
      line("tiles {} {} [{}] max {}", t.extent,
           t.kind == TileKind::kPerfect ? "perfect" : "covering", params, t.max_innermost);
    }
    for (const Choice& c : d.choices) {
      line("choice ${} [{}]", c.param.value, fmt::join(c.values, ", "));
    }
    for (Expr e : d.constraints) line("require {}", expr(e));
  }

  std::string attrs(std::span<const Attr> items) {
    if (items.empty()) return "";
    std::string out;
    for (const Attr& a : items) {
      out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", identifier(a.key), a.value);
    }
    return " {" + out + "}";
  }

  std::string access(const Access& a) {
    std::string out;
    for (const Range& r : a.region) {
      if (!out.empty()) out += ", ";
      const IntImm* extent = r.extent.as<IntImm>();
      out += extent != nullptr && extent->value == 1
                 ? expr(r.min)
                 : fmt::format("{} +: {}", expr(r.min), expr(r.extent));
    }
    return fmt::format("{}[{}]", buffer_name(a.buffer), out);
  }

  void accesses(std::string_view word, std::span<const Access> items) {
    if (items.empty()) return;
    std::string out;
    for (const Access& a : items) out += (out.empty() ? "" : ", ") + access(a);
    line("{} {}", word, out);
  }

  void loop(const Loop& l) {
    std::string kind(to_string(l.loop_kind));
    if (is_thread_axis(l.loop_kind)) kind = "bind(" + kind + ")";
    kind = l.loop_kind == LoopKind::kSerial ? "" : " " + kind;
    const std::string extent = expr(l.extent);
    line("for {} in {} @L{}{}{} {{", var_name(l.var), extent, number(loops_, l.id.value), kind,
         attrs(l.attrs));
    body(l.body);
  }

  void block(const Block& b) {
    static constexpr std::string_view kKinds[] = {"S", "R", "O"};
    std::string iters;
    for (const IterVar& iter : b.iters) {
      if (!iters.empty()) iters += ", ";
      const std::string binding = expr(iter.binding);
      iters += fmt::format("{}: {}({}) = {}", var_name(iter.var),
                           kKinds[static_cast<std::size_t>(iter.kind)], expr(iter.extent), binding);
    }
    const std::string guard = b.guard.defined() ? " where " + expr(b.guard) : "";
    line("block \"{}\" @B{} [{}]{}{} {{", own(b.name, "b"), number(blocks_, b.id.value), iters,
         attrs(b.attrs), guard);
    ++depth_;
    accesses("reads", b.reads);
    accesses("writes", b.writes);
    if (b.init.defined()) {
      line("init {{");
      body(b.init);
    }
    if (b.combiner != nullptr) combiner(*b.combiner);
    --depth_;
    body(b.body);
  }

  // Names of its variables end with it: blocks may share them.
  void combiner(const Combiner& c) {
    const std::unordered_map<int32_t, std::string> outer = vars_;
    const std::unordered_set<std::string> outer_used = used_;
    const std::unordered_map<std::string, int> outer_suffix = next_suffix_;
    const auto names = [&](std::span<const Var* const> vars) {
      std::string out;
      for (const Var* v : vars) out += (out.empty() ? "" : ", ") + var_name(v);
      return out;
    };
    const std::string left = names(c.left);
    const std::string right = names(c.right);
    line("combine ({}), ({}) -> ({})", left, right, list(c.results));
    vars_ = outer;
    used_ = outer_used;
    next_suffix_ = outer_suffix;
  }

  // The statements inside braces that are already open, and the closing brace.
  void body(Stmt s) {
    ++depth_;
    stmt(s);
    --depth_;
    line("}}");
  }

  void stmt(Stmt s) {
    if (!s.defined()) return;
    visit(s, Overload{[&](const Seq& n) {
                        for (Stmt child : n.stmts) stmt(child);
                      },
                      [&](const Loop& n) { loop(n); }, [&](const Block& n) { block(n); },
                      [&](const Store& n) {
                        const std::string target = element(n.buffer, n.indices);
                        line("{} = {}", target, expr(n.value));
                      },
                      [&](const If& n) {
                        line("if {} {{", expr(n.condition));
                        body(n.then_body);
                        if (!n.else_body.defined()) return;
                        line("else {{");
                        body(n.else_body);
                      },
                      [&](const Alloc& n) {
                        line("alloc {} {{", buffer_name(n.buffer));
                        body(n.body);
                      }});
  }

  const Program& program_;
  Naming naming_;
  std::string out_;
  int depth_ = 0;
  std::unordered_map<int32_t, std::string> vars_, buffers_;
  std::unordered_map<int32_t, int32_t> loops_, blocks_;
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, int> next_suffix_;  // by name
};

}  // namespace

std::string print(const Program& program) { return Printer(program).program(); }
std::string print_canonical(const Program& program) {
  return Printer(program, Naming::kCanonical).program();
}
std::string print(const Program& program, Stmt stmt) { return Printer(program).one(stmt); }
std::string print(const Program& program, Expr expr) { return Printer(program).expr(expr); }

}  // namespace prunerc::ir
