"""The Sepsis-3 cohort from raw MIMIC-III v1.4 tables.

with contextlib.closing(open_source("mimic-iii-clinical-database-1.4")) as source:
cohort = build_cohort(source, profile("paper"))
"""

from etips.cohorts.mimic3.address import Engine, open_source, resumable_source
from etips.cohorts.mimic3.build import build_cohort
from etips.cohorts.mimic3.cohort import Cohort
from etips.cohorts.mimic3.config import CLEAN, PAPER, PROFILES, CohortConfig, profile

__all__ = [
    "CLEAN",
    "PAPER",
    "PROFILES",
    "Cohort",
    "CohortConfig",
    "Engine",
    "build_cohort",
    "open_source",
    "profile",
    "resumable_source",
]
