"""How far a whole fit is and how long it may take, from how one stage of it stands."""

import re
from dataclasses import dataclass, replace

from etips.learn.learners.catalogue import Stage
from etips.learn.training.epoch_report import EpochReport
from etips.studies.plan import StagePasses

_PART = re.compile(r"^(?P<stage>.+?)-(?P<start>\d+)-(?P<stop>\d+)$")
_OTHER_NAMES: dict[str, Stage] = {"additive": "outcome", "pilot-again": "pilot"}


@dataclass
class FitClock:
    """Turns the report of a stage into one of the whole fit.

    Args:
        passes: What each stage costs, in their order.
    """

    passes: StagePasses
    _rate: float = 0.0  # seconds a pass, as last seen

    def read(self, at: EpochReport) -> tuple[EpochReport, float]:
        """The same report with the time that is left in all, and the share of all that is done."""
        stages = list(self.passes.costs)
        stage = self._stage(at.stage)
        if stage not in stages:
            return at, at.epoch / at.epochs
        done, to_do = self._within(at)
        cost = self.passes.costs[stage]
        place = stages.index(stage)
        before = sum(self.passes.costs[name] for name in stages[:place])
        after = sum(self.passes.costs[name] for name in stages[place + 1 :])
        if to_do > 0 and cost > 0:
            self._rate = at.seconds_left / (to_do * cost)
        rest = (1 - done) * cost - to_do * cost  # parts of the stage that wait for memory
        left = at.seconds_left + self._rate * (rest + after)
        total = sum(self.passes.costs.values()) or 1.0
        return replace(at, seconds_left=left), min((before + done * cost) / total, 1.0)

    def _stage(self, name: str) -> str:
        part = _PART.match(name)
        plain = part["stage"] if part else name
        if plain.startswith("stay-value"):
            return "stay"
        return _OTHER_NAMES.get(plain, plain)

    def _within(self, at: EpochReport) -> tuple[float, float]:
        """Share of the stage that is done, and that the training at work has still to do."""
        part, epochs = _PART.match(at.stage), at.epoch / at.epochs
        networks = self.passes.networks.get(self._stage(at.stage), 0)
        if not part or not networks:
            return epochs, 1 - epochs
        start, stop = int(part["start"]), int(part["stop"])
        return (start + (stop - start) * epochs) / networks, (stop - start) * (
            1 - epochs
        ) / networks
