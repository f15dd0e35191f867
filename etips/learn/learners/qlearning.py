"""Q-learning for one decision: an l1-penalised regression of the loss, then its least."""

from dataclasses import dataclass

from etips.data.trajectories import Trajectories
from etips.learn.fitting.trainer import Trainer
from etips.learn.learners.fit import Fit
from etips.learn.learners.row_learner import RowLearner
from etips.learn.tabular.lasso import fit_lasso


@dataclass(kw_only=True, eq=False)
class QLearning(RowLearner):
    """Penalised least squares with treatment interactions (Qian and Murphy 2011).

    The loss is regressed on the summary of the history, the action and their products with an l1
    penalty, chosen by cross-validation over patients; the recommended action has the least
    predicted loss. It is as good as that regression: where the loss does not follow a line in the
    summary, so is the rule.

    Args:
        propensities: Not looked at by the regression: support and `score` alone ask for them.
        support: As in `RowLearner`, like the rest.
        clip: Likewise.
        seed: Of the folds.
    """

    def _learn(self, stays: Trajectories, trainer: Trainer) -> Fit:  # noqa: ARG002
        log = self._read(stays)
        rows = log.rows.double().numpy()
        found = fit_lasso(rows, log.action, log.loss, log.fold(self.seed), stays.n_actions)
        return log.fit("least amount", log.model(found.T), support=self.support)
