"""How far a whole fit is and how long it may take, from how one stage of it stands."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from etips.learn.training.epoch_report import EpochReport
from etips.studies.stage_work import StageWork

_PART = re.compile(r"^(?P<stage>.+?)-(?P<start>\d+)-(?P<stop>\d+)$")
_OTHER_NAMES = {"additive": "outcome"}
_CALLED_BACK = "policy-back"  # a translation that lost its heat and is chosen all the same
_NEARLY = 0.95  # of a fit is done when one is called back, which is seldom and was not counted


@dataclass
class FitClock:
    """Turns the report of a stage into one of the whole fit.

    Args:
        works: What each stage usually is, in their order.
    """

    works: Mapping[str, StageWork]
    _rate: float = 0.0  # seconds a pass, as last seen

    def read(self, at: EpochReport) -> tuple[EpochReport, float]:
        """The same report with the time that is left in all, and the share of all that is done."""
        stages = list(self.works)
        stage = self._stage(at.stage)
        if stage.startswith(_CALLED_BACK):
            return at, _NEARLY
        if stage not in stages:
            return at, at.epoch / at.epochs
        place, work = stages.index(stage), self.works[stage]
        before = sum(self.works[name].total for name in stages[:place])
        after = sum(self.works[name].total for name in stages[place + 1 :])
        start, size = self._part(at.stage, work)
        if at.epoch < at.epochs and (now := work.at(at.epoch)) > 0 and size > 0:
            self._rate = at.seconds_left / (at.epochs - at.epoch) / (now * size)
        done = before + start * (work.total - work.after) + size * work.done(at.epoch)
        waiting = (1 - start - size) * (work.total - work.after)  # parts that memory makes wait
        left = size * work.left(at.epoch, at.epochs) + waiting + work.after + after
        total = done + left or 1.0
        return replace(at, seconds_left=self._rate * left), min(done / total, 1.0)

    def _stage(self, name: str) -> str:
        part = _PART.match(name)
        plain = part["stage"] if part else name
        if plain.startswith("stay-value"):
            return "stay"
        return _OTHER_NAMES.get(plain, plain)

    def _part(self, name: str, work: StageWork) -> tuple[float, float]:
        """Share of the stage's networks that came before those at work, and that these are."""
        part = _PART.match(name)
        if not part or not work.networks:
            return 0.0, 1.0
        start, stop = int(part["start"]), int(part["stop"])
        return start / work.networks, (stop - start) / work.networks
