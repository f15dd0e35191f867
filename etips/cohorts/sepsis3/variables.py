"""Names, order and organ system of the variables, what is plausible, how long a value is held.

The rules: docs/cohort/rules.md sections 8, 9, 11, 16.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

HOUR: Final = 3600
RULE_HOURS: Final = 4
"""Hours of a step in the scripts; rules on volumes look back so far, whatever a step is."""

# Section 11: hours for which the last observed value stands in, in table order.
HOLD_HOURS: Final = MappingProxyType(
    {
        "Height_cm": 168, "Weight_kg": 72, "GCS": 6, "RASS": 6, "HR": 2, "SysBP": 2, "MeanBP": 2,
        "DiaBP": 2, "RR": 2, "SpO2": 2, "Temp_C": 6, "Temp_F": 6, "CVP": 2, "PAPsys": 2,
        "PAPmean": 2, "PAPdia": 2, "CI": 2, "SVR": 2, "Interface": 24, "FiO2_100": 12,
        "FiO2_1": 12, "O2flow": 12, "PEEP": 6, "TidalVolume": 6, "MinuteVentil": 6, "PAWmean": 6,
        "PAWpeak": 6, "PAWplateau": 6,
        "Potassium": 144, "Sodium": 14, "Chloride": 14, "Glucose": 14, "BUN": 28,
        "Creatinine": 28, "Magnesium": 28, "Calcium": 28, "Ionised_Ca": 28, "CO2_mEqL": 28,
        "SGOT": 28, "SGPT": 28, "Total_bili": 28, "Direct_bili": 28, "Total_protein": 28,
        "Albumin": 28, "Troponin": 28, "CRP": 28, "Hb": 14, "Ht": 28, "RBC_count": 28,
        "WBC_count": 28, "Platelets_count": 28, "PTT": 28, "PT": 28, "ACT": 28, "INR": 28,
        "Arterial_pH": 8, "paO2": 8, "paCO2": 8, "Arterial_BE": 8, "Arterial_lactate": 8,
        "HCO3": 8, "ETCO2": 8, "SvO2": 8,
        "mechvent": 6, "extubated": 6,
    }
)  # fmt: skip
CHARTED: Final = tuple(HOLD_HOURS)  # 65 columns: 28 vitals, 35 labs, 2 of ventilation
VITALS: Final = CHARTED[:28]
LABS: Final = CHARTED[28:63]
VENTILATION: Final = CHARTED[63:]
# Clean profile only: summed into GCS before anything else looks at it (section 20, oddity 16).
GCS_PARTS: Final = ("GCS_eye", "GCS_verbal", "GCS_motor")
GRID: Final = CHARTED + GCS_PARTS

# Section 9: lowest and highest plausible value; what lies strictly outside is removed.
LIMITS: Final[Mapping[str, tuple[float | None, float | None]]] = MappingProxyType(
    {
        "Weight_kg": (None, 300), "HR": (None, 250), "SysBP": (None, 300), "MeanBP": (0, 200),
        "DiaBP": (0, 200), "RR": (None, 80), "SpO2": (50, 150), "Temp_C": (25, 90),
        "FiO2_100": (20, 100), "FiO2_1": (None, 1.5), "O2flow": (None, 70), "PEEP": (0, 40),
        "TidalVolume": (None, 1800), "MinuteVentil": (None, 50), "Potassium": (1, 15),
        "Sodium": (95, 178), "Chloride": (70, 150), "Glucose": (1, 1000),
        "Creatinine": (None, 150), "Magnesium": (None, 10), "Calcium": (None, 20),
        "Ionised_Ca": (None, 5), "CO2_mEqL": (None, 120), "SGOT": (None, 10000),
        "SGPT": (None, 10000), "Hb": (None, 20), "Ht": (None, 65), "WBC_count": (None, 500),
        "Platelets_count": (None, 2000), "INR": (None, 20), "Arterial_pH": (6.7, 8),
        "paO2": (None, 700), "paCO2": (None, 200), "Arterial_BE": (-50, None),
        "Arterial_lactate": (None, 30),
    }
)  # fmt: skip

DEMOGRAPHICS: Final = (
    "gender", "age", "elixhauser", "re_admission", "died_in_hosp", "died_within_48h_of_out_time",
    "mortality_90d", "delay_end_of_record_and_discharge_or_death",
)  # fmt: skip
DELAY: Final = DEMOGRAPHICS[-1]
KEYS: Final = ("bloc", "icustayid", "charttime")
RATIOS: Final = ("Shock_Index", "PaO2_FiO2")
VOLUMES: Final = (
    "median_dose_vaso", "max_dose_vaso", "input_total", "input_4hourly", "output_total",
    "output_4hourly", "cumulated_balance",
)  # fmt: skip
SCORES: Final = ("SOFA", "SIRS")


def step_names(hours: int) -> dict[str, str]:
    """Columns that are called after the length of a step, and what they are called at this one."""
    own = (name for name in VOLUMES if name.endswith("_4hourly"))
    return {name: name.replace("_4hourly", f"_{hours}hourly") for name in own}


# Section 16: vital and lab columns of the final table.
FINAL_CHARTED: Final = (
    "Weight_kg", "GCS", "HR", "SysBP", "MeanBP", "DiaBP", "RR", "SpO2", "Temp_C", "FiO2_1",
    "Potassium", "Sodium", "Chloride", "Glucose", "BUN", "Creatinine", "Magnesium", "Calcium",
    "Ionised_Ca", "CO2_mEqL", "SGOT", "SGPT", "Total_bili", "Albumin", "Hb", "WBC_count",
    "Platelets_count", "PTT", "PT", "INR", "Arterial_pH", "paO2", "paCO2", "Arterial_BE",
    "Arterial_lactate", "HCO3",
)  # fmt: skip
PASS_1_COLUMNS: Final = KEYS + DEMOGRAPHICS + CHARTED + RATIOS + VOLUMES
PASS_2_COLUMNS: Final = KEYS + DEMOGRAPHICS + FINAL_CHARTED + ("mechvent",) + RATIOS + VOLUMES
TABLE_COLUMNS: Final = PASS_2_COLUMNS + SCORES  # 59

# Section 13: SOFA and SIRS need these, however sparse they are.
NEVER_DROPPED: Final = frozenset(
    {
        "GCS", "HR", "SysBP", "MeanBP", "RR", "Temp_C", "FiO2_1", "paO2", "paCO2", "Creatinine",
        "Total_bili", "WBC_count", "Platelets_count",
    }
)  # fmt: skip

STATIC_FEATURES: Final = ("age", "gender", "re_admission")
_NOT_FEATURES: Final = frozenset({"Ionised_Ca", "CO2_mEqL", "Albumin"})
SEQUENTIAL_FEATURES: Final = (
    *(name for name in FINAL_CHARTED if name not in _NOT_FEATURES),
    "mechvent", "Shock_Index", "PaO2_FiO2", "max_dose_vaso", "input_4hourly", "input_total",
    "output_total", "output_4hourly", "cumulated_balance", "SOFA", "SIRS",
)  # fmt: skip

ORGAN_SYSTEMS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "circulation": (
            "HR", "SysBP", "MeanBP", "DiaBP", "Shock_Index", "Arterial_lactate", "max_dose_vaso",
            "median_dose_vaso",
        ),
        "breathing": (
            "RR", "SpO2", "FiO2_1", "paO2", "paCO2", "PaO2_FiO2", "mechvent",
        ),
        "acid and base": ("Arterial_pH", "Arterial_BE", "HCO3", "CO2_mEqL"),
        "kidney": ("BUN", "Creatinine", "output_total", "output_4hourly"),
        "fluids": ("input_total", "input_4hourly", "cumulated_balance"),
        "liver": ("SGOT", "SGPT", "Total_bili", "Albumin"),
        "blood and clotting": ("Hb", "Platelets_count", "PTT", "PT", "INR"),
        "infection": ("Temp_C", "WBC_count", "SIRS"),
        "brain": ("GCS",),
        "salts and sugar": (
            "Potassium", "Sodium", "Chloride", "Glucose", "Magnesium", "Calcium", "Ionised_Ca",
        ),
        "severity": ("SOFA",),
        "the patient": ("gender", "age", "Weight_kg", "re_admission", "elixhauser"),
    }
)  # fmt: skip
"""Names of the variables by organ system, for a reader of explanations."""
