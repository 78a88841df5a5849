"""The playground's page in headless Chromium: `make test-page`.

Without Chromium (STRUCTGEN_CHROMIUM names one) or playwright the tests are skipped; `make test-page` then
fails. Every test also checks that the page loads only from its own origin, violates no policy and logs no
error.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("sse_starlette")
pytest.importorskip("playwright", reason="playwright is not installed: it is in the extra test-page")
pytest.importorskip("axe_playwright_python", reason="axe is not installed: it is in the extra test-page")

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

import structgen as sg
from oracles.serving import Script, served
from structgen.serve.examples import examples

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM = os.environ.get("STRUCTGEN_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
if CHROMIUM is None:
    pytest.skip("there is no Chromium: apt-get install chromium", allow_module_level=True)

TEXT = "Maria Lopez ordered 3 oak chairs and 2 desk lamps, ship to Lisbon by 5 March 2027"
HOSTILE = "</script><img src=x onerror=\"document.title='hacked'\"><svg onload=alert(1)>'\"&lt;"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    root = hasattr(os, "geteuid") and os.geteuid() == 0  # the sandbox of Chromium refuses root
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"] if root else [])
        yield made
        made.close()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(None) as found:
        yield found


@contextmanager
def opened(browser: Browser, address: str, path: str = "/", **options) -> Iterator[Page]:
    """A page that has loaded. At the end the test checks that nothing failed and no request left the
    origin."""
    expected = options.pop("expected", r"(?!)")
    context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
    wrong: list[str] = []
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    context.on("weberror", lambda error: wrong.append(str(error.error)))
    context.on("console", lambda m: wrong.append(m.text) if m.type in ("error", "warning") else None)
    page = context.new_page()
    page.goto(address + path)
    if path.partition("#")[0] == "/" and "extra_http_headers" not in options and expected == r"(?!)":
        expect(page.locator("html[data-ready]")).to_be_attached(
            timeout=30_000
        )  # the page's first generation is over
    yield page
    # The browser logs a 4xx response, which some tests provoke, as a failed resource.
    left = [text for text in wrong if not re.search(expected + r"|status of 400", text)]
    assert not left, left
    assert asked and all(url.startswith(address + "/") for url in asked), asked
    context.close()


def choose(page: Page, name: str) -> None:
    page.select_option("#example", label=name)


def generate(page: Page) -> None:
    page.click("#generate")
    expect(page.locator("#stop")).to_be_disabled(timeout=30_000)


def tokens(page: Page) -> list[str]:
    return page.locator("#tokens button").all_inner_texts()


# ---- actions of a user ----


def test_loading(browser, address) -> None:
    with opened(browser, address) as page:
        expect(page).to_have_title("structgen playground")
        expect(page.locator("#model")).to_contain_text("embedded: 2,048 tokens")
        assert page.locator("#example option").count() == len(examples()) + 1
        expect(page.locator("#constraint-verdict")).to_contain_text("compiles")
        expect(page.locator("#enforced")).to_contain_text("Every keyword.")


def test_arriving(browser, address) -> None:
    """The page opens with a demonstration: one answer under a constraint that the model dislikes, and one
    without the constraint."""
    with opened(browser, address) as page:
        expect(page.locator("#status")).to_contain_text("complete and valid")
        found = json.loads(page.locator("#whole").inner_text())
        assert found["quantity"] >= 10 and found["city"] != "Lisbon"
        free = json.loads(page.locator("#free").inner_text())
        # the unconstrained model reads the same prompt
        assert free["quantity"] == 3 and free["city"] == "Lisbon"
        expect(page.locator("#free-verdict")).to_contain_text("rejected")
        expect(page.locator("#free-verdict")).to_contain_text("#/properties/customer/maxLength")
        assert page.evaluate("scrollY") == 0
        page.uncheck("#compare")
        generate(page)
        expect(page.locator("#whole")).to_be_visible()
        expect(page.locator("#free-part")).to_be_hidden()


def test_generating(browser, address) -> None:
    wanted = sg.generate(None, TEXT, json.loads(examples()[1]["text"]))
    with opened(browser, address) as page:
        choose(page, "Order")
        generate(page)
        expect(page.locator("#free-verdict")).to_have_text("it fits as well")
        expect(page.locator("#whole")).to_have_text(wanted.text)
        assert len(tokens(page)) == len(wanted.tokens)
        expect(page.locator("#status")).to_contain_text("complete and valid")
        for kind in ("forced", "free"):
            assert page.locator(f"#tokens .token.{kind}").count()
        expect(page.locator("#timings svg")).to_be_visible()


def test_probable_values(browser, address) -> None:
    """Each value has a row, each alternative a line, and values are not split into letters."""
    with opened(browser, address) as page:
        page.check("#confidence")
        generate(page)
        rows = page.locator("#fields tr").all()
        assert [row.locator("td").first.inner_text() for row in rows[1:]] == [
            "/customer", "/quantity", "/city", "/date",
        ]  # fmt: skip
        for width in (1200, 420):
            page.set_viewport_size({"width": width, "height": 900})
            for row in rows[1:]:
                place, value, probability, others = row.locator("td").all()
                assert max(place.bounding_box()["height"], value.bounding_box()["height"]) <= max(
                    60, others.bounding_box()["height"]
                )
                assert re.search(r"\d%$", probability.inner_text())
                lines = others.locator("div").all_inner_texts()
                assert lines and all(re.search(r"\d%$", line) for line in lines)


def test_a_verdict_is_about_what_was_asked(browser, address) -> None:
    """An edit removes the verdict "complete and valid", which is about the text before the edit."""
    with opened(browser, address) as page:
        generate(page)
        expect(page.locator("#status")).to_contain_text("complete and valid")
        page.fill("#constraint", '{"type": "null"}')
        expect(page.locator("#status")).to_contain_text("changed since")
        expect(page.locator("#tokens")).to_have_class(re.compile("old"))
        assert float(page.locator("#beside").evaluate("e => getComputedStyle(e).opacity")) < 0.6
        page.click("#generate")
        expect(page.locator(".old")).to_have_count(0)
        expect(page.locator("#whole")).to_have_text("null")
        expect(page.locator("#status")).to_contain_text("complete and valid")
        page.fill("#prompt", "other words")
        expect(page.locator("#status")).to_contain_text("changed since")


@pytest.mark.parametrize("height, width", [(640, 1200), (900, 1200), (640, 360)])
def test_generate_is_in_sight(browser, address, height: int, width: int) -> None:
    with opened(browser, address, viewport={"width": width, "height": height}) as page:
        page.locator("#constraint").scroll_into_view_if_needed()
        expect(page.locator("#generate")).to_be_in_viewport(ratio=1)


def test_tokens_appear_as_they_are_drawn_and_escape_stops(browser) -> None:
    with (
        served(Script(lambda _: "abcdefgh" * 100, seconds=0.03), temperature=0.0) as slow,
        opened(browser, slow) as page,
    ):
        page.check("input[value=none]")
        page.uncheck("#chat")
        page.fill("#prompt", "x\x02")
        page.click("#generate")
        expect(page.locator("#tokens button").nth(5)).to_have_text("f")
        expect(page.locator("#stop")).to_be_enabled()
        page.keyboard.press("Escape")
        expect(page.locator("#status")).to_have_text("stopped")
        assert 5 < len(tokens(page)) < 200


def test_looking_at_a_token(browser, address) -> None:
    with opened(browser, address) as page:
        choose(page, "Order")
        generate(page)
        number = tokens(page).index("3")
        page.hover(f"#tokens button >> nth={number}")
        details = page.locator("#details")
        expect(details).to_contain_text("#/items/0/quantity")
        expect(details).to_contain_text(re.compile(r"\d% before the mask, .*\d% after it"))
        expect(details).to_contain_text("must be an integer")
        expect(details.locator("table").nth(0).locator("tr").nth(1)).to_contain_text('"3"')
        # Every forbidden token has a reason.
        for row in details.locator("table").nth(1).locator("tr").all()[1:]:
            assert row.locator("td").nth(2).inner_text() not in ("", "...")
        last = len(tokens(page)) - 1
        page.hover(f"#tokens button >> nth={last}")
        expect(details).to_contain_text("forced: the grammar allows this token alone")


def test_a_broken_schema_is_marked(browser, address) -> None:
    with opened(browser, address) as page:
        field = page.locator("#constraint")
        page.fill("#constraint", '{\n "properties": {"😀": {"pattern": "(a"}}\n}')
        mark = page.locator("#constraint-editor mark.error")
        expect(mark).to_have_text('"pattern"')
        expect(field).to_have_attribute("aria-invalid", "true")
        verdict = page.locator("#constraint-verdict")
        expect(verdict).to_contain_text("line 2, column 23: the group is not closed")
        verdict.get_by_role("button", name="go there").click()
        expect(field).to_be_focused()
        place = field.evaluate("f => f.value.slice(f.selectionStart, f.selectionEnd)")
        assert place == '"pattern"'
        page.fill("#constraint", '{"type": "integer"')
        expect(mark).to_have_class("error end")
        page.fill("#constraint", '{"type": "integer", "x-note": 1}')
        expect(verdict).to_contain_text("compiles")
        expect(mark).to_have_count(0)
        expect(page.locator("#constraint-editor mark.note")).to_have_text('"x-note"')
        expect(page.locator("#enforced")).to_contain_text("x-note")
        page.check("input[value=regex]")
        page.fill("#constraint", "ab(c")
        expect(mark).to_have_text("(")


def test_the_coloured_copy_is_the_text(browser, address) -> None:
    """For every example, the coloured copy has exactly the characters of the text."""
    with opened(browser, address) as page:
        for one in examples()[1::5]:
            page.check(f"input[value={one['kind']}]")
            page.fill("#constraint", one["text"])
            assert page.locator("#constraint-editor pre").inner_text().rstrip("\n") == one["text"].rstrip(
                "\n"
            )


def test_checking_a_document(browser, address) -> None:
    with opened(browser, address) as page:
        choose(page, "Order")
        mark = page.locator("#document-editor mark.error")
        expect(mark).to_have_text('"')
        verdict = page.locator("#document-verdict")
        expect(verdict).to_contain_text("rejected at line 4")
        expect(verdict).to_contain_text("Could stand there: `-`, `0`-`9`")
        verdict.locator("button", has_text="quantity/type").click()
        chosen = page.locator("#constraint").evaluate("f => f.value.slice(f.selectionStart, f.selectionEnd)")
        assert chosen == '"type"'
        page.fill("#document", page.input_value("#document").replace('"three"', "3"))
        expect(verdict).to_have_text("accepted")
        expect(mark).to_have_count(0)
        page.fill("#document", '{"customer": ')
        expect(verdict).to_contain_text("incomplete at line 1, column 14")
        choose(page, "url")
        expect(verdict).to_contain_text("Could stand there: `http`")


def copied(browser, address, name, **settings) -> str:
    options = {"permissions": ["clipboard-read", "clipboard-write"]}
    with opened(browser, address, **options) as page:
        for field, value in settings.items():
            page.fill(f"#{field}", value)
        page.click(f"#copy-{name}")
        expect(page.locator("#status")).to_contain_text("is in the clipboard")
        return page.evaluate("navigator.clipboard.readText()")


@pytest.mark.parametrize("prompt", ["Ana ordered 12 lamps, ship to Faro", 'it\'s "quoted" \\ \n"""'])
def test_copying_as_python(browser, address, prompt, capsys) -> None:
    """The copied program writes the text that the page shows."""
    program = copied(browser, address, "python", prompt=prompt)
    exec(compile(program, "copied", "exec"), {})
    schema = examples()[0]["text"]
    assert capsys.readouterr().out == sg.generate(None, prompt, schema, max_tokens=64).text + "\n"


def test_copying_every_example(browser, address, capsys) -> None:
    """Every example's program compiles, and the server takes its request."""
    with opened(browser, address, permissions=["clipboard-read", "clipboard-write"]) as page:
        for one in examples()[:12]:
            choose(page, one["name"])
            page.click("#copy-python")
            compile(page.evaluate("navigator.clipboard.readText()"), one["name"], "exec")
            page.click("#copy-curl")
            program, path, *rest = shlex.split(page.evaluate("navigator.clipboard.readText()"))
            assert program == "curl" and "Authorization" not in rest
            body = json.loads(rest[rest.index("-d") + 1])
            data = json.dumps(body | {"max_tokens": 64, "n": 1}).encode()
            asked = urllib.request.Request(path, data, {"Content-Type": "application/json"})
            # raises HTTPError if the server refuses the request
            with urllib.request.urlopen(asked, timeout=60) as answer:
                assert json.load(answer)["choices"], one["name"]


def test_copying_where_there_is_no_clipboard(browser, address) -> None:
    with opened(browser, address) as page:
        page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
        page.click("#copy-python")
        expect(page.locator("#status")).to_contain_text("no clipboard")
        assert page.input_value("#document").startswith("import structgen as sg")


def test_sharing_a_link(browser, address) -> None:
    with opened(browser, address) as page:
        choose(page, "Tool calls")
        page.fill("#prompt", "Wie ist das Wetter in Köln? 😀")
        page.fill("#seed", "12345678901234567890")
        page.fill("#max-tokens", "77")
        page.select_option("#method", "smc")
        page.fill("#count", "9")
        page.fill("#choice", "set_timer")
        page.fill("#document", "</textarea><b>")
        page.click("#share")
        expect(page.locator("#status")).to_contain_text("link")
        link = page.url
        fields = (
            *("constraint", "prompt", "seed", "max-tokens", "method", "count", "choice", "document"),
            "temperature",
        )
        wanted = {name: page.input_value(f"#{name}") for name in fields}
    with opened(browser, address, "/" + link.partition("/#")[2].join(["#", ""])) as page:
        expect(page.locator("input[value=tools]")).to_be_checked()
        assert {name: page.input_value(f"#{name}") for name in fields} == wanted
        assert not tokens(page)  # opening a link generates nothing
    for damaged in ("A" * 400, "%00", link.partition("#s=")[2][:-8]):
        with opened(browser, address, f"/#s={damaged}") as page:
            expect(page.locator("#constraint-verdict")).to_contain_text("compiles")


def test_a_link_with_wrong_values_sets_the_others(browser, address) -> None:
    import base64
    import zlib

    def link(state) -> str:
        packer = zlib.compressobj(wbits=-15)
        data = packer.compress(json.dumps(state).encode()) + packer.flush()
        return "/#s=" + base64.urlsafe_b64encode(data).decode().rstrip("=")

    state = {
        "kind": "regex] *",
        "text": 7,
        "prompt": "hello",
        "count": 10**9,
        "method": "x",
        "__proto__": {"a": 1},
    }
    with opened(browser, address, link(state)) as page:
        assert page.input_value("#prompt") == "hello"
        expect(page.locator("input[value=schema]")).to_be_checked()
        assert page.input_value("#method") == "plain" and page.input_value("#count") == "40"
    # the link has 30 kB, which unpack to 30 MB
    with opened(browser, address, link({"prompt": "a" * 30_000_000})) as page:
        assert page.input_value("#prompt") != "" and len(page.input_value("#prompt")) < 1000


def test_speculation(browser, address) -> None:
    with opened(browser, address) as page:
        choose(page, "Order, several tokens a forward")
        generate(page)
        expect(page.locator("#drafts-tree svg .node.accepted").first).to_be_visible()
        expect(page.locator("#status")).to_contain_text("tokens a forward")
        assert page.locator("#tokens .token.drafted").count() > 10
        page.locator("#tokens button").last.focus()
        total = page.get_attribute("#forward", "max")
        expect(page.locator("#forward-number")).to_contain_text(f"{total} of {total}")
        page.locator("#forward").focus()
        page.keyboard.press("Home")
        expect(page.locator("#forward-number")).to_contain_text(f"1 of {total}")


def test_sampling(browser, address) -> None:
    with opened(browser, address) as page:
        choose(page, "The model's own distribution (cars)")
        page.fill("#seed", "5")
        generate(page)
        rows = page.locator("#posterior tr").all()[1:]
        drawn = [int(row.locator("td").nth(1).inner_text()) for row in rows]
        assert sum(drawn) == 40 and drawn == sorted(drawn, reverse=True) and len(rows) > 1
        assert page.locator("#trie .node").count() > 3 and page.locator("#trie .node.complete").count() > 1
        expect(
            page.get_by_role("img", name=re.compile(r"log Z lies between -0\.\d+ and -0\.\d+"))
        ).to_be_visible()
        first = "".join(tokens(page))
        page.select_option("#sample", index=1)
        assert "".join(tokens(page)) != first
        page.hover("#tokens button >> nth=3")
        expect(page.locator("#details")).to_contain_text("#/customer")


def test_an_error_before_the_first_token(browser, address) -> None:
    with opened(browser, address) as page:
        page.fill("#max-tokens", "3")
        generate(page)
        expect(page.locator("#status")).to_contain_text("it takes 28 at least")
        expect(page.locator("#status")).to_have_class("bad")


@pytest.fixture
def guarded() -> Iterator[str]:
    with served(Script(lambda _: "x"), api_keys=("secret",)) as found:
        yield found


def test_a_key_is_asked_for(browser, guarded) -> None:
    with opened(browser, guarded, expected="status of 401") as page:
        expect(page.locator("#key")).to_be_focused()
        page.fill("#key", "wrong")
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_contain_text("asks for an API key")
        page.fill("#key", "secret")
        page.keyboard.press("Enter")
        expect(page.locator("#key-form")).to_be_hidden()
        expect(page.locator("#constraint-verdict")).to_contain_text("compiles")
        page.click("#share")
        expect(page.locator("#status")).to_contain_text("link")
        assert "secret" not in page.url


def test_the_page_of_the_interface(browser, address) -> None:
    with opened(browser, address, "/docs") as page:
        expect(page.locator("summary", has_text="/v1/chat/completions")).to_be_visible()
        expect(page.locator("table", has_text="ChatRequest").first).to_contain_text("response_format")
        assert page.locator("summary").count() >= 6


# ---- all users and devices ----


def test_hostile_strings_stay_text(browser) -> None:
    with served(Script(lambda _: HOSTILE), temperature=0.0) as other, opened(browser, other) as page:
        images = page.locator("img, #tokens svg, #summary svg, script:not([src])")
        page.check("input[value=none]")
        page.uncheck("#chat")
        page.fill("#prompt", "x\x02")
        page.fill("#max-tokens", "256")
        generate(page)
        expect(page.locator("#whole")).to_have_text(HOSTILE)
        page.hover("#tokens button >> nth=2")
        expect(page.locator("#details")).to_contain_text('"s"')
        page.check("input[value=schema]")
        page.fill("#constraint", json.dumps({"enum": [HOSTILE], HOSTILE: 1, "title": HOSTILE}))
        expect(page.locator("#enforced")).to_contain_text("<img")
        page.fill("#document", json.dumps(HOSTILE + "!"))
        expect(page.locator("#document-verdict")).to_contain_text("one of")
        page.fill("#constraint", HOSTILE)
        expect(page.locator("#constraint-verdict")).to_contain_text("not JSON")
        page.check("input[value=grammar]")
        page.fill("#constraint", f"root ::= {HOSTILE}")
        expect(page.locator("#constraint-verdict .bad")).to_be_visible()
        assert images.count() == 0
        expect(page).to_have_title("structgen playground")


def test_the_keyboard_is_enough(browser, address) -> None:
    with opened(browser, address) as page:
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        seen = []
        for _ in range(40):
            page.keyboard.press("Tab")
            name = page.evaluate("(e => e.id || e.name || e.tagName)(document.activeElement)")
            seen.append(name)
            if name == "document":
                break
        # The Tab key leaves each editor, and each editor is one stop.
        assert "PRE" not in seen
        wanted = [
            *("share", "theme", "example", "kind", "constraint", "order", "whitespace", "prompt", "chat"),
            "method",
        ]
        wanted += [
            *("temperature", "seed", "max-tokens", "compare", "copy-python", "copy-curl", "generate"),
            "document",
        ]
        assert [name for name in seen if name in wanted] == wanted
        page.locator("#prompt").focus()
        page.keyboard.press("Control+Enter")
        expect(page.locator("#status")).to_contain_text("complete and valid")
        page.locator("#tokens button").first.focus()
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        expect(page.locator("#tokens button").nth(3)).to_be_focused()
        expect(page.locator("#details")).to_contain_text("#/customer")
        page.keyboard.press("End")
        expect(page.locator("#tokens button").last).to_be_focused()
        page.keyboard.press("Tab")  # all boxes together are one stop of the Tab key
        assert page.evaluate("document.activeElement.closest('#tokens')") is None


@pytest.mark.parametrize("width", [320, 390, 768])
def test_narrow_screens(browser, address, width) -> None:
    with opened(browser, address, viewport={"width": width, "height": 740}) as page:
        assert page.evaluate("scrollY") == 0  # the page does not scroll by itself
        choose(page, "Order, several tokens a forward")
        generate(page)
        expect(page.locator("#output-title")).to_be_in_viewport()
        expect(page.locator("#tokens")).to_be_in_viewport()
        page.locator("#tokens button").nth(5).focus()
        expect(page.locator("#details table").first).to_be_visible()
        choose(page, "The model's own distribution (cars)")
        generate(page)
        expect(page.locator("#trie svg")).to_be_attached()
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_schemes_can_be_read(browser, address, scheme) -> None:
    """axe-core finds no fault in names, roles and contrast, before and after a generation."""
    axe = Axe()
    # The page's policy forbids foreign scripts, so the test bypasses the policy to load axe-core.
    with opened(browser, address, color_scheme=scheme, bypass_csp=True, reduced_motion="reduce") as page:
        for name in ("Order, several tokens a forward", "The model's own distribution (cars)"):
            choose(page, name)
            generate(page)
            page.locator("#tokens button").nth(2).focus()
            expect(page.locator("#details")).not_to_contain_text("...")
            found = axe.run(page).response["violations"]
            assert not found, [
                (one["id"], one["help"], [node["html"][:120] for node in one["nodes"][:3]]) for one in found
            ]
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (dark == "rgb(20, 22, 29)") == (scheme == "dark")
        page.select_option("#theme", "light" if scheme == "dark" else "dark")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
        page.reload()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
