"""The item lists of MIMIC-III, `concepts.csv`, and the items of it that have rules of their own."""

from functools import cache
from importlib.resources import files
from typing import Final

from etips.cohorts.mimic.items import Concept, Items, is_corrected, read_concepts, select_items
from etips.cohorts.mimic3.switches import Reading

# Section 4.2 and the unit notes of `mechvent`: items whose text decides.
EXTUBATION_ITEM: Final = 640
EXTUBATION_TEXTS: Final = ("Extubated", "Self Extubation")
VENTILATED_IF: Final = {467: "Ventilator"}
GAS_SPECIMEN_ITEM: Final = 50800
VENTILATED_UNLESS: Final = {720: "Other/Remarks", 223849: "Standby"}


@cache
def load() -> tuple[Concept, ...]:
    """Read the shipped list."""
    return read_concepts((files("etips.cohorts.mimic3") / "concepts.csv").read_text("utf-8"))


def corrected(concept: str, reading: Reading) -> bool:
    """Whether the clean rows of a concept apply; lists of fluids have an oddity of their own."""
    if concept.startswith("fluid"):
        return reading.complete_fluid_items  # 7
    return is_corrected(concept, reading)


def select(reading: Reading) -> Items:
    """Choose the item lists of a profile."""
    return select_items(load(), lambda concept: corrected(concept, reading))
