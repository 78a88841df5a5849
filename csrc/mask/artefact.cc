#include "mask/artefact.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#ifdef _WIN32
#include <process.h>
#else
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#include "base/error.h"
#include "base/intern.h"
#include "mask/runs.h"

namespace structgen {

namespace {

// A file is a Header and the sections in the order of the enum, each at a multiple of kAlign bytes. Structs
// are written as they lie in memory, so that loading converts nothing. A change of a struct or of what a
// section means raises kVocabularyVersion.
constexpr char kVocabularyMagic[8] = {'S', 'G', 'V', 'O', 'C', 'A', 'B', '\n'};
constexpr uint32_t kVocabularyVersion = 8;
// A machine with the other byte order reads another number here, and refuses the file.
constexpr uint32_t kOrder = 0x01020304;
constexpr std::size_t kAlign = 64;

enum Section : uint32_t {
  kMeta,
  kText,
  kOffsets,
  kEos,
  kSpecial,
  kNodes,
  kKids,
  kChildren,
  kTokens,
  kBelow,
  kRuns,
  kSections
};

struct Header {
  char magic[8];
  uint32_t version, order;
  uint32_t node_size, kids_size;
  uint64_t begin[kSections], size[kSections];
  uint64_t total;
  uint64_t checksum;
  uint64_t header;  // the checksum of the fields above
};
static_assert(sizeof(Header) % 8 == 0);

// Returns a checksum that finds accidents, such as a file cut off. An attacker can forge it, so
// Vocabulary::sound() checks the indices as well. The checksum has four lanes whose multiplications overlap,
// so that computing it costs less than reading the file.
uint64_t checksum(const char* p, std::size_t n) {
  uint64_t lane[4] = {1, 2, 3, 4};
  std::size_t i = 0;
  for (; i + 32 <= n; i += 32)
    for (int k = 0; k < 4; ++k) {
      uint64_t w;
      std::memcpy(&w, p + i + 8 * k, 8);
      lane[k] = (lane[k] ^ w) * 0x9E3779B97F4A7C15ull;
      lane[k] ^= lane[k] >> 29;
    }
  uint64_t h = hash_bytes(p + i, n - i, n);
  for (uint64_t l : lane) h = mix(h, l);
  return h;
}

uint64_t header_sum(const Header& h) {
  return checksum(reinterpret_cast<const char*>(&h), offsetof(Header, header));
}

// Throws kVocabulary with the path in front of the message: a caller may load several files.
[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw Error(ErrorKind::kVocabulary, path + ": " + what);
}

// The bytes of a file, mapped where the system can map, and read into memory on Windows. The spans of a
// Vocabulary point into these bytes, so the Vocabulary keeps this object (`keep`).
class File {
 public:
  explicit File(const std::string& path) {
#ifdef _WIN32
    std::ifstream in(path, std::ios::binary);
    if (!in) refuse(path, "cannot be read");
    read_.assign(std::istreambuf_iterator<char>(in), {});
    data_ = read_.data();
    size_ = read_.size();
#else
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) refuse(path, std::strerror(errno));
    struct stat about;
    if (::fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
      ::close(fd);
      refuse(path, "is no regular file");
    }
    size_ = static_cast<std::size_t>(about.st_size);
    if (size_ > 0) {
      int flags = MAP_PRIVATE;
#ifdef MAP_POPULATE
      // The checksum reads every page. With this flag the system reads all pages ahead, which saves thousands
      // of page faults.
      flags |= MAP_POPULATE;
#endif
      void* at = ::mmap(nullptr, size_, PROT_READ, flags, fd, 0);
      ::close(fd);
      if (at == MAP_FAILED) refuse(path, std::strerror(errno));
      data_ = static_cast<const char*>(at);
    } else {
      ::close(fd);
    }
#endif
  }
  ~File() {
#ifndef _WIN32
    if (data_) ::munmap(const_cast<char*>(data_), size_);
#endif
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  const char* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  const char* data_ = nullptr;
  std::size_t size_ = 0;
#ifdef _WIN32
  std::string read_;
#endif
};

// Returns a section as an array of T. The caller has checked its bounds, its alignment, and that its size is
// a multiple of sizeof(T).
template <class T>
std::span<const T> section(const File& file, const Header& h, Section s) {
  return {reinterpret_cast<const T*>(file.data() + h.begin[s]), h.size[s] / sizeof(T)};
}

template <class T>
std::string_view raw(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

}  // namespace

void save_vocabulary(const Vocabulary& vocabulary, std::string_view meta, const std::string& path) {
  const Vocabulary::Parts v = vocabulary.parts();
  const TokenTrie::Parts t = vocabulary.trie().parts();
  vocabulary.runs().prepare();
  const std::string runs = vocabulary.runs().write();
  const std::string_view parts[kSections] = {
      meta,         raw(v.text), raw(v.offsets),  raw(v.eos),   raw(v.special),
      raw(t.nodes), raw(t.kids), raw(t.children), raw(t.order), raw(t.below),
      runs};
  Header h{};
  std::memcpy(h.magic, kVocabularyMagic, sizeof(kVocabularyMagic));
  h.version = kVocabularyVersion;
  h.order = kOrder;
  h.node_size = sizeof(TokenTrie::Node);
  h.kids_size = sizeof(TokenTrie::Kids);
  std::string body;
  for (uint32_t s = 0; s < kSections; ++s) {
    body.resize((sizeof(Header) + body.size() + kAlign - 1) / kAlign * kAlign - sizeof(Header));
    h.begin[s] = sizeof(Header) + body.size();
    h.size[s] = parts[s].size();
    body += parts[s];
  }
  h.total = sizeof(Header) + body.size();
  h.checksum = checksum(body.data(), body.size());
  h.header = header_sum(h);
#ifdef _WIN32
  const long id = _getpid();
#else
  const long id = ::getpid();
#endif
  // Two threads may save the same file at once. The address of a local variable makes the names of their
  // temporary files differ.
  const std::string beside =
      path + "." + std::to_string(id) + "." + std::to_string(reinterpret_cast<uintptr_t>(&h)) + ".new";
  std::error_code failure;
  {
    std::ofstream out(beside, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(&h), sizeof(h));
    out.write(body.data(), static_cast<std::streamsize>(body.size()));
    out.close();
    if (!out) {
      std::filesystem::remove(beside, failure);
      refuse(path, "cannot be written");
    }
  }
  std::filesystem::rename(beside, path, failure);
  if (failure) {
    const std::string why = failure.message();
    std::filesystem::remove(beside, failure);
    refuse(path, why);
  }
}

// Data is checked before it is used: the checksum of the header, the bounds of the sections, the checksum of
// their contents, then the indices (Vocabulary::sound()). A run is checked only when a mask first asks for it
// (runs.cc).
std::shared_ptr<Vocabulary> load_vocabulary(const std::string& path, std::string& meta) {
  auto file = std::make_shared<File>(path);
  Header h;
  if (file->size() < sizeof(h) || std::memcmp(file->data(), kVocabularyMagic, sizeof(kVocabularyMagic)) != 0)
    refuse(path, "is no saved vocabulary");
  std::memcpy(&h, file->data(), sizeof(h));
  if (h.version != kVocabularyVersion || h.order != kOrder || h.node_size != sizeof(TokenTrie::Node) ||
      h.kids_size != sizeof(TokenTrie::Kids))
    refuse(path, "was saved by another version or on another kind of machine; save it again");
  if (h.header != header_sum(h) || h.total != file->size())
    refuse(path, "is damaged or cut off; save it again");
  constexpr std::size_t kElement[kSections] = {
      1, 1, 4, 4, 4, sizeof(TokenTrie::Node), sizeof(TokenTrie::Kids), 4, 4, 4, 1};
  for (uint32_t s = 0; s < kSections; ++s)
    if (h.begin[s] % kAlign != 0 || h.begin[s] > h.total || h.size[s] > h.total - h.begin[s] ||
        h.size[s] % kElement[s] != 0)
      refuse(path, "is damaged; save it again");
  if (h.checksum != checksum(file->data() + sizeof(h), file->size() - sizeof(h)))
    refuse(path, "is damaged; save it again");
  Vocabulary::Parts v;
  v.text = section<char>(*file, h, kText);
  v.offsets = section<uint32_t>(*file, h, kOffsets);
  v.eos = section<TokenId>(*file, h, kEos);
  v.special = section<TokenId>(*file, h, kSpecial);
  TokenTrie::Parts t;
  t.nodes = section<TokenTrie::Node>(*file, h, kNodes);
  t.kids = section<TokenTrie::Kids>(*file, h, kKids);
  t.children = section<uint32_t>(*file, h, kChildren);
  t.order = section<TokenId>(*file, h, kTokens);
  t.below = section<uint32_t>(*file, h, kBelow);
  const std::span<const char> words = section<char>(*file, h, kMeta);
  meta.assign(words.begin(), words.end());
  auto made = std::make_shared<Vocabulary>(v, t, file);
  if (!made->sound()) refuse(path, "is damaged; save it again");
  const std::span<const char> runs = section<char>(*file, h, kRuns);
  made->runs().view({runs.data(), runs.size()});
  made->look_for_bytes();
  return made;
}

}  // namespace structgen
