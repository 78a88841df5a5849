"""Calls that type checkers refuse: each line with `# wrong` has an error, and no other line has one."""

from __future__ import annotations

import structgen as sg

sg.generate(None, "x", int, max_token=3)  # wrong
sg.generate(None, "x", int, max_tokens="3")  # wrong
sg.generate(None, "x", int, whitespace=3)  # wrong
sg.generate(None, "x", int, formats="none")  # wrong
number: str = sg.generate(None, "x", int).value  # wrong
text: int = sg.generate(None, "x", regex="a").value  # wrong
fine: int = sg.generate(None, "x", int).value
sg.search(None, "x", int, method="deepest")  # wrong
sg.search(None, "x", int, forward=3)  # wrong
