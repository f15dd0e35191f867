"""Residual weighted learning: what a loss has beyond its baseline, under a bounded penalty."""

from dataclasses import dataclass

import numpy as np

from etips.data.decisions import Floats
from etips.data.trajectories import Trajectories
from etips.learn.fitting.trainer import Trainer
from etips.learn.learners.fit import Fit
from etips.learn.learners.owl import WAVES, Kernel, Machine, check_machine
from etips.learn.learners.row_learner import RowLearner, RowLog
from etips.learn.tabular.margins import fit_ramp

BASELINE_RIDGE = 1.0
"""Weight of half the squared coefficients of the baseline, in decisions."""


@dataclass(kw_only=True, eq=False)
class RWL(RowLearner):
    """Residual weighted learning (Zhou et al. 2017).

    A regression of the loss on the summary alone, without the action, is the baseline. Decisions
    are weighted by what their loss has beyond it over the propensity: less than expected speaks for
    the action taken, more against it. The penalty of a margin is a smoothed ramp, bounded so that
    one decision cannot rule, and is minimised by steps of convex problems. A constant added to the
    loss goes into the baseline and changes nothing, which is where `OWL` suffers.

    Args:
        kernel: "linear" in the summary of the history, or "rbf".
        ridge: Weight of the squared coefficients; by cross-validation if left out.
        n_waves: As in `OWL`.
        propensities: "estimated" by a logistic regression on the summary, or "known".
        support: As in `RowLearner`, like the rest.
        clip: Likewise.
        seed: Of folds and waves.
    """

    kernel: Kernel = "linear"
    ridge: float | None = None
    n_waves: int = WAVES

    def _learn(self, stays: Trajectories, trainer: Trainer) -> Fit:  # noqa: ARG002
        check_machine(self.kernel, self.ridge, self.n_waves)
        log = self._read(stays)
        weight = (log.loss - baseline(log)) / log.chance
        machine = Machine.of(log, self.kernel, self.n_waves, seed=self.seed)
        scores = machine.fit(fit_ramp, weight, self.ridge, seed=self.seed)
        return log.fit("least amount", machine.model(-scores), support=self.support)


def baseline(log: RowLog) -> Floats:
    """Expected loss of each row if every action were taken alike, by a weighted regression."""
    rows = np.insert(log.rows.double().numpy(), 0, 1.0, axis=1)
    centre, unit = float(log.loss.mean()), float(log.loss.std()) or 1.0
    weight = 1 / log.chance
    weight = weight / weight.mean()
    gram = (rows * weight[:, None]).T @ rows
    gram[np.diag_indices(len(gram))] += np.where(np.arange(len(gram)) > 0, BASELINE_RIDGE, 0.0)
    found = np.linalg.solve(gram, rows.T @ (weight * (log.loss - centre) / unit))
    return np.asarray(centre + unit * (rows @ found))
