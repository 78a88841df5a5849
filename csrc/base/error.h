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

// The kinds of errors. They are kept apart where a caller can react in different ways.
enum class ErrorKind : uint8_t {
  // A text that is no pattern, schema or grammar.
  kGrammar,
  // A rule stands where a grammar takes terminals alone: below `&`, `~`, a shortest match.
  kTerminalsOnly,
  // A keyword, or a combination, that is not enforced.
  kUnsupportedSchema,
  // A formula or regex is beyond its limits.
  kSchemaTooComplex,
  // No value satisfies the schema.
  kUnsatisfiableSchema,
  // A vocabulary that cannot be used.
  kVocabulary,
  // A limit of work, memory or states at run time.
  kBudgetExceeded,
  // Proved: nothing fits between a prefix and a suffix.
  kUnsatisfiableInfill,
  // Proved: no text fits the tokens that are left.
  kUnsatisfiableBudget,
  // An argument outside of its range.
  kValue,
};

// An error with its place. The place is added by whoever knows it on the way out.
class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}

  // `offset` is a byte offset into the text at fault; -1: none.
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
  // The schema that was at work (Lowering::location), told by the innermost call that knows it. Whoever
  // has the text of the schemas turns it into a place (schema/write/diagnosis.h).
  void in_schema(LocationId location) {
    if (!schema_ && pointer_.empty()) schema_ = location;
  }
  std::optional<LocationId> schema() const { return schema_; }
  void place(std::string pointer, std::string keyword) {
    pointer_ = std::move(pointer);
    keyword_ = std::move(keyword);
    schema_.reset();
  }
  // Marks an error that nobody on the way may handle: memory is used up, or a test asked for it.
  Error&& for_the_caller() && {
    for_the_caller_ = true;
    return std::move(*this);
  }
  // True if the question took too much work, so that the error says nothing about its answer.
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
