// The one exception that the C++ code throws; bind/ turns its kind into a Python class in one place.
//
// In: a kind, a short fact in lower case, a place (JSON Pointer or byte offset), a keyword. Out:
// std::exception. Cost: none until it is thrown.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "base/ids.h"

namespace structgen {

// The kinds of errors. Two errors differ in kind if a caller can react to them differently.
enum class ErrorKind : uint8_t {
  // A text is no pattern, schema or grammar.
  kGrammar,
  // A rule stands below `&`, `~` or a shortest match, where a grammar may have terminals only.
  kTerminalsOnly,
  // A schema has a keyword, or a combination of keywords, that is not enforced.
  kUnsupportedSchema,
  kSchemaTooComplex,
  kUnsatisfiableSchema,
  kVocabulary,
  // A limit of work, memory or states was met while masks were made.
  kBudgetExceeded,
  // It is proved that no text fits between a prefix and a suffix.
  kUnsatisfiableInfill,
  // It is proved that no text fits into the tokens that are left.
  kUnsatisfiableBudget,
  // An argument is outside of its range.
  kValue,
};

// An error and its position in the user's text or schema. A function that the error passes adds the position
// if it knows it.
class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}

  // Sets the position of the error: the byte offset of the mistake in the user's text, or -1 for none.
  Error&& at(int64_t offset) && {
    offset_ = offset;
    return std::move(*this);
  }
  Error&& in(std::string pointer, std::string keyword = {}) && {
    pointer_ = std::move(pointer);
    keyword_ = std::move(keyword);
    return std::move(*this);
  }

  const char* what() const noexcept override { return message_.c_str(); }
  ErrorKind kind() const { return kind_; }
  // Notes the schema that was being processed (Lowering::location), unless one is noted already: the
  // innermost schema counts. The owner of the schemas turns this number into a pointer
  // (schema/write/diagnosis.h).
  void in_schema(LocationId location) {
    if (!schema_ && pointer_.empty()) schema_ = location;
  }
  std::optional<LocationId> schema() const { return schema_; }
  void place(std::string pointer, std::string keyword) {
    pointer_ = std::move(pointer);
    keyword_ = std::move(keyword);
    schema_.reset();
  }
  // Marks an error that no function may handle before it reaches the caller: memory is used up, or a test
  // asked for the error.
  Error&& for_the_caller() && {
    for_the_caller_ = true;
    return std::move(*this);
  }
  // Returns true if a question took too much work. The error then says nothing about the answer.
  bool is_limit() const {
    if (for_the_caller_) return false;
    return kind_ == ErrorKind::kBudgetExceeded || kind_ == ErrorKind::kSchemaTooComplex;
  }
  int64_t offset() const { return offset_; }
  const std::string& pointer() const { return pointer_; }
  const std::string& keyword() const { return keyword_; }

 private:
  ErrorKind kind_;
  std::string message_;
  std::string pointer_;
  std::string keyword_;
  int64_t offset_ = -1;
  std::optional<LocationId> schema_;
  bool for_the_caller_ = false;
};

[[noreturn]] inline void too_complex(const char* what) { throw Error(ErrorKind::kSchemaTooComplex, what); }

}  // namespace structgen
