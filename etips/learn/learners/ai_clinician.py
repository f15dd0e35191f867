"""The AI Clinician: states by k-means, care by counting, its best policy by iteration."""

from dataclasses import dataclass, replace

import numpy as np

from etips.data.coded import Floats32
from etips.data.decisions import Floats, Ints
from etips.data.scale import Scaler
from etips.data.trajectories import Trajectories
from etips.disclosure import LEAST_PEOPLE
from etips.errors import SettingError, require_number, require_seed, require_whole
from etips.evaluation.whole_stay_course import Outcome, require_outcome
from etips.learn.fitting.trainer import Trainer
from etips.learn.learners.fit import Fit
from etips.learn.learners.learner import Learner
from etips.learn.learners.row_learner import frame_of, require_log
from etips.learn.nuisance.outcome import is_share
from etips.learn.tabular.care_model import CareModel
from etips.learn.tabular.kmeans import assign, find_centres
from etips.policies.policy import FittedPolicy


@dataclass(kw_only=True, eq=False)
class AIClinician(Learner):
    """The AI Clinician (Komorowski et al. 2018): a policy for whole stays.

    The last visible step of a patient is one of `n_states` states, found by k-means. What follows
    an action in a state is counted; actions taken there too rarely are left out; policy iteration
    finds the policy of least discounted outcome, +1 for the worst and -1 for the best, at the end
    of the stay. It looks at the present alone, and believes its counts: with few stays the best
    action of a state is often the luckiest, which `rare` and `prior` hold back.

    Args:
        n_states: Groups at most; fewer where each could not hold eleven patients.
        rare: Actions taken at most so often in a state are left out of it; 5 as published.
        prior: Decisions of its state that stand beside those of an action; 0 as published.
        discount: Of what comes a decision later.
        outcome: Of a stay: the last of its losses (death, say), or their sum.
        seed: Of the groups.
    """

    n_states: int = 750
    rare: int = 12
    prior: float = 10.0
    discount: float = 0.99
    outcome: Outcome = "last"
    seed: int = 0

    def _learn(self, stays: Trajectories, trainer: Trainer) -> Fit:  # noqa: ARG002
        self._check(stays)
        rows, frame = frame_of(stays, "last")
        centres, state = self._states(rows.numpy(), stays)
        model = CareModel.count(
            state,
            stays.logged_action,
            self._costs(stays),
            stays.decisions().stay,
            n_states=len(centres),
            n_actions=stays.n_actions,
            prior=self.prior,
        )
        allowed = model.open_actions(self.rare)
        _, costs = model.iterate_policy(allowed, self.discount)
        worst = float(np.abs(costs).max()) + 1.0
        usual = np.log((model.taken + 0.5) / (model.taken + 0.5).sum(axis=1, keepdims=True))
        table = replace(
            frame,
            form="nearest",
            basis=centres,
            phase=np.zeros(len(centres)),
            weight=usual[None],
        )
        return Fit(
            FittedPolicy(
                kind="least amount",
                schema=stays.schema,
                scaler=Scaler(log=stays.schema.logarithms).fit(stays),
                propensity=table,
                networks=replace(table, weight=np.where(allowed, costs, worst)[None]),
            )
        )

    def _states(self, rows: Floats32, stays: Trajectories) -> tuple[Floats, Ints]:
        """Centres of at least eleven patients each, and the state of every decision."""
        unit = stays.cluster
        most = max(1, len(np.unique(unit)) // LEAST_PEOPLE)
        centres = find_centres(rows, min(self.n_states, most), seed=self.seed)
        state = assign(rows, centres)
        pairs = np.unique(state * (int(unit.max()) + 1) + unit)
        patients = np.bincount(pairs // (int(unit.max()) + 1), minlength=len(centres))
        kept = patients >= min(LEAST_PEOPLE, int(patients.max()))
        return centres[kept], assign(rows, centres[kept])

    def _costs(self, stays: Trajectories) -> Floats:
        """What each decision adds to the outcome of its stay."""
        loss, stay = stays.logged_loss, stays.decisions().stay
        if self.outcome == "sum":
            return loss
        last = np.append(stay[1:] != stay[:-1], True)
        centre = 0.5 if is_share(stays) else float(loss[last].mean())
        return np.where(last, 2 * (loss - centre), 0.0)

    def _check(self, stays: Trajectories) -> None:
        require_seed(self.seed)
        require_whole("n_states", self.n_states, least=1)
        require_whole("rare", self.rare, least=0)
        for name in ("discount", "prior"):
            require_number(name, getattr(self, name))
        if not 0 <= self.prior < np.inf:
            raise SettingError("prior", "must be finite and not negative")
        if not 0 <= self.discount < 1:
            raise SettingError("discount", "must be in [0, 1)")
        require_outcome(self.outcome)
        require_log(stays)
