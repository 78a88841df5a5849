// How the named parts are found: by the groups of a regex, by the notes of the grammar (parse/spans.h) or,
// for a text that fills a hole, by the grammar of the whole text. See captures.h for the form of the result.
#include "engine/captures.h"

#include <algorithm>
#include <memory>
#include <mutex>

#include "regex/groups.h"

namespace structgen {

std::size_t Captures::length() const {
  const Grammar::Around* around = grammar_.around();
  return text_.size() + (around ? around->prefix.size() + around->suffix.size() : 0);
}

std::vector<Span> Captures::spans(Epoch* epoch) const {
  if (const Grammar::Around* middle = grammar_.around()) return around(*middle);
  if (epoch) return parsed(*epoch);
  std::vector<Span> out;
  for (const GroupSpan& g : find_groups(*grammar_.groups(), text_, complete_))
    out.push_back({g.name, g.begin, g.end});
  return out;
}

// Returns the captures of a text that fills a hole: those captures of the whole text that lie inside the
// hole, with offsets from its beginning.
std::vector<Span> Captures::around(const Grammar::Around& around) const {
  const std::string whole = around.prefix + std::string(text_) + (complete_ ? around.suffix : std::string());
  std::vector<Span> all, out;
  if (const Pattern* pattern = around.grammar->groups()) {
    for (const GroupSpan& g : find_groups(*pattern, whole, complete_))
      all.push_back({g.name, g.begin, g.end});
  } else {
    std::lock_guard hold(grammar_.world().lock);
    around.grammar->rotate_if_full();
    const std::shared_ptr<Epoch> epoch = around.grammar->epoch();
    all = find_spans(epoch->parser, around.grammar->productions(), around.grammar->start_rule(), whole,
                     complete_);
  }
  const std::size_t begin = around.prefix.size(), end = begin + text_.size();
  for (const Span& s : all)
    if (s.begin >= begin && s.end <= end) out.push_back({s.name, s.begin - begin, s.end - begin});
  return out;
}

std::vector<Span> Captures::parsed(Epoch& epoch) const {
  std::vector<std::size_t> tokens;
  if (epoch.budgets.limits)
    for (std::size_t i = 0, begin = 0; i < ends_.size(); begin = ends_[i++])
      if (tokens_[i] >= 0 && begin < ends_[i]) tokens.push_back(begin);
  return find_spans(epoch.parser, grammar_.productions(), grammar_.start_rule(), text_, complete_, tokens);
}

// Turns spans of the kept text into offsets in the shown text and into steps. The kept text has a sequence of
// bytes for each special token (Vocabulary::special_path); the shown text lacks these bytes.
std::vector<Capture> Captures::of(std::span<const Span> spans) const {
  std::string shown;
  // at[i]: the offset in `shown` at which step i begins.
  std::vector<std::size_t> at(1, 0);
  for (std::size_t i = 0, begin = 0; i < ends_.size(); begin = ends_[i++]) {
    if (begin < ends_[i] && text_[begin] != kSpecialMark) shown.append(text_, begin, ends_[i] - begin);
    at.push_back(shown.size());
  }
  const auto step_behind = [&](std::size_t x) {
    return static_cast<std::size_t>(std::ranges::upper_bound(ends_, x) - ends_.begin());
  };
  const auto place = [&](std::size_t x) {
    const std::size_t step = step_behind(x), begin = step == 0 ? 0 : ends_[step - 1];
    return std::min(at[step] + (x - begin), at[std::min(step + 1, at.size() - 1)]);
  };
  std::vector<Capture> out;
  for (const Span& s : spans) {
    Capture c{grammar_.captures()[s.name], place(s.begin), place(s.end), step_behind(s.begin), 0, {}};
    c.last_token = s.begin == s.end
                       ? c.first_token
                       : static_cast<std::size_t>(std::ranges::lower_bound(ends_, s.end) - ends_.begin()) + 1;
    c.text = shown.substr(c.begin, c.end - c.begin);
    out.push_back(std::move(c));
  }
  return out;
}

}  // namespace structgen
