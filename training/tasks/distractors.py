"""Sentences that stand in a text and answer nothing that is asked for.

Enters: a random generator, the split. Leaves: a sentence. Cost: microseconds.
"""

from __future__ import annotations

import random

from training import templates
from training import values as v

_DISTRACTORS = {
    "train": (
        "thanks",
        "please",
        "see you soon",
        "this is important",
        "let me know if this works",
        "call me later",
        "have a nice day",
        "as discussed",
        "no hurry",
        "this was a busy week",
        "thank you",
        "we talked about it",
        "sorry for the delay",
        "greetings from {first}",
        "{first} says hello",
        "I will be back in {count} days",
        "my colleague {first} knows more",
        "{word} and {word} are fine",
        "ask {person} for the {word}",
        "do not forget the {word}",
        "the {word} was good",
        "{word} {word} {word} {word}",
        "the {word} {word} the {word}",
        "please {word} the {word} {word}",
        "we {word} a {word} of {word} and {word}",
        "hi {first}",
        "dear {person}",
        "hello",
        "could you help",
    ),
    "roles": (
        "last year it was {money} euros",
        "the old one was {money} dollars",
        "my dog {first} is {count}",
        "I was in {city} last summer",
        "the previous one was on {date}",
        "room {count} is closed",
        "see page {count}",
        "{person} told me about it",
        "we waited for {count} minutes",
        "attached is the {word} from {date}",
        "{person} is on holiday",
        "I also spoke to {person} in {city}",
        "it is urgent",
        "don't worry about the {word}",
        "the weather was fine in {city}",
        "sent from my phone",
        "best regards",
        "hope this helps",
        "{first} has the {word}",
        "not {count} as I said before",
        "hi team",
        "good morning",
        "kind regards, {person}",
        "this is the {count}th time",
    ),
    "test": (
        "many thanks",
        "please hurry",
        "I hope you are well",
        "{first} sends greetings",
        "the {word} is ready",
        "talk to {person} about the {word}",
    ),
}


def distractor(rng: random.Random, split: str) -> str:
    template = rng.choice(_DISTRACTORS["roles" if split == "train" and rng.random() < 0.4 else split])

    def surface(slot: str) -> str:
        if slot == "first":
            return v.first_name(rng, split)
        if slot == "person":
            return v.person(rng, split)[1]
        if slot in ("money", "city", "date"):
            return {"money": v.money, "city": v.city, "date": v.date}[slot](rng, split)[1]
        return str(rng.randint(2, 30)) if slot == "count" else v.pick(rng, "word", split)

    return templates.fill(template, surface)
