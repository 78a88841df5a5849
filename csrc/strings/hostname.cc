// Patterns of host names; see hostname.h. A rule about one label is written as a pattern (?!...) of the
// names that contain a bad label. So each rule is a small automaton of its own; look-aheads in a
// repetition would be larger.
#include "strings/hostname.h"

namespace structgen {

namespace {

using std::string;

#include "strings/idna_tables.inc"

string labels(const string& label, const string& dot) { return label + "(?:[" + dot + "]" + label + ")*"; }

// Returns the pattern of what follows "xn--" in a label: perhaps ASCII and a hyphen, then the numbers of
// Punycode (RFC 3492). The thresholds of the first number are 1, 1 and then 26. Two digits therefore say at
// most 35, which is U+00A3, and a label has nothing below U+00B7. At most four more digits stay inside
// Unicode. The last digit of a number is a letter.
string punycode() {
  return "(?:[A-Za-z0-9-]+-)?[B-Zb-z0-9][B-Zb-z0-9][0-9]{0,4}[A-Za-z](?:[A-Za-z0-9]*[A-Za-z])?";
}

// Returns a look-ahead that refuses host names with a label "xn--..." that is certainly invalid. `begin` is a
// pattern of all text that may stand before a label.
string sound_a_labels(const string& begin, const string& dot) {
  return "(?!" + begin + "[Xx][Nn]--(?!" + punycode() + "(?:[" + dot + "]|$)))";
}

// Returns the rule of RFC 5893: no label has a character that is read from right to left, or each label obeys
// the rule of its own direction.
string bidi_rule(const string& dot) {
  const string right = kRight, arabic = kArabicNumber, marks = string("[") + kNonspacing + "]*";
  const string european = string("0-9") + kEuropeanNumber, neutral = string(kNeutral) + "-",
               other = right + arabic + dot;
  const string left_label = "[^" + other + european + kNonspacing + neutral + "](?:[^" + other + "]*[^" +
                            other + kNonspacing + neutral + "])?" + marks;
  const auto right_label = [&](const string& numbers) {
    return "[" + right + "](?:[" + right + numbers + kNonspacing + neutral + "]*[" + right + numbers + "])?" +
           marks;
  };
  const string label = "(?:" + left_label + "|" + right_label(european) + "|" + right_label(arabic) +
                       "|[Xx][Nn]--[^" + dot + "]*)";
  return "(?=(?:[^" + right + arabic + "]*|" + labels(label, dot) + ")$)";
}

// Returns the rule of RFC 5892, appendix A.1: a virama stands before the joiner, or letters join on both
// sides of it.
string joiner_rules() {
  const string virama = kVirama, transparent = kTransparent;
  const string no_left = string("[^") + kJoinsNext + transparent + virama + "]\\u200C|[^" + kJoinsNext +
                         transparent + "][" + transparent + "]*(?![" + virama + "])[" + transparent +
                         "]\\u200C";
  const string no_right =
      "[^" + virama + "]\\u200C[" + transparent + "]*(?:$|[^" + kJoinsPrevious + transparent + "])";
  return "(?![^]*[^" + virama + "]\\u200D)(?!(?:[^]*[^" + kJoinsNext + transparent + "])?(?:[" + transparent +
         "]*(?![" + virama + "])[" + transparent + "])\\u200C)(?![^]*(?:" + no_left + "|" + no_right + "))";
}

}  // namespace

string hostname_label() { return "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"; }

string hostname_pattern() {
  const string label = hostname_label();
  return "(?=[^]{1,253}$)" + sound_a_labels("(?:[^]*\\.)?", "\\.") + label + "(?:\\." + label + ")*";
}

string idn_hostname_pattern(const string& dot) {
  const string any = "[^" + dot + "]", begin = "(?:[^]*[" + dot + "])?";
  const string kana = "[\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Han}]";
  const string rules =
      "(?![^]*(?:[^l]\\xB7|\\xB7(?:[^l]|$)))"
      "(?![^]*\\u0375(?:\\P{Script=Greek}|$))"
      "(?![^]*\\P{Script=Hebrew}[\\u05F3\\u05F4])"
      "(?=" +
      labels("(?:[^\\u30FB" + dot + "]*|" + any + "*" + kana + any + "*)", dot) +
      "$)"
      // The next conditions follow from the line above and from bidi_rule. They are written out to spare a
      // search that would find them.
      "(?!" +
      begin + "[" + kRight + "]" + any +
      "*\\u30FB)"
      "(?![^]*[\\u0660-\\u0669]" +
      any +
      "*[\\u06F0-\\u06F9])"
      "(?![^]*[\\u06F0-\\u06F9]" +
      any +
      "*[\\u0660-\\u0669])"
      "(?!" +
      begin + "(?![Xx][Nn]--)" + any +
      "{2}--)"
      // A label with a capital letter has only ASCII characters.
      "(?![^]*(?:[A-Z]" +
      any + "*[^\\x00-\\x7F" + dot + "]|[^\\x00-\\x7F" + dot + "]" + any +
      "*[A-Z]))"
      // If a label has n characters, at least one of them beyond ASCII, its form with "xn--" has at least n +
      // 6 bytes; n + 7 if another one is ASCII.
      "(?!" +
      begin + any +
      "{64})"
      "(?!" +
      begin + "(?=" + any + "{58})" + any + "*[^\\x00-\\x7F" + dot + "])";
  const string allowed = string("[A-Za-z0-9") + kAllowed;
  const string first = "(?![\\p{M}\\u200C\\u200D\\u05F3\\u05F4\\xB7])" + allowed + "]";
  const string label = first + "(?:" + allowed + "-]*" + allowed + "])?";
  return "(?=[^]{1,253}$)" + rules + joiner_rules() + sound_a_labels(begin, dot) + bidi_rule(dot) +
         labels(label, dot);
}

}  // namespace structgen
