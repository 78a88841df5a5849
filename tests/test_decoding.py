"""Draws of tokens and ends of texts: stop strings, min-p, bias, penalties, alternatives and repeated
attempts."""

from __future__ import annotations

import itertools
import json
import math
import pickle
import random
from collections import Counter
from typing import Annotated, Any

import numpy as np
import pytest

import structgen as sg
from oracles import closed
from oracles.speculative import SCHEMA, TOKENS, TableModel
from structgen._drawing import Drawing
from structgen._draws import Noise, draw

TEXT = "Maria ordered 3 oak chairs"


def text_of(tokens: list[int]) -> str:
    return b"".join(TOKENS[t] for t in tokens).decode()


# ---- stop strings ----


def stopped(tokens: list[int], stops: list[str]) -> tuple[int, str, str] | None:
    """Returns the definition: returns the tokens up to the completion of a stop string, the text before the
    stop string, and the stop string. The stop string whose end comes first counts; of several with one end,
    the longest."""
    for count in range(1, len(tokens) + 1):
        text = text_of(tokens[:count])
        ends = [(text.find(s) + len(s), text.find(s), s) for s in stops if s in text]
        if ends:
            _, start, stop = min(ends)
            return count, text[:start], stop
    return None


@pytest.mark.parametrize("speculate", [None, "auto"])
@pytest.mark.parametrize("grammar", [None, "[ -~]{60}"])
def test_a_stop_string_ends_the_text_wherever_tokens_end(speculate: Any, grammar: str | None) -> None:
    random.seed(4)
    found = 0
    options: dict[str, Any] = {"temperature": 1.0, "max_tokens": 70, "speculate": speculate, "regex": grammar}
    for seed in range(25):
        lm = TableModel(seed)
        free = sg.generate(lm, "go", seed=seed, **options)
        text = free.text
        if len(text) < 4:
            continue
        at = random.randrange(len(text) - 2)
        stops = [text[at : at + random.randint(1, 3)], "never~~~", text[at : at + 2] + "?"]
        want = stopped(free.tokens, stops)
        assert want is not None
        count, before, stop = want
        result = sg.generate(TableModel(seed), "go", seed=seed, stop=stops, **options)
        assert (result.text, result.tokens, result.stopped_by) == (before, free.tokens[:count], stop)
        assert result.finish_reason == "stop"
        assert result.value == (before if grammar is None else None)
        found += any(len(TOKENS[t]) > 1 for t in result.tokens)
    assert found


def test_a_text_that_is_whole_where_it_was_stopped_has_a_value() -> None:
    result = sg.generate(None, "x", regex="abc(STOP.{3})?", max_tokens=40, logit_bias=None, stop="STOP")
    assert result.text == "abc" and result.value == "abc"
    forced = sg.generate(None, "x", regex="abcSTOP", stop="STOP")
    assert (forced.text, forced.value, forced.stopped_by) == ("abc", None, "STOP")
    number = sg.generate(None, "x", {"enum": [12]}, stop="2")
    assert (number.text, number.value) == ("1", None)


def test_a_stop_string_that_never_comes_holds_nothing_back() -> None:
    result = sg.generate(None, "x", choice=["almost STO"], stop=["STOP", "sto"])
    assert (result.text, result.stopped_by, result.value) == ("almost STO", None, "almost STO")


# ---- laws of a draw, computed a second way ----


def law(
    row: np.ndarray, allowed: list[int], counts: Counter[int], prompt: set[int], how: Drawing
) -> dict[int, float]:
    """Returns the probabilities of the next token by the parameters' definitions, computed token by token."""
    scores = {}
    for token in allowed:
        score = float(row[token])
        if token in prompt or counts[token]:
            score *= how.repetition_penalty
        if counts[token]:
            score -= how.frequency_penalty * counts[token] + how.presence_penalty
        scores[token] = (score + how.logit_bias.get(token, 0.0)) / how.temperature
    most = max(scores.values())
    weights = {t: math.exp(s - most) for t, s in scores.items()}
    weights = {t: w for t, w in weights.items() if w >= how.min_p}
    ranked = sorted(weights, key=lambda t: -weights[t])[: how.top_k]
    if how.top_p is not None:
        total, kept, mass = sum(weights[t] for t in ranked), [], 0.0
        for token in ranked:
            kept.append(token)
            mass += weights[token]
            if mass >= how.top_p * total:
                break
        ranked = kept
    total = sum(weights[t] for t in ranked)
    return {t: weights[t] / total for t in ranked}


CASES: list[dict[str, Any]] = [
    {"min_p": 0.2},
    {"min_p": 0.05, "top_k": 3},
    {"frequency_penalty": 0.7},
    {"presence_penalty": 1.5},
    {"repetition_penalty": 1.4},
    {"logit_bias": {40: 3.0, 41: -100.0, 70: 1.0}},
    {"logit_bias": {"55": -2.0}, "min_p": 0.1, "top_p": 0.9, "frequency_penalty": -0.5},
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_token_is_a_draw_of_the_law(case: dict[str, Any]) -> None:
    """Every token of a text has a positive probability under the law, and is the token that the noise
    selects."""
    lm, temperature = TableModel(2), 0.9
    for seed in range(6):
        result = sg.generate(lm, "go", regex="[ -Z]{12}", seed=seed, temperature=temperature, **case)
        matcher = sg.Compiler(lm.vocabulary).regex("[ -Z]{12}").matcher()
        prompt, counts = set(lm.vocabulary.encode("go")), Counter()
        context, noise = lm.start("go"), Noise(seed, 0)
        bias = {int(k): v for k, v in case.get("logit_bias", {}).items()}
        how = Drawing(
            temperature, **{"logit_bias": bias, **{k: v for k, v in case.items() if k != "logit_bias"}}
        )
        for position, token in enumerate(result.tokens):
            allowed = [t for t in range(len(TOKENS)) if matcher.validate_tokens([t])]
            want = law(lm.logprobs([context])[0], allowed, counts, prompt, how)
            gumbel = noise.gumbel(position, np.array(sorted(want)))
            best = max(zip(sorted(want), gumbel, strict=True), key=lambda p: math.log(want[p[0]]) + p[1])[0]
            assert token == best
            counts[token] += 1
            context = context.extend(token)
            matcher.accept_token(token)
        assert result.sampling.order[0] == ("mask" if case.keys() <= {"min_p", "top_k"} else "penalties")


def test_draws_follow_min_p_and_bias() -> None:
    lm, letters = TableModel(3), "abcd"
    ids = {c: TOKENS.index(c.encode()) for c in letters}
    row = lm.logprobs([lm.start("go")])[0]
    for options in ({"min_p": 0.3}, {"logit_bias": {ids["a"]: 1.0, ids["b"]: -100.0}}):
        found = Counter(
            r.text
            for r in sg.generate(lm, "go", choice=list(letters), n=4000, temperature=0.7, seed=2, **options)
        )
        how = Drawing(0.7, **options)
        want = law(row, list(ids.values()), Counter(), set(), how)
        for letter in letters:
            p = want.get(ids[letter], 0.0)
            assert abs(found[letter] / 4000 - p) < 4 * math.sqrt(p * (1 - p) / 4000) + 1e-9, (letter, options)


def test_greedy_takes_bias_and_penalties_too() -> None:
    lm = TableModel(1)
    first = sg.generate(lm, "go", regex="[a-z]{8}")
    other = sg.generate(lm, "go", regex="[a-z]{8}", logit_bias={first.tokens[0]: -50})
    assert other.tokens[0] != first.tokens[0]
    never = sg.generate(lm, "go", regex="[a-c]{3}", presence_penalty=100.0)
    assert sorted(never.text) == ["a", "b", "c"]


def test_a_special_token_is_biased_by_its_name() -> None:
    by_name = sg.generate(None, TEXT, regex="[a-z ]{1,30}", logit_bias={"<|end|>": 50.0})
    assert len(by_name.tokens) == 2


# ---- alternatives ----


@pytest.mark.parametrize("penalised", [False, True])
def test_alternatives_before_and_after_the_mask(penalised: bool) -> None:
    lm = TableModel(5)
    options: dict[str, Any] = {"presence_penalty": 2.0} if penalised else {}
    result = sg.generate(lm, "go", SCHEMA, temperature=1.0, seed=1, top_logprobs=4, max_tokens=40, **options)
    assert len(result.top_logprobs) == len(result.tokens)
    grammar = sg.Compiler(lm.vocabulary).json_schema(
        SCHEMA, whitespace="compact", numbers="canonical", strings="plain"
    )
    matcher, context, left = grammar.matcher(), lm.start("go"), 40
    mask = sg.allocate_bitmask(1, len(TOKENS))
    for token, found, logprob in zip(result.tokens, result.top_logprobs, result.logprobs, strict=True):
        row = lm.logprobs([context])[0].astype(np.float64)
        matcher.fill_bitmask(mask, max_tokens=left)
        allowed = [t for t in range(len(TOKENS)) if mask[0][t // 32] >> (t % 32) & 1]
        mass = math.log(sum(math.exp(row[t]) for t in allowed))
        ranked = sorted(range(len(TOKENS)), key=lambda t: (-row[t], t))[:4]
        assert [t for t, _ in found.before] == ranked
        assert [lp for _, lp in found.before] == pytest.approx([row[t] for t in ranked], abs=1e-5)
        after = sorted(allowed, key=lambda t: (-row[t], t))[:4]
        assert [t for t, _ in found.after] == after
        assert [lp for _, lp in found.after] == pytest.approx([row[t] - mass for t in after], abs=1e-5)
        assert found.mass == pytest.approx(mass, abs=1e-5)
        assert found.logprob == pytest.approx(logprob - mass, abs=1e-5)
        context, left = context.extend(token), left - 1
        matcher.accept_token(token)
    events = list(
        sg.stream(
            TableModel(5), "go", SCHEMA, temperature=1.0, seed=1, top_logprobs=4, max_tokens=40, **options
        )
    )
    assert [e.top_logprobs for e in events] == result.top_logprobs


def test_without_a_grammar_all_tokens_are_allowed() -> None:
    result = sg.generate(TableModel(), "go", max_tokens=3, top_logprobs=2)
    assert all(t.before == t.after and t.mass == 0.0 and len(t.after) == 2 for t in result.top_logprobs)


@pytest.mark.parametrize("option", [{"min_p": 0.1}, {"logit_bias": {3: 1.0}}, {"top_logprobs": 2}])
def test_speculation_says_what_it_cannot_do(option: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="speculate= takes temperature, top_k and top_p"):
        sg.generate(None, "x", regex="a", speculate="auto", **option)


# ---- repeated attempts ----


def models() -> Any:
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed: it is in the extra types")

    def odd(value: int) -> int:
        if value % 2 == 0:
            raise ValueError("must be odd")
        return value

    class Pick(pydantic.BaseModel):
        name: str = pydantic.Field(pattern="^[a-c]$")
        numbers: list[Annotated[int, pydantic.AfterValidator(odd), pydantic.Field(ge=0, le=9)]] = (
            pydantic.Field(min_length=2, max_length=2)
        )

        @pydantic.model_validator(mode="after")
        def different(self) -> Any:
            if self.numbers[0] == self.numbers[1]:
                raise ValueError("the numbers are equal")
            return self

    return Pick


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_refused_values_are_forbidden_until_one_is_fine(temperature: float) -> None:
    """Greedy decoding would repeat the refused text for ever. So the next attempt forbids the refused
    values."""
    kind = models()
    attempts = []
    for seed in range(12):
        options: dict[str, Any] = {"temperature": temperature, "seed": seed}
        result = sg.generate(TableModel(seed), "go", kind, retries=12, **options)
        numbers = result.value.numbers
        assert numbers[0] != numbers[1] and all(n % 2 for n in numbers)
        attempts.append(result.attempts)
        if result.attempts > 1:
            with pytest.raises(sg.InvalidValue) as caught:
                sg.generate(TableModel(seed), "go", kind, retries=result.attempts - 2, **options)
            assert len(caught.value.attempts) == result.attempts - 1
            texts = [text for text, _ in caught.value.attempts]
            assert len(set(texts)) == len(texts), "a refused text came again"
        else:
            assert sg.generate(TableModel(seed), "go", kind, **options).tokens == result.tokens
    assert max(attempts) > 2


def test_the_text_is_kept_on_the_error() -> None:
    kind = models()
    seed = next(s for s in range(20) if _fails(s, kind))
    with pytest.raises(sg.InvalidValue) as caught:
        sg.generate(TableModel(seed), "go", kind)
    error = caught.value
    assert isinstance(error, ValueError) and isinstance(error, sg.StructgenError)
    assert kind.model_fields.keys() <= set(json.loads(error.text))
    assert "must be odd" in str(error) or "equal" in str(error)
    assert "\n" not in str(error) and "retries=3 tries again" in str(error) and error.text[:70] in str(error)
    assert type(error.error).__name__ == "ValidationError" and error.__cause__ is not None
    assert pickle.loads(pickle.dumps(error)).text == error.text
    (failed,) = sg.generate_many(TableModel(seed), ["go"], kind)
    assert isinstance(failed, sg.Failed) and failed.error.text == error.text  # type: ignore[attr-defined]


def _fails(seed: int, kind: Any) -> bool:
    try:
        sg.generate(TableModel(seed), "go", kind)
    except sg.InvalidValue:
        return True
    return False


def test_only_the_refused_place_is_forbidden() -> None:
    """Enumeration shows that the next attempt's schema excludes the refused values at the refused places
    alone."""
    from structgen.generation.retry import _not_at

    compiler = sg.Compiler(
        sg.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b""], eos_token_ids=256)
    )
    base = closed(
        {"a": {"type": "array", "items": {"enum": [1, 2]}, "maxItems": 2}, "b": {"enum": [1, "x"]}}, ["a"]
    )
    lists = [list(x) for n in range(3) for x in itertools.product([1, 2], repeat=n)]
    values: list[Any] = [{"a": a, **b} for a in lists for b in ({}, {"b": 1}, {"b": "x"})]

    def at(value: Any, place: list[Any]) -> Any:
        for step in place:
            try:
                value = value[step]
            except (KeyError, IndexError):
                return None
        return value

    for place, refused in (
        (["a", 1], 2),
        (["a", 0], 1),
        (["b"], "x"),
        (["a"], [1, 2]),
        ([], {"a": [1], "b": 1}),
    ):
        grammar = compiler.json_schema(
            {**base, "allOf": [{"not": _not_at(place, refused)}]}, whitespace="compact"
        )
        for value in values:
            matcher = grammar.matcher()
            text = json.dumps(value, separators=(",", ":"))
            taken = matcher.accept_bytes(text) and matcher.is_accepting()
            assert taken == (at(value, place) != refused), (place, refused, text)


def test_the_model_can_be_told_instead() -> None:
    kind = models()
    seed = next(s for s in range(20) if _fails(s, kind))
    prompts: list[Any] = []

    class Told(TableModel):
        def start(self, prompt: Any) -> Any:
            prompts.append(prompt)
            return super().start(prompt.replace("\n", " "))

    for retries in (1, 6):
        prompts.clear()
        try:
            sg.generate(
                Told(seed), "go", kind, retries=retries, on_invalid="tell", temperature=1.0, seed=seed
            )
        except sg.InvalidValue as error:
            assert len(error.attempts) == retries + 1
        assert prompts[0] == "go"
        for prompt in prompts[1:]:
            assert prompt.startswith("go\nNot {") and ("must be odd" in prompt or "equal" in prompt)


def test_no_value_is_left() -> None:
    """A validator that refuses everything gives an error with the reason, not an endless loop."""
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed: it is in the extra types")

    def never(value: int) -> int:
        raise ValueError("never")

    kind = Annotated[int, pydantic.AfterValidator(never), pydantic.Field(ge=1, le=2)]
    with pytest.raises((sg.InvalidValue, sg.UnsatisfiableSchema)):
        sg.generate(TableModel(), "go", kind, retries=5)


def test_a_draw_of_a_row_without_mass_is_refused() -> None:
    with pytest.raises(sg.StructgenError, match="no allowed token"):
        draw(np.full(3, -np.inf, np.float32), Drawing(1.0), None, 0)


# ---- chat messages ----


def test_the_embedded_model_reads_messages() -> None:
    """The model gets the system text, the user's last message and the later answers of tools."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    want = sg.generate(None, "Answer in English. She lives in Oslo", schema).tokens
    messages: list[Any] = [
        {"role": "system", "content": "Answer in English."},
        {"role": "user", "content": "He lives in Rome"},
        {"role": "assistant", "content": "ok"},
        {"role": "user", "content": [{"type": "text", "text": "She lives in Oslo"}]},
    ]
    assert sg.generate(None, messages, schema).tokens == want
    with pytest.raises(ValueError, match="plain prompts have none"):
        sg.generate(None, messages, schema, format="plain")


def test_the_structure_penalty_is_what_its_definition_says() -> None:
    """Replays greedy texts: a matcher gives the masks, and repeated histories are compared one by one."""
    lm, pattern = TableModel(4), "([0-9][A-D]){9}[0-9]?"
    changed = 0
    for penalty in (0.5, 0.9):
        result = sg.generate(lm, "go", regex=pattern, structure_penalty=penalty, max_tokens=30)
        plain = sg.generate(lm, "go", regex=pattern, max_tokens=30)
        changed += result.tokens != plain.tokens
        assert (
            result.sampling.order[:2] == ("mask", "structure")
            and result.sampling.structure_penalty == penalty
        )
        matcher = sg.Compiler(lm.vocabulary).regex(pattern).matcher()
        context, masks = lm.start("go"), []
        for position, token in enumerate(result.tokens):
            row = sg.allocate_bitmask(1, len(TOKENS))
            matcher.fill_bitmask(row, max_tokens=30 - position)
            masks.append(row.tobytes())
            scores = sg.apply_bitmask(lm.logprobs([context]), row)[0].astype(float)
            for at in range(position):
                same = 0
                while same <= at and masks[at - same] == masks[position - same]:
                    same += 1
                if same >= 4:
                    scores[result.tokens[at]] += max(-20.0, (same - 3) * math.log(penalty))
            assert scores[token] == pytest.approx(scores.max(), abs=1e-5)
            context = context.extend(token)
            matcher.accept_token(token)
    assert changed
    same = sg.generate(lm, "go", regex=pattern, structure_penalty=1.0, max_tokens=30)
    assert same.tokens == plain.tokens
    # without a constraint no token counts as structure
    assert sg.generate(lm, "go", structure_penalty=0.5, max_tokens=9).tokens
    for wrong in (0.0, 1.5):
        with pytest.raises(ValueError, match="above 0 and at most 1"):
            sg.generate(lm, "go", regex=pattern, structure_penalty=wrong)
    with pytest.raises(ValueError, match="leave min_p, penalties"):
        sg.generate(lm, "go", regex=pattern, structure_penalty=0.5, speculate="auto")
