"""How much work the stages of a fit or an evaluation are, epoch by epoch, as it usually goes.

The unit is a pass: one network that reads the stays once. What is counted is what usually comes,
not the most that may: networks stop early, translations lose their race, and between the trainings
networks are asked and propensities balanced. Shares and weights below are of recorded fits; see
tests/unit/studies/test_fit_clock.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from etips.data.history_rows import has_past
from etips.data.trajectories import Trajectories
from etips.learn.fitting.stages import ENCODER, Training
from etips.learn.nuisance.boosting import can_grow_trees
from etips.learn.nuisance.model_choice import Rivals

PASS = dict.fromkeys(("propensity", "outcome", "stay", "heat", "policy"), 1.0)
PASS["finish"] = 1.25
"""What a pass of a stage's networks costs, in passes of propensity networks; those of the last one
read all stays."""

BRIEF_PASS = 1.3
"""The same of propensity networks in smaller batches."""

STOPS = {"propensity": 0.85, "outcome": 0.55, "stay": 0.6, "policy": 0.6}
STOPS |= dict.fromkeys(("heat", "finish"), 1.0)
"""Share of the epochs that a stage usually comes to."""

AFTER = {
    "propensity": 0.6,
    "outcome": 0.1,
    "stay": 0.1,
    "heat": 0.2,
    "policy": 0.07,
    "finish": 0.0,
}
"""What follows a stage, as a share of its work: asking its networks, balance, choosing."""

TREES = 4.0
"""What trees and balance add to that where rows have no past, as a share of the networks' work:
these read rows in no time, and scikit-learn has to be imported."""

EVALUATING, EVALUATED = 0.2, 13_000
"""What follows the last training of an evaluation, as a share of all its trainings: the first, and
the second over the number of decisions, since much of it looks at so many decisions at most."""


@dataclass(frozen=True)
class StageWork:
    """The work of one stage.

    Args:
        epochs: Of each epoch that may come.
        usual: Epochs that usually come.
        after: Work that follows the last.
        networks: That are trained.
    """

    epochs: tuple[float, ...]
    usual: int
    after: float = 0.0
    networks: int = 1

    @property
    def total(self) -> float:
        """All that usually comes."""
        return sum(self.epochs[: self.usual]) + self.after

    def at(self, epoch: int) -> float:
        """Of the epoch of this number, the first being 1; past the last it is the last's."""
        return self.epochs[min(epoch, len(self.epochs)) - 1] if self.epochs else 0.0

    def done(self, epoch: int) -> float:
        """What is behind after so many epochs, without what follows the last."""
        return sum(self.epochs[:epoch])

    def left(self, epoch: int, epochs: int) -> float:
        """What usually comes after so many epochs, without what follows the last.

        Past the epochs that usually come one more is expected, as long as there may be any.

        Args:
            epoch: How many are done.
            epochs: Of how many at most.
        """
        usual = min(self.usual, epochs)
        if epoch >= usual:
            return self.at(epoch + 1) if epoch < epochs else 0.0
        return sum(self.epochs[epoch:usual])


def work_of(
    stage: str, sets: Sequence[int], *, n_folds: int, brief: bool = False, share: float = 1.0
) -> StageWork:
    """The work of a stage whose networks come in sets, one a fold.

    Args:
        stage: Which.
        sets: Sets that learn in each epoch that may come.
        n_folds: Of n folds every network reads all but one; of one fold, all but those it stops by.
        brief: Whether its epochs are few, in small batches, and all of them usually come.
        share: Of the batches of an epoch that are learned from.
    """
    unit = share * (BRIEF_PASS if brief else PASS[stage])
    each = tuple(unit * max(n_folds - 1, 1) * n for n in sets)
    usual = len(sets) if brief else max(round(STOPS[stage] * len(sets)), 1)
    after = AFTER[stage] * sum(each[:usual])
    return StageWork(each, usual, after, n_folds * max(sets, default=0))


def with_trees(work: StageWork, stays: Trajectories) -> StageWork:
    """The work of propensities, and of trees beside them where these take part."""
    if has_past(stays) or not can_grow_trees():
        return work
    return replace(work, after=work.after + TREES * work.done(work.usual))


def shortened(training: Training, n_stays: int) -> int:
    """Epochs of propensities that a policy is learned by, of so many stays."""
    return Rivals(ENCODER, brief=True).shorten(training.propensity, n_stays).epochs


def evaluation_works(training: Training, n_decisions: int) -> dict[str, StageWork]:
    """The work of an evaluation that fits propensities and predicted losses."""
    epochs = {"propensity": training.propensity.epochs, "outcome": training.outcome.epochs}
    n_folds = max(training.n_folds, 2)
    each = {
        stage: replace(work_of(stage, [1] * own, n_folds=n_folds), after=0.0)
        for stage, own in epochs.items()
    }
    share = EVALUATING + EVALUATED / max(n_decisions, 1)
    judging = share * sum(own.total for own in each.values())
    return {**each, "outcome": replace(each["outcome"], after=judging)}
