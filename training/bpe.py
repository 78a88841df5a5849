"""The shared byte-level BPE tokenizer.

Enters: generated training text. Leaves: a tokenizer folder that
`AutoTokenizer` loads.  Cost: about twenty seconds for 60,000 examples.

Made for copying: a space is always a token of its own, digits stand alone, and
words never join with quotes; so a value has the same tokens in the request and
in the JSON answer.  Only runs of JSON punctuation may merge (`":"`, `","`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from training import data
from training.prompt import END_MARK, MARKS, PAD_MARK, format_prompt

PIECES = r"\p{Lu}?[\p{Ll}\p{M}]+|\p{Lu}+|\p{L}+|\p{N}|[{}\[\]\":,]+|\s|[^\s\p{L}\p{N}{}\[\]\":,]"
CONTEXT = 1024


def _corpus(count: int, seed: int) -> Iterator[str]:
    for index in range(count):
        one = data.example("train", seed, index)
        # The marks are tokens of their own; the trainer need not see them.
        text = format_prompt(one.text, one.schema)
        for mark in MARKS:
            text = text.replace(mark, " ")
        yield text
        yield one.answer_text()


def train(vocab_size: int, count: int, seed: int) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(MARKS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_corpus(count, seed), trainer)
    return tokenizer


def save(tokenizer: Tokenizer, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END_MARK,
        "pad_token": PAD_MARK,
        "model_max_length": CONTEXT,
        "clean_up_tokenization_spaces": False,
        "padding_side": "left",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
