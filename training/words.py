"""Word lists, and the one rule that splits them between train and test.

Enters: the split wanted. Leaves: lists of names, cities, things and plain
words that belong to that split alone.  Cost: built once per process, well
under a second.

The rule looks at the lower-cased word only, so a word that stands in two
lists (Florence the name, Florence the city) falls on the same side in both.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import random
from pathlib import Path

SPLITS = ("train", "test")
TEST_SHARE = 6  # one word in six is kept for the test


def is_test_word(word: str) -> bool:
    digest = hashlib.sha1(word.lower().encode()).digest()
    return int.from_bytes(digest[:4], "big") % TEST_SHARE == 0


def is_test_number(value: int) -> bool:
    """The split of numbers from 100 up; smaller ones are shared, there are too few to divide."""
    return abs(value) >= 100 and (abs(value) * 2654435761 >> 7) % TEST_SHARE == 0


def in_split(word: str, split: str, whole: bool = False) -> bool:
    """A phrase is of a split when all its words are; with `whole`, it counts as one word."""
    if whole:
        return is_test_word(word) == (split == "test")
    return all(is_test_word(w) == (split == "test") for w in word.split())


@functools.cache
def listed(name: str) -> tuple[str, ...]:
    """One list of `words.txt`."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in (Path(__file__).parent / "words.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("= "):
            current = found.setdefault(line[2:], [])
        elif line and not line.startswith("#"):
            current.append(line)
    return tuple(word.strip() for word in " ".join(found[name]).split(";") if word.strip())


def _from_faker(kind: str, locales: tuple[str, ...], attributes: tuple[str, ...]) -> list[str]:
    found: set[str] = set()
    for locale in locales:
        provider = importlib.import_module(f"faker.providers.{kind}.{locale}").Provider
        for attribute in attributes:
            # faker weighs some lists: a mapping from name to weight.
            found.update(str(word) for word in getattr(provider, attribute, ()))
    usable = (w.strip() for w in found)
    return sorted(
        w
        for w in usable
        if 2 <= len(w) <= 16
        and "'" not in w
        and "(" not in w
        and "/" not in w
        and "{" not in w
        and max(map(ord, w)) < 0x250
    )


@functools.cache
def pool(name: str, split: str) -> tuple[str, ...]:
    """The words of one list that belong to the split."""
    whole = name in ("component", "symptom", "airline")
    return tuple(w for w in _all_words(name) if in_split(w, split, whole))


@functools.cache
def _all_words(name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_load(name)))


def _load(name: str) -> list[str]:
    if name == "first":
        names = _from_faker(
            "person", listed("name_locale"), ("first_names", "first_names_female", "first_names_male")
        )
        return [n for n in names if " " not in n]
    if name == "last":
        return _from_faker("person", listed("name_locale"), ("last_names",))
    if name == "city":
        far = random.Random(5).sample(_from_faker("address", listed("city_locale"), ("cities",)), 900)
        return [*listed("city"), *far]
    if name == "country":
        return [c for c in _from_faker("address", ("en_US",), ("countries",)) if len(c) < 15]
    if name == "street":
        streets = _from_faker("address", listed("street_locale"), ("streets", "street_names"))
        return random.Random(6).sample([s for s in streets if not any(c.isdigit() for c in s)], 500)
    if name == "word":
        provider = importlib.import_module("faker.providers.lorem.en_US").Provider
        lorem = [str(w).lower() for w in provider.word_list]
        return [w for w in lorem if w.isalpha() and 3 <= len(w) <= 11] + [
            *listed("good"),
            *listed("quantity"),
        ]
    if name == "job":
        provider = importlib.import_module("faker.providers.job.en_US").Provider
        jobs = {str(j).split(",")[0].lower() for j in provider.jobs}
        return sorted(j for j in jobs if len(j) <= 22 and "/" not in j and "(" not in j)
    return list(listed(name))


def made_up_word(rng: random.Random, split: str) -> str:
    """A word that no list holds, so that copying is never mere recall."""
    while True:
        if split == "train" and rng.random() < 0.45:  # halves of two real words, as real unseen ones look
            lists = [rng.choice(("first", "last", "last", "city", "word")) for _ in range(2)]
            one, two = (rng.choice(pool(name, split)) for name in lists)
            word = (one[: rng.randint(2, 5)] + two[-rng.randint(2, 5) :]).lower()
            if word.isalpha() and len(word) >= 3 and is_test_word(word) == (split == "test"):
                return word
            continue
        parts = rng.choice((1, 2, 2, 2, 3))
        word = "".join(rng.choice(listed("onset")) + rng.choice(listed("nucleus")) for _ in range(parts))
        word += rng.choice(("", "", "", *listed("coda")))
        if len(word) >= 3 and is_test_word(word) == (split == "test"):
            return word
