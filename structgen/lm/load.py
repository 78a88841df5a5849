"""Loads the model that a user names: for `sg.generate`, `sg.sample`, the server and the command line.

Enters: None, "embedded", "embedded-thinking", a folder, a hub id, a pair of transformers, a model. Leaves: a
`LanguageModel`, and its compiler. Cost: loading; the models of the last two names stay loaded.

The embedded models run in numpy. Transformers loads every other folder and all hub ids.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from .._fork import renew_in_children
from ..compiler import Compiler
from ..errors import VocabularyError
from ..frontend.tool_calls import style_of_template
from ..frontend.tools import ARGUMENTS, arguments_alone
from . import embedded
from .prompts import chat_template, is_embedded

if TYPE_CHECKING:
    from ..vocabulary import Vocabulary
    from .base import Context, LanguageModel

_LOADED_MODELS = 2

_lock = threading.Lock()
renew_in_children(sys.modules[__name__])
_models: OrderedDict[str, LanguageModel] = OrderedDict()
_compilers: WeakKeyDictionary[Any, Compiler] = WeakKeyDictionary()


def language_model(model: Any) -> LanguageModel:
    """Returns the `LanguageModel` for the `model` argument of `generate`.

    Raises:
        TypeError: the value names no model.
        LanguageModelError: there is no such model, or its files are damaged.
    """
    if model is None or (isinstance(model, str) and model == "embedded"):
        model = embedded.path("target")
    if isinstance(model, str) and model == "embedded-thinking":
        from .thinking import ThinkingLM

        return cast("LanguageModel", ThinkingLM(language_model("embedded")))
    if isinstance(model, (str, os.PathLike)):
        return _loaded(os.fspath(model))
    if isinstance(model, tuple) and len(model) == 2:
        from .transformers import TransformersLM

        if hasattr(model[0], "convert_ids_to_tokens") and hasattr(model[1], "forward"):
            raise TypeError("a pair is (model, tokenizer), and this one has the tokenizer first: swap them")
        return TransformersLM(*model)
    if all(hasattr(model, name) for name in ("start", "logprobs", "vocabulary")):
        return cast("LanguageModel", model)
    raise TypeError(
        "model is None, a folder or hub id, a pair (model, tokenizer) or a LanguageModel, "
        f"not {type(model).__name__}"
    )


def _loaded(name: str) -> LanguageModel:
    with _lock:
        lm = _models.get(name)
        if lm is None:
            lm = _models[name] = _load(name)
        _models.move_to_end(name)
        while len(_models) > _LOADED_MODELS:
            _models.popitem(last=False)
    return lm


def _load(name: str) -> LanguageModel:
    folder = Path(name)
    if folder.is_dir() and folder.resolve().parent == embedded.FOLDER:
        from .numpy_model import NumpyLM

        lm = NumpyLM.from_folder(folder)
        lm.least_logprob = embedded.LEAST_LOGPROB.get(folder.name)
        return lm
    from .transformers import TransformersLM

    return TransformersLM.from_pretrained(name)


def compiler_of(lm: LanguageModel) -> Compiler:
    """Returns the compiler that a model keeps, so that its grammars share what they learn."""
    with _lock:
        try:
            found = _compilers.get(lm)
            if found is None:
                found = _compilers[lm] = Compiler(lm.vocabulary)
        except TypeError:  # The model cannot be a key of a weak dictionary.
            found = Compiler(lm.vocabulary)
    return found


@atexit.register
def _forget() -> None:
    """Drops models and compilers before the interpreter shuts down."""
    with _lock:
        _models.clear()
        _compilers.clear()


def tool_style(lm: LanguageModel, tools: list[Any] | None = None, tool_choice: Any = "auto") -> str:
    """Returns the style in which the model writes tool calls, a key of `frontend.tools.STYLES`. The embedded
    model was trained to write values, so it writes only the arguments if one function must be called."""
    if not is_embedded(lm):
        return style_of_template(chat_template(lm))
    return ARGUMENTS if tools and arguments_alone(tools, tool_choice) else "json-compact"


def special_names(lm: LanguageModel) -> dict[int, bytes]:
    """Returns the names of the special tokens that do not end a text, by id. Some are marks of tool calls."""
    ends = {*lm.vocabulary.eos_token_ids, *lm.eos_token_ids}
    return {i: name.encode() for name, i in lm.vocabulary.special_tokens.items() if i not in ends}


def room_after(lm: LanguageModel, start: Context, max_tokens: int) -> int:
    """Returns the most tokens of an answer after a prompt. ContextTooLong: there is no room for a token."""
    room = max_tokens if lm.max_context is None else min(max_tokens, lm.max_context - len(start))
    if room < 1 <= max_tokens:
        from .base import ContextTooLong

        raise ContextTooLong(
            f"the prompt has {len(start)} tokens and the model reads {lm.max_context}, "
            "answer included: shorten it"
        )
    return room


def check_vocabulary(grammar: Vocabulary, model: Vocabulary) -> None:
    """VocabularyError unless each id of the grammar is the same text for the model."""
    if grammar is model:
        return
    size = min(grammar.vocab_size, model.vocab_size)
    same = list(grammar.tokens[:size]) == list(model.tokens[:size])
    if not same or grammar.vocab_size > model.vocab_size and any(grammar.tokens[size:]):
        raise VocabularyError(
            f"the grammar was compiled for another vocabulary ({grammar.vocab_size} ids, the model has "
            f"{model.vocab_size}): compile it with Compiler(lm.vocabulary)"
        )
    if not set(grammar.eos_token_ids) <= set(model.eos_token_ids):
        raise VocabularyError(
            f"the grammar ends with the ids {grammar.eos_token_ids}, the model with {model.eos_token_ids}"
        )
