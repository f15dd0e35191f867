"""The item lists of MIMIC-IV, `concepts.csv`, and the items of it that have rules of their own."""

from functools import cache
from importlib.resources import files
from typing import Final

from etips.cohorts.mimic.items import Concept, Items, is_corrected, read_concepts, select_items
from etips.cohorts.mimic4.switches import Reading

# Mode of a ventilator: these texts, in small letters, say that nobody is ventilated through a tube.
NOT_VENTILATED: Final = {
    223849: ("standby",),
    229314: ("standby", "ambient", "niv", "niv-st", "duopap", "ncpap-ps"),
}
GAS_SPECIMEN_ITEM: Final = 52033
ARTERIAL_SPECIMEN: Final = "ART"  # stored as ART. with a dot
# Second numbers of tests that are read under another; counted, so that a user sees if they matter.
SECOND_LAB_ITEMS: Final = (
    52623, 52610, 52535, 52569, 52546, 52647, 52024, 52027, 52434, 52452, 52455, 53084, 53085,
    53088, 53089, 53154, 52442, 51704, 51755, 51756, 51640, 51638, 51639, 52028, 51675, 52921,
    52923, 51624,
)  # fmt: skip
# Drugs for the circulation that are no part of the dose.
OTHER_PRESSORS: Final = {
    229709: "angiotensin II", 229764: "angiotensin II", 221653: "dobutamine",
    221986: "milrinone",
}  # fmt: skip
OTHER_CHARTED: Final = {229789: "phenylephrine, charted"}


@cache
def load() -> tuple[Concept, ...]:
    """Read the shipped list."""
    return read_concepts((files("etips.cohorts.mimic4") / "concepts.csv").read_text("utf-8"))


def select(reading: Reading) -> Items:
    """Choose the item lists of a profile."""
    return select_items(load(), lambda concept: is_corrected(concept, reading))
