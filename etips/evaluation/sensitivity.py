"""What hidden confounding of a given strength could do to a risk: the marginal sensitivity model.

Tan (2006): given what the log holds, the odds of an action may differ by a factor of at most
`gamma` between patients of different hidden state. The true inverse propensity then lies between
`1 + (1/p - 1) / gamma` and `1 + (1/p - 1) * gamma`. The extreme self-normalised risks over all such
weights are found by sorting the losses (Zhao, Small and Bhattacharya 2019). They contain the risk
for any hidden state within the model, but some of those weights no hidden state can make: given
what is visible, true weights have the nominal mean. Where the log tells what loss to expect, only
weights are allowed that keep their total among decisions which expect alike, and the bounds are
those of Dorn and Guo (2023): never wider, and sharp as far as the expectation is.

A decision weighs `sure + open`: `sure` stands whatever is hidden, `open` may be multiplied or
divided by gamma. Where the policy takes an action with probability pi and the log with p, `sure` is
pi and `open` is `pi (1/p - 1)`; where it leaves the decision to the clinicians nothing is open.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
from scipy import special

from etips.errors import SettingError
from etips.evaluation.censoring import LossModel
from etips.evaluation.inference.checks import Floats, Ints, check_table
from etips.evaluation.inference.estimate import Estimate, difference
from etips.evaluation.inference.evidence import divide, ratio_of
from etips.evaluation.inference.intervals import DEFAULT, Interval
from etips.evaluation.log import Log, View
from etips.evaluation.risk import UNIT, logged_risk, snips
from etips.evaluation.row_models import Units

MOST_STRATA = 20
PER_STRATUM = 40  # decisions' worth of open weight: fewer would fit a cut-off to noise

MOST_ROWS = 4_000  # decisions that the strength of features is measured on, drawn evenly
N_STEPS = 50  # of the fit
N_LAST_STEPS = 8  # of one without some features, from close by
PENALTY = 1e-3  # on squared slopes of standardised features, a decision
TYPICAL = 0.95  # quantile of the change over decisions: not the largest, which is one person's
N_SINGLE = 5
N_TOGETHER = 3


@dataclass(frozen=True)
class Extremes:
    """The decisions of one policy, ready for any gamma.

    Args:
        sure: Part of each weight that hidden confounding cannot change, shape (n,).
        open: The part that it can, shape (n,).
        stratum: For balanced weights, decisions that look alike, 0..s-1, shape (n,).
        count: For how many decisions each speaks where losses are missing, shape (n,).
    """

    loss: Floats
    sure: Floats
    open: Floats
    stratum: Ints | None = None
    count: Floats | None = None

    @property
    def weight(self) -> Floats:
        """The weights without confounding, shape (n,)."""
        return self.sure + self.open

    def reach(self, gamma: float, *, most: bool) -> tuple[Floats, Floats]:
        """Numerator and denominator of the greatest, or least, risk within `gamma`, (n,) each.

        Their totals' ratio is the bound. First-order, the cut-offs count as given: moving them
        changes the bound in second order only.
        """
        if self.stratum is None:
            weight = self._free(gamma, most=most)
            return self.loss * weight, weight
        return self._balanced(gamma, most=most), self.weight

    def _free(self, gamma: float, *, most: bool) -> Floats:
        """Weights with the extreme self-normalised risk (Zhao, Small and Bhattacharya 2019).

        At the optimum all losses above some value have one end of their range and all below it the
        other, so the best of the n+1 splits of the sorted losses is the answer.
        """
        order = self._falling
        small, large = (
            self._counted(self.sure + self.open * factor) for factor in (1 / gamma, gamma)
        )
        above, below = (large, small) if most else (small, large)
        total = _split_sums(above[order], below[order])
        losses = self.loss[order]
        ratio = divide(_split_sums(losses * above[order], losses * below[order]), total)
        if np.isnan(ratio).all():
            return self._counted(self.weight)
        split = int(np.nanargmax(ratio) if most else np.nanargmin(ratio))
        weight = below.copy()
        weight[order[:split]] = above[order[:split]]
        return weight

    def _balanced(self, gamma: float, *, most: bool) -> Floats:
        """Weighted losses under the extreme weights that keep each stratum's total (n,).

        The true weights have the nominal mean given whatever is visible. Of all weights that keep
        the total of a stratum those are extreme that are large for losses beyond one value, the
        quantile at gamma / (1 + gamma) of the open weight there (Dorn and Guo 2023).
        """
        assert self.stratum is not None
        sign = 1.0 if most else -1.0
        cut = self._cut_offs(1 / (1 + gamma), most=most)[self.stratum]
        excess = self.loss - cut
        factor = np.where(sign * excess > 0, gamma, 1 / gamma)
        return self.weight * cut + self._counted(self.sure + self.open * factor) * excess

    def _cut_offs(self, share: float, *, most: bool) -> Floats:
        """The loss beyond which `share` of each stratum's open weight lies, shape (s,)."""
        assert self.stratum is not None
        order = np.lexsort((-self.loss, self.stratum))
        last = np.cumsum(np.bincount(self.stratum)) - 1
        if not most:
            share = 1 - share  # of the losses above it, sorted downwards as they are
        cumulated = np.cumsum(self._counted(self.open)[order])
        end = cumulated[last]
        start = np.concatenate([[0.0], end[:-1]])
        place = np.searchsorted(cumulated, start + share * (end - start))
        first = np.concatenate([[0], last[:-1] + 1])
        return np.asarray(self.loss[order[np.clip(place, first, last)]])

    def _counted(self, weight: Floats) -> Floats:
        return weight if self.count is None else weight * self.count

    @cached_property
    def _falling(self) -> Ints:
        return np.argsort(-self.loss, kind="stable")


def extremes(
    log: Log, policy: View, *, expected: Floats | None, losses: LossModel | None = None
) -> Extremes:
    """What hidden confounding can do to the weights of `policy`.

    Nothing where it abstains. A policy that has the clinicians' own probabilities is read as
    abstaining (see `view`); to draw from them without knowing what the clinicians knew would be
    another policy, which a log without hidden states cannot tell from theirs.

    Args:
        expected: Loss to expect at each decision, made without it, shape (n,): weights are then
            balanced among decisions that expect alike. None leaves them free.
    """
    same = np.zeros(log.n_decisions, bool) if policy.abstains is None else policy.abstains
    probability = policy.weight * log.propensity
    sure = np.where(same, policy.weight, probability)
    open_ = np.where(same, 0.0, np.maximum(policy.weight - probability, 0.0))
    stratum = None if expected is None else strata(expected, open_)
    if losses is None:
        return Extremes(log.loss, sure, open_, stratum)
    return Extremes(losses.loss, sure, open_, stratum, losses.observed / losses.chance)


def strata(expected: Floats, mass: Floats) -> Ints:
    """Numbers 0..s-1 of bands of `expected` with about equal `mass`, shape (n,).

    Args:
        expected: What decisions are sorted by, shape (n,).
        mass: How much each counts, shape (n,).
    """
    squares = float((mass**2).sum())
    size = float(mass.sum()) ** 2 / squares if squares > 0 else 0.0
    n_bands = int(np.clip(size / PER_STRATUM, 1, MOST_STRATA))
    order = np.argsort(expected, kind="stable")
    cumulated = np.cumsum(mass[order])
    places = np.searchsorted(cumulated, cumulated[-1] * np.arange(1, n_bands) / n_bands)
    edges = np.unique(expected[order[places]])
    band = np.searchsorted(edges, expected, side="left")
    return np.unique(band, return_inverse=True)[1].astype(np.int64)


def _split_sums(above: Floats, below: Floats) -> Floats:
    """Sum of the first j of `above` and the rest of `below`, for j = 0..n, shape (n+1,)."""
    sums = np.empty(above.size + 1)
    sums[0] = below.sum()
    np.cumsum(above - below, out=sums[1:])
    sums[1:] += sums[0]
    return sums


GAMMAS = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0)
MISSING_GAMMAS = (1.0, 1.5, 2.0, 3.0, math.inf)
GAMMA_LIMIT = 1000.0


@dataclass(frozen=True)
class Bound:
    """One end of what is possible: its value and its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class SensitivityBounds:
    """Risk and gain if odds depend on something that cannot be seen by at most `gamma`.

    The risk lies between `risk_least.low` and `risk_most.high`, that and sampling error both
    allowed for; the gain, the policy's risk minus the clinicians', likewise. It is gone when
    `gain_most` reaches zero.
    """

    gamma: float
    risk_least: Bound
    risk_most: Bound
    gain_least: Bound
    gain_most: Bound


@dataclass(frozen=True)
class Sensitivity:
    """Bounds over a range of gamma, and where the gain is gone.

    Args:
        gamma_interval: Least gamma at which it may, sampling error included; 1 when the gain is not
            certain even without confounding.
        balanced: Whether weights had to keep their totals among decisions that expect alike.
    """

    bounds: tuple[SensitivityBounds, ...]
    gamma_point: float
    gamma_interval: float
    balanced: bool = False


def bound_risk(
    log: Log,
    policy: View,
    *,
    gammas: Sequence[float] = GAMMAS,
    interval: Interval = DEFAULT,
    balanced: bool | None = None,
    losses: LossModel | None = None,
) -> Sensitivity:
    """Bounds on the policy's risk and on its gain over the clinicians.

    The clinicians' own risk is the mean logged loss, which no hidden state can change; nor can it
    change anything where the policy abstains. The sampling error takes the extreme weights as
    given: moving the loss at which they switch changes the bound in second order only.

    Args:
        balanced: True for the bounds of Dorn and Guo, for which the log must hold predicted losses
            or features; False for those of Zhao, Small and Bhattacharya; left out, the first where
            they can be had.
        losses: Where the log's losses are stand-ins for missing ones, the losses themselves: the
            noise of a stand-in is not a hidden state.
    """
    _require_gammas(gammas)
    expected = None
    if balanced is not False and policy.predicted is not None:
        expected = policy.predicted
    elif balanced is not False and log.expected is not None:
        expected = log.expected.by_action[log.rows, log.action].astype(np.float64)
    if balanced and expected is None:
        raise SettingError("balanced", "needs a log with predicted losses or features")
    ends = extremes(log, policy, expected=expected, losses=losses)
    limits = UNIT if ends.loss.min() >= 0 and ends.loss.max() <= 1 else None
    clinicians = logged_risk(log.loss, log.clusters)

    def bound(gamma: float, *, most: bool) -> tuple[Bound, Bound]:
        """Of the risk and of the gain."""
        above, below = ends.reach(gamma, most=most)
        evidence = ratio_of(log.clusters, [(above, below)], bounds=limits)
        risk = Estimate.of("snips", evidence, weight=below, count=None, interval=interval)
        gain = difference(risk, clinicians, interval=interval)
        return (
            Bound(risk.risk, risk.low, risk.high),
            Bound(gain.difference, gain.low, gain.high),
        )

    def at(gamma: float) -> SensitivityBounds:
        risk_least, gain_least = bound(gamma, most=False)
        risk_most, gain_most = bound(gamma, most=True)
        return SensitivityBounds(gamma, risk_least, risk_most, gain_least, gain_most)

    return Sensitivity(
        bounds=tuple(accumulate((at(gamma) for gamma in sorted(gammas)), _no_narrower)),
        gamma_point=find_crossing(lambda gamma: bound(gamma, most=True)[1].value),
        gamma_interval=find_crossing(lambda gamma: bound(gamma, most=True)[1].high),
        balanced=expected is not None,
    )


def _require_gammas(gammas: Sequence[float]) -> None:
    if not gammas or not all(gamma >= 1 for gamma in gammas):
        raise SettingError("gammas", "must be one or more numbers of at least 1")


def _no_narrower(before: SensitivityBounds, after: SensitivityBounds) -> SensitivityBounds:
    """Limits that leave out nothing that a smaller gamma allows: chance may have them do so."""

    def wider(outer: Callable[[float, float], float], name: str) -> Bound:
        old, new = getattr(before, name), getattr(after, name)
        return Bound(new.value, outer(new.low, old.low), outer(new.high, old.high))

    return SensitivityBounds(
        after.gamma,
        *(wider(min, "risk_least"), wider(max, "risk_most")),
        *(wider(min, "gain_least"), wider(max, "gain_most")),
    )


def find_crossing(height: Callable[[float], float]) -> float:
    """Least gamma at which a rising `height` reaches zero, to one part in a thousand."""
    if not height(1.0) < 0:
        return 1.0
    if height(GAMMA_LIMIT) < 0:
        return float("inf")
    low, high = 1.0, GAMMA_LIMIT
    while high / low > 1.001:
        middle = float(np.sqrt(low * high))
        if height(middle) < 0:
            low = middle
        else:
            high = middle
    return float(np.sqrt(low * high))


def bound_missing(
    model: LossModel,
    log: Log,
    policy: View,
    *,
    gammas: Sequence[float] = MISSING_GAMMAS,
    interval: Interval = DEFAULT,
) -> Sensitivity:
    """What risk and gain could be if who lacks a loss depends on the loss itself, by gamma.

    Nothing in a log can tell. The odds of a missing loss differ by at most gamma between those who
    look alike, were treated alike and differ in their loss; or nothing at all is assumed and each
    missing loss of 0 to 1 is whatever harms the claim most (Manski 1990): gamma is infinite. The
    sampling error takes the models and the extreme losses as given.

    Args:
        model: What is known and estimated of the losses.
        gammas: How much the odds of a missing loss may depend on the loss.
    """
    _require_gammas(gammas)
    seen, weight = model.loss[model.observed], policy.weight
    unit = bool(seen.min() >= 0 and seen.max() <= 1)  # so that a missing loss lies there too
    mean, everywhere = float(weight.mean()), np.ones(weight.size)
    # A decision that the policy weighs less than the clinicians counts against the gain.
    lever = weight / mean - 1 if mean > 0 else -everywhere

    def ways(gamma: float, lever: Floats, sign: float) -> Iterator[Floats]:
        """Losses that push `lever @ loss` up, or down: within the unit, and within gamma."""
        if unit:
            yield np.where(model.observed, model.loss, sign * lever > 0)
        if math.isfinite(gamma):
            pushes = sign * lever * (model.loss - model.predicted) > 0
            odds = (1 / model.chance - 1) * np.where(pushes, gamma, 1 / gamma)
            yield model.corrected(1 + odds)

    def risk(gamma: float, sign: float) -> Bound:
        estimates = (
            snips(loss, weight, log.clusters, interval=interval)
            for loss in ways(gamma, everywhere, sign)
        )
        return _narrowest(
            [Bound(estimate.risk, estimate.low, estimate.high) for estimate in estimates], sign
        )

    def gain(gamma: float, sign: float) -> Bound:
        bounds = []
        for loss in ways(gamma, lever, sign):
            risk_by_loss = snips(loss, weight, log.clusters, interval=interval)
            apart = difference(risk_by_loss, logged_risk(loss, log.clusters), interval=interval)
            bounds.append(Bound(apart.difference, apart.low, apart.high))
        return _narrowest(bounds, sign)

    return Sensitivity(
        bounds=tuple(
            SensitivityBounds(
                gamma, risk(gamma, -1), risk(gamma, 1), gain(gamma, -1), gain(gamma, 1)
            )
            for gamma in sorted(gammas)
            if unit or math.isfinite(gamma)
        ),
        gamma_point=find_crossing(lambda gamma: gain(gamma, 1).value),
        gamma_interval=find_crossing(lambda gamma: gain(gamma, 1).high),
    )


def _narrowest(ways: list[Bound], sign: float) -> Bound:
    """Each is a bound with its limits, so what is nearest to the estimate is one too."""
    nearest = min if sign > 0 else max
    return Bound(
        nearest(bound.value for bound in ways),
        nearest(bound.low for bound in ways),
        nearest(bound.high for bound in ways),
    )


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
    """How strong hidden confounding would be if it were like what was recorded.

    A gamma by itself says little. So each recorded feature is left out in turn, as if it had not
    been recorded: by how much do the odds of the actions that were taken change? A multinomial
    logistic model of the actions stands in for the propensities. Without a feature, what the others
    tell about it still counts, so its part is replaced by its linear prediction from the others.

    The strongest features one by one, falling, then the strongest two and three together.

    Args:
        features: What was visible at each decision, without gaps, shape (n, d).
        groups: Columns of each feature, by its name.
    """
    table = check_table("features", features, n=action.size)
    rows = np.linspace(0, action.size - 1, min(action.size, MOST_ROWS)).astype(np.int64)
    units, action = Units.of(table[rows]), action[rows]
    varies = np.isfinite(units.spread)
    usable = {name: [c for c in columns if varies[c]] for name, columns in groups.items()}
    usable = {name: columns for name, columns in usable.items() if columns}
    if not usable or np.unique(action).size < 2:
        return ()
    scaled = np.hstack([units.standardised(table[rows]), np.ones((rows.size, 1))])
    share = np.bincount(action, minlength=n_actions) + 0.5
    start = np.zeros((scaled.shape[1], n_actions))
    start[-1] = np.log(share / share.sum())
    whole = _climb(scaled, action, start, N_STEPS)

    def log_odds(logits: Floats) -> Floats:
        chance = special.softmax(logits, axis=1)[np.arange(action.size), action]
        return np.asarray(special.logit(np.clip(chance, 1e-12, 1 - 1e-12)))

    def change(names: Sequence[str], *, refit: bool) -> float:
        """Replacing columns by what the others predict is nearly the fit without them."""
        columns = [column for name in names for column in usable[name]]
        others = np.setdiff1d(np.arange(scaled.shape[1]), columns)
        known, left_out = scaled[:, others], scaled[:, columns]
        predicting = np.linalg.lstsq(known.T @ known, known.T @ left_out, rcond=1e-10)[0]
        slopes = whole[others] + predicting @ whole[columns]
        if refit:
            slopes = _climb(known, action, slopes, N_LAST_STEPS)
        shift = log_odds(known @ slopes) - log_odds(scaled @ whole)
        return float(np.exp(np.quantile(np.abs(shift), TYPICAL)))

    ranked = sorted(usable, key=lambda name: -change([name], refit=False))
    alone = [Strength((name,), change([name], refit=True)) for name in ranked[:N_SINGLE]]
    together = [tuple(ranked[:size]) for size in range(2, min(N_TOGETHER, len(ranked)) + 1)]
    return (
        *sorted(alone, key=lambda strength: -strength.gamma),
        *(Strength(names, change(names, refit=True)) for names in together),
    )


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
