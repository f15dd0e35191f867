"""Stays of a simulated hospital: who, when, how ill. Nothing in it comes from a patient."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

HOUR: Final = 3600
DAY: Final = 24 * HOUR
BLOCK_STAYS: Final = 500
"""Stays that are simulated at a time."""
_EPOCH_2100: Final = 4_102_444_800


@dataclass(frozen=True)
class Hospital:
    """Stays of one block: who, when, how ill.

    Attributes:
        stay: icustay_id, shape (n,), as all others.
        subject: subject_id; some patients return.
        admission: hadm_id; some stays share one.
        start: Seconds since 1970 of ICU admission.
        hours: Length of the stay.
        severity: About -2 to 2; -3 for those who are only watched.
        metavision: Charting system.
        death: Seconds since 1970, 0 if alive.
        birth: Seconds since 1970.
    """

    stay: Ints
    subject: Ints
    admission: Ints
    start: Ints
    hours: Ints
    severity: Floats
    metavision: NDArray[np.bool_]
    death: Ints
    birth: Ints

    def every_hour(self) -> tuple[Ints, Ints]:
        """Position of the stay and hour since admission, for each hour of each stay."""
        owner = np.repeat(np.arange(self.stay.size), self.hours)
        hour = np.arange(owner.size) - np.repeat(np.cumsum(self.hours) - self.hours, self.hours)
        return owner, hour


def simulate_stays(rng: np.random.Generator, *, first: int, n_stays: int) -> Hospital:
    """Draw the stays numbered first .. first + n_stays - 1 of a hospital."""
    new_patient = rng.random(n_stays) > 0.25
    new_patient[0] = True
    new_admission = new_patient | (rng.random(n_stays) > 0.3)
    patient, admission = np.cumsum(new_patient) - 1, np.cumsum(new_admission)
    hours = np.clip(rng.lognormal(np.log(60), 0.6, n_stays), 8, 160).astype(np.int64)
    # A patient's stays follow one another: the clock runs through the block and jumps per patient.
    gap = np.where(new_patient, rng.integers(200, 2000, n_stays) * DAY, 3 * DAY)
    elapsed = np.cumsum(gap + np.concatenate([[0], hours[:-1]]) * HOUR) % (90 * 365 * DAY)
    elapsed += rng.integers(0, 60, n_stays) * 60
    start = _EPOCH_2100 + elapsed
    severity = np.where(rng.random(n_stays) < 0.06, -3.0, rng.normal(size=n_stays))  # some are well
    dies = rng.random(n_stays) < 0.12 * np.exp(0.7 * severity)
    soon, late = rng.integers(-12, 48, n_stays), rng.integers(48, 24 * 120, n_stays)
    death = start + (hours + np.where(rng.random(n_stays) < 0.4, soon, late)) * HOUR
    age = np.where(rng.random(n_stays) < 0.04, 300 * 365, rng.integers(16 * 365, 89 * 365, n_stays))
    number = 1 + first
    return Hospital(
        stay=200_000 + number + np.arange(n_stays),
        subject=number + patient,
        admission=100_000 + first + admission,
        start=start,
        hours=hours,
        severity=severity,
        metavision=rng.random(n_stays) < 0.5,
        death=np.where(dies & np.append(new_patient[1:], True), death // DAY * DAY, 0),
        birth=(start[np.flatnonzero(new_patient)[patient]] // DAY - age[patient]) * DAY,
    )
