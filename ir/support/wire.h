// A small binary format for plain data that crosses a process or a file: fixed-width integers and
// counted strings.
#ifndef PRUNERC_IR_SUPPORT_WIRE_H_
#define PRUNERC_IR_SUPPORT_WIRE_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace prunerc {

/// Appends values to a byte string. Integers are little endian, which is the byte order of all our
/// targets.
class WireWriter {
 public:
  template <typename T>
  void put(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>, "scalars only");
    static_assert(std::endian::native == std::endian::little, "the format is little endian");
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    bytes_.append(raw, sizeof(T));
  }
  void put_string(std::string_view text) {
    put(static_cast<uint64_t>(text.size()));
    bytes_.append(text);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads what WireWriter wrote. After a read past the end every value is zero or empty and failed()
/// says so, so callers check once at the end.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  T get() {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>, "scalars only");
    T value{};
    if (rest_.size() < sizeof(T)) {
      fail();
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_.remove_prefix(sizeof(T));
    return value;
  }
  std::string_view get_string() {
    const uint64_t size = get<uint64_t>();
    if (failed_ || size > rest_.size()) {
      fail();
      return {};
    }
    const std::string_view text = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return text;
  }
  /// A count of things that each take at least `min_bytes_each` of what is left: a lying count
  /// fails here, before anybody allocates for it.
  uint64_t get_count(uint64_t min_bytes_each) {
    const uint64_t count = get<uint64_t>();
    if (failed_ || count > rest_.size() / min_bytes_each) {
      fail();
      return 0;
    }
    return count;
  }

  bool failed() const { return failed_; }
  /// True if everything was read and nothing is left.
  bool at_end() const { return !failed_ && rest_.empty(); }

 private:
  void fail() {
    failed_ = true;
    rest_ = {};
  }

  std::string_view rest_;
  bool failed_ = false;
};

}  // namespace prunerc

#endif  // PRUNERC_IR_SUPPORT_WIRE_H_
