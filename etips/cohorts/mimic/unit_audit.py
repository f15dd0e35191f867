"""In which unit each item should be charted, and how many rows are not.

The builder converts what docs/cohort/rules.md says and takes every other number as it stands, as
the scripts do. This audit changes nothing: it shows how many of the rows read carry another unit.
"""

from collections.abc import Mapping
from typing import Final

import polars as pl

from etips.cohorts.engines.store import Store
from etips.cohorts.mimic.bedside import SPELLINGS
from etips.cohorts.mimic.items import (
    POUND_WEIGHT_ITEM,
    PREADMISSION_URINE_ITEMS,
    Items,
    read_list,
)
from etips.cohorts.sepsis3.events import PER_KG, PER_MINUTE, ItemUnits

# In small letters, without spaces, dots and the broken degree sign. Where an ion has one charge,
# milliequivalents and millimoles are the same number. Features without a unit are absent.
EXPECTED: Final = {
    row["feature"]: [unit for unit in row["units"].split("|") if unit] for row in read_list("units")
}
_POUNDS: Final = ["lb", "lbs"]  # converted
_CATECHOLAMINE: Final = [s for s, unit in SPELLINGS.items() if unit in (PER_KG, PER_MINUTE)]
_VASOPRESSIN: Final = [s for s in SPELLINGS if s not in _CATECHOLAMINE]


def audit(store: Store, items: Items, inputs: Mapping[str, str]) -> tuple[ItemUnits, ...]:
    """Look at the units of every stored row whose item should have one.

    `inputs` are the stored tables of what was given, by raw table.
    """
    given = {
        **dict.fromkeys(items.fluids, "fluid"),
        **dict.fromkeys(items.preadmission_fluids, "fluid before admission"),
        **items.vasopressors,
    }
    passed = dict.fromkeys({*items.urine, *PREADMISSION_URINE_ITEMS}, "urine")
    readings = [
        ("chartevents", "chart", items.vitals | items.chart_labs),
        ("labevents", "labs", items.labs),
        ("outputevents", "urine", passed),
        *((table, stored, given) for table, stored in inputs.items()),
    ]
    audited = []
    for table, stored, features in readings:
        counts = store.counts(stored, "itemid", "unit", "measured")
        counts = counts.filter("measured").sort("itemid", "unit", nulls_last=True)
        for (number,), rows in counts.group_by("itemid", maintain_order=True):
            item = int(str(number))
            feature = features.get(item)
            if feature is not None and (feature in EXPECTED or item in items.vasopressors):
                audited.append(_of_item(table, item, feature, rows))
    return tuple(audited)


def _of_item(table: str, item: int, feature: str, rows: pl.DataFrame) -> ItemUnits:
    # of a vasopressor the unit decides the dose, and has to be spelt exactly so
    exact = feature not in EXPECTED
    accepted = _POUNDS if item == POUND_WEIGHT_ITEM else EXPECTED.get(feature, _CATECHOLAMINE)
    if feature == "vasopressin":
        accepted = _VASOPRESSIN
    silent, unexpected = 0, {}
    for unit, n in rows.select("unit", "n").iter_rows():
        plain = "".join(c for c in (unit or "").lower() if c.isascii() and c not in " .?")
        stated = unit or "" if exact else plain
        if not stated:
            silent += n
        elif stated not in accepted:
            unexpected[unit] = n
    order = sorted(unexpected, key=lambda unit: (-unexpected[unit], unit))
    return ItemUnits(
        table=table,
        item=item,
        feature=feature,
        n_rows=int(rows["n"].sum()),
        n_silent=silent,
        n_unexpected=sum(unexpected.values()),
        unexpected={unit: unexpected[unit] for unit in order},
    )
