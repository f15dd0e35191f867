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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

import numpy as np

from etips.errors import SettingError
from etips.evaluation.censoring import LossModel
from etips.evaluation.inference.checks import Floats, Ints
from etips.evaluation.inference.estimate import Estimate, difference
from etips.evaluation.inference.evidence import Bounds, divide, ratio_of
from etips.evaluation.inference.intervals import DEFAULT, Interval
from etips.evaluation.log import Log, View
from etips.evaluation.risk import UNIT, logged_risk

MOST_STRATA = 20
PER_STRATUM = 40  # decisions' worth of open weight: fewer would fit a cut-off to noise


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
        order, last = self._by_stratum
        if not most:
            share = 1 - share  # of the losses above it, sorted downwards as they are
        cumulated = np.cumsum(self._counted(self.open)[order])
        end = cumulated[last]
        start = np.concatenate([[0.0], end[:-1]])
        place = np.searchsorted(cumulated, start + share * (end - start))
        first = np.concatenate([[0], last[:-1] + 1])
        cut_offs: Floats = self.loss[order[np.clip(place, first, last)]]
        return cut_offs

    def _counted(self, weight: Floats) -> Floats:
        return weight if self.count is None else weight * self.count

    @cached_property
    def _falling(self) -> Ints:
        return np.argsort(-self.loss, kind="stable")

    @cached_property
    def _by_stratum(self) -> tuple[Ints, Ints]:
        """Decisions by stratum, then by falling loss, and where each stratum ends."""
        assert self.stratum is not None
        order = np.lexsort((-self.loss, self.stratum))
        return order, np.cumsum(np.bincount(self.stratum)) - 1


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
GAMMA_LIMIT = 1000.0


@dataclass(frozen=True)
class Bound:
    """One end of what is possible: its value and its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class SensitivityBounds:
    """Risk and gain under hidden confounding of at most `gamma`.

    The risk lies between `risk_least.low` and `risk_most.high`, hidden confounding and sampling
    error both allowed for; the gain likewise.

    Args:
        gain_least: Lower bound of the policy's risk minus the clinicians'.
        gain_most: Upper bound; the gain is gone when it reaches zero.
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
    if not gammas or not all(gamma >= 1 for gamma in gammas):
        raise SettingError("gammas", "must be one or more numbers of at least 1")
    expected = None if balanced is False else _expected(log, policy)
    if balanced and expected is None:
        raise SettingError("balanced", "needs a log with predicted losses or features")
    ends = extremes(log, policy, expected=expected, losses=losses)

    bounds = UNIT if ends.loss.min() >= 0 and ends.loss.max() <= 1 else None

    def bound(gamma: float, *, most: bool) -> tuple[Bound, Bound]:
        return _bound(log, *ends.reach(gamma, most=most), bounds, interval)

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


def _no_narrower(before: SensitivityBounds, own: SensitivityBounds) -> SensitivityBounds:
    """Limits that leave out nothing that a smaller gamma allows: chance may have them do so."""
    return replace(
        own,
        risk_least=_wider(min, own.risk_least, before.risk_least),
        risk_most=_wider(max, own.risk_most, before.risk_most),
        gain_least=_wider(min, own.gain_least, before.gain_least),
        gain_most=_wider(max, own.gain_most, before.gain_most),
    )


def _wider(outer: Callable[[float, float], float], own: Bound, before: Bound) -> Bound:
    return Bound(own.value, outer(own.low, before.low), outer(own.high, before.high))


def _expected(log: Log, policy: View) -> Floats | None:
    """The loss to expect at each decision, made without it, shape (n,); None if not known."""
    if policy.predicted is not None:
        return policy.predicted
    if log.expected is None:
        return None
    return log.expected.by_action[log.rows, log.action].astype(np.float64)


def _bound(
    log: Log, above: Floats, below: Floats, bounds: Bounds | None, interval: Interval
) -> tuple[Bound, Bound]:
    evidence = ratio_of(log.clusters, [(above, below)], bounds=bounds)
    risk = Estimate.of("snips", evidence, weight=below, count=None, interval=interval)
    gain = difference(risk, logged_risk(log.loss, log.clusters), interval=interval)
    return (
        Bound(risk.risk, risk.low, risk.high),
        Bound(gain.difference, gain.low, gain.high),
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
