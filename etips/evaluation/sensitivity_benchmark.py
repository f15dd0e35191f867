"""How strong hidden confounding would be if it were like what was recorded.

A gamma by itself says little. So each recorded feature is left out in turn, as if it had not been
recorded: by how much do the odds of the actions that were taken change? A multinomial
logistic model of the actions stands in for the propensities. Without a feature, what the others
tell about it still counts, so its part is replaced by its linear prediction from the others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from etips.evaluation.inference.checks import Floats, Ints, check_table
from etips.evaluation.row_models import Units

MOST_ROWS = 4_000  # decisions looked at, drawn evenly
N_STEPS = 50  # of the fit
N_LAST_STEPS = 8  # of one without some features, from close by
PENALTY = 1e-3  # on squared slopes of standardised features, a decision
TYPICAL = 0.95  # quantile of the change over decisions: not the largest, which is one person's
N_SINGLE = 5
N_TOGETHER = 3


@dataclass(frozen=True)
class Strength:
    """How much the odds of the actions taken hang on some features.

    Args:
        gamma: The 95 % quantile over decisions of the factor by which the odds change.
    """

    names: tuple[str, ...]
    gamma: float


def benchmark_features(
    features: Floats, groups: Mapping[str, Sequence[int]], action: Ints, n_actions: int
) -> tuple[Strength, ...]:
    """The strongest features one by one, falling, then the strongest two and three together.

    Args:
        features: What was visible at each decision, without gaps, shape (n, d).
        groups: Columns of each feature, by its name.
    """
    table = check_table("features", features, n=action.size)
    rows = np.linspace(0, action.size - 1, min(action.size, MOST_ROWS)).astype(np.int64)
    units = Units.of(table[rows])
    scaled, varies = units.standardised(table[rows]), np.isfinite(units.spread)
    usable = {name: [c for c in columns if varies[c]] for name, columns in groups.items()}
    usable = {name: columns for name, columns in usable.items() if columns}
    if not usable or np.unique(action[rows]).size < 2:
        return ()
    model = _fit(scaled, action[rows], n_actions)
    ranked = sorted(usable, key=lambda name: -model.change(usable[name]))
    sets = [(name,) for name in ranked[:N_SINGLE]]
    together = [tuple(ranked[:size]) for size in range(2, min(N_TOGETHER, len(ranked)) + 1)]
    strengths = [
        Strength(names, model.change([c for name in names for c in usable[name]], refit=True))
        for names in (*sets, *together)
    ]
    alone = sorted(strengths[: len(sets)], key=lambda strength: -strength.gamma)
    return (*alone, *strengths[len(sets) :])


@dataclass(frozen=True)
class _Model:
    """A multinomial logistic model, with what it takes to leave columns out.

    Args:
        table: Standardised features and a column of ones, shape (n, d + 1).
        slopes: Shape (d + 1, n_actions).
    """

    table: Floats
    slopes: Floats
    action: Ints

    def change(self, columns: Sequence[int], *, refit: bool = False) -> float:
        """Typical factor by which the odds of the actions taken change without `columns`.

        Replacing them by what the others predict is nearly the fit without them; `refit` takes the
        last steps there.
        """
        others = np.setdiff1d(np.arange(self.table.shape[1]), columns)
        known, own = self.table[:, others], self.table[:, list(columns)]
        predicting = np.linalg.lstsq(known.T @ known, known.T @ own, rcond=1e-10)[0]
        slopes = self.slopes[others] + predicting @ self.slopes[list(columns)]
        if refit:
            slopes = _climb(known, self.action, slopes, N_LAST_STEPS)
        shift = self._log_odds(known @ slopes) - self._log_odds(self.table @ self.slopes)
        return float(np.exp(np.quantile(np.abs(shift), TYPICAL)))

    def _log_odds(self, logits: Floats) -> Floats:
        chance = special.softmax(logits, axis=1)[np.arange(self.action.size), self.action]
        inside = np.clip(chance, 1e-12, 1 - 1e-12)
        return np.asarray(np.log(inside / (1 - inside)))


def _fit(scaled: Floats, action: Ints, n_actions: int) -> _Model:
    table = np.hstack([scaled, np.ones((action.size, 1))])
    share = np.bincount(action, minlength=n_actions) + 0.5
    slopes = np.zeros((table.shape[1], n_actions))
    slopes[-1] = np.log(share / share.sum())
    return _Model(table, _climb(table, action, slopes, N_STEPS), action)


def _climb(table: Floats, action: Ints, slopes: Floats, n_steps: int) -> Floats:
    """Steps up the penalised likelihood by a bound on its curvature (Boehning 1992).

    With momentum; the last column of `table` holds ones and has no penalty.
    """
    n, width = table.shape
    ridge = np.full(width, PENALTY)
    ridge[-1] = 0
    step = np.linalg.pinv(table.T @ table / n / 2 + np.diag(ridge))
    taken = np.eye(slopes.shape[1])[action]
    ahead, speed = slopes, 1.0
    for _ in range(n_steps):
        climb = (
            table.T @ (taken - special.softmax(table @ ahead, axis=1)) / n - ridge[:, None] * ahead
        )
        moved = ahead + step @ climb
        faster = (1 + np.sqrt(1 + 4 * speed**2)) / 2
        ahead = moved + (speed - 1) / faster * (moved - slopes)
        slopes, speed = moved, faster
    return slopes
