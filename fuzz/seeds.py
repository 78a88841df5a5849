"""What a fuzzer starts from: small texts of every kind, and the words that occur in them.

In: a target's name. Out: byte strings. Cost: reads a few files of the repository.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

ROOT = Path(__file__).parents[1]
_GRAMMARS = ROOT / "grammars"

REGEXES = [
    "",
    "a|b",
    "(a|b)*abb",
    r"\d{1,3}(\.\d{1,3}){3}",
    r"[^\W\d_]+",
    "(?i:abc)",
    r"(?P<year>\d{4})-(?P<m>\d\d)",
    r"^\w+$",
    r"a{2,}?b",
    r"(?=a)a",
    r"(?<!a)b",
    r"\bword\b",
    r"[\u4e00-\u9fff]+",
    r"(?s:.)*",
    r"[a-z&&[^b]]",
    r"\p{L}",
    r"(?:(?:a?){3}){4}",
    r"\x41\u00e9\N{BULLET}",
    "[]a]",
    r"\1",
    "(",
    "a{999999999}",
    r"(?x: a b )",
    r"\Aab\Z",
]
LARK = [
    'start: "a" | B\nB: /b+/\n%ignore " "',
    'start: x+\nx[capture="n", lazy]: /[a-z]+/\n',
    'start: %json {"type": "integer"} <|tool|> <[1-3]>\n',
    'start: (x ",")* y\nx[max_tokens=2, capture]: /[a-z]+/ | y\ny[max_tokens=3]: x "b" | "a"\n%ignore " "\n',
    'start: _sep{A, ","}\n_sep{x, s}: x (s x)*\nA.2: "a".."f"~1..3 & ~"c"\n',
    'start: %regex {"substring_words": "a b c"} | %lark { start: "x"{2,3} }\n%import common.NUMBER\n',
    'start: x\nx[suffix="</x>", capture]: /.*/\n?y: y "+" y -> z\n!z: "1"\n%declare FOO\n',
    'start: a\na: b? "x"\nb: a | "y"\n%import common (WS, INT -> N)\n%ignore WS\n',
]
GBNF = [
    'root ::= "a" | [b-d]{2,3} # c\n',
    'root ::= (x ws)* \nx ::= root "+" x | "1"\nws ::= [ \\t\\n]*\n',
    'root ::= "\\x41\\u00e9" (="b") [^"\\\\\\x00-\\x1f]+ .?\n',
    'root ::= /[a-z]+/ | TagDispatch("a", b)\n',
]
TAGS = [
    {"type": "structural_tag", "format": {"type": "const_string", "value": "ab"}},
    {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": {"type": "integer"}}},
    {
        "type": "structural_tag",
        "format": {
            "type": "sequence",
            "elements": [
                {"type": "tag", "begin": "<think>", "content": {"type": "any_text"}, "end": "</think>"},
                {
                    "type": "triggered_tags",
                    "triggers": ["<f"],
                    "tags": [
                        {"begin": "<f=x>", "content": {"type": "regex", "pattern": "[a-z]+"}, "end": "</f>"}
                    ],
                    "at_least_one": True,
                    "stop_after_first": False,
                },
            ],
        },
    },
    {
        "type": "structural_tag",
        "format": {
            "type": "tags_with_separator",
            "separator": ",",
            "at_least_one": False,
            "tags": [
                {
                    "type": "tag",
                    "begin": "[",
                    "content": {"type": "grammar", "grammar": 'root ::= "a"'},
                    "end": "]",
                }
            ],
        },
    },
    {
        "type": "structural_tag",
        "structures": [{"begin": "<a>", "schema": {"type": "object"}, "end": "</a>"}],
        "triggers": ["<a"],
    },
    {
        "type": "structural_tag",
        "format": {
            "type": "or",
            "elements": [
                {"type": "const_string", "value": "x"},
                {"type": "qwen_xml_parameter", "json_schema": {"type": "object"}},
            ],
        },
    },
    *(
        {
            "type": "structural_tag",
            "format": {
                "type": "json_schema",
                "style": style,
                "json_schema": {
                    "type": "object",
                    "properties": {
                        "a": {"type": "array", "items": {"$ref": "#/$defs/b"}, "minItems": 1},
                        "e": {"enum": ["x", 1, None]},
                    },
                    "required": ["a"],
                    "maxProperties": 2,
                    "$defs": {"b": {"anyOf": [{"type": "string", "pattern": "^a+$"}, {"type": "integer"}]}},
                },
            },
        }
        for style in ("minimax_m3_xml", "cohere_xml")
    ),
]

SCHEMAS: list[dict[str, object]] = [
    {"anyOf": [{"properties": {"a": {}}}, {"required": ["b"]}], "unevaluatedProperties": {"type": "null"}},
    {"prefixItems": [{}], "contains": {"const": 1}, "unevaluatedItems": False, "minItems": 2},
    {"type": "string", "format": "idn-hostname", "maxLength": 9},
    {"type": "string", "format": "date-time", "pattern": "^2.*Z$"},
    {
        "type": "array",
        "items": {"format": "uri-reference"},
        "uniqueItems": True,
        "maxContains": 1,
        "contains": {},
    },
    {"if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["b"]}, "else": {"maxProperties": 2}},
    {
        "patternProperties": {"^a+$": {"multipleOf": 0.3}},
        "propertyNames": {"maxLength": 3},
        "minProperties": 2,
    },
    {"dependentSchemas": {"a": {"minProperties": 2}}, "dependentRequired": {"b": ["a"]}, "type": "object"},
    {"oneOf": [{"type": "integer"}, {"minimum": 2}], "not": {"multipleOf": 3}},
    {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": True},
    {"$defs": {"n": {"$dynamicAnchor": "n", "items": {"$dynamicRef": "#n"}}}, "$ref": "#/$defs/n"},
]
DECIMALS = ["1", "0.1", "3e-7", "1.50e3", "2147483647", "1e30", "0.0007", "-12.25", "5e-324", "1e400", "0e5"]

DICTIONARIES: dict[str, list[str]] = {
    "json_schema": [
        '"type":',
        '"object"',
        '"properties":{',
        '"$ref":"#',
        '"$defs":',
        '"not":',
        '"oneOf":[',
        '"allOf":[',
        "true",
        '"if":',
        '"then":',
        '"patternProperties":',
        '"uniqueItems":true',
        '"contains":',
        '"minContains":',
        '"const":',
        '"enum":[',
        '"minLength":',
        '"maximum":',
        '"multipleOf":',
        '"pattern":"',
        '"format":"',
        '"prefixItems":[',
        '"unevaluatedProperties":false',
        '"dependentSchemas":',
        '"propertyNames":',
        '"$dynamicRef":"#',
        '"$id":"',
        '"additionalProperties":false',
        '"required":["',
        "1e400",
        "-0.0",
        "\\ud800",
    ],
    "regex": [
        "(?:",
        "(?P<a>",
        "(?=",
        "(?!",
        "(?<=",
        "(?i)",
        "{2,5}",
        "*?",
        "\\b",
        "\\d",
        "\\W",
        "[^",
        "\\u00e9",
        "|",
        "$",
        "^",
    ],
    "gbnf": ["::=", "root", "{2,3}", '"a"', "[^a-z]", "(=", "TagDispatch(", "#", "\\x41", "\\U0001F600"],
    "lark": [
        "start:",
        "%ignore ",
        "%import common.",
        "%json {",
        "%regex {",
        "%lark {",
        "<|tool|>",
        "<[1-9]>",
        "~1..3",
        "-> x",
        "[lazy]",
        "[max_tokens=2]",
        '[suffix="a"]',
        "[capture]",
        "&",
        "~",
        "{2,}",
        "_x{a,b}",
        "/a+?/s",
        '"a".."z"',
        "%override",
        "%extend",
        "%declare A",
    ],
    "structural_tag": [
        '"type":"tag"',
        '"type":"any_text"',
        '"type":"sequence"',
        '"type":"or"',
        '"type":"triggered_tags"',
        '"begin":"',
        '"end":"',
        '"content":',
        '"triggers":["',
        '"tags":[',
        '"excludes":["',
        '"at_least_one":true',
        '"stop_after_first":true',
        '"type":"token"',
        '"elements":[',
        '"type":"optional"',
        '"type":"star"',
    ],
    "tokenizer_file": [
        '"model":',
        '"vocab":',
        '"merges":',
        '"type":"BPE"',
        '"added_tokens":',
        '"decoder":',
        '"pattern":',
    ],
    "holes": [
        '"items":',
        '"uniqueItems":true',
        '"oneOf":[',
        "root ::= ",
        "start: ",
        "[a-c]",
        "%ignore",
        "?",
        "|",
    ],
    "saved_vocabulary": [],
    "saved_trie": [],
    "decimals": ["1e", "E-", "0.", "1e308", "1e-324", "0.1", "-", "999999999999999999", "\n"],
}


def kept(target: str) -> Path:
    """Inputs that run what the seeds do not: a JSON string a line, one character a byte."""
    return ROOT / "tests" / "cases" / "corpus" / f"{target}.jsonl"


def corpus(target: str) -> list[bytes]:
    """Returns the seeds, and what is kept."""
    lines = kept(target).read_text().splitlines() if kept(target).exists() else []
    return seeds(target) + [json.loads(line).encode("latin-1") for line in lines]


def seeds(target: str) -> list[bytes]:
    match target:
        case "decimals":
            return [f"{a}\n{b}\n1e9\n-0.5".encode() for a, b in zip(DECIMALS, DECIMALS[1:], strict=False)]
        case "json_schema":
            texts = [f.read_text() for f in sorted((ROOT / "examples").glob("*.schema.json"))]
            for file in sorted((ROOT / "tests" / "cases").glob("*.json")):
                texts += [json.dumps(case["schema"]) for case in json.loads(file.read_text(encoding="utf-8"))]
            texts += [json.dumps(schema) for schema in SCHEMAS]
            return [t.encode() for t in texts if len(t) < 4_000]
        case "regex":
            return [t.encode() for t in REGEXES]
        case "gbnf":
            return [t.encode() for t in GBNF] + [f.read_bytes() for f in sorted(_GRAMMARS.glob("*.gbnf"))]
        case "lark":
            return [t.encode() for t in LARK] + [f.read_bytes() for f in sorted(_GRAMMARS.glob("*.lark"))]
        case "holes":
            kinds = enumerate(("json_schema", "regex", "gbnf", "lark"))
            return [
                bytes([kind, cut]) + text
                for kind, name in kinds
                for cut, text in enumerate(t for t in seeds(name) if len(t) < 600)
            ]
        case "structural_tag":
            return [json.dumps(t).encode() for t in TAGS]
        case "tokenizer_file":
            return _tokenizers()
        case "saved_vocabulary" | "saved_trie":
            return [b"", bytes(range(64)), b"\x00\x00\x00\xff", b"\x10\x00\x00"]
    raise ValueError(f"no target '{target}'; there are {', '.join(DICTIONARIES)}")


def _tokenizers() -> list[bytes]:
    def line(text: bytes) -> str:
        return base64.b64encode(text).decode()

    bpe = {
        "added_tokens": [{"id": 5, "content": "</s>", "special": True}],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
        "decoder": {"type": "ByteLevel"},
        "model": {
            "type": "BPE",
            "vocab": {"a": 0, "b": 1, "ab": 2, "Ġ": 3, "Ġa": 4},
            "merges": ["a b", "Ġ a"],
        },
    }
    tekken = {
        "config": {
            "pattern": r"\S+|\s+",
            "num_vocab_tokens": 259,
            "default_vocab_size": 260,
            "default_num_special_tokens": 3,
            "version": "v3",
        },
        "vocab": [{"rank": i, "token_bytes": line(bytes([i])), "token_str": None} for i in range(256)],
    }
    tiktoken = "".join(f"{line(bytes([i]))} {i}\n" for i in range(256)) + f"{line(b'ab')} 256\n"
    pieces = b"".join(  # SentencePiece: field 1, (text, score, kind)
        b"\x0a"
        + bytes([len(text) + 9])
        + b"\x0a"
        + bytes([len(text)])
        + text
        + b"\x15\0\0\0\0\x18"
        + bytes([kind])
        for text, kind in (
            (b"<unk>", 2),
            (b"<s>", 3),
            (b"</s>", 3),
            (b"\xe2\x96\x81a", 1),
            (b"a", 1),
            (b"<0x0A>", 6),
        )
    )
    return [
        b"\0" + json.dumps(bpe).encode(),
        b"\1" + pieces,
        b"\2" + tiktoken.encode()[-300:],
        b"\3" + json.dumps(tekken).encode()[:4_000],
    ]
