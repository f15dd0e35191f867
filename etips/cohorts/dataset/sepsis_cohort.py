"""A finished cohort, and the files it is written as."""

import io
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import polars as pl

from etips.cohorts.dataset.dose_actions import DoseClasses
from etips.cohorts.dataset.funnel import Funnel, draw_funnel, missing_shares
from etips.cohorts.sepsis3.events import ItemUnits, Unread
from etips.cohorts.sepsis3.variables import FINAL_CHARTED, LABS, VITALS, step_names


@dataclass(frozen=True, repr=False)
class Cohort:
    """A finished cohort.

    Attributes:
        table: The 59 columns of section 16, sorted by stay and block; elixhauser is null. Two are
            called after the length of a step (`variables.step_names`).
        decisions: Per row of `table`: classes, action, loss (null without a next block), sample
            flags, and whether the stay belongs to the training part.
        onsets: Id of the stay, under the database's own name, and onset (seconds since 1970) of
            all stays with one, minors too.
        sofa_parts: The six parts of SOFA of each row.
        fluid: Classes of the fluid of a step.
        vasopressor: Classes of max_dose_vaso.
        funnel: What happened to the stays.
        units: What each item's rows say about their unit.
        unread: Rows that were seen and not read.
        before_imputation: Rows of pass 1, untidied, and of pass 2, tidied, before imputation.
        kept: Stays kept by pass 1: icustayid, mortality_90d, max_sofa, max_sirs, onset.
        patients: stay and patient of the adult stays with an onset; not written to files.
        label: Name of the database for readers.
        profile: Name of the settings it was built with.
        settings: All of them by name, and the database.
    """

    table: pl.DataFrame
    decisions: pl.DataFrame
    onsets: pl.DataFrame
    sofa_parts: pl.DataFrame
    fluid: DoseClasses
    vasopressor: DoseClasses
    funnel: Funnel
    units: tuple[ItemUnits, ...]
    unread: tuple[Unread, ...]
    before_imputation: tuple[pl.DataFrame, pl.DataFrame]
    kept: pl.DataFrame
    patients: pl.DataFrame
    label: str
    profile: str
    settings: Mapping[str, object]

    @property
    def step_hours(self) -> int:
        """Length of a step."""
        hours = self.settings["step_hours"]
        assert isinstance(hours, int)
        return hours

    def __repr__(self) -> str:
        """Sizes only: a patient's row has no place in a message."""
        stays = self.table["icustayid"].n_unique() if self.table.height else 0
        return f"Cohort(profile={self.profile!r}, n_stays={stays}, n_rows={self.table.height})"

    def files(self) -> dict[str, bytes]:
        """File names and contents of the cohort folder."""
        fluid = step_names(self.step_hours)["input_4hourly"]
        doses = {fluid: asdict(self.fluid), "max_dose_vaso": asdict(self.vasopressor)}
        first, second = self.before_imputation
        audit = {
            "units": [asdict(item) for item in self.units],
            **({"not_read": [asdict(item) for item in self.unread]} if self.unread else {}),
            "missing_before_imputation": {
                "pass 1": missing_shares(first, VITALS + LABS),
                "pass 2": missing_shares(second, FINAL_CHARTED),
            },
        }
        return {
            "table.parquet": _parquet(self.table),
            "onset.parquet": _parquet(self.onsets),
            "decisions.parquet": _parquet(self.decisions),
            "funnel.json": _json(self.funnel.to_document()),
            "doses.json": _json(doses),
            "config.json": _json(dict(self.settings)),
            "audit.json": _json(audit),
            "funnel.svg": draw_funnel(self.funnel).encode(),
        }


def _parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def _json(content: object) -> bytes:
    """JSON has neither NaN nor infinity; null says that there is no number."""
    return (json.dumps(_plain(content), indent=2, allow_nan=False) + "\n").encode()


def _plain(content: object) -> object:
    if isinstance(content, dict):
        return {name: _plain(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
