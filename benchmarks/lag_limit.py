"""How much a log of ICU-Sepsis can teach where the present state is hidden (lag 1).

    python -m benchmarks.lag_limit --stays 20000 --seeds 4

Three things stand between a policy and the best there is, and each is taken by itself, on the exact
model, for policies that know the state before and keep to actions with a propensity above a floor:

- best: the true expected losses are known;
- endless log: what clinicians were moved by is hidden, so that an endless log says other things of
  an action than what would come of it, and the policy believes the log;
- the log at hand: told the state before and its true propensities, mean losses of so many stays are
  drawn to those of each action, as far as does best on the truth. Nobody could know how far.
"""

import argparse
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from etips.data.decisions import Floats
from etips.worlds import icu_sepsis
from etips.worlds.icu_sepsis import DEATH, N_ACTIONS

FLOORS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2)
USUAL = 0.05
"""Floor on support that learners take."""

SPREADS = (0.0005, 0.001, 0.002, 0.005, 0.01)
"""Variances of what actions do in a state beyond what they do in all, to draw means by."""

NOISE = 0.25  # variance of a loss of 0 or 1


@dataclass(frozen=True)
class Ward:
    """What is true and what is seen of actions, by the state before; shapes (713, 25).

    Args:
        max_steps: Longest stay.
    """

    max_steps: int = 18

    @cached_property
    def pairs(self) -> Floats:
        """Share of each state before and state now among decisions, shape (713, 713)."""
        treated = icu_sepsis.clinicians()[:DEATH]
        moves, now = icu_sepsis._world().under(treated), icu_sepsis._world().start[:DEATH]
        pairs = np.zeros((DEATH, DEATH))
        for _ in range(self.max_steps - 1):
            pairs += now[:, None] * moves
            now = now @ moves
        return np.asarray(pairs / pairs.sum())

    @cached_property
    def share(self) -> Floats:
        """Of each state before, shape (713,)."""
        return np.asarray(self.pairs.sum(1))

    @cached_property
    def propensity(self) -> Floats:
        """Of each action, given the state before."""
        return self._given(icu_sepsis.clinicians()[:DEATH])

    @cached_property
    def true_loss(self) -> Floats:
        """Of each action if it were given to everybody."""
        return self._given(icu_sepsis.expected_loss()[:DEATH])

    @cached_property
    def logged_loss(self) -> Floats:
        """Mean of those who were given it, in an endless log."""
        loss, usual = icu_sepsis.expected_loss()[:DEATH], icu_sepsis.clinicians()[:DEATH]
        return np.asarray(self._given(loss * usual) / np.maximum(self.propensity, 1e-300))

    @cached_property
    def clinicians_loss(self) -> Floats:
        """By state before, shape (713,)."""
        return np.asarray((self.propensity * self.logged_loss).sum(1))

    def risk(self, believed: Floats, floor: float) -> float:
        """True risk of the action of least believed loss among those above a floor."""
        allowed = self.propensity >= floor
        taken = np.where(allowed, believed, np.inf).argmin(1)
        own = self.true_loss[np.arange(DEATH), taken]
        return float(self.share @ np.where(allowed.any(1), own, self.clinicians_loss))

    def _given(self, by_state: Floats) -> Floats:
        """Mean over the states now, for each state before; zeros where nobody was."""
        return np.asarray(self.pairs @ by_state / np.maximum(self.share, 1e-300)[:, None])


def believed_of(n_stays: int, seed: int) -> list[Floats]:
    """What a log says of actions by the state before, drawn to the mean of each by every spread."""
    log = icu_sepsis.simulate(n_stays, seed=seed, lag=1)
    assert log.truth is not None
    assert log.action is not None
    assert log.loss is not None
    rows = np.setdiff1d(np.arange(log.n_steps), log.offsets[:-1])
    before, action, loss = log.truth.code[rows - 1], log.action[rows], log.loss[rows]
    place = before * N_ACTIONS + action
    rest = loss - _means(before, loss, DEATH)[before]
    usual = _means(action, rest, N_ACTIONS)
    total = np.bincount(place, rest - usual[action], DEATH * N_ACTIONS)
    count = np.bincount(place, minlength=DEATH * N_ACTIONS)
    return [
        usual + (total / (count + NOISE / spread)).reshape(DEATH, N_ACTIONS) for spread in SPREADS
    ]


def _means(group: Floats, values: Floats, size: int) -> Floats:
    count = np.maximum(np.bincount(group, minlength=size), 1)
    return np.asarray(np.bincount(group, values, size) / count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--stays", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=4)
    options = parser.parse_args()
    ward = Ward()
    print(f"clinicians {ward.share @ ward.clinicians_loss:.4f}")
    print(f"{'floor':>6} {'best':>8} {'endless log':>12}")
    for floor in FLOORS:
        best, endless = (ward.risk(own, floor) for own in (ward.true_loss, ward.logged_loss))
        print(f"{floor:6} {best:8.4f} {endless:12.4f}")
    print(
        f"told the state before, {options.stays:,} stays, floor {USUAL}: least over spreads, each"
    )
    for seed in range(options.seeds):
        risks = [ward.risk(own, USUAL) for own in believed_of(options.stays, seed)]
        print(f"  log {seed}: {min(risks):.4f}  " + " ".join(f"{own:.4f}" for own in risks))


if __name__ == "__main__":
    main()
