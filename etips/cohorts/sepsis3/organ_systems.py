"""Which organ system each variable of the cohort speaks of, for a reader of explanations."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

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
"""Names of the variables by organ system."""
