// The patterns of formats. Each is the text of an ECMA pattern, put together from named pieces. An
// intersection A & B is written (?=A$)B, and a difference (?!A$)B.
//
// Patterns and not hand-made automata: they can be read beside the RFCs, tested against the standard
// library with the same text, and they take every spelling of a string from the lowering of patterns.
#include "strings/format.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <mutex>

#include "base/fork.h"
#include "regex/regex.h"
#include "regex/syntax.h"
#include "strings/hostname.h"

namespace structgen {

namespace {

using std::string;

string group(const string& a) { return "(?:" + a + ")"; }

string any_of(std::initializer_list<string> parts) {
  string out;
  for (const string& p : parts) out += (out.empty() ? "" : "|") + p;
  return group(out);
}

string digit(int d) { return string(1, static_cast<char>('0' + d)); }

// Returns the pattern of a date. Each month has its number of days; February has 29 only in leap years.
string date() {
  const string leap_year =
      any_of({"\\d\\d(?:0[48]|[2468][048]|[13579][26])", "(?:[02468][048]|[13579][26])00"});
  const string month_day = any_of({"(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])",
                                   "(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)", "02-(?:0[1-9]|1\\d|2[0-8])"});
  return any_of({"\\d{4}-" + month_day, leap_year + "-02-29"});
}

// A leap second is 23:59:60 in UTC, so the local time is 23:59 plus the offset. One pattern compares the
// hours of time and offset digit by digit, another one the minutes, and both are intersected. A single
// pattern of all combinations would have 2,881 alternatives.
constexpr const char* kHour = "(?:[01]\\d|2[0-3])";
constexpr const char* kMinute = "[0-5]\\d";
constexpr const char* kFraction = "(?:\\.\\d+)?";

// Builds the pattern "hh:mm:60, a sign, hh:mm" in which the hours (or the minutes) of time and offset are one
// of the pairs that were added.
struct PairList {
  bool hours;
  char sign;
  string alternatives;

  void add(const string& a, const string& b) {
    const string local = hours ? a + ":\\d\\d" : "\\d\\d:" + a;
    const string offset = hours ? b + ":\\d\\d" : "\\d\\d:" + b;
    alternatives += (alternatives.empty() ? "" : "|") + local + ":60" + kFraction + "[" + sign + "]" + offset;
  }
  string look() const { return "(?=(?:" + alternatives + ")$)"; }
};

// With the sign + the local time is one minute before the offset: the hours are equal, unless the offset's
// minutes are 00. With the sign - the time and the offset add up to 23:59.
string leap_equal_hours() {
  PairList tens{true, '+', {}}, units{true, '+', {}};
  for (int d = 0; d < 3; ++d) tens.add(digit(d) + "\\d", digit(d) + "\\d");
  for (int d = 0; d < 10; ++d) units.add("\\d" + digit(d), "\\d" + digit(d));
  return tens.look() + units.look();
}

string leap_next_minute() {
  PairList tens{false, '+', {}}, units{false, '+', {}}, carry{false, '+', {}};
  for (int d = 0; d < 6; ++d) tens.add(digit(d) + "\\d", digit(d) + "\\d");
  for (int d = 0; d < 9; ++d) units.add("\\d" + digit(d), "\\d" + digit(d + 1));
  for (int d = 0; d < 5; ++d) carry.add(digit(d) + "9", digit(d + 1) + "0");
  return any_of({tens.look() + units.look(), carry.look()});
}

string leap_opposite() {
  PairList hours{true, '-', {}}, tens{false, '-', {}}, units{false, '-', {}};
  for (int h = 0; h < 24; ++h) {
    const int o = 23 - h;
    hours.add(digit(h / 10) + digit(h % 10), digit(o / 10) + digit(o % 10));
  }
  for (int d = 0; d < 6; ++d) tens.add(digit(d) + "\\d", digit(5 - d) + "\\d");
  for (int d = 0; d < 10; ++d) units.add("\\d" + digit(d), "\\d" + digit(9 - d));
  return hours.look() + tens.look() + units.look();
}

// Returns the pattern of those leap seconds whose offset is + a full hour, such as 00:59:60+01:00. The local
// hour is one less.
string leap_full_hour() {
  string out;
  for (int o = 0; o < 24; ++o) {
    const int h = (o + 23) % 24;
    out += (out.empty() ? "" : "|") + digit(h / 10) + digit(h % 10) + ":59:60" + kFraction + "\\+" +
           digit(o / 10) + digit(o % 10) + ":00";
  }
  return group(out);
}

string time() {
  const string hour = kHour, minute = kMinute, fraction = kFraction;
  const string frame = hour + ":" + minute + ":60" + fraction + "[+-]" + hour + ":" + minute;
  return any_of(
      {hour + ":" + minute + ":[0-5]\\d" + fraction + any_of({"[Zz]", "[+-]" + hour + ":" + minute}),
       "23:59:60" + fraction + "[Zz]", leap_equal_hours() + leap_next_minute() + frame, leap_full_hour(),
       leap_opposite() + frame});
}

string date_time() { return date() + "[Tt]" + time(); }

string duration() {
  const string seconds = "\\d+S";
  const string minutes = "\\d+M(?:" + seconds + ")?";
  const string hours = "\\d+H(?:" + minutes + ")?";
  const string clock = "T" + any_of({hours, minutes, seconds});
  const string months = "\\d+M(?:\\d+D)?";
  const string days = any_of({"\\d+D", months, "\\d+Y(?:" + months + ")?"});
  return "P" + any_of({days + "(?:" + clock + ")?", clock, "\\d+W"});
}

string ipv4() {
  const string octet = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
  return octet + "(?:\\." + octet + "){3}";
}

// Returns the pattern of IPv6 addresses (RFC 4291): an alternative for each number of groups in front of
// `::`.
string ipv6() {
  const string h = "[0-9A-Fa-f]{1,4}";
  const string tail = any_of({h + ":" + h, ipv4()});
  const auto before = [&](int n) { return "(?:(?:" + h + ":){0," + digit(n) + "}" + h + ")?::"; };
  const auto groups = [&](int n) { return "(?:" + h + ":){" + digit(n) + "}"; };
  return any_of({groups(6) + tail, "::" + groups(5) + tail, "(?:" + h + ")?::" + groups(4) + tail,
                 before(1) + groups(3) + tail, before(2) + groups(2) + tail, before(3) + groups(1) + tail,
                 before(4) + tail, before(5) + h, before(6)});
}

string hostname() { return hostname_pattern(); }
// The argument has the characters that separate labels (RFC 3490, section 3.1).
string idn_hostname() { return idn_hostname_pattern(".\\u3002\\uFF0E\\uFF61"); }

// `wide` has the characters beyond ASCII that a local part may have (RFC 6531).
string mail(const string& wide, const string& domain) {
  const string atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~" + wide + "-]+";
  const string quoted = "\"(?:[ !#-\\[\\]-~" + wide + "]|\\\\[ -~])*\"";
  const string literal = "\\[" + any_of({ipv4(), "[Ii][Pp][Vv]6:" + ipv6()}) + "\\]";
  return any_of({atom + "(?:\\." + atom + ")*", quoted}) + "@" + any_of({domain, literal});
}

string email() { return mail("", hostname_label() + "(?:\\." + hostname_label() + ")*"); }
string idn_email() { return mail("\\u0080-\\u{10FFFF}", idn_hostname_pattern(".")); }

// The characters that an IRI allows beyond those of a URI; empty for a URI.
struct UriPieces {
  // Unreserved characters beyond ASCII (ucschar).
  string wide;
  // Characters of a query beyond ASCII (iprivate).
  string private_;
};

UriPieces iri_pieces() {
  string ucs = "\\u00A0-\\uD7FF\\uF900-\\uFDCF\\uFDF0-\\uFFEF";
  const char* hex = "123456789ABCDE";
  for (const char* h = hex; *h; ++h) {
    const string plane(1, *h);
    ucs += "\\u{" + plane + (*h == 'E' ? "1000" : "0000") + "}-\\u{" + plane + "FFFD}";
  }
  return {ucs, "\\uE000-\\uF8FF\\u{F0000}-\\u{FFFFD}\\u{100000}-\\u{10FFFD}"};
}

constexpr const char* kPercent = "%[0-9A-Fa-f]{2}";

// Returns the pattern of a URI or IRI, with `reference` also of a relative reference.
string uri_like(const UriPieces& u, bool reference) {
  const string common = "A-Za-z0-9._~!$&'()*+,;=" + u.wide;
  const auto chars = [&](const string& extra) { return any_of({"[" + common + extra + "-]", kPercent}); };
  const string pchar = chars(":@");
  const string future = "[Vv][0-9A-Fa-f]+\\.[A-Za-z0-9._~!$&'()*+,;=:-]+";
  const string host = any_of({"\\[" + any_of({ipv6(), future}) + "\\]", chars("") + "*"});
  const string authority = "//(?:" + chars(":") + "*@)?" + host + "(?::\\d*)?(?:/" + pchar + "*)*";
  const string segments = "(?:/" + pchar + "*)*";
  const string absolute = "/(?:" + pchar + "+" + segments + ")?";
  const string tail = "(?:\\?" + chars(":@/?" + u.private_) + "*)?(?:#" + chars(":@/?") + "*)?";
  const string with_scheme =
      "[A-Za-z][A-Za-z0-9+.-]*:" + any_of({authority, absolute, pchar + "+" + segments, ""}) + tail;
  if (!reference) return with_scheme;
  const string relative = any_of({authority, absolute, chars("@") + "+" + segments, ""}) + tail;
  return any_of({with_scheme, relative});
}

string uri() { return uri_like({}, false); }
string uri_reference() { return uri_like({}, true); }
string iri() { return uri_like(iri_pieces(), false); }
string iri_reference() { return uri_like(iri_pieces(), true); }

// Returns the pattern of URI templates (RFC 6570). By erratum 6937 the apostrophe is a literal.
string uri_template() {
  const UriPieces wide = iri_pieces();
  const string literal =
      any_of({"[!#$&'()*+,\\-./0-9:;=?@A-Z\\[\\]_a-z~" + wide.wide + wide.private_ + "]", kPercent});
  const string varchar_ = any_of({"[A-Za-z0-9_]", kPercent});
  const string var = varchar_ + "(?:\\.?" + varchar_ + ")*(?::[1-9]\\d{0,3}|\\*)?";
  const string expression = "\\{[+#./;?&=,!@|]?" + var + "(?:," + var + ")*\\}";
  return any_of({literal, expression}) + "*";
}

string uuid() { return "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"; }

string json_pointer() { return "(?:/(?:[^~/]|~[01])*)*"; }
string relative_json_pointer() { return "(?:0|[1-9]\\d*)(?:#|" + json_pointer() + ")"; }

// The pattern of the format `regex` checks groups down to this depth. In deeper groups it takes any text,
// because balanced groups are no regular language; so it accepts more than the format. The depth is three
// because a mask visits all levels. Otherwise it accepts ECMA-262 with annex B, where a lone `]`, `{` or `}`
// is a character: brackets and groups must be closed, escapes complete, and a quantifier must have something
// to repeat; a repeated look-behind passes, too.
constexpr int kGroupDepth = 3;

string regex() {
  const string escape =
      "\\\\(?:[^A-Za-z0-9]|[dDwWsStnrvf0-9]|c[A-Za-z]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|u\\{[0-9A-Fa-f]+\\}|"
      "[pP]\\{[A-Za-z0-9_]+(?:=[A-Za-z0-9_]+)?\\}|k<[^>]+>)";
  const string brackets = "\\[(?:[^\\]\\\\]|" + escape + "|\\\\b)*\\]";
  const string opening = "\\((?:\\?(?:[=!]|<[=!]|[ims]*(?:-[ims]*)?:|<[^\\x00-#%-/:-@\\[\\]^`|~]+>))?";
  const string counts = "\\{\\d+(?:,\\d*)?\\}";
  const string atom = any_of({"[^\\\\\\[()*+?|^${]", "\\{(?!\\d+(?:,\\d*)?\\})", escape, brackets});
  const string quantifier = "(?:(?:[*+?]|" + counts + ")[?]?)?";
  const string alone = "[|^$]|\\\\[bB]";
  string body = "(?:" + opening + "|(?:" + atom + "|\\))" + quantifier + "|" + alone + ")*";
  for (int i = 0; i < kGroupDepth; ++i)
    body = "(?:(?:" + atom + "|" + opening + body + "\\))" + quantifier + "|" + alone + ")*";
  return body;
}

// Recipe, format 1: a row, and a function for its pattern.
constexpr FormatInfo kFormats[] = {
    {"date-time", 20, true, {}, date_time},
    {"date", 10, true, {}, date},
    {"time", 9, true, {}, time},
    {"duration", 3, true, {}, duration},
    {"email", 3, true, {}, email},
    {"idn-email", 3, false, "the domain's A-labels are not decoded, nor is normal form checked", idn_email},
    {"hostname", 1, false, "A-labels (xn--) are not decoded", hostname},
    {"idn-hostname", 1, false, "A-labels are not decoded, nor are normal form and their length checked",
     idn_hostname},
    {"ipv4", 7, true, {}, ipv4},
    {"ipv6", 2, true, {}, ipv6},
    {"uri", 2, true, {}, uri},
    {"uri-reference", 0, true, {}, uri_reference},
    {"iri", 2, true, {}, iri},
    {"iri-reference", 0, true, {}, iri_reference},
    {"uuid", 36, true, {}, uuid},
    {"uri-template", 0, true, {}, uri_template},
    {"json-pointer", 0, true, {}, json_pointer},
    {"relative-json-pointer", 1, true, {}, relative_json_pointer},
    {"regex", 0, false,
     "groups inside three others need not be closed; names, numbers and ranges are not compared", regex},
};

}  // namespace

const FormatInfo* find_format(std::string_view name) {
  for (const FormatInfo& f : kFormats)
    if (f.name == name) return &f;
  return nullptr;
}

std::span<const FormatInfo> all_formats() { return kFormats; }

// Returns the parsed pattern of a format. It is parsed once for the whole process, by the first call.
static const Pattern& parsed(const FormatInfo& format) {
  static std::array<Pattern, std::size(kFormats)> patterns;
  static std::array<std::atomic<bool>, std::size(kFormats)> known;
  static Mutex lock;
  const auto i = static_cast<std::size_t>(&format - kFormats);
  if (known[i].load(std::memory_order_acquire)) return patterns[i];
  const std::lock_guard hold(lock);
  if (!known[i].load(std::memory_order_relaxed)) {
    patterns[i] = parse_pattern(format.pattern());
    known[i].store(true, std::memory_order_release);
  }
  return patterns[i];
}

namespace {
struct FormatLanguages : RegexCache {
  // of[i]: the language of format i; empty() until it is asked for.
  std::array<RegexId, std::size(kFormats)> of{};
  std::size_t byte_size() const override { return sizeof(*this); }
};
}  // namespace

RegexId lower(RegexArena& arena, const FormatInfo& format, const Spelling& spelling) {
  if (&spelling != &arena.spelling()) return lower(arena, parsed(format), Match::kFull, spelling);
  const auto i = static_cast<std::size_t>(&format - kFormats);
  if (const RegexId known = arena.cache<FormatLanguages>().of[i]; known != RegexArena::empty()) return known;
  return arena.cache<FormatLanguages>().of[i] = lower(arena, parsed(format), Match::kFull, spelling);
}

}  // namespace structgen
