"""structgen as a backend of the real vLLM on the CPU: offline, with drafts and preemption, and as a server.

`make test-hosts HOST=vllm` installs vLLM and a wheel of structgen into an environment of their own, because
every process of vLLM must find structgen's entry point.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is 3 GB: make test-hosts HOST=vllm")

ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "HF_HUB_OFFLINE": "1",
}
os.environ.update(ENVIRONMENT)
sys.path += [str(Path(__file__).parents[i]) for i in (0, 2)]

import jsonschema  # noqa: E402
from contract import (  # noqa: E402
    EXPECTED,
    HARD,
    MODEL,
    ORDER,
    PROMPT,
    TAG,
    check_what_an_operator_sees,
    serving,
)
from vllm import LLM, SamplingParams  # noqa: E402
from vllm.exceptions import VLLMValidationError  # noqa: E402
from vllm.sampling_params import BeamSearchParams, StructuredOutputsParams  # noqa: E402

import structgen as sg  # noqa: E402
from oracles import thinker  # noqa: E402
from structgen.integrations import vllm as plugin  # noqa: E402
from structgen.lm import embedded  # noqa: E402


def params(max_tokens: int = 120, temperature: float = 0, n: int = 1, **asked: Any) -> SamplingParams:
    stop = asked.pop("stop_token_ids", None)
    return SamplingParams(
        temperature=temperature,
        max_tokens=max_tokens,
        n=n,
        seed=7,
        stop_token_ids=stop,
        structured_outputs=StructuredOutputsParams(**asked) if asked else None,
    )


@pytest.fixture(scope="module")
def llm() -> Iterator[LLM]:
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    made = LLM(
        model=MODEL,
        dtype="float32",
        enforce_eager=True,
        max_model_len=1024,
        max_num_seqs=8,
        structured_outputs_config={"backend": "structgen"},
    )
    yield made
    made.llm_engine.engine_core.shutdown()


def answers(llm: LLM, *asked: SamplingParams, prompt: str = PROMPT) -> list[Any]:
    return [out.outputs[0] for out in llm.generate([prompt] * len(asked), list(asked), use_tqdm=False)]


def test_every_kind(llm: LLM) -> None:
    found = answers(
        llm,
        params(json=ORDER),
        params(json=json.dumps(ORDER)),
        params(json_object=True),
        params(regex=r"\d{4}-\d{2}-\d{2}"),
        params(choice=["yes", 'say "hi"\n']),
        params(grammar='root ::= "(" [0-9]+ ")"', max_tokens=20),
        params(grammar='start: NAME "=" /[0-9]+/\nNAME: /[a-z]+/', max_tokens=20),
        params(structural_tag=json.dumps(TAG), max_tokens=150),
        params(),
    )
    texts = [answer.text for answer in found]
    assert texts[:2] == [EXPECTED] * 2
    assert isinstance(json.loads(texts[2]), dict)
    assert len(texts[3]) == 10 and texts[3][4] == "-"
    assert texts[4] in ("yes", 'say "hi"\n')
    assert texts[5][0] == "(" and texts[5][-1] == ")"
    assert "=" in texts[6]
    assert "<fn=a>" in texts[7] and texts[7].endswith("</fn>")
    assert [answer.finish_reason for answer in found] == ["stop"] * 9


@pytest.mark.parametrize("name", HARD)
def test_hard_schemas(llm: LLM, name: str) -> None:
    schema = HARD[name]
    asked = [params(json=schema, temperature=1.5, max_tokens=60).clone() for _ in range(8)]
    for i, one in enumerate(asked):
        one.seed = i
    prompt = embedded.format_prompt("numbers: 15, 20 and 7", schema)
    for answer in answers(llm, *asked, prompt=prompt):
        assert answer.finish_reason == "stop", answer.text
        jsonschema.Draft202012Validator(schema).validate(json.loads(answer.text))


def test_texts_end_within_max_tokens(llm: LLM) -> None:
    for most in (20, 40, 61):
        (answer,) = answers(llm, params(json=ORDER, max_tokens=most))
        assert (answer.finish_reason, len(answer.token_ids) <= most) == ("stop", True)
        jsonschema.validate(json.loads(answer.text), ORDER)
    (cut,) = answers(llm, params(regex="[a-z]{50}", max_tokens=3))
    assert cut.finish_reason == "length"


def test_allowed_token_ids_are_a_second_mask(llm: LLM) -> None:
    tokens = llm_vocabulary().tokens
    asked = params(regex="[0-9]{3}", max_tokens=9), params(regex="[0-9]{3}", max_tokens=9)
    asked[0].allowed_token_ids = [*(tokens.index(b"%d" % i) for i in (1, 2)), *llm_vocabulary().eos_token_ids]
    asked[1].allowed_token_ids = [tokens.index(b"x")]
    both, none = answers(llm, *asked)
    assert both.finish_reason == "stop" and set(both.text) <= {"1", "2"} and len(both.text) == 3
    assert none.finish_reason == "error"
    assert answers(llm, params(json=ORDER))[0].text == EXPECTED, "the engine goes on"


def test_stop_tokens_of_a_request(llm: LLM) -> None:
    word = next(i for i, text in enumerate(llm_vocabulary().tokens) if text == b"items")
    (answer,) = answers(llm, params(json=ORDER, stop_token_ids=[word]))
    assert answer.text == EXPECTED, "keys are spelled with other tokens"
    (short,) = answers(llm, params(regex="[a-z]{1,9}", stop_token_ids=[word]))
    assert short.finish_reason == "stop"


def llm_vocabulary() -> sg.Vocabulary:
    return sg.Vocabulary.from_file(MODEL)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"json": "{"}, "invalid JSON"),
        ({"json": {"type": "integer", "minimum": 2, "maximum": 1}}, "no value satisfies"),
        ({"json": {"$ref": "http://example.com/x"}}, "reference"),
        ({"json": {"type": "array", "minItems": "3"}}, "'minItems' is not a number"),
        ({"json": {"type": "object", "required": "a"}}, "'required' is not an array of names"),
        ({"regex": "("}, "not closed"),
        ({"grammar": "root ::= missing"}, "missing"),
        ({"structural_tag": '{"type": "structural_tag", "format": {"type": "nonsense"}}'}, "nonsense"),
        ({"choice": []}, "empty list"),
    ],
)
def test_refusals_come_before_the_engine(llm: LLM, asked: dict[str, Any], message: str) -> None:
    with pytest.raises(VLLMValidationError, match=message):
        answers(llm, params(**asked))
    assert answers(llm, params(json=ORDER))[0].text == EXPECTED, "the engine goes on"


def test_the_engine_chooses_by_its_own_configuration(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    """A front end that skips vLLM's Python validation names no backend, or a wrong one."""
    monkeypatch.setattr(SamplingParams, "_validate_structured_outputs", lambda *_: None)
    asked = [params(json=ORDER), params(json=ORDER), params(choice=["yes", "no"])]
    assert asked[1].structured_outputs is not None
    asked[1].structured_outputs._backend = "xgrammar"
    found = [answer.text for answer in answers(llm, *asked)]
    assert found[:2] == [EXPECTED] * 2 and found[2] in ("yes", "no")
    (failed,) = answers(llm, params(regex="("))
    assert failed.finish_reason == "error"
    assert answers(llm, params(json=ORDER))[0].text == EXPECTED, "the engine goes on"


def test_beam_search(llm: LLM) -> None:
    asked = BeamSearchParams(
        beam_width=2, max_tokens=8, structured_outputs=StructuredOutputsParams(choice=["yes", "no", "maybe"])
    )
    (found,) = llm.beam_search([{"prompt": PROMPT}], asked)
    assert found.sequences
    for beam in found.sequences:
        assert beam.text.endswith(("yes", "no", "maybe")), beam.text


def test_registering_again_changes_nothing(llm: LLM) -> None:
    before = SamplingParams._validate_structured_outputs
    plugin.register()
    plugin.name_plugin()
    assert SamplingParams._validate_structured_outputs is before


def test_other_backends_are_as_they_were(llm: LLM) -> None:
    from vllm.config.structured_outputs import StructuredOutputsConfig

    assert StructuredOutputsConfig().backend == "auto"
    assert StructuredOutputsConfig(backend="structgen").backend == "structgen"
    with pytest.raises(ValueError):
        StructuredOutputsConfig(backend="nonsense")
    asked = params(json={"type": "array", "uniqueItems": True})
    # vLLM names xgrammar, but structgen takes the schema
    with pytest.raises(VLLMValidationError, match="not supported by xgrammar"):
        asked._validate_structured_outputs(
            llm.llm_engine.model_config, StructuredOutputsConfig(backend="xgrammar"), object()
        )


DRAFTS = """
import json, sys

from vllm import LLM, SamplingParams
from vllm.sampling_params import StructuredOutputsParams

if __name__ == "__main__":
    model, prompt, schema = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    llm = LLM(
        model=model, dtype="float32", enforce_eager=True, max_model_len=640, max_num_seqs=8, block_size=32,
        num_gpu_blocks_override=24, structured_outputs_config={"backend": "structgen"},
        speculative_config={"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3,
                            "prompt_lookup_min": 1},
    )
    asked = [
        SamplingParams(
            temperature=0, max_tokens=120, structured_outputs=StructuredOutputsParams(**a) if a else None
        )
        for a in [{"json": schema}, {"regex": "[a-z]{3,9}"}, {}] * 6
    ]
    found = llm.generate([prompt] * len(asked), asked, use_tqdm=False)
    print(json.dumps([[o.outputs[0].text, o.outputs[0].finish_reason] for o in found]))
"""


def test_drafts_and_preemption_in_processes(tmp_path: Path) -> None:
    """Front end, engine and worker are processes. 24 blocks of 32 tokens hold a third of the sequences."""
    script = tmp_path / "drafts.py"
    script.write_text(DRAFTS)
    environment = {**os.environ, "VLLM_ENABLE_V1_MULTIPROCESSING": "1"}
    done = subprocess.run(
        [sys.executable, script, MODEL, PROMPT, json.dumps(ORDER)],
        capture_output=True, text=True, timeout=900, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert {text for text, _ in found[0::3]} == {EXPECTED}
    assert {reason for _, reason in found} == {"stop"}
    assert len({text for text, _ in found[1::3]}) == 1


THOUGHTS = """
import json, sys

from vllm import LLM, SamplingParams
from vllm.sampling_params import StructuredOutputsParams

if __name__ == "__main__":
    folder, prompts, schema, drafts, inside = sys.argv[1], *map(json.loads, sys.argv[2:])
    llm = LLM(
        model=folder, dtype="float32", enforce_eager=True, max_model_len=640, max_num_seqs=8,
        structured_outputs_config={
            "backend": "structgen", "reasoning_parser": "qwen3", "enable_in_reasoning": inside,
        },
        additional_config={"structgen": {"reasoning": "qwen3"} if inside else {}},
        speculative_config={"method": "ngram", "num_speculative_tokens": drafts, "prompt_lookup_max": 3,
                            "prompt_lookup_min": 1} if drafts else None,
    )
    asked = [
        SamplingParams(
            temperature=1, seed=seed, max_tokens=most, structured_outputs=StructuredOutputsParams(json=schema)
        )
        for seed in range(40) for most in (14, 30, 90)
    ]
    for prompt in prompts:
        found = llm.generate([prompt] * len(asked), asked, use_tqdm=False)
        print("FOUND", json.dumps([
            [list(o.outputs[0].token_ids), a.max_tokens, o.outputs[0].finish_reason]
            for o, a in zip(found, asked)
        ]))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return thinker.write(tmp_path_factory.mktemp("thinker"))


def thoughts_of(tmp_path: Path, folder: Path, drafts: int, inside: bool) -> list[list[Any]]:
    """Texts of a model that thinks at random. Each prompt gives the tokens, the limit and the reason for the
    end."""
    script = tmp_path / "thoughts.py"
    script.write_text(THOUGHTS)
    vocabulary = sg.Vocabulary.from_file(folder)
    names, word = vocabulary.special_tokens, vocabulary.encode("how")[0]
    # The prompt has one token more than two cached blocks: vLLM pads the first step with drafts of -1.
    cached = [names["<|text|>"], *[word] * (2 * 128 - 1), names["<|answer|>"]]
    prompts = [thinker.PROMPT, thinker.PROMPT + thinker.THINKS.start, {"prompt_token_ids": cached}]
    done = subprocess.run(
        [sys.executable, script, folder, *map(json.dumps, (prompts, thinker.SCHEMA, drafts, inside))],
        capture_output=True, text=True, timeout=600,
        env={**os.environ, "VLLM_ENABLE_V1_MULTIPROCESSING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return [
        json.loads(line.removeprefix("FOUND "))
        for line in done.stdout.splitlines()
        if line.startswith("FOUND ")
    ]


@pytest.mark.parametrize("drafts", [0, 1, 4, 8])
def test_thoughts_and_answer_in_one_grammar_end_in_time(tmp_path: Path, folder: Path, drafts: int) -> None:
    """With `enable_in_reasoning` and the option `reasoning`, thoughts of every length end, also if a draft
    crosses the border."""
    free, begun, cached = thoughts_of(tmp_path, folder, drafts, inside=True)
    judge = thinker.Judge(folder)
    for tokens, most, reason in free + cached:
        judge.ids(tokens, most)
        assert reason == "stop"
    judge.complete()
    for tokens, most, reason in begun:
        judge.ids(tokens, most, prefilled=True)
        assert reason == "stop"


def test_without_the_option_the_grammar_begins_behind_the_thoughts(tmp_path: Path, folder: Path) -> None:
    """Without the option, vLLM cuts off thoughts that never end, and every finished text is valid."""
    _, begun, _ = thoughts_of(tmp_path, folder, 0, inside=False)
    judge = thinker.Judge(folder)
    for tokens, most, reason in begun:
        if reason == "stop":
            judge.ids(tokens, most, prefilled=True)
    assert set(judge.seen) == {"long", "short"} and {r for *_, r in begun} == {"stop", "length"}


# The command `vllm serve` asks for the version of a package name that the CPU build does not have.
SERVE = """
from importlib import metadata

version = metadata.version
metadata.version = lambda name: version("vllm-cpu") + "+cpu" if name == "vllm" else version(name)

from vllm.entrypoints.cli.main import main

if __name__ == "__main__":
    main()
"""


def vllm_serves(
    folder: Path, *options: str, model: str | Path = MODEL, **environment: str
) -> contextlib.AbstractContextManager[tuple[str, Path]]:
    """Starts `vllm serve`. Its `/metrics` must show structgen's counters without an option."""
    return serving(
        folder, "-c", SERVE, "serve", str(model), "--dtype", "float32", "--enforce-eager",
        "--max-model-len", "1024", "--max-num-seqs", "8", "--served-model-name", "m",
        "--structured-outputs-config", '{"backend": "structgen"}',
        "--additional-config", '{"structgen": {"whitespace": "compact"}}', *options,
        VLLM_ENABLE_V1_MULTIPROCESSING="1", VLLM_LOGGING_LEVEL="INFO", **environment,
    )  # fmt: skip


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("server")
    with vllm_serves(folder, TMPDIR=str(folder)) as found:
        yield found
    assert not list(folder.glob("structgen-*")), "the counters' folder goes with the server"


@pytest.fixture(scope="module")
def server(running: tuple[str, Path]) -> str:
    return running[0] + "/v1"


def operator_sees(base: str, log: Path) -> None:
    import httpx

    def ask(schema: Any) -> int:
        body = {"model": "m", "prompt": PROMPT, "max_tokens": 120, "temperature": 0}
        made = httpx.post(
            base + "/v1/completions", json={**body, "structured_outputs": {"json": schema}}, timeout=120
        )
        return made.status_code

    def metrics() -> str:
        return httpx.get(base + "/metrics", timeout=30, follow_redirects=True).text

    check_what_an_operator_sees(ask, metrics, log.read_text)


def test_an_operator_sees_the_counters(running: tuple[str, Path]) -> None:
    operator_sees(*running)
    assert re.search(r"EngineCore.*structgen: \d+ constraints", running[1].read_text())


def test_an_operator_of_several_api_servers_sees_the_counters(tmp_path: Path) -> None:
    """With several API servers vLLM sets up prometheus-client for many processes: every server shows all
    counters."""
    with vllm_serves(tmp_path, "--api-server-count", "2") as (base, log):
        operator_sees(base, log)
        assert log.read_text().count("Started server process") == 2


def test_the_server_tells_thoughts_and_answer_apart(tmp_path: Path, folder: Path) -> None:
    """The grammar holds thoughts and answer, and vLLM's own parser of thoughts reads what the model wrote."""
    import openai

    options = (
        "--reasoning-parser", "qwen3",
        "--structured-outputs-config", '{"backend": "structgen", "enable_in_reasoning": true}',
        "--additional-config", '{"structgen": {"reasoning": "qwen3"}}',
    )  # fmt: skip
    judge = thinker.Judge(folder)
    asked: Any = {"type": "json_schema", "json_schema": {"name": "n", "schema": thinker.SCHEMA}}
    with vllm_serves(tmp_path, *options, model=folder) as (base, _):
        client = openai.OpenAI(base_url=base + "/v1", api_key="none")
        for seed in range(30):
            made = client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "how many?"}], temperature=1, seed=seed,
                max_tokens=(14, 30, 90)[seed % 3],
                response_format=asked,
                extra_body={"skip_special_tokens": False, "chat_template_kwargs": {"prefilled": True}},
            )  # fmt: skip
            (choice,) = made.choices
            assert choice.finish_reason == "stop"
            judge.parts(choice.message.reasoning, (choice.message.content or "").removesuffix("<|end|>"))
    assert set(judge.seen) == {"long", "short", "endless"}


def test_the_server_with_openais_client(server: str) -> None:
    import openai

    client = openai.OpenAI(base_url=server, api_key="none")
    made = client.completions.create(
        model="m",
        prompt=PROMPT,
        max_tokens=120,
        temperature=0,
        extra_body={"structured_outputs": {"json": ORDER}},
    )
    assert made.choices[0].text == EXPECTED
    stream = client.completions.create(
        model="m", prompt=PROMPT, max_tokens=120, temperature=0, stream=True,
        extra_body={"structured_outputs": {"json": ORDER}},
    )  # fmt: skip
    assert "".join(part.choices[0].text for part in stream) == EXPECTED
    for asked, good in (({"regex": "[ab]{3}"}, 3), ({"choice": ["one", "two"]}, 3)):
        made = client.completions.create(
            model="m", prompt=PROMPT, max_tokens=20, extra_body={"structured_outputs": asked}
        )
        assert len(made.choices[0].text) == good
    with pytest.raises(openai.BadRequestError, match="no value satisfies"):
        client.completions.create(
            model="m", prompt=PROMPT, max_tokens=20,
            extra_body={"structured_outputs": {"json": {"type": "integer", "minimum": 2, "maximum": 1}}},
        )  # fmt: skip
