"""What has been published about the cohort from MIMIC-III v1.4 (docs/cohort/rules.md section 1)."""

from typing import Final

from etips.cohorts.dataset.agreement import EXACT, Published, Target

_FULL_SIZE: Final = 60_000  # ICU stays; MIMIC-III v1.4 has 61,532
_FIGURES: Final = {
    "stays in the final table": Target(20_944, 20_900, 21_000),
    "stays after the first pass": Target(21_333, 21_250, 21_420),
    "rows of the final table": Target(278_568, 277_500, 279_700),
    "samples": Target(224_333, 224_333 * 0.99, 224_333 * 1.01),
    "samples per stay": Target(10.711, 10.6, 10.8),
    "shortest history": Target(1, 1, 1),
    "longest history": Target(18, 18, 18),
    "mean history": Target(7.2, 7.1, 7.3),
    "mean loss": Target(0.498, 0.493, 0.503),
    "accuracy of the predictive model": Target(0.571, 0.56, 0.58),
    **EXACT,
    "most frequent action (0: no dose)": Target(0, 0, 0),
    "hospital deaths, share of stays": Target(2_883 / 20_940, 0.13, 0.145),
    "rows without vasopressor": Target(0.850, 0.84, 0.86),
    "rows without fluid": Target(0.278, 0.27, 0.29),
}
# Mean and standard deviation of a feature in a public run of the scripts on v1.4.
_MEANS: Final = {
    "age": (23608, 6051), "Weight_kg": (83.21, 24.37), "GCS": (12.58, 3.43), "HR": (87.00, 16.80),
    "SysBP": (119.97, 20.34), "MeanBP": (78.15, 13.45), "DiaBP": (57.02, 13.32),
    "RR": (20.21, 5.20), "Temp_C": (36.91, 2.56), "FiO2_1": (0.460, 0.183),
    "Potassium": (4.079, 0.559), "Sodium": (138.7, 4.92), "Chloride": (104.8, 6.29),
    "Glucose": (138.9, 50.9), "Magnesium": (2.060, 0.352), "Calcium": (8.311, 0.801),
    "Hb": (10.30, 1.73), "WBC_count": (12.21, 8.18), "Platelets_count": (228.1, 137.4),
    "PTT": (37.79, 19.38), "PT": (16.15, 6.61), "Arterial_pH": (7.391, 0.074),
    "paO2": (124.9, 72.3), "paCO2": (41.91, 10.79), "Arterial_BE": (0.33, 5.02),
    "HCO3": (24.67, 5.10), "Arterial_lactate": (2.049, 1.663), "SOFA": (6.331, 3.491),
    "SIRS": (1.612, 1.046), "Shock_Index": (0.746, 0.197), "PaO2_FiO2": (310.8, 222.8),
    "cumulated_balance": (1710, 14163),
}  # fmt: skip
_LOG_MEANS: Final = {
    "max_dose_vaso": (-2.122, 0.526), "SpO2": (4.574, 0.029), "BUN": (3.139, 0.703),
    "Creatinine": (0.208, 0.634), "SGOT": (3.967, 1.128), "SGPT": (3.697, 1.213),
    "Total_bili": (0.113, 1.102), "INR": (0.408, 0.321), "input_total": (7.588, 3.036),
    "input_4hourly": (2.971, 3.513), "output_total": (6.764, 3.518),
    "output_4hourly": (3.913, 3.326),
}  # fmt: skip
_DOSES: Final = {
    "input_4hourly": ((48.0, 150.0, 500.0), (30.0, 80.0, 284.0, 874.0)),
    "max_dose_vaso": ((0.08, 0.2, 0.45), (0.04, 0.13, 0.27, 0.78)),
}
PUBLISHED: Final = Published(
    full_size=_FULL_SIZE, figures=_FIGURES, doses=_DOSES, means=_MEANS, log_means=_LOG_MEANS
)
