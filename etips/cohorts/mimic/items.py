"""What is read from a MIMIC: its tables and its items, as the lists of its folder give them.

`NAME_tables.csv` has the columns of each table, `NAME.csv` the items of each feature and drug. The
rules: docs/cohort/rules.md section 4.1.
"""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.resources import files
from typing import Final, TypeVar

# Section 4.2: volume of a fluid as isotonic equivalent; 1 for every other item.
TONICITY: Final = {
    **dict.fromkeys((30176, 30315), 0.25),
    30161: 0.3,
    **dict.fromkeys((30020, 30015, 225823, 30321, 30186, 30211, 30353, 42742, 42244, 225159), 0.5),
    227531: 2.75,
    **dict.fromkeys((30143, 225161), 3.0),
    **dict.fromkeys((30009, 220862), 5.0),
    **dict.fromkeys((30030, 220995, 227533), 6.66),
    228341: 8.0,
}

# Section 4.2: texts of the oxygen device and what stands for them.
DEVICE_TEXTS: Final = {
    "None": 0, "Ventilator": 1, "Cannula": 2, "Nasal Cannula": 2, "Face Tent": 3,
    "Aerosol-Cool": 4, "Trach Mask": 5, "Hi Flow Neb": 6, "Non-Rebreather": 7, "": 8,
    "Venti Mask": 9, "Medium Conc Mask": 10,
}  # fmt: skip
# Section 21.2: further texts of the later charting system, compared in lower case.
DEVICE_TEXTS_CLEAN: Final = {
    **{text.lower(): code for text, code in DEVICE_TEXTS.items()},
    "high flow nasal cannula": 2, "oxymizer": 2, "tracheostomy tube": 5, "t-piece": 5,
    "high flow neb": 6, "ultrasonic neb": 6, "vapomist": 6, "endotracheal tube": 1,
    "cpap mask": 1, "bipap mask": 1,
}  # fmt: skip
# Oddity 16: the verbal answer of an intubated patient cannot be tested.
UNTESTABLE_VERBAL: Final = ("No Response-ETT", "1.0 ET/Trach")
POUND_WEIGHT_ITEM: Final = 226531
KG_PER_POUND: Final = 0.45359237
IRRIGANT_IN_ITEM: Final = 227488  # subtracted from the urine
INVASIVE_VENTILATION_ITEM: Final = 225792
EXTUBATION_PROCEDURES: Final = (227194, 225468, 225477)
PREADMISSION_URINE_ITEMS: Final = (40060, 226633)
ARTERIAL_FEATURES: Final = ("Arterial_pH", "paO2", "paCO2", "Arterial_BE")
FIRST_METAVISION_ITEM: Final = 220_000


@dataclass(frozen=True)
class MimicReading:
    """Which rows of any MIMIC count and what they are; the defaults are the paper profile.

    As in `Rules`, a switch that is on corrects the oddity of docs/cohort/rules.md, section 20,
    whose number is given.
    """

    antibiotics_by_name: bool = False  # 9
    cultures_from_procedures: bool = False  # 12
    gcs_from_components: bool = False  # 16
    usual_pressure_items: bool = False  # 17
    metavision_devices: bool = False  # 18
    corrected_items: bool = False  # 20
    arterial_gases_only: bool = False  # docs/cohort/mimic4.md

    @property
    def reads_procedures(self) -> bool:
        """Whether the table of procedures is needed at all."""
        return self.cultures_from_procedures or self.corrected_items

    def corrects(self, concept: str) -> bool:
        """Whether the clean rows of a concept apply, or those of the paper."""
        feature = concept.split(":")[-1]
        if concept == "culture":
            return self.cultures_from_procedures
        if concept == "antibiotic_gsn":
            return self.antibiotics_by_name
        if feature.startswith("GCS"):
            return self.gcs_from_components
        if feature in ("SysBP", "MeanBP", "DiaBP"):
            return self.usual_pressure_items
        if feature == "Interface":
            return self.metavision_devices
        return self.corrected_items


R = TypeVar("R", bound=MimicReading)


def switches_of(kind: type[MimicReading]) -> tuple[str, ...]:
    """Names of the switches of a reading."""
    return tuple(f.name for f in fields(kind) if f.type is bool)


def all_on(reading: R) -> R:
    """The same with every switch on."""
    return replace(reading, **dict.fromkeys(switches_of(type(reading)), True))


@cache
def read_list(name: str) -> tuple[dict[str, str], ...]:
    """Rows of a list of this folder."""
    text = (files("etips.cohorts.mimic") / f"{name}.csv").read_text("utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def tables_of(
    database: str, reading: MimicReading | None = None, *, optional: bool = False
) -> dict[str, dict[str, str]]:
    """Tables and typed columns that a reading needs; every one that any may read if left out.

    With `optional`, those that are read where they are there, and only those.
    """
    tables: dict[str, dict[str, str]] = {}
    for row in read_list(f"{database}_tables"):
        switches = row["read_if"].split()
        read = not switches or any(getattr(reading, name, False) for name in switches)
        if reading is None or (switches == ["optional"] if optional else read):
            tables.setdefault(row["table"], {})[row["column"]] = row["kind"]
    return tables


@dataclass(frozen=True)
class Items:
    """What to look for in each table under one reading."""

    vitals: dict[int, str]
    chart_labs: dict[int, str]
    labs: dict[int, str]
    chart_cultures: frozenset[int]
    procedure_cultures: frozenset[int]
    ventilation: frozenset[int]
    procedure_ventilation: frozenset[int]
    antibiotics: frozenset[str]
    urine: frozenset[int]
    fluids: frozenset[int]
    preadmission_fluids: frozenset[int]
    vasopressors: dict[int, str]

    @property
    def charted(self) -> set[int]:
        """Every item to be read from the table of charted rows."""
        return {*self.vitals, *self.chart_labs, *self.chart_cultures, *self.ventilation}

    @property
    def infused(self) -> set[int]:
        """Every item to be read from the tables of what was given."""
        return {*self.fluids, *self.preadmission_fluids, *self.vasopressors}


def select_items(rows: Iterable[Mapping[str, str]], reading: MimicReading) -> Items:
    """Choose the rows of a whole list that count under a reading."""
    wanted = [
        row
        for row in rows
        if row["profile"] in ("both", "clean" if reading.corrects(row["concept"]) else "paper")
    ]

    def features(prefix: str, table: str) -> dict[int, str]:
        return {
            int(row["itemid"]): row["concept"].removeprefix(prefix)
            for row in wanted
            if row["concept"].startswith(prefix) and row["source_table"].startswith(table)
        }

    def items(concept: str, table: str) -> frozenset[int]:
        return frozenset(int(code) for code in codes(concept, table))

    def codes(concept: str, table: str) -> frozenset[str]:
        named = (row for row in wanted if row["concept"] == concept)
        return frozenset(row["itemid"] for row in named if row["source_table"].startswith(table))

    return Items(
        vitals=features("vital:", "chartevents"),
        chart_labs=features("lab:", "chartevents"),
        labs=features("lab:", "labevents"),
        chart_cultures=items("culture", "chartevents"),
        procedure_cultures=items("culture", "procedureevents"),
        ventilation=items("mechvent", "chartevents"),
        procedure_ventilation=items("mechvent", "procedureevents"),
        antibiotics=codes("antibiotic_gsn", "prescriptions"),
        urine=items("urine_output", "outputevents"),
        fluids=items("fluid", "inputevents"),
        preadmission_fluids=items("fluid_preadmission", "inputevents"),
        vasopressors=features("vasopressor:", "inputevents"),
    )
