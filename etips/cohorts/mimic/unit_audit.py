"""In which unit each item should be charted, and how many rows are not.

The builder converts what docs/cohort/rules.md says and takes every other number as it stands, as
the scripts do. This audit changes nothing: it tells how many of the rows read carry another unit.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import polars as pl

from etips.cohorts.engines.store import Store
from etips.cohorts.mimic.bedside import SPELLINGS
from etips.cohorts.mimic.items import POUND_WEIGHT_ITEM, PREADMISSION_URINE_ITEMS, Items
from etips.cohorts.sepsis3.events import PER_KG, PER_MINUTE, ItemUnits

_PRESSURE, _AIRWAY, _SHARE = ("mmhg",), ("cmh2o",), ("%",)
_EQUIVALENTS = ("meq/l", "mmol/l")  # the same number for an ion of one charge
_MASS, _PROTEIN, _CELLS = ("mg/dl",), ("g/dl", "gm/dl"), ("k/ul",)
_CLOTTING, _ENZYME, _FLOW = ("sec", "s", "seconds"), ("iu/l", "u/l"), ("l/min", "lpm")
_VOLUME = ("ml",)

# Small letters, without spaces, dots and the broken degree sign. Features without unit are absent.
EXPECTED: Final = MappingProxyType(
    {
        **dict.fromkeys(("SysBP", "MeanBP", "DiaBP", "CVP", "paO2", "paCO2", "ETCO2"), _PRESSURE),
        **dict.fromkeys(("PAPsys", "PAPmean", "PAPdia"), _PRESSURE),
        **dict.fromkeys(("PEEP", "PAWmean", "PAWpeak", "PAWplateau"), _AIRWAY),
        **dict.fromkeys(("SpO2", "SvO2", "Ht", "FiO2_100"), _SHARE),
        **dict.fromkeys(("Potassium", "Sodium", "Chloride", "CO2_mEqL", "HCO3"), _EQUIVALENTS),
        **dict.fromkeys(("Arterial_BE", "Arterial_lactate"), _EQUIVALENTS),
        **dict.fromkeys(("Glucose", "BUN", "Creatinine", "Magnesium", "Calcium"), _MASS),
        **dict.fromkeys(("Total_bili", "Direct_bili"), _MASS),
        **dict.fromkeys(("Hb", "Albumin", "Total_protein"), _PROTEIN),
        **dict.fromkeys(("WBC_count", "Platelets_count"), _CELLS),
        **dict.fromkeys(("PTT", "PT", "ACT"), _CLOTTING),
        **dict.fromkeys(("SGOT", "SGPT"), _ENZYME),
        **dict.fromkeys(("O2flow", "MinuteVentil"), _FLOW),
        **dict.fromkeys(("urine", "fluid", "fluid before admission"), _VOLUME),
        "HR": ("bpm", "beats/min"),
        "RR": ("insp/min", "breaths/min", "bpm"),
        "Temp_C": ("degc", "c"),
        "Temp_F": ("degf", "f"),
        "Weight_kg": ("kg",),
        "Height_cm": ("cm",),
        "FiO2_1": (),
        "INR": (),
        "GCS": ("points",),
        "CI": ("l/min/m2",),
        "SVR": ("dynes", "dynesec/cm5"),
        "TidalVolume": ("ml", "ml/b"),
        "Ionised_Ca": ("mmol/l",),
        "Troponin": ("ng/ml",),
        "CRP": ("mg/l",),
        "RBC_count": ("m/ul",),
        "Arterial_pH": ("units",),
    }
)
_OF_ITEM: Final = {POUND_WEIGHT_ITEM: ("lb", "lbs")}  # converted
_CATECHOLAMINE: Final = tuple(s for s, unit in SPELLINGS.items() if unit in (PER_KG, PER_MINUTE))
_VASOPRESSIN: Final = tuple(s for s in SPELLINGS if s not in _CATECHOLAMINE)


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
    exact, accepted = False, _OF_ITEM.get(item) or EXPECTED.get(feature, ())
    if feature not in EXPECTED:  # a vasopressor: its unit decides the dose, spelt exactly so
        exact, accepted = True, _VASOPRESSIN if feature == "vasopressin" else _CATECHOLAMINE
    silent, unexpected = 0, {}
    for unit, n in rows.select("unit", "n").iter_rows():
        # small letters without spaces, dots and degree signs, which the database lost
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
