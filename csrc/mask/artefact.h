// A vocabulary on disk: the bytes of its tokens, the finished trie and its runs of characters, in a
// form that is mapped into memory.
//
// In: a vocabulary and a path, or a path. Out: a file, or a vocabulary whose arrays lie in the mapped
// file. Cost: for 131k tokens saving writes about 18 MB; loading maps the file and reads it once, to
// check it (a few milliseconds, while building the trie takes 60). The processes of a server that map
// the same file share its pages.
//
// A file belongs to one version, byte order and struct layout. Another file is refused and not
// converted: the caller builds the vocabulary anew from the tokenizer.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "mask/vocabulary.h"

namespace structgen {

// Saves a vocabulary to a file. A new file is written beside the path and then renamed, so a reader finds the
// old file or the new one, never a part. Runs of JSON strings that are not known yet are made first. `meta`
// is a text that load_vocabulary() returns. Throws kVocabulary if the file cannot be written.
void save_vocabulary(const Vocabulary& vocabulary, std::string_view meta, const std::string& path);

// Returns the vocabulary that a file holds, and its text `meta`. Throws kVocabulary if there is no such file,
// or if the file has another format or version, is damaged or cut off, or holds an index out of range. So
// even a file that was made by hand leads to no access outside the arrays.
std::shared_ptr<Vocabulary> load_vocabulary(const std::string& path, std::string& meta);

}  // namespace structgen
