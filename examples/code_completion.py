"""Code completion: an expression that is Python, made of the names in scope.

python examples/code_completion.py
"""

from __future__ import annotations

import ast

import structgen as sg

NAMES = ("price", "quantity", "discount")


def expressions(names: tuple[str, ...]) -> str:
    """Sums and products of names and numbers, with brackets, as a Lark grammar."""
    listed = " | ".join(f'"{name}"' for name in names)
    return f"""
start: product (_PLUS product)*
product: atom (_TIMES atom)*
?atom: NAME | NUMBER | "(" start ")"
NAME: {listed}
NUMBER: /[1-9][0-9]?/
_PLUS: " + " | " - "
_TIMES: " * "
"""


def main() -> None:
    scope = "|".join(NAMES)
    line = sg.template(
        "total = {value}\nreturn total\n", value=sg.gen(regex=rf"({scope})( [*+-] ({scope})){{1,2}}")
    )
    for seed in range(3):
        result = sg.generate(
            None, "the total", lark=expressions(NAMES), temperature=1.0, seed=seed, max_tokens=30
        )
        tree = ast.parse(result.text, mode="eval")
        used = sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)})
        assert set(used) <= set(NAMES)
        print(f"total = {result.text}   # uses {', '.join(used) or 'no names'}")
    filled = sg.generate(None, "price times quantity", line, max_tokens=60)
    ast.parse("def f():\n" + "".join(f"    {row}\n" for row in filled.text.splitlines()))
    print(filled.value)


if __name__ == "__main__":
    main()
