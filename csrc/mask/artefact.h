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

// Saves a vocabulary to a file, with a text `meta`. The file is written beside the path and then renamed, so
// a reader finds the old file or the new one. Runs of JSON strings are made first. Throws kVocabulary if the
// file cannot be written.
void save_vocabulary(const Vocabulary& vocabulary, std::string_view meta, const std::string& path);

// Returns the vocabulary of a file, and its `meta`. Throws kVocabulary if there is no file, or if it has
// another format or version, is damaged or cut off, or holds an index out of range. So no file, even one made
// by hand, leads to an access outside the arrays.
std::shared_ptr<Vocabulary> load_vocabulary(const std::string& path, std::string& meta);

}  // namespace structgen
