"""Sections on how the results came about: the cohort, the settings, the reporting checklist."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from etips.results.records import Record
from etips.results.results import Results
from etips.results.study_result import StudyResult


def flow(results: Results) -> dict[str, object] | None:
    """From all stays to those evaluated, and what was not charted."""
    if results.exhibits is None:
        return None
    own = results.exhibits.flow
    most = max((stage.count or 0 for stage in own.stages), default=0) or 1
    stays = [(stage.name, stage.count, 100 * (stage.count or 0) / most) for stage in own.stages]
    others = [("steps in these stays", own.n_steps), ("decisions evaluated", own.n_decisions)]
    merged: list[tuple[str, int | None, float]] = []
    for place, (name, count, width) in enumerate([*stays, *((*other, 0.0) for other in others)]):
        # Counts of the same unit that are the same share a row.
        if merged and place != len(stays) and count is not None and merged[-1][1] == count:
            merged[-1] = (f"{merged[-1][0]}; {name}", count, width)
        else:
            merged.append((name, count, width))
    return {"flow": own, "stages": merged, "missingness": results.exhibits.missingness}


def settings(results: Results) -> dict[str, object]:
    """Settings, seeds and versions: all that it takes to get the same numbers again."""
    exhibits, head = results.exhibits, results.headline
    above = ("title", "lead") if isinstance(results, StudyResult) else ()  # of the page
    shown = {
        name: value
        for name, value in ({} if exhibits is None else exhibits.settings).items()
        if not (name in above and getattr(results, name))
    }
    sees = "the steps before it (lag 1)" if results.data.lag == 1 else "its own step too (lag 0)"
    return {
        "settings": _flat(shown) | {"history": f"a decision sees {sees}"},
        "seeds": {} if exhibits is None else exhibits.seeds,
        "versions": {} if exhibits is None else exhibits.versions,
        "provenance": results.data.provenance,
        "fingerprint": "not recorded" if exhibits is None else exhibits.fingerprint,
        "notes": None if head is None else head.notes,
    }


def _flat(settings: Record) -> dict[str, str]:
    """Settings within settings, one under the other; the innermost in one line."""
    flat: dict[str, str] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping) and any(isinstance(v, Mapping) for v in value.values()):
            flat |= {f"{key}: {inner}": words for inner, words in _flat(value).items()}
        elif isinstance(value, Mapping) and value:
            flat[key] = "; ".join(f"{inner} {_words(v)}" for inner, v in value.items())
        else:
            flat[key] = _words(value)
    return flat


def _words(value: object) -> str:
    """A setting in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple | Mapping):
        return ", ".join(map(_words, value)) or "none"
    return "none" if value is None else str(value)


@dataclass(frozen=True)
class Item:
    """One of the 27 items of the reporting guideline TRIPOD+AI (BMJ 2024;385:e078378).

    `where` is the section of the page that answers what it asks, if one does; an answer without a
    section begins "Not applicable, because".
    """

    number: int
    topic: str
    asks: str
    where: str | None
    answer: str


@cache
def checklist() -> tuple[Item, ...]:
    """The items in our words, and where a report answers each."""
    text = resources.files("etips.report").joinpath("tripod.csv").read_text("utf-8")
    _, *rows = csv.reader(text.splitlines())
    return tuple(
        Item(int(number), topic, asks, where or None, answer)
        for number, topic, asks, where, answer in rows
    )
