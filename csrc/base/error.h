// The one exception C++ throws; bind/ maps its kind once to a Python class.
//
// In: a kind, a short lower-case fact, a place (JSON pointer or byte offset), a keyword.
// Out: std::exception. Cost: none until thrown.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "base/ids.h"

namespace structgen {

enum class ErrorKind : uint8_t {
  kGrammar,              // text that is not a pattern, schema or grammar
  kUnsupportedSchema,    // a keyword this build does not enforce
  kSchemaTooComplex,     // a formula or regex exceeded its budget
  kUnsatisfiableSchema,  // no instance exists
  kVocabulary,           // a vocabulary that cannot be used
  kBudgetExceeded,       // a run-time budget (memory, states) was exceeded
  kUnsatisfiableInfill,  // proved: nothing fits between a prefix and a suffix
  kUnsatisfiableBudget,  // proved: no text fits the tokens that are left
  kValue,                // an argument outside its range
};

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}

  // `offset` is a byte offset into the text at fault; -1 means none.
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
  // The schema at work (Lowering::location), from the innermost call that knows it; who has the
  // schemas' text makes a place of it.
  void in_schema(LocationId location) {
    if (!schema_ && pointer_.empty()) schema_ = location;
  }
  std::optional<LocationId> schema() const { return schema_; }
  void place(std::string pointer, std::string keyword) {
    pointer_ = std::move(pointer);
    keyword_ = std::move(keyword);
    schema_.reset();
  }
  // Nobody on the way is to make the best of it: memory is used up, or a test asked for it.
  Error&& for_the_caller() && {
    for_the_caller_ = true;
    return std::move(*this);
  }
  // Whether it was only too much to tell.
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
