// A vocabulary on disk: the bytes of its tokens, the finished trie and its runs of characters, to be mapped
// into memory.
//
// In: a vocabulary and a path, or a path. Out: a file, or a vocabulary whose arrays lie in the mapped file.
// Cost: saving writes about 18 MB for 131k tokens; loading maps it and reads it once, to check it (a few
// milliseconds). The file is of this version, byte order and struct layout; another is refused, not
// converted.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "mask/vocabulary.h"

namespace structgen {

// Written beside the path and renamed, so a reader finds the old file or the new one. Runs of a JSON string
// are made for it where they are not known yet. `meta` comes back from loading. Throws kVocabulary where the
// file cannot be written.
void save_vocabulary(const Vocabulary& vocabulary, std::string_view meta, const std::string& path);

// Throws kVocabulary: no such file, another format or version, cut off, damaged, or indices out of range (a
// file made by hand cannot lead a walk out of the arrays).
std::shared_ptr<Vocabulary> load_vocabulary(const std::string& path, std::string& meta);

}  // namespace structgen
