"""How much work fits and evaluations are, stage by stage, and how long one at work may still take.

The unit is a pass: one network that reads the stays once. What is counted is what usually comes,
not the most that may: networks stop early, and between the trainings networks are asked and
propensities balanced. Shares and weights below are of recorded fits; see
tests/unit/studies/test_fit_work.py.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from etips.learn.fitting.stages import Training
from etips.learn.learners.catalogue import find_method
from etips.learn.learners.policy_search import MAX_FINISH_EPOCHS
from etips.learn.learners.recipes import make_learner
from etips.learn.nuisance.fitted_nuisances import shorten
from etips.learn.training.epoch_report import EpochReport

PASS = {"propensity": 1.0, "outcome": 1.0, "stay": 1.0, "policy": 1.0, "finish": 1.25}
"""What a pass of a stage's networks costs, in passes of propensity networks; those of the last one
read all stays."""

BRIEF_PASS = 1.3
"""The same of propensity networks in smaller batches."""

STOPS = {"propensity": 0.85, "outcome": 0.55, "stay": 0.6, "policy": 0.6, "finish": 1.0}
"""Share of the epochs that a stage usually comes to."""

AFTER = {"propensity": 0.6, "outcome": 0.1, "stay": 0.1, "policy": 0.07, "finish": 0.0}
"""What follows a stage, as a share of its work: asking its networks, balance, choosing."""

EVALUATING, EVALUATED = 0.2, 13_000
"""What follows the last training of an evaluation, as a share of all its trainings: the first, and
the second over the number of decisions, since much of it looks at so many decisions at most."""

_STAY_ROUNDS = 3  # predicted outcomes of stays are learned round by round, most of them short
_PART = re.compile(r"^(?P<stage>.+?)-(?P<start>\d+)-(?P<stop>\d+)$")


@dataclass(frozen=True)
class StageWork:
    """The work of one stage: so much an epoch, epochs that usually come, and what follows them."""

    each: float
    usual: int
    after: float = 0.0
    networks: int = 1

    @classmethod
    def of(
        cls, stage: str, epochs: int, *, n_folds: int, sets: int = 1, brief: bool = False
    ) -> "StageWork":
        """The work of a stage.

        Args:
            epochs: How many there may be.
            n_folds: Of n folds every network reads all but one; of one fold, all but those it
                stops by.
            sets: How many sets of networks there are, one network a fold.
            brief: Whether its epochs are few, in small batches, and all of them usually come.
        """
        each = (BRIEF_PASS if brief else PASS[stage]) * max(n_folds - 1, 1) * sets
        usual = epochs if brief else min(max(round(STOPS[stage] * epochs), 1), epochs)
        return cls(each, usual, AFTER[stage] * each * usual, n_folds * sets)

    @property
    def total(self) -> float:
        """All that usually comes."""
        return self.each * self.usual + self.after

    def left(self, epoch: int, epochs: int) -> float:
        """What usually comes after `epoch` of at most `epochs`, without what follows the last.

        Past the epochs that usually come one more is expected, as long as there may be any.
        """
        usual = min(self.usual, epochs)
        return self.each * (usual - epoch if epoch < usual else epoch < epochs)


def stage_works(
    method: str, settings: Mapping[str, object], n_stays: int | None = None
) -> dict[str, StageWork]:
    """What each stage of a method usually costs, in order; nothing where it trains no networks."""
    known = find_method(method)
    if known is None or not known.stages:
        return {}
    learner = make_learner(known.name, settings, device="cpu")
    params = learner.get_params(deep=False)
    training = params["training"]
    assert isinstance(training, Training)
    propensity = shorten(training.propensity, n_stays or 0).epochs  # fewer where stays are many
    epochs = {
        "propensity": propensity,
        "outcome": training.outcome.epochs,
        "stay": _STAY_ROUNDS * training.outcome.epochs,
        "policy": training.policy.epochs,
        "finish": min(training.policy.epochs, MAX_FINISH_EPOCHS),
    }
    finishes = params.get("selection") != "paper" and training.finish
    return {
        stage: StageWork.of(
            stage,
            epochs[stage],
            n_folds=training.n_folds,
            sets=known.n_policies(learner) if stage == "policy" else 1,
            brief=stage == "propensity" and propensity < training.propensity.epochs,
        )
        for stage in (*known.stages, *["finish"] * ("policy" in known.stages and finishes))
    }


def evaluation_works(training: Training, n_decisions: int) -> dict[str, StageWork]:
    """The work of an evaluation that fits propensities and predicted losses."""
    works = {
        stage: replace(StageWork.of(stage, epochs, n_folds=max(training.n_folds, 2)), after=0.0)
        for stage, epochs in (
            ("propensity", training.propensity.epochs),
            ("outcome", training.outcome.epochs),
        )
    }
    share = EVALUATING + EVALUATED / max(n_decisions, 1)
    judging = share * sum(work.total for work in works.values())
    return {**works, "outcome": replace(works["outcome"], after=judging)}


@dataclass
class FitClock:
    """Turns the report of a stage into one of the whole fit.

    Args:
        works: What each stage usually is, in their order.
    """

    works: Mapping[str, StageWork]
    _rate: float = 0.0  # seconds a pass, as last seen
    _share: float = 0.0  # of all that is done, as last seen

    def read(self, at: EpochReport) -> tuple[EpochReport, float]:
        """The same report with the time that is left in all, and the share of all that is done."""
        if at.seconds is not None:
            return at, self._share
        part = _PART.match(at.stage)
        stage = part["stage"] if part else at.stage
        stage = "stay" if stage.startswith("stay-value") else stage.replace("additive", "outcome")
        stages = list(self.works)
        if stage not in stages:
            return at, at.epoch / at.epochs
        place, work = stages.index(stage), self.works[stage]
        totals = [own.total for own in self.works.values()]
        start, size = 0.0, 1.0  # share of the stage's networks before those at work, and of these
        if part and work.networks:
            start = int(part["start"]) / work.networks
            size = int(part["stop"]) / work.networks - start
        if at.epoch < at.epochs and work.each > 0 and size > 0:
            self._rate = at.seconds_left / (at.epochs - at.epoch) / (work.each * size)
        trained = work.total - work.after
        done = sum(totals[:place]) + start * trained + size * work.each * at.epoch
        waiting = (1 - start - size) * trained  # parts that memory makes wait
        left = size * work.left(at.epoch, at.epochs) + waiting + work.after
        left += sum(totals[place + 1 :])
        self._share = min(done / (done + left or 1.0), 1.0)
        return replace(at, seconds_left=self._rate * left), self._share
