// What must hold unless prunerc itself has a bug: the condition and a message are printed, then the
// process aborts.
#ifndef PRUNERC_IR_SUPPORT_CHECK_H_
#define PRUNERC_IR_SUPPORT_CHECK_H_

namespace prunerc {

/// Prints "file:line: check failed: condition: message" to stderr and aborts. Never returns.
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const char* message);

}  // namespace prunerc

#define PRUNERC_CHECK(condition, message) \
  (static_cast<bool>(condition)           \
       ? static_cast<void>(0)             \
       : ::prunerc::check_failed(__FILE__, __LINE__, #condition, message))

#ifdef NDEBUG
#define PRUNERC_DCHECK(condition, message) static_cast<void>(0)
#else
#define PRUNERC_DCHECK(condition, message) PRUNERC_CHECK(condition, message)
#endif

#define PRUNERC_UNREACHABLE(message) \
  ::prunerc::check_failed(__FILE__, __LINE__, "unreachable", message)

#endif  // PRUNERC_IR_SUPPORT_CHECK_H_
