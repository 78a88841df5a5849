// The core from several threads, without Python: what free-threaded Python does, and forks meanwhile.
#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/fork.h"
#include "engine/batch.h"
#include "engine/compile.h"
#include "engine/matcher.h"
#include "random.h"

using namespace structgen;
using structgen_tests::Random;
using structgen_tests::times;

namespace {

constexpr TokenId kEos = 0;

// Every byte, and some longer pieces.
std::shared_ptr<const Vocabulary> vocabulary() {
  std::vector<std::string> tokens{""};
  for (int b = 0; b < 256; ++b) tokens.emplace_back(1, static_cast<char>(b));
  for (const char* piece : {"{\"", "\":", "\",", "tru", "e", "ab", "abc", "aaaa", "12", "\"}", "[[", "]]"})
    tokens.emplace_back(piece);
  const std::vector<std::string_view> views(tokens.begin(), tokens.end());
  return std::make_shared<Vocabulary>(views, std::vector<TokenId>{kEos}, std::vector<TokenId>{});
}

std::vector<std::string> schemas() {
  std::vector<std::string> out;
  for (int i = 0; i < 8; ++i) {
    const std::string n = std::to_string(i);
    out.push_back(R"({"type":"object","properties":{"p)" + n + R"(":{"type":"string","maxLength":)" + n +
                  "}}}");
    out.push_back(R"({"type":"array","items":{"enum":[1,"x)" + n +
                  R"(",null]},"uniqueItems":true,"maxItems":3})");
    out.push_back(R"({"type":"string","pattern":"^[a-f]{)" + n + R"(}x?$"})");
  }
  return out;
}

// The masks of a walk that the seed chooses.
std::vector<uint32_t> trail(Compiler& compiler, const std::string& schema, uint64_t seed) {
  Random random(seed);
  Matcher matcher(compiler.json_schema(schema, {}, JsonOptions()));
  const uint32_t words = compiler.vocabulary().words();
  std::vector<uint32_t> all, row(words);
  for (int step = 0; step < 10; ++step) {
    if (!matcher.fill_row_fast(row.data())) matcher.fill_row(row.data());
    all.insert(all.end(), row.begin(), row.end());
    std::vector<TokenId> allowed;
    for (uint32_t t = 0; t < compiler.vocabulary().size(); ++t)
      if (row[t / 32] >> (t % 32) & 1) allowed.push_back(static_cast<TokenId>(t));
    if (allowed.empty()) break;
    const TokenId token = allowed[random.below(static_cast<uint32_t>(allowed.size()))];
    if (!matcher.accept_token(token) || token == kEos) break;
  }
  return all;
}

}  // namespace

TEST_CASE("threads: compiles, masks and batches at once do what one thread does") {
  const auto words = vocabulary();
  const std::vector<std::string> all = schemas();
  std::vector<std::vector<uint32_t>> expected;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Compiler alone(words, true, 64 << 20);
    expected.push_back(trail(alone, all[i], i));
  }
  for (const std::size_t cache : {std::size_t{64} << 20, std::size_t{100'000}}) {
    Compiler shared(words, true, cache);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (std::size_t index = 0; index < 4; ++index)
      threads.emplace_back([&, index] {
        for (uint32_t round = 0; round < times(3); ++round)
          for (std::size_t i = 0; i < all.size(); ++i) {
            const std::size_t k = (i + 5 * index) % all.size();
            if (trail(shared, all[k], k) != expected[k]) ++wrong;
            if (i % 6 == 5) {
              std::vector<Sole<Matcher>> own;
              for (std::size_t j = 0; j < 5; ++j)
                own.emplace_back(shared.json_schema(all[(k + j) % all.size()], {}, JsonOptions()));
              std::vector<Sole<Matcher>*> pointers;
              std::vector<std::vector<uint32_t>> rows(own.size(), std::vector<uint32_t>(words->words()));
              std::vector<uint32_t*> targets;
              for (std::size_t j = 0; j < own.size(); ++j) {
                pointers.push_back(&own[j]);
                targets.push_back(rows[j].data());
              }
              fill_rows(pointers, targets, 3);
              for (std::size_t j = 0; j < own.size(); ++j)
                if (!std::equal(rows[j].begin(), rows[j].end(), expected[(k + j) % all.size()].begin()))
                  ++wrong;
            }
            if (i % 7 == 6) {
              shared.reap(shared.keep(shared.json_schema(all[k], {}, JsonOptions())));
            }
            static_cast<void>(shared.byte_size());
          }
      });
    for (std::thread& t : threads) t.join();
    CHECK(wrong == 0);
  }
}

TEST_CASE("forks: a child finds every lock free") {
  Mutex outer, inner;
  std::atomic<bool> stop{false};
  uint64_t guarded[2] = {0, 0};  // equal whenever nobody is inside
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      while (!stop) {
        const std::lock_guard first(outer);
        ++guarded[0];
        const std::lock_guard second(inner);
        ++guarded[1];
      }
    });
  const uint64_t before = fork_count();
  int failed = 0;
  for (uint32_t i = 0; i < times(60); ++i) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      alarm(30);
      const std::lock_guard first(outer);
      const std::lock_guard second(inner);
      _exit(guarded[0] == guarded[1] && fork_count() == before + 1 ? 0 : 1);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    failed += status != 0;
  }
  stop = true;
  for (std::thread& t : threads) t.join();
  CHECK(failed == 0);
  CHECK(fork_count() == before);
}
