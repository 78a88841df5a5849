"""Vocabularies of every format, with real ones if a package ships them.

The law: the tokens of encode(text) join to the text, special ids have no bytes, and unused ids never
occur.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import pickle
from pathlib import Path

import pytest

import structgen
from oracles.harness import cpu_limit
from structgen import Vocabulary, VocabularyError
from structgen._tokenizers import pieces, sentencepiece_model

TEXTS = (
    *("", "hello world", " leading", "  two  spaces\n\n\tand a tab "),
    *('{"a": [1, 2.5e-3, true], "b\\n": "é漢字🙂\\u00e9"}', "\x00\x01\x7f\u2028", "don't I'll 12345 67.8"),
    *("नमस्ते दुनिया", "a </s> b <|im_end|> c <unk> <0x41>", "▁ itself, and Ġ, and ##x"),
)


def check_laws(vocabulary: Vocabulary, texts: tuple[str, ...] = TEXTS) -> None:
    for text in texts:
        ids = vocabulary.encode(text)
        assert b"".join(vocabulary.token_bytes(i) for i in ids) == text.encode(), text
        assert vocabulary.decode(ids) == text.encode()
    for i in (*vocabulary.special_token_ids, *vocabulary.eos_token_ids):
        assert vocabulary.token_bytes(i) == b""
    assert set(vocabulary.special_tokens.values()) <= set(vocabulary.special_token_ids)
    assert len(vocabulary.tokens) == vocabulary.vocab_size == len(vocabulary)
    assert all(isinstance(t, bytes) for t in vocabulary.tokens)
    again = pickle.loads(pickle.dumps(vocabulary))
    assert again.tokens == vocabulary.tokens and again.encode(TEXTS[4]) == vocabulary.encode(TEXTS[4])
    assert again.special_tokens == vocabulary.special_tokens


def allowed(vocabulary: Vocabulary, pattern: str, prefix: str = "") -> set[int]:
    """Returns the ids that a regular expression allows behind a prefix."""
    matcher = structgen.Compiler(vocabulary).regex(pattern).matcher()
    assert matcher.accept_bytes(prefix) or not prefix
    mask = structgen.allocate_bitmask(1, vocabulary.vocab_size)
    matcher.fill_bitmask(mask)
    return {t for t in range(vocabulary.vocab_size) if (int(mask[0, t // 32]) >> (t % 32)) & 1}


# --- real vocabularies ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mistral() -> Path:
    package = pytest.importorskip("mistral_common")
    return Path(package.__file__).parent / "data"


def test_tekken(mistral: Path) -> None:
    vocabulary = Vocabulary.from_file(mistral / "tekken_240911.json")
    assert vocabulary.vocab_size == 131_072
    assert vocabulary.eos_token_ids == [2]
    assert vocabulary.special_token_ids == list(range(1000))
    assert vocabulary.special_tokens["[TOOL_CALLS]"] == 9
    assert vocabulary.token_bytes(1000 + 0x41) == b"A"
    check_laws(vocabulary)


def test_tekken_encodes_as_mistral_does(mistral: Path) -> None:
    pytest.importorskip("tiktoken")
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    tokenizer = Tekkenizer.from_file(mistral / "tekken_240911.json")
    vocabulary = Vocabulary.from_huggingface(tokenizer)
    assert vocabulary.tokens == Vocabulary.from_file(mistral / "tekken_240911.json").tokens
    for text in TEXTS[1:]:
        assert vocabulary.encode(text) == tokenizer.encode(text, bos=False, eos=False)


def test_sentencepiece(mistral: Path) -> None:
    file = mistral / "mistral_instruct_tokenizer_241114.model.v7"
    vocabulary = Vocabulary.from_file(file)
    assert vocabulary.vocab_size == 32_768
    assert vocabulary.eos_token_ids == [2]
    assert vocabulary.special_tokens["<s>"] == 1 and vocabulary.special_tokens["[INST]"] == 3
    check_laws(vocabulary)
    # SentencePiece puts a space before a text; a forced text has no such space
    assert vocabulary.token_bytes(vocabulary.encode("hello")[0]).startswith(b"h")


def test_sentencepiece_reader_agrees_with_the_package(mistral: Path) -> None:
    package = pytest.importorskip("sentencepiece")
    for file in sorted(mistral.glob("*.model.v*")):
        processor = package.SentencePieceProcessor(model_file=str(file))
        found, eos = sentencepiece_model.read_pieces(file.read_bytes())
        assert len(found) == processor.get_piece_size() and eos == processor.eos_id()
        for i, (text, kind) in enumerate(found):
            assert text == processor.id_to_piece(i)
            assert (kind == 2, kind == 3, kind == 5, kind == 6) == (
                processor.is_unknown(i),
                processor.is_control(i),
                processor.is_unused(i),
                processor.is_byte(i),
            )


def test_mistral_through_transformers(mistral: Path) -> None:
    transformers = pytest.importorskip("transformers")
    backend = getattr(transformers, "MistralCommonBackend", None)
    if backend is None:
        pytest.skip("this transformers has no MistralCommonBackend")
    for name in ("tekken_240911.json", "mistral_instruct_tokenizer_241114.model.v7"):
        vocabulary = Vocabulary.from_huggingface(backend(str(mistral / name)))
        assert vocabulary.tokens == Vocabulary.from_file(mistral / name).tokens
        assert vocabulary.eos_token_ids == [2]


def test_tiktoken() -> None:
    package = importlib.util.find_spec("dashscope")  # the import would ask for a web server
    if package is None or not package.submodule_search_locations:
        pytest.skip("dashscope, which carries Qwen's tokenizer, is not installed")
    file = Path(package.submodule_search_locations[0]) / "resources" / "qwen.tiktoken"
    special = {"<|endoftext|>": 151_643, "<|im_start|>": 151_644, "<|im_end|>": 151_645}
    with pytest.raises(VocabularyError, match="eos_token_ids"):
        Vocabulary.from_file(file)
    vocabulary = Vocabulary.from_file(file, special_tokens=special, vocab_size=152_064)
    assert vocabulary.vocab_size == 152_064
    assert vocabulary.eos_token_ids == [151_643, 151_645]
    assert vocabulary.token_bytes(0) == b"!" and vocabulary.token_bytes(152_063) == b""
    check_laws(vocabulary)
    bare = Vocabulary.from_file(file, eos_token_ids=151_643)
    assert bare.vocab_size == 151_644


def test_tiktoken_encoding_and_remote_code() -> None:
    """A tiktoken.Encoding object, and a slow tokenizer that holds one."""
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes([b]): b for b in range(256)} | {b"ab": 256, b" x": 258}  # 257 is unused
    encoding = tiktoken.Encoding(
        "test", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 260}
    )
    vocabulary = Vocabulary.from_huggingface(encoding)
    assert vocabulary.vocab_size == 261 and vocabulary.eos_token_ids == [260]
    assert vocabulary.token_bytes(256) == b"ab" and vocabulary.token_bytes(257) == b""
    check_laws(vocabulary)

    class Remote:
        eos_token_id = 260

        def __init__(self) -> None:
            self.model = encoding

        def get_vocab(self) -> dict[str, int]:
            raise AssertionError("not asked")

    assert Vocabulary.from_huggingface(Remote()).tokens == vocabulary.tokens


def test_a_real_vocabulary_takes_bounded_work(mistral: Path) -> None:
    """131,072 tokens take 0.2 s on an idle machine. Work for each pair of tokens would take minutes."""
    from structgen._tokenizers import byte_bpe

    record = json.loads((mistral / "tekken_240911.json").read_bytes())
    with cpu_limit(5):
        assert Vocabulary(byte_bpe.read_tekken(record)).vocab_size == 131_072


# --- Hugging Face tokenizers built here ------------------------------------------------------------

CORPUS = [*TEXTS, "the quick brown fox jumps over the lazy dog " * 3, '{"key": "value", "n": [1, 2, 3]}'] * 20
SPECIAL = ["<unk>", "<s>", "</s>"]


@pytest.fixture(scope="module")
def tokenizers():
    return pytest.importorskip("tokenizers")


def byte_level(tokenizers, size: int = 600):
    t = tokenizers.Tokenizer(tokenizers.models.BPE())
    t.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["<|endoftext|>", "<|tool|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    t.train_from_iterator(CORPUS, trainer)
    t.add_tokens(["<plain>", "été"])
    return t


def llama_like(tokenizers):
    """SentencePiece BPE with byte fallback, as in the `tokenizer.json` of Llama 2."""
    letters = sorted(set("▁abcdefghijklmnopqrstuvwxyz{}[]:,.\"'0123456789"))
    names = [*SPECIAL, *pieces.BYTE_PIECES, *letters, "▁t", "he", "▁the", "▁▁", "in", "lo"]
    merges = [("▁", "t"), ("h", "e"), ("▁t", "he"), ("▁", "▁"), ("i", "n"), ("l", "o")]
    t = tokenizers.Tokenizer(
        tokenizers.models.BPE(
            vocab={name: i for i, name in enumerate(names)},
            merges=merges,
            unk_token="<unk>",
            byte_fallback=True,
            fuse_unk=True,
        )
    )
    n, d = tokenizers.normalizers, tokenizers.decoders
    t.normalizer = n.Sequence([n.Prepend("▁"), n.Replace(" ", "▁")])
    t.decoder = d.Sequence([d.Replace("▁", " "), d.ByteFallback(), d.Fuse(), d.Strip(" ", 1, 0)])
    t.add_special_tokens(SPECIAL)
    return t


def unigram(tokenizers):
    t = tokenizers.Tokenizer(tokenizers.models.Unigram())
    t.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    t.decoder = tokenizers.decoders.Metaspace()
    trainer = tokenizers.trainers.UnigramTrainer(
        vocab_size=400, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False
    )
    t.train_from_iterator(CORPUS, trainer)
    return t


def word_piece(tokenizers):
    t = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    t.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    t.decoder = tokenizers.decoders.WordPiece()
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=300, special_tokens=["[UNK]", "[SEP]"], show_progress=False
    )
    t.train_from_iterator(CORPUS, trainer)
    return t


def test_byte_level(tokenizers) -> None:
    t = byte_level(tokenizers)
    vocabulary = Vocabulary.from_huggingface(t)
    assert vocabulary.kind == "byte-level" and vocabulary.eos_token_ids == [0]
    assert vocabulary.special_tokens == {"<|endoftext|>": 0, "<|tool|>": 1}
    assert vocabulary.token_bytes(t.token_to_id("Ġ")) == b" "
    assert vocabulary.token_bytes(t.token_to_id("Ċ")) == b"\n"
    assert vocabulary.token_bytes(t.token_to_id("<plain>")) == b"<plain>"  # the token is added, not special
    assert vocabulary.token_bytes(t.token_to_id("été")) == "été".encode()
    assert {vocabulary.token_bytes(t.token_to_id(c)) for c in pieces.ALPHABET} == {
        bytes([b]) for b in range(256)
    }
    check_laws(vocabulary)
    for text in TEXTS[1:7]:
        assert vocabulary.encode(text) == t.encode(text).ids


def test_byte_level_is_known_from_its_pieces(tokenizers) -> None:
    """A tokenizer over bytes is recognized by the texts of its tokens, because transformers may drop or
    replace the decoder."""
    t = byte_level(tokenizers)
    want = Vocabulary.from_huggingface(t).tokens
    t.pre_tokenizer = None
    for decoder in (tokenizers.decoders.Fuse(), tokenizers.decoders.Metaspace()):
        t.decoder = decoder
        assert Vocabulary.from_huggingface(t).tokens == want


def test_llama_like(tokenizers) -> None:
    t = llama_like(tokenizers)
    vocabulary = Vocabulary.from_huggingface(t)
    assert vocabulary.kind == "sentencepiece" and vocabulary.eos_token_ids == [2]
    assert vocabulary.special_tokens == {"<unk>": 0, "<s>": 1, "</s>": 2}
    assert vocabulary.token_bytes(t.token_to_id("▁the")) == b" the"
    assert vocabulary.token_bytes(t.token_to_id("<0x0A>")) == b"\n"
    check_laws(vocabulary)
    the = t.token_to_id("▁the")
    assert vocabulary.encode(" the") == [the]
    assert the not in vocabulary.encode("the")
    assert the in allowed(vocabulary, r"in the end", "in")


def test_unigram(tokenizers) -> None:
    t = unigram(tokenizers)
    vocabulary = Vocabulary.from_huggingface(t)
    assert vocabulary.kind == "sentencepiece"
    assert vocabulary.special_tokens == {"<unk>": 0, "<s>": 1, "</s>": 2}
    check_laws(vocabulary, ("hello world", " the quick brown fox", '{"key": "value"}'))
    assert (
        t.encode("the quick").ids[1:] == vocabulary.encode("the quick")[-len(t.encode("the quick").ids) + 1 :]
    )


def test_word_piece_is_best_effort(tokenizers) -> None:
    t = word_piece(tokenizers)
    vocabulary = Vocabulary.from_huggingface(t, eos_token_ids=t.token_to_id("[SEP]"))
    assert vocabulary.kind == "wordpiece" and "[UNK]" in vocabulary.special_tokens
    continued = next(piece for piece in t.get_vocab() if piece.startswith("##") and len(piece) > 3)
    assert vocabulary.token_bytes(t.token_to_id(continued)) == continued[2:].encode()


@pytest.mark.parametrize("build", (byte_level, llama_like, unigram), ids=lambda f: f.__name__)
def test_file_and_object_agree(tokenizers, tmp_path: Path, build) -> None:
    t = build(tokenizers)
    t.save(str(tmp_path / "tokenizer.json"))
    live, read = Vocabulary.from_huggingface(t), Vocabulary.from_file(tmp_path / "tokenizer.json")
    assert live.tokens == read.tokens
    assert live.special_tokens == read.special_tokens and live.eos_token_ids == read.eos_token_ids
    assert Vocabulary.from_file(tmp_path).tokens == read.tokens  # a folder
    for text in ("hello world", " the end"):
        assert live.encode(text) == read.encode(text)


def test_fast_transformers_tokenizer(tokenizers, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=byte_level(tokenizers), eos_token="<|endoftext|>", pad_token="<|tool|>"
    )
    vocabulary = Vocabulary.from_huggingface(fast)
    assert vocabulary.eos_token_ids == [0]
    assert vocabulary.tokens == Vocabulary.from_huggingface(fast.backend_tokenizer).tokens
    check_laws(vocabulary)
    fast.save_pretrained(tmp_path)
    loaded = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert Vocabulary.from_huggingface(loaded).tokens == vocabulary.tokens
    assert Vocabulary.from_huggingface(str(tmp_path)).tokens == vocabulary.tokens
    assert Vocabulary.from_file(tmp_path).tokens == vocabulary.tokens
    # generation_config.json has priority for the end ids.
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [0, 1]}')
    assert Vocabulary.from_huggingface(loaded).eos_token_ids == [0, 1]
    assert Vocabulary.from_file(tmp_path).eos_token_ids == [0, 1]
    assert Vocabulary.from_huggingface(loaded, eos_token_ids=[1]).eos_token_ids == [1]


def test_model_gives_width_and_end_ids(tokenizers) -> None:
    transformers = pytest.importorskip("transformers")
    t = byte_level(tokenizers)
    size = t.get_vocab_size()
    config = transformers.LlamaConfig(vocab_size=size + 50, eos_token_id=[0, 1])
    vocabulary = Vocabulary.from_huggingface(t, model=config)
    assert vocabulary.vocab_size == size + 50 and vocabulary.eos_token_ids == [0, 1]
    assert not any(vocabulary.tokens[size:])


def test_slow_tokenizer() -> None:
    transformers = pytest.importorskip("transformers")

    class Letters(transformers.PreTrainedTokenizer):
        def __init__(self, **kwargs) -> None:
            names = ["<s>", "</s>", "<unk>", *'abcdefghijklmnopqrstuvwxyz{}":1']
            self.ids = {name: i + 2 * (i > 10) for i, name in enumerate(names)}  # 11 and 12 are unused
            super().__init__(eos_token="</s>", bos_token="<s>", unk_token="<unk>", **kwargs)

        @property
        def vocab_size(self) -> int:
            return len(self.ids) + 2

        def get_vocab(self) -> dict[str, int]:
            return {**self.ids, **self.added_tokens_encoder}

        def _tokenize(self, text: str, **kwargs) -> list[str]:
            return list(text)

        def _convert_token_to_id(self, token: str) -> int:
            return self.ids.get(token, 2)

        def _convert_id_to_token(self, index: int) -> str:
            return next((n for n, i in self.ids.items() if i == index), "<unk>")

    tokenizer = Letters()
    assert not tokenizer.is_fast
    vocabulary = Vocabulary.from_huggingface(tokenizer)
    assert vocabulary.eos_token_ids == [1] and set(vocabulary.special_tokens) >= {"<s>", "</s>", "<unk>"}
    assert vocabulary.tokens[11] == vocabulary.tokens[12] == b""
    assert vocabulary.encode('{"a":1}') == [tokenizer.ids[c] for c in '{"a":1}']
    assert not allowed(vocabulary, r"[a-z{}\":1]+") & {0, 2, 11, 12}
    with pytest.raises(VocabularyError, match="0x5A"):
        vocabulary.encode("Z")


def test_slow_sentencepiece(mistral: Path) -> None:
    transformers = pytest.importorskip("transformers")
    from transformers.tokenization_utils_sentencepiece import SentencePieceBackend

    del transformers
    tokenizer = SentencePieceBackend(
        vocab_file=str(mistral / "tokenizer.model.v1"), eos_token="</s>", bos_token="<s>", unk_token="<unk>"
    )
    assert not tokenizer.is_fast
    vocabulary = Vocabulary.from_huggingface(tokenizer)
    want = Vocabulary.from_file(mistral / "tokenizer.model.v1")
    assert vocabulary.tokens[: want.vocab_size] == want.tokens
    assert vocabulary.eos_token_ids == [2]
    check_laws(vocabulary)


# --- spellings -------------------------------------------------------------------------------------


def test_hf_byte_alphabet(tokenizers) -> None:
    assert sorted(pieces.ALPHABET) == sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    assert pieces.ALPHABET[ord(" ")] == "Ġ" and pieces.ALPHABET[0xAD] == "Ń"


def test_pieces_outside_the_alphabet_are_their_own_text() -> None:
    hints = pieces.Hints(frozenset({"ByteLevel"}))
    assert pieces.to_bytes(["Ġa", "漢", "Ċ"], "byte-level", hints) == [b" a", "漢".encode(), b"\n"]


def test_end_of_word_suffix() -> None:
    hints = pieces.Hints(suffix="</w>")
    assert pieces.to_bytes(["low", "er</w>"], "plain", hints) == [b"low", b"er "]


def test_latin_1() -> None:
    names = [chr(b) for b in range(256)]
    assert pieces.spelling(names, pieces.Hints()) == "latin-1"
    assert pieces.to_bytes(names, "latin-1", pieces.Hints()) == [bytes([b]) for b in range(256)]


# --- from_bytes ------------------------------------------------------------------------------------


def test_from_bytes() -> None:
    vocabulary = Vocabulary.from_bytes(
        [b"a", b"ab", None, b"<tool>", b"\xe6\xbc", b"\xa2", b"a", b"</s>"], [7], special_token_ids=[3]
    )
    assert vocabulary.tokens == [b"a", b"ab", b"", b"", b"\xe6\xbc", b"\xa2", b"a", b""]
    assert vocabulary.special_tokens == {"<tool>": 3} and vocabulary.eos_token_ids == [7]
    assert vocabulary.encode("aba漢") == [1, 0, 4, 5]  # the longest match; of two equal tokens the lower id
    assert vocabulary.encode(b"\xa2") == [5]
    assert allowed(vocabulary, "ab*漢?") == {0, 1, 6}
    assert allowed(vocabulary, "ab*漢?", "ab") == {4, 7}
    assert "8 ids" in repr(vocabulary)
    named = Vocabulary.from_bytes([b"a", None, None], 1, special_token_ids={"<x>": 2})
    assert named.special_tokens == {"<x>": 2}


def test_from_bytes_takes_other_iterables() -> None:
    vocabulary = Vocabulary.from_bytes((bytearray(b"a"), memoryview(b"b"), None), range(2, 3))
    assert vocabulary.tokens == [b"a", b"b", b""]


@pytest.mark.parametrize(
    ("tokens", "eos", "special", "message"),
    (
        ([], [0], (), "empty"),
        ([None, b""], [0], (), "empty"),
        ([b"a"], [], (), "eos_token_ids"),
        ([b"a"], [1], (), "end-of-sequence id 1 is outside the vocabulary of 1 ids"),
        ([b"a"], [-1], (), "end-of-sequence id -1"),
        ([b"a", b""], [1], [9], "special id 9"),
        ([b"a", "b"], [0], (), "token 1 must be bytes or None, not str"),
        ("ab", [0], (), "one string"),
        ([b"a"], ["x"], (), "eos_token_ids must be token ids"),
        ([b"a"], None, (), "eos_token_ids must be token ids"),
    ),
)
def test_from_bytes_errors(tokens, eos, special, message: str) -> None:
    with pytest.raises(VocabularyError, match=message):
        Vocabulary.from_bytes(tokens, eos, special)


def test_ids_out_of_range() -> None:
    vocabulary = Vocabulary.from_bytes([b"a", None], [1])
    for bad in (-1, 2):
        with pytest.raises(VocabularyError, match="outside the vocabulary of 2 ids"):
            vocabulary.token_bytes(bad)
        with pytest.raises(VocabularyError):
            vocabulary.decode([0, bad])


def test_width_of_the_logits(tokenizers) -> None:
    t = byte_level(tokenizers)
    size = t.get_vocab_size()
    cut = Vocabulary.from_huggingface(t, vocab_size=size - 1)
    assert cut.vocab_size == size - 1
    with pytest.raises(VocabularyError, match="positive"):
        Vocabulary.from_huggingface(t, vocab_size=0)
    with pytest.raises(VocabularyError, match="outside"):
        Vocabulary.from_huggingface(t, vocab_size=size, eos_token_ids=size + 5)
    assert Vocabulary.from_huggingface(t, eos_token_ids=size + 5).vocab_size == size + 6


# --- files that are wrong --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    (
        (b"", "the file is empty"),
        (b"  \n", "the file is empty"),
        (b"hello", "the format is not known"),
        (b"{", "not JSON"),
        (b"[1, 2]", "no tokenizer: a list"),
        (b'{"a": 1}', "no tokenizer: a dict with the keys a"),
        (b'{"tokenizer_class": "X"}', "tokenizer_config.json"),
        (json.dumps({f"w{i}": i for i in range(200)}).encode(), "vocab.json"),
        (b'{"model": {"type": "BPE", "vocab": 3}}', "malformed"),
        (b'{"model": {"type": "Unigram", "vocab": [[]]}}', "malformed"),
        (b'{"model": {"vocab": {"a": -4}}}', "negative id"),
        (b'{"config": {"default_num_special_tokens": 3}}', "tekken file is malformed"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "Git LFS"),
        (b"GGUF\x03\x00\x00\x00", "GGUF"),
        (b"\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "not a SentencePiece model"),
        (b"\n\x05abc", "not a SentencePiece model"),
        (b"\n\x02\x0a\x00", "eos_token_ids|empty|no piece"),
        (base64.b64encode(b"a") + b" 0\nnonsense\n", "not a .tiktoken file"),
        (base64.b64encode(b"a") + b" 999999999\n", "not a vocabulary"),
        (base64.b64encode(b"a") + b" 0\n", "eos_token_ids"),
        (b"[" * 100_000, "not JSON"),
    ),
    ids=lambda value: str(value[:20]) if isinstance(value, bytes) else "",
)
def test_wrong_files(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(VocabularyError, match=message) as caught:
        Vocabulary.from_file(tmp_path / "file")
    assert "\n" not in str(caught.value)


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(VocabularyError, match="cannot read .*nothing.json"):
        Vocabulary.from_file(tmp_path / "nothing.json")
    with pytest.raises(VocabularyError, match="no tokenizer file"):
        Vocabulary.from_file(tmp_path)


def test_every_truncation_of_a_model_is_an_error_or_a_vocabulary(tmp_path: Path, mistral: Path) -> None:
    data = (mistral / "tokenizer.model.v1").read_bytes()[:4000]
    for end in range(1, len(data), 37):
        try:
            sentencepiece_model.read_pieces(data[:end])
        except VocabularyError:
            continue


@pytest.mark.parametrize("thing", (None, 3, object(), [b"a"], {"a": 1}))
def test_not_a_tokenizer(thing: object) -> None:
    with pytest.raises(VocabularyError, match="not a tokenizer"):
        Vocabulary.from_huggingface(thing)


def test_unknown_name() -> None:
    pytest.importorskip("transformers")
    with pytest.raises(VocabularyError, match="cannot load the tokenizer"):
        Vocabulary.from_huggingface("no/such-model-here")


def test_a_large_vocabulary_is_ready_for_strings() -> None:
    """From 65,536 tokens on, the load builds the tables of strings, so the first masks inside a string build
    none. The tables took 3 ms with 131,072 tokens and 46 ms with a million."""
    texts = [bytes([b]) for b in range(256)] + [b"%06x" % i for i in range(1 << 16)] + [b""]
    large = structgen.Vocabulary.from_bytes(texts, eos_token_ids=[len(texts) - 1])
    before = large._core.byte_size
    matcher = structgen.Compiler(large).json_schema({"type": "string"}).matcher()
    row = structgen.allocate_bitmask(1, len(texts))
    for text in (b'"', b"a"):
        matcher.fill_bitmask(row)
        assert matcher.accept_bytes(text)
    assert large._core.byte_size == before > 0
