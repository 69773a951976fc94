// The section headers and the dynamic symbols of an ELF file.
#include "rhea/plugin/shared_object.h"

#include <elf.h>

#include <cstring>
#include <string_view>

#include "rhea/base/error.h"
#include "rhea/base/mapped_file.h"

namespace rhea::plugin {
namespace {

#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
#endif

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : path_(path), file_(path) {
    const auto header = at<Elf64_Ehdr>(0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) fail("it is no ELF file");
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine)
      fail("it was built for another kind of machine");
    if (header.e_type != ET_DYN) fail("it is no shared object; link it with -shared");
    for (Elf64_Half i = 0; i < header.e_shnum; ++i)
      sections_.push_back(at<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)));
    if (header.e_shstrndx >= sections_.size()) fail("it has no section names");
    names_ = sections_[header.e_shstrndx];
  }

  SharedObject read() const {
    SharedObject object;
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type == SHT_PROGBITS && text(names_, section.sh_name) == ".rhea_stamp")
        add_stamps(part(section), object.stamps);
      if (section.sh_type == SHT_DYNSYM) add_symbols(section, object.symbols);
    }
    return object;
  }

 private:
  [[noreturn]] void fail(std::string_view reason) const {
    throw Error("{} cannot be loaded: {}", path_.string(), reason);
  }

  template <class T>
  T at(uint64_t offset) const {
    const auto bytes = file_.bytes();
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) fail("the file is cut short");
    T made;
    std::memcpy(&made, bytes.data() + offset, sizeof(T));
    return made;
  }

  std::string_view part(const Elf64_Shdr& section) const {
    const std::string_view all = file_.text();
    if (section.sh_offset > all.size() || all.size() - section.sh_offset < section.sh_size)
      fail("the file is cut short");
    return all.substr(section.sh_offset, section.sh_size);
  }

  std::string_view text(const Elf64_Shdr& strings, uint64_t offset) const {
    const std::string_view all = part(strings);
    const std::string_view rest = all.substr(std::min<uint64_t>(offset, all.size()));
    return rest.substr(0, rest.find('\0'));
  }

  // Stamps end with a zero; the linker may put more of them in between.
  static void add_stamps(std::string_view all, std::vector<std::string>& stamps) {
    while (!all.empty()) {
      const std::string_view one = all.substr(0, all.find('\0'));
      if (!one.empty()) stamps.emplace_back(one);
      all.remove_prefix(std::min(all.size(), one.size() + 1));
    }
  }

  void add_symbols(const Elf64_Shdr& table, std::vector<std::string>& symbols) const {
    if (table.sh_link >= sections_.size()) fail("its symbols have no names");
    const uint64_t count = part(table).size() / sizeof(Elf64_Sym);
    for (uint64_t i = 0; i < count; ++i) {
      const auto symbol = at<Elf64_Sym>(table.sh_offset + i * sizeof(Elf64_Sym));
      const std::string_view name = text(sections_[table.sh_link], symbol.st_name);
      if (symbol.st_shndx != SHN_UNDEF && name.starts_with("rhea_")) symbols.emplace_back(name);
    }
  }

  std::filesystem::path path_;
  MappedFile file_;
  std::vector<Elf64_Shdr> sections_;
  Elf64_Shdr names_{};
};

}  // namespace

SharedObject read_shared_object(const std::filesystem::path& path) { return Reader(path).read(); }

}  // namespace rhea::plugin
