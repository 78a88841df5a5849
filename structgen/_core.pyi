"""
C++ core of structgen; use the classes of the structgen package instead.
"""

from collections.abc import Callable, Sequence


class Vocabulary:
    def __init__(self, tokens: list, eos: Sequence[int], special: Sequence[int]) -> None: ...

    @staticmethod
    def load(path: str) -> tuple: ...

    def save(self, path: str, meta: bytes) -> None: ...

    def token(self, id: int) -> bytes: ...

    @property
    def eos(self) -> list[int]: ...

    @property
    def special(self) -> list[int]: ...

    def __len__(self) -> int: ...

    @property
    def words(self) -> int: ...

    @property
    def nodes(self) -> int: ...

    @property
    def longest(self) -> int: ...

    @property
    def byte_size(self) -> int: ...

class Grammar:
    def report(self) -> list[tuple[str, str, str]]: ...

    @property
    def full(self) -> bool:
        """
        Whether so much was made for it that the next text is to have a new one.
        """

    @property
    def warnings(self) -> list[str]: ...

    @property
    def captures(self) -> list[str]: ...

    def prepare_endings(self) -> None:
        """
        Makes the lists of tokens that masks inside strings take near the end of a text.
        """

    def collect(self) -> None: ...

    @property
    def byte_size(self) -> int: ...

    @property
    def states(self) -> int: ...

    def infill(self, prefix: bytes, suffix: bytes) -> Grammar:
        """The grammar of what may stand between two texts."""

    def conditioned(self, condition: Sequence[tuple[int, Sequence[bytes], int, int]]) -> Grammar:
        """The grammar of those texts that meet a condition."""

    def can_complete(self, parts: Sequence[tuple[int, bytes, int, int]]) -> tuple[int, bytes]:
        """
        (1, text) where texts can fill the gaps, (0, nothing) where none can, (-1, nothing) where that is not known. A part is (0, text, 0, 0), (1, nothing, 0, 0) for any text, (2, nothing, least, most) for bytes or (3, nothing, n, n) for tokens.
        """

class Canvas:
    def __init__(self, grammar: Grammar, slots: int, prefix: bytes, open: bool, pad: int | None) -> None: ...

    def fork(self) -> Canvas: ...

    def __len__(self) -> int: ...

    @property
    def tokens(self) -> list[int]:
        """-1: masked"""

    @property
    def asked(self) -> int: ...

    @property
    def unknown(self) -> int: ...

    def possible(self) -> int: ...

    def allows(self, slot: int, token: int) -> int: ...

    def set(self, slot: int, token: int, force: bool) -> int: ...

    def clear(self, slot: int) -> None: ...

    def fill(self, mask: object, slot: int, row: int) -> bool:
        """Writes the tokens that are allowed; whether none was left out."""

    def complete(self) -> tuple[int, list[int]]: ...

class GrammarBuilder:
    """The nodes and rules of a grammar; for front ends."""

    def __init__(self) -> None: ...

    def warn(self, text: str) -> None:
        """Something that the grammar's warnings are to say."""

    def never(self) -> int: ...

    def literal(self, text: bytes) -> int: ...

    def byte(self, any_of: bytes) -> int: ...

    def chars(self, ranges: Sequence[tuple[int, int]], negated: bool = False) -> int: ...

    def pattern(self, text: str, ascii: bool = False) -> int: ...

    def sequence(self, kids: Sequence[int]) -> int: ...

    def choice(self, kids: Sequence[int]) -> int: ...

    def both(self, kids: Sequence[int]) -> int: ...

    def negate(self, kid: int) -> int: ...

    def shortest(self, kid: int) -> int: ...

    def repeat(self, kid: int, least: int, most: int = -1) -> int: ...

    def tokens(self, ids: Sequence[int]) -> int: ...

    def edge(self) -> int:
        """
        Where a token ends and another begins; the text in between needs a limit.
        """

    def substring(self, units: Sequence[str], least: int) -> int: ...

    def rule(self, name: str) -> int:
        """A new rule, to be defined; its number."""

    def define(self, rule: int, node: int) -> None: ...

    def call(self, rule: int) -> int: ...

    def lexeme(self, name: str, node: int, priority: int = 0, literal: bool = False, alone: bool = False, lazy: bool = False, whole: int | None = None, inside: bool = False) -> int:
        """`inside`: as the inside of a JSON string holds its texts."""

    def gap(self, lexemes: Sequence[int]) -> int:
        """What may stand between lexemes: any number of these."""

    def capture(self, name: str, kid: int) -> int: ...

    def split(self, name: str, first: int, end_name: str, end: int) -> int:
        """
        Two nodes one behind the other, both captured; where the text can be cut in several ways, the second is as long as it can be.
        """

    def limit(self, kid: int, tokens: int, name: str, place: int = -1) -> int:
        """
        The texts of a node in which at most so many tokens begin. Errors tell the name and the place, a byte offset.
        """

    def json(self, schema: str, registry: Sequence[tuple[str, str]], whitespace: str, any_order: bool, numbers: str, plain_strings: bool, enforce_formats: bool, draft: int, excludes: Sequence[str] = [], python: bool = False) -> int: ...

    def require(self, part: int, condition: int) -> int:
        """Leaves those values of a schema whose text matches a regular node."""

    def elements(self, part: int, before: int, middle: int, after: Sequence[int], ends: Sequence[int], close: int, item: int, item_close: int, blank: int, between: int, middle_text: str, close_text: str, key_never: Sequence[str], entities: str, newlines: bool, quoted: bool, key_pattern: str, nested: bool, named_end: bool, bare: bool) -> int:
        """
        Makes the members of a schema's objects elements: before KEY middle after VALUE ends close. `after` and `ends` have a node for texts, null, booleans, numbers, arrays and objects each. `middle_text` and `close_text` are what ends keys and strings. `entities` has the characters of keys that are written as entities: none, &" or &<>". For the others see csrc/schema/write/elements.h.
        """

    def is_empty(self, node: int) -> bool:
        """Whether no text matches a regular node. Tokens in it match nothing."""

    def __len__(self) -> int: ...

class Compiler:
    def __init__(self, vocabulary: Vocabulary, cache: bool, cache_bytes: int, compile_work: int, mask_work: int) -> None: ...

    def json_schema_text(self, schema: str, subset: bool) -> Grammar | None: ...

    def json_schema(self, schema: str, registry: Sequence[tuple[str, str]] | None, metaschemas: Callable, whitespace: str, any_order: bool, numbers: str, plain_strings: bool, enforce_formats: bool, draft: int, subset: bool) -> Grammar: ...

    def regex(self, pattern: str, subset: bool) -> Grammar: ...

    def grammar(self, builder: GrammarBuilder, start: int, subset: bool) -> Grammar: ...

    def write_grammar(self, builder: GrammarBuilder, start: int) -> bytes:
        """What read_grammar() makes the same grammar of."""

    def read_grammar(self, written: bytes, subset: bool) -> Grammar: ...

    def include_grammar(self, builder: GrammarBuilder, written: bytes) -> int:
        """
        Puts a written grammar into a builder; the number of its first rule there.
        """

    def choice(self, texts: Sequence[str], subset: bool) -> Grammar: ...

    def set_limits(self, grammar: Grammar, compile_work: int, mask_work: int) -> None:
        """
        Other limits of a compiler and of a grammar of it; while nobody else has either.
        """

    @property
    def byte_size(self) -> int: ...

    def keep(self, grammar: Grammar, forget: Callable[[Grammar], None]) -> None:
        """
        Keeps it until others were used more recently; calls forget(grammar) for each that goes now.
        """

    def found(self, grammar: Grammar) -> bool:
        """
        It is used again; False where it is to be compiled anew, and is not kept any more.
        """

    @property
    def retiring(self) -> int: ...

class Matcher:
    def __init__(self, grammar: Grammar, ends: Sequence[int] = [], tokens: int | None = None, goes_on_after_end: bool = False) -> None: ...

    def fork(self) -> Matcher: ...

    def accept_token(self, token: int) -> bool: ...

    def accept_tokens(self, tokens: object) -> bool: ...

    def accept_bytes(self, text: bytes) -> bool: ...

    def validate_tokens(self, tokens: object) -> int: ...

    def validate_bytes(self, text: bytes) -> int: ...

    def rollback(self, n: int) -> None: ...

    def reset(self) -> None: ...

    def is_accepting(self) -> bool: ...

    def is_terminated(self) -> bool: ...

    @property
    def history(self) -> int: ...

    @property
    def state(self) -> int: ...

    def successors(self) -> list[tuple[bytes, int]]: ...

    def fill_bitmask(self, mask: object, row: int = 0) -> bool:
        """Returns mask_exact."""

    def replay(self, ids: object, most: int) -> tuple[int, bytes]:
        """Ids become numbers of rows; the number that was read, and the rows."""

    def fill_known(self, mask: object, row: int = 0) -> bool: ...

    def fill_within(self, mask: object, row: int, budget: int) -> bool: ...

    def tokens_needed(self, search: bool) -> tuple[int, int]: ...

    def fits(self, budget: int) -> bool | None: ...

    def shortest_completion(self) -> bytes: ...

    def forced_bytes(self) -> bytes: ...

    @property
    def mask_exact(self) -> bool: ...

    def tail(self, most: int) -> list[int]: ...

    def open_places(self, text: bytes, forced: bytes) -> list[int]: ...

    def captures(self) -> list[tuple[str, int, int, int, int, bytes]]: ...

    def live_bytes(self, inside: bool = False) -> bytes: ...

def with_stack(f: Callable) -> object:
    """
    f(), with megabytes of stack: on a thread of its own where this one has little.
    """

def fork_patience(seconds: float) -> None:
    """
    How long the forks to come wait for the core's threads; negative: as long as at first.
    """

def fill_bitmasks(matchers: list, mask: object, threads: int, rows: Sequence[int] | None = None) -> list: ...

def format_names() -> list[str]:
    """
    The formats of JSON Schema that constrain strings; every other name is an annotation.
    """

def keywords() -> list[tuple[str, str, bool, str]]:
    """
    The keywords of JSON Schema in any draft: (name, about, asserts, schemas).

    `about` is the kind of values it says something of: object, array, string, number or any.
    `asserts` is whether a value can be invalid because of it; an annotation only tells.
    `schemas` is where schemas stand in its value: 'schema' (it is one), 'list', 'map' (an object of
    schemas), 'mixed' (of schemas and lists of names), 'either' (one or a list), '' (nowhere).
    """

class Language:
    """A regular language over bytes; for tests."""

    @staticmethod
    def pattern(text: str, python: bool = False, json: bool = False, full: bool = False) -> Language: ...

    @staticmethod
    def format(name: str) -> Language: ...

    @staticmethod
    def number(condition: str, argument: str = '0', numbers: str = 'any') -> Language: ...

    def matches(self, text: bytes) -> bool: ...

    def is_empty(self) -> bool: ...

    def __len__(self) -> int: ...

def mask_logits(out: int, out_stride: int, logits: int, kind: int, rows: int, width: int, stride: int, mask: int, mask_stride: int, words: int, indices: int, n_indices: int, threads: int) -> None: ...

def masked_logsumexp(out: int, logits: int, kind: int, rows: int, width: int, stride: int, mask: int, mask_stride: int, words: int, threads: int) -> None: ...

def masked_log_softmax(out: int, logits: int, kind: int, rows: int, width: int, stride: int, mask: int, mask_stride: int, words: int, threads: int) -> None: ...

def brief_row(row: int, width: int, mask: int, words: int, most: int, ids: int, values: int) -> tuple: ...
