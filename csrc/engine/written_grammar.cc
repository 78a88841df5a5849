// How a grammar becomes bytes and is read again; written_grammar.h has the form.
//
// One description serves both ways. all(), node() and schema() name the fields of each struct in their
// order, and a Writer or a Reader is handed to them, so that a field cannot be written without being
// read. Signed numbers are zigzag: -1 is one byte.
//
//     node `a{2,3}`     op, the bounds 2 and 3, one child: the number of the node before it
//     rule `root`       its name, and the number of its node
//     schema            the JSON text and the options that it was compiled with
//
// The reader trusts nothing. A count is checked against the bytes that are left before anything is allocated.
// A child has a smaller number than its parent, so there are no cycles. Enumerations and bounds are within
// their range, and texts are UTF-8 where the front ends promise it. Compiler::grammar makes all other checks.
//
// Costs. Linear. The hash at the end (FNV-1a) finds damage that happened by accident. The checks of the
// reader also find bytes that somebody forged.
//
// Rejected. A dump of the compiled grammar: its ids belong to one world, and each change of the core
// would be a new form. JSON: grammars of a tokenizer's ids are large, and bytes need no escapes here.
#include "engine/written_grammar.h"

#include <algorithm>
#include <concepts>

#include "base/error.h"
#include "base/utf8.h"
#include "mask/vocabulary.h"

namespace structgen {

namespace {

constexpr std::string_view kGrammarMagic = "structgenG";
constexpr uint8_t kGrammarVersion = 5;
constexpr std::size_t kSum = 8;

[[noreturn]] void broken(const char* why) {
  throw Error(ErrorKind::kGrammar, std::string("no grammar that serialize() wrote: ") + why);
}

struct Hash {
  uint64_t value = 0xcbf29ce484222325u;
  void add(std::string_view text) {
    for (const char c : text) value = (value ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  }
};

// Returns a hash of the texts of all tokens that the grammar names by their ids; 0 if it names none.
uint64_t tokens_of(const GrammarSource& source, const Vocabulary& vocabulary) {
  Hash hash;
  bool any = false;
  for (const GrammarNode& n : source.nodes)
    for (const TokenId t : n.ids) {
      any = true;
      hash.add(std::to_string(t));
      hash.add(" ");
      hash.add(vocabulary.bytes(t));
    }
  return any ? std::max<uint64_t>(hash.value, 1) : 0;
}

// Writes the fields of a grammar. The functions below that take a `Form` both write and read: they pass each
// field by reference to a Writer or to a Reader.
class Writer {
 public:
  static constexpr bool kReads = false;
  std::string out;
  void number(uint64_t n) {
    for (; n >= 0x80; n >>= 7) out.push_back(static_cast<char>(n | 0x80));
    out.push_back(static_cast<char>(n));
  }
  template <std::integral T>
  void field(T& value) {  // zigzag, so that -1 is short
    const int64_t n = static_cast<int64_t>(value);
    number((static_cast<uint64_t>(n) << 1) ^ static_cast<uint64_t>(n >> 63));
  }
  void field(std::string& text) {
    number(text.size());
    out += text;
  }
  template <class T, class Each>
  void list(std::vector<T>& items, Each&& each) {
    number(items.size());
    for (T& item : items) each(item);
  }
};

class Reader {
 public:
  static constexpr bool kReads = true;
  explicit Reader(std::string_view in) : in_(in) {}
  uint64_t number() {
    uint64_t n = 0;
    for (uint32_t shift = 0; shift < 64; shift += 7) {
      if (in_.empty()) broken("it ends too early");
      const auto byte = static_cast<uint8_t>(in_.front());
      in_.remove_prefix(1);
      n |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return n;
    }
    broken("a number is too long");
  }
  template <std::integral T>
  void field(T& value) {
    const uint64_t n = number();
    const int64_t out = static_cast<int64_t>(n >> 1) ^ -static_cast<int64_t>(n & 1);
    value = static_cast<T>(out);
    if (static_cast<int64_t>(value) != out) broken("a number is out of range");
  }
  void field(std::string& text) {
    const uint64_t n = number();
    if (n > in_.size()) broken("it ends too early");
    text.assign(in_.substr(0, n));
    in_.remove_prefix(n);
  }
  template <class T, class Each>
  void list(std::vector<T>& items, Each&& each) {
    const uint64_t n = number();
    // Each element takes at least one byte. A list that claims more elements than there are bytes is broken.
    if (n > in_.size()) broken("it ends too early");
    items.clear();
    for (uint64_t i = 0; i < n; ++i) each(items.emplace_back());
  }
  bool done() const { return in_.empty(); }

 private:
  std::string_view in_;
};

template <class Form, class Enum>
void choice(Form& form, Enum& value, Enum last) {
  uint32_t n = static_cast<uint32_t>(value);
  form.field(n);
  if (n > static_cast<uint32_t>(last)) broken("an option or a node has an unknown kind");
  value = static_cast<Enum>(n);
}

template <class Form>
void flag(Form& form, bool& value) {
  uint32_t n = value;
  form.field(n);
  value = n != 0;
}

template <class Form>
void node(Form& form, GrammarNode& n) {
  choice(form, n.op, NodeOp::kGap);
  form.field(n.a);
  form.field(n.b);
  form.field(n.text);
  form.list(n.kids, [&](uint32_t& k) { form.field(k); });
  form.list(n.ranges, [&](CodepointRange& r) {
    form.field(r.lo);
    form.field(r.hi);
  });
  TokenId last = 0;
  // Ids mostly ascend, so the difference to the id before is a short number.
  form.list(n.ids, [&](TokenId& t) {
    int64_t step = static_cast<int64_t>(t) - last;
    form.field(step);
    if (Form::kReads) {
      const int64_t id = std::clamp<int64_t>(step, -(int64_t{1} << 32), int64_t{1} << 32) + last;
      if (id < 0 || id > INT32_MAX) broken("a token is out of range");
      t = static_cast<TokenId>(id);
    }
    last = t;
  });
  form.list(n.units, [&](std::string& u) { form.field(u); });
  form.field(n.place);
}

void below(uint64_t number, std::size_t count) {
  if (number >= count) broken("a reference lies outside its list");
}

// Recipe, option 5: a field of the bytes of a grammar, and the next number of their version.
template <class Form>
void schema(Form& form, JsonPart& p) {
  form.field(p.schema);
  form.list(p.registry, [&](std::pair<std::string, std::string>& document) {
    form.field(document.first);
    form.field(document.second);
  });
  JsonOptions& o = p.options;
  uint32_t draft = static_cast<uint32_t>(o.schema.draft);
  form.field(draft);
  if (draft != 4 && draft != 6 && draft != 7 && draft != 19 && draft != 20) broken("an unknown draft");
  o.schema.draft = static_cast<Draft>(draft);
  flag(form, o.schema.force_draft);
  flag(form, o.schema.enforce_formats);
  choice(form, o.layout.mode, JsonLayout::kPattern);
  form.field(o.layout.pattern);
  form.list(o.layout.excludes, [&](std::string& text) { form.field(text); });
  choice(form, o.order, PropertyOrder::kAny);
  choice(form, o.numbers, NumberSpelling::kCanonical);
  flag(form, o.plain_strings);
  flag(form, o.layout.python);
  bool conditioned = p.condition.has_value();
  flag(form, conditioned);
  if (conditioned) {
    if (Form::kReads) p.condition.emplace();
    form.field(*p.condition);
  }
  bool marked = p.marks.has_value();
  flag(form, marked);
  if (!marked) return;
  if (Form::kReads) p.marks.emplace();
  p.marks->for_each([&](uint32_t& mark) { form.field(mark); });
  form.field(p.text.middle);
  form.field(p.text.close);
  form.list(p.text.key_never, [&](std::string& text) { form.field(text); });
  constexpr const Spelling* kKeys[] = {&kUtf8, &kQuotedEntities, &kMarkupEntities};
  uint32_t keys = static_cast<uint32_t>(std::ranges::find(kKeys, p.text.keys) - kKeys);
  form.field(keys);
  below(keys, std::size(kKeys));
  p.text.keys = kKeys[keys];
  flag(form, p.text.newlines);
  flag(form, p.text.quoted);
  form.field(p.text.key_pattern);
  flag(form, p.text.nested);
  flag(form, p.text.named_end);
  flag(form, p.text.bare);
}

template <class Form>
void all(Form& form, WrittenGrammar& g, uint64_t& tokens) {
  form.field(tokens);
  form.list(g.source.nodes, [&](GrammarNode& n) { node(form, n); });
  form.list(g.source.rules, [&](GrammarRule& r) {
    form.field(r.name);
    form.field(r.node);
    flag(form, r.defined);
  });
  form.list(g.source.lexemes, [&](Lexeme& l) {
    form.field(l.name);
    form.field(l.node);
    form.field(l.priority);
    flag(form, l.literal);
    flag(form, l.alone);
    flag(form, l.lazy);
    flag(form, l.inside);
    form.field(l.whole);
  });
  form.list(g.source.captures, [&](std::string& name) { form.field(name); });
  form.list(g.source.gaps, [&](std::vector<uint32_t>& gap) {
    form.list(gap, [&](uint32_t& lexeme) { form.field(lexeme); });
  });
  form.list(g.source.warnings, [&](std::string& text) { form.field(text); });
  flag(form, g.source.edged);
  form.list(g.schemas, [&](JsonPart& p) { schema(form, p); });
  form.field(g.start);
}

void check(WrittenGrammar& g) {
  GrammarSource& s = g.source;
  s.parts = static_cast<uint32_t>(g.schemas.size());
  for (std::size_t i = 0; i < s.nodes.size(); ++i) {
    GrammarNode& n = s.nodes[i];
    if (const char* why = fault(s, n, i)) broken(why);
    n.ranges = CodepointSet(std::move(n.ranges)).ranges();
  }
  for (const GrammarRule& r : s.rules) {
    below(r.node, s.nodes.size());
    if (!r.defined) broken("a rule that is not defined");
  }
  for (const Lexeme& l : s.lexemes) {
    below(l.node, s.nodes.size());
    if (l.whole < -1 || (l.whole >= 0 && static_cast<uint64_t>(l.whole) >= s.nodes.size()))
      broken("a reference lies outside its list");
  }
  for (const std::vector<uint32_t>& gap : s.gaps)
    for (const uint32_t l : gap) below(l, s.lexemes.size());
  for (JsonPart& p : g.schemas) {
    if (!valid_utf8(p.schema) || !valid_utf8(p.options.layout.pattern)) broken("a text that is not UTF-8");
    for (const auto& [uri, text] : p.registry)
      if (!valid_utf8(uri) || !valid_utf8(text)) broken("a text that is not UTF-8");
    if (p.condition) below(*p.condition, s.nodes.size());
    if (p.marks) p.marks->for_each([&](uint32_t mark) { below(mark, s.nodes.size()); });
  }
  below(g.start, s.rules.size());
}

std::string sum_of(std::string_view text) {
  Hash hash;
  hash.add(text);
  std::string out;
  for (std::size_t i = 0; i < kSum; ++i) out.push_back(static_cast<char>(hash.value >> (8 * i)));
  return out;
}

}  // namespace

std::string write_grammar(const GrammarSource& source, const std::vector<JsonPart>& schemas, uint32_t start,
                          const Vocabulary& vocabulary) {
  WrittenGrammar g{source, schemas, start};
  uint64_t tokens = tokens_of(source, vocabulary);
  Writer form;
  all(form, g, tokens);
  std::string out(kGrammarMagic);
  out.push_back(static_cast<char>(kGrammarVersion));
  return out + form.out + sum_of(form.out);
}

WrittenGrammar read_grammar(std::string_view bytes, const Vocabulary& vocabulary) {
  if (!bytes.starts_with(kGrammarMagic) || bytes.size() < kGrammarMagic.size() + 1 + kSum)
    broken("it begins otherwise");
  const auto version = static_cast<uint8_t>(bytes[kGrammarMagic.size()]);
  if (version != kGrammarVersion)
    throw Error(ErrorKind::kGrammar, "the grammar was written in form " + std::to_string(version) +
                                         ", and this release reads form " + std::to_string(kGrammarVersion) +
                                         ": write it again with this release");
  bytes.remove_prefix(kGrammarMagic.size() + 1);
  const std::string_view body = bytes.substr(0, bytes.size() - kSum);
  if (sum_of(body) != bytes.substr(body.size())) broken("its checksum is another one, so it is damaged");
  Reader form(body);
  WrittenGrammar out;
  uint64_t tokens = 0;
  all(form, out, tokens);
  if (!form.done()) broken("bytes follow its end");
  check(out);
  if (tokens != tokens_of(out.source, vocabulary))
    throw Error(ErrorKind::kVocabulary,
                "the grammar names tokens by their ids, and this vocabulary has other texts there: write it "
                "again with this vocabulary");
  return out;
}

uint32_t include_grammar(GrammarSource& source, std::vector<JsonPart>& schemas, WrittenGrammar part) {
  GrammarSource& s = part.source;
  const auto size = [](const auto& list) { return static_cast<uint32_t>(list.size()); };
  const uint32_t nodes = size(source.nodes), rules = size(source.rules), lexemes = size(source.lexemes),
                 gaps = size(source.gaps), parts = size(schemas);
  const auto capture = [&](uint32_t number) { return source.capture(s.captures[number]); };
  for (GrammarNode& n : s.nodes) {
    for (uint32_t& k : n.kids) k += nodes;
    switch (n.op) {
      case NodeOp::kRule: n.a += rules; break;
      case NodeOp::kLexeme: n.a += lexemes; break;
      case NodeOp::kGap: n.a += gaps; break;
      case NodeOp::kPart: n.a += parts; break;
      case NodeOp::kSplit: n.b = capture(n.b); [[fallthrough]];
      case NodeOp::kCapture: n.a = capture(n.a); break;
      default: break;
    }
    source.nodes.push_back(std::move(n));
  }
  for (GrammarRule& r : s.rules) {
    r.node += nodes;
    source.rules.push_back(std::move(r));
  }
  for (Lexeme& l : s.lexemes) {
    l.node += nodes;
    if (l.whole >= 0) l.whole += nodes;
    source.lexemes.push_back(std::move(l));
  }
  for (std::vector<uint32_t>& gap : s.gaps) {
    for (uint32_t& lexeme : gap) lexeme += lexemes;
    source.gaps.push_back(std::move(gap));
  }
  for (std::string& text : s.warnings) source.warnings.push_back(std::move(text));
  for (JsonPart& p : part.schemas) {
    if (p.condition) *p.condition += nodes;
    if (p.marks) p.marks->for_each([&](uint32_t& mark) { mark += nodes; });
    schemas.push_back(std::move(p));
  }
  source.parts = size(schemas);
  source.edged |= s.edged;
  return part.start + rules;
}

}  // namespace structgen
