"""The 27 items of the TRIPOD+AI reporting guideline, in our words, and where a report answers each.

Collins et al., BMJ 2024;385:e078378. The items are in `tripod.csv`; one that a page of numbers
cannot answer says so and why.
"""

import csv
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True)
class Item:
    """One item.

    Args:
        number: 1..27.
        topic: What it is about.
        asks: What a reader should be told.
        where: Section of the page that answers it, if one does.
        answer: How; without a section it begins "Not applicable, because".
    """

    number: int
    topic: str
    asks: str
    where: str | None
    answer: str


def _read() -> tuple[Item, ...]:
    text = resources.files("etips.report").joinpath("tripod.csv").read_text("utf-8")
    _, *rows = csv.reader(text.splitlines())
    return tuple(
        Item(int(number), topic, asks, where or None, answer)
        for number, topic, asks, where, answer in rows
    )


ITEMS = _read()
