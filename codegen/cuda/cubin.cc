#include "codegen/cuda/cubin.h"

#include <elf.h>

#include <cstring>
#include <map>
#include <optional>

namespace prunerc::codegen {
namespace {

/// From sm_90 on the runtime keeps the first part of a kernel's static shared memory for itself.
constexpr int64_t kReservedShared = 1024;
constexpr int64_t kFirstArchWithReserved = 90;
constexpr unsigned kElfMachineCuda = 190;

// Attributes of .nv.info records. NVIDIA does not document them; tests compare what they say with
// the compiler's own messages.
constexpr uint8_t kAttrMaxThreads = 0x05;
constexpr uint8_t kAttrFrameSize = 0x11;
constexpr uint8_t kAttrParamBytes = 0x19;
constexpr uint8_t kAttrRegisters = 0x2f;
/// The record's value follows in a payload of its own; otherwise it is in the record.
constexpr uint8_t kFormatPayload = 4;

Error malformed(std::string what) { return error(Diag::kCubinMalformed, std::move(what)); }

template <typename T>
std::optional<T> read_at(std::string_view bytes, uint64_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

/// Empty if it is not inside of the file.
std::string_view slice(std::string_view bytes, uint64_t at, uint64_t size) {
  if (at > bytes.size() || bytes.size() - at < size) return {};
  return bytes.substr(at, size);
}

std::string_view c_string(std::string_view table, uint64_t at) {
  if (at >= table.size()) return {};
  const std::string_view rest = table.substr(at);
  return rest.substr(0, rest.find('\0'));
}

struct Section {
  std::string_view name;
  Elf64_Shdr header;
  std::string_view bytes;
};

Result<std::vector<Section>> read_sections(std::string_view file, const Elf64_Ehdr& header) {
  std::vector<Section> sections;
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    const auto one = read_at<Elf64_Shdr>(file, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (header.e_shoff > file.size() || !one) return malformed("its sections lie outside of it");
    const bool has_bytes = one->sh_type != SHT_NOBITS;
    sections.push_back(
        {{}, *one, has_bytes ? slice(file, one->sh_offset, one->sh_size) : std::string_view()});
  }
  if (header.e_shstrndx >= sections.size()) return malformed("its sections have no names");
  const std::string_view names = sections[header.e_shstrndx].bytes;
  for (Section& section : sections) section.name = c_string(names, section.header.sh_name);
  return sections;
}

/// Names of the symbols, by number.
std::vector<std::string_view> read_symbols(const std::vector<Section>& sections) {
  std::vector<std::string_view> symbols;
  for (const Section& section : sections) {
    if (section.header.sh_type != SHT_SYMTAB || section.header.sh_link >= sections.size()) continue;
    const std::string_view names = sections[section.header.sh_link].bytes;
    for (uint64_t at = 0; const auto symbol = read_at<Elf64_Sym>(section.bytes, at);
         at += sizeof(Elf64_Sym))
      symbols.push_back(c_string(names, symbol->st_name));
  }
  return symbols;
}

class Reader {
 public:
  Reader(std::vector<std::string_view> symbols, int64_t arch)
      : symbols_(std::move(symbols)), arch_(arch) {}

  void add(const Section& section) {
    if (const auto kernel = suffix(section.name, ".text.")) {
      kernels_[*kernel].code_bytes = size_of(section);
    } else if (const auto shared = suffix(section.name, ".nv.shared.")) {
      const int64_t reserved = arch_ >= kFirstArchWithReserved ? kReservedShared : 0;
      const int64_t bytes = size_of(section);
      kernels_[*shared].shared_bytes = bytes > reserved ? bytes - reserved : 0;
    } else if (section.name == ".nv.info") {
      read_records(section.bytes, "");
    } else if (const auto info = suffix(section.name, ".nv.info.")) {
      read_records(section.bytes, *info);
    }
  }

  /// Only what has code is a kernel.
  std::vector<KernelResources> take() const {
    std::vector<KernelResources> result;
    for (const auto& [name, kernel] : kernels_) {
      if (kernel.code_bytes == 0) continue;
      result.push_back(kernel);
      result.back().kernel = name;
    }
    return result;
  }

 private:
  static std::optional<std::string> suffix(std::string_view name, std::string_view prefix) {
    if (name.size() <= prefix.size() || name.substr(0, prefix.size()) != prefix)
      return std::nullopt;
    return std::string(name.substr(prefix.size()));
  }

  static int64_t size_of(const Section& section) {
    constexpr uint64_t kMaxSize = uint64_t{1} << 40;
    return static_cast<int64_t>(std::min(section.header.sh_size, kMaxSize));
  }

  void read_records(std::string_view records, const std::string& kernel) {
    for (uint64_t at = 0; const auto head = read_at<uint32_t>(records, at);) {
      const auto format = static_cast<uint8_t>(*head);
      const auto attr = static_cast<uint8_t>(*head >> 8);
      const uint64_t value = *head >> 16;
      at += sizeof *head;
      if (format == kFormatPayload) {
        const std::string_view payload = slice(records, at, value);
        if (kernel.empty()) {
          read_global(attr, payload);
        } else if (attr == kAttrMaxThreads) {
          for (uint64_t axis = 0; axis < 3; ++axis)
            kernels_[kernel].max_threads[axis] = read_at<uint32_t>(payload, axis * 4).value_or(0);
        }
        at += value;
      } else if (!kernel.empty() && attr == kAttrParamBytes) {
        kernels_[kernel].param_bytes = static_cast<int64_t>(value);
      }
    }
  }

  /// Records about all kernels: a symbol and a number.
  void read_global(uint8_t attr, std::string_view payload) {
    const auto symbol = read_at<uint32_t>(payload, 0);
    const auto value = read_at<uint32_t>(payload, 4);
    if (!symbol || !value || *symbol >= symbols_.size()) return;
    KernelResources& kernel = kernels_[std::string(symbols_[*symbol])];
    if (attr == kAttrRegisters) kernel.registers = *value;
    if (attr == kAttrFrameSize) kernel.stack_bytes = *value;
  }

  std::vector<std::string_view> symbols_;
  int64_t arch_;
  std::map<std::string, KernelResources> kernels_;
};

}  // namespace

Result<CubinInfo> read_cubin(std::string_view bytes) {
  const auto header = read_at<Elf64_Ehdr>(bytes, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
    return malformed("it is not an ELF file");
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != kElfMachineCuda)
    return malformed("it is not for a GPU");
  if (header->e_shentsize != sizeof(Elf64_Shdr)) return malformed("its sections have another size");
  CubinInfo info;
  info.arch = static_cast<int64_t>(header->e_flags >> 8 & 0xff);
  PRUNERC_TRY(const std::vector<Section> sections, read_sections(bytes, *header));
  Reader reader(read_symbols(sections), info.arch);
  for (const Section& section : sections) reader.add(section);
  info.kernels = reader.take();
  if (info.kernels.empty()) return malformed("it has no kernel");
  return info;
}

}  // namespace prunerc::codegen
