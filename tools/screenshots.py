"""Pictures of the playground for README.md and docs/: `python -m tools.screenshots`.

In: the embedded model, Chromium (STRUCTGEN_CHROMIUM), the extra test-page. Out: docs/images/playground*.png,
each under 150 kB. Cost: ten seconds.
"""

from __future__ import annotations

import io
import os
import shutil
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from oracles.serving import served

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "images"
COLOURS, MOST = 96, 150_000


def main() -> None:
    root = hasattr(os, "geteuid") and os.geteuid() == 0  # Chromium's sandbox refuses root
    with served(None) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("STRUCTGEN_CHROMIUM") or shutil.which("chromium"),
            args=["--no-sandbox"] if root else [],
        )
        for name, scheme in (("playground", "light"), ("playground-dark", "dark")):
            page = shown(browser, address, scheme, "Limits against the model's will")
            page.evaluate("scrollTo(0, 0)")  # filling in the form scrolled it
            page.locator("#tokens button.constrained").last.hover()
            page.locator("#details tr td:nth-child(3)").last.wait_for()
            page.wait_for_timeout(500)
            save(page.screenshot(), name)
        page = shown(browser, address, "light", "The model's own distribution (cars)", height=2400)
        save(page.locator("#samples").screenshot(), "playground-sampling")
        page = shown(browser, address, "light", "Order, several tokens a forward", height=2400)
        page.locator("#tokens button").nth(7).focus()
        page.wait_for_timeout(500)
        save(
            both(page.locator("#tokens").screenshot(), page.locator("#drafts").screenshot()),
            "playground-speculation",
        )
        browser.close()


def shown(browser: Browser, address: str, scheme: str, example: str, height: int = 1000) -> Page:
    """Returns the page after an example was generated from, always with one seed."""
    page = browser.new_page(
        viewport={"width": 1200, "height": height}, color_scheme=scheme, reduced_motion="reduce"
    )
    page.goto(address)
    page.locator("html[data-ready]").wait_for()
    page.select_option("#example", label=example)
    page.fill("#seed", "7")
    page.click("#generate")
    page.locator("#stop:disabled").wait_for()
    page.wait_for_timeout(500)
    return page


def both(above: bytes, below: bytes) -> bytes:
    """Returns two pictures, one above the other."""
    parts = [Image.open(io.BytesIO(data)).convert("RGB") for data in (above, below)]
    size = (max(p.width for p in parts), sum(p.height for p in parts) + 12)
    made = Image.new("RGB", size, "white")
    made.paste(parts[0], (0, 0))
    made.paste(parts[1], (0, parts[0].height + 12))
    out = io.BytesIO()
    made.save(out, "png")
    return out.getvalue()


def save(data: bytes, name: str) -> None:
    picture = Image.open(io.BytesIO(data)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    path = FOLDER / f"{name}.png"
    picture.save(path, optimize=True)
    print(f"{path.name}: {picture.width} x {picture.height}, {path.stat().st_size} bytes")
    assert path.stat().st_size < MOST


if __name__ == "__main__":
    main()
