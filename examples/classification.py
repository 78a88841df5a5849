"""Classification with weights: how probable the model finds each label, not only which it takes.

python examples/classification.py
"""

from __future__ import annotations

import enum

import structgen as sg


class Label(enum.Enum):
    ORDER = "order"
    COMPLAINT = "complaint"
    QUESTION = "question"


def main() -> None:
    text = "I would like two blue shirts"
    print("most probable:", sg.generate(None, text, choice=Label).value.name)
    # P(label | text is one of the labels), exactly: every draw is independent.
    found = sg.sample(None, text, choice=Label, method="cars", n=200, seed=1)
    for label, probability in found.posterior().items():
        print(f"{label:10} {probability:.2f}")
    print("law:", found.law)


if __name__ == "__main__":
    main()
