// Result<T>: a value or an Error. Expected failures travel as values; nothing of ours throws.
#ifndef PRUNERC_IR_SUPPORT_RESULT_H_
#define PRUNERC_IR_SUPPORT_RESULT_H_

#include "ir/support/check.h"
#include "ir/support/diag.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace prunerc {

/// A failure. Cheap to return (one pointer) and to copy.
class [[nodiscard]] Error {
 public:
  explicit Error(ErrorData data) : data_(std::make_shared<const ErrorData>(std::move(data))) {}
  Diag id() const { return data_->id; }
  const ErrorData& data() const { return *data_; }
  std::string message() const { return prunerc::message(*data_); }

 private:
  std::shared_ptr<const ErrorData> data_;
};

/// Makes an Error from a row of diag.def: error(Diag::kLoopNotFound, loop).
template <typename... Args>
Error error(Diag id, Args&&... args) {
  static_assert(sizeof...(Args) <= 3, "a diagnostic has at most three arguments");
  ErrorData data;
  data.id = id;
  std::size_t i = 0;
  ((data.args[i++] = DiagArg(std::forward<Args>(args))), ...);
  return Error(std::move(data));
}

/// The same, at a position of a text.
template <typename... Args>
Error error_at(Locus locus, Diag id, Args&&... args) {
  Error e = error(id, std::forward<Args>(args)...);
  ErrorData data = e.data();
  data.locus = locus;
  return Error(std::move(data));
}

/// The same, with long text (a compiler's log) attached.
inline Error with_detail(const Error& e, std::string detail) {
  ErrorData data = e.data();
  data.detail = std::move(detail);
  return Error(std::move(data));
}

/// Either a T or an Error.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}      // NOLINT: implicit by design
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit by design

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  const T& value() const& {
    PRUNERC_CHECK(ok(), "value() of a failed Result");
    return *value_;
  }
  T& value() & {
    PRUNERC_CHECK(ok(), "value() of a failed Result");
    return *value_;
  }
  T&& value() && {
    PRUNERC_CHECK(ok(), "value() of a failed Result");
    return std::move(*value_);
  }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }
  const Error& error() const {
    PRUNERC_CHECK(!ok(), "error() of a successful Result");
    return *error_;
  }

 private:
  std::optional<T> value_;
  std::optional<Error> error_;
};

/// Success without a value, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit by design
  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    PRUNERC_CHECK(!ok(), "error() of a successful Result");
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace prunerc

#define PRUNERC_CONCAT_IMPL(a, b) a##b
#define PRUNERC_CONCAT(a, b) PRUNERC_CONCAT_IMPL(a, b)

/// PRUNERC_TRY(Type name, expression): returns the error to the caller, or declares `name`. The
/// type may hold commas.
#define PRUNERC_TRY_IMPL(result, declaration, ...) \
  auto result = (__VA_ARGS__);                     \
  if (!result.ok()) return result.error();         \
  declaration = std::move(result).value()
#define PRUNERC_TRY(declaration, ...) \
  PRUNERC_TRY_IMPL(PRUNERC_CONCAT(prunerc_try_, __LINE__), declaration, __VA_ARGS__)

/// PRUNERC_TRY_VOID(expression): for Result<void>, or a value that is not wanted.
#define PRUNERC_TRY_VOID(...)                                  \
  do {                                                         \
    if (auto prunerc_try = (__VA_ARGS__); !prunerc_try.ok()) { \
      return prunerc_try.error();                              \
    }                                                          \
  } while (false)

#endif  // PRUNERC_IR_SUPPORT_RESULT_H_
