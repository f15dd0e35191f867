"""Names and order of the variables, what is plausible, how long a value is held.

`variables.csv` has a row for each (docs/cohort/rules.md): how it is held (section 11, the order of
the columns), what lies strictly outside its limits is removed (section 9), whether it is a column
of the final table (section 16), whether SOFA or SIRS needs it, however sparse it is (section 13),
and which organ system it belongs to.
"""

import csv
from importlib.resources import files
from typing import Final

HOUR: Final = 3600
RULE_HOURS: Final = 4
"""Hours of a step in the scripts; rules on volumes look back so far, whatever a step is."""

_ROWS: Final = [
    *csv.DictReader((files("etips.cohorts.sepsis3") / "variables.csv").read_text().splitlines())
]


def _of_kind(*kinds: str) -> tuple[str, ...]:
    return tuple(row["name"] for row in _ROWS if row["kind"] in kinds)


VITALS, LABS, VENTILATION = _of_kind("vital"), _of_kind("lab"), _of_kind("ventilation")
CHARTED: Final = VITALS + LABS + VENTILATION  # 65 columns: 28, 35 and 2
# Clean profile only: summed into GCS before anything else looks at it (section 20, oddity 16).
GCS_PARTS: Final = _of_kind("part of GCS")
GRID: Final = CHARTED + GCS_PARTS
HOLD_HOURS: Final = {row["name"]: int(row["hold_hours"]) for row in _ROWS if row["hold_hours"]}
LIMITS: Final = {
    row["name"]: tuple(float(row[end]) if row[end] else None for end in ("low", "high"))
    for row in _ROWS
    if row["low"] or row["high"]
}
DEMOGRAPHICS: Final = _of_kind("demographic")
DELAY: Final = DEMOGRAPHICS[-1]
KEYS: Final = ("bloc", "icustayid", "charttime")
RATIOS, VOLUMES, SCORES = _of_kind("ratio"), _of_kind("volume"), _of_kind("score")
FINAL_CHARTED: Final = tuple(row["name"] for row in _ROWS if row["in_table"])
PASS_1_COLUMNS: Final = KEYS + DEMOGRAPHICS + CHARTED + RATIOS + VOLUMES
PASS_2_COLUMNS: Final = KEYS + DEMOGRAPHICS + FINAL_CHARTED + ("mechvent",) + RATIOS + VOLUMES
TABLE_COLUMNS: Final = PASS_2_COLUMNS + SCORES  # 59
NEVER_DROPPED: Final = frozenset(row["name"] for row in _ROWS if row["for_scores"])

STATIC_FEATURES: Final = ("age", "gender", "re_admission")
_NOT_FEATURES: Final = frozenset({"Ionised_Ca", "CO2_mEqL", "Albumin"})
SEQUENTIAL_FEATURES: Final = (
    *(name for name in FINAL_CHARTED if name not in _NOT_FEATURES),
    "mechvent", "Shock_Index", "PaO2_FiO2", "max_dose_vaso", "input_4hourly", "input_total",
    "output_total", "output_4hourly", "cumulated_balance", "SOFA", "SIRS",
)  # fmt: skip

ORGAN_SYSTEMS: Final = {
    system: tuple(row["name"] for row in _ROWS if row["organ_system"] == system)
    for system in (
        "circulation", "breathing", "acid and base", "kidney", "fluids", "liver",
        "blood and clotting", "infection", "brain", "salts and sugar", "severity", "the patient",
    )
}  # fmt: skip
"""Names of the variables by organ system, for a reader of explanations."""


def step_names(hours: int) -> dict[str, str]:
    """Columns that are called after the length of a step, and what they are called at this one."""
    own = (name for name in VOLUMES if name.endswith("_4hourly"))
    return {name: name.replace("_4hourly", f"_{hours}hourly") for name in own}
