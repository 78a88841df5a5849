// A vocabulary on disk: the bytes of its tokens, the finished trie and its runs of characters, in a
// form that is mapped into memory.
//
// In: a vocabulary and a path, or a path. Out: a file, or a vocabulary whose arrays lie in the mapped
// file. Cost: to save writes about 18 MB for 131k tokens; to load maps the file and reads it once, to
// check it (a few milliseconds, where building the trie takes 60). The processes of a server that map
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

// Writes the file beside the path and renames it, so that a reader finds the old file or the new one,
// never a part. The runs of a JSON string are made first where they are not known yet. `meta` is any
// text; load_vocabulary() returns it. Throws kVocabulary where the file cannot be written.
void save_vocabulary(const Vocabulary& vocabulary, std::string_view meta, const std::string& path);

// Throws kVocabulary where there is no such file, or the file has another format or version, is cut off
// or damaged, or holds indices out of range. So a file made by hand cannot lead a walk out of the
// arrays.
std::shared_ptr<Vocabulary> load_vocabulary(const std::string& path, std::string& meta);

}  // namespace structgen
