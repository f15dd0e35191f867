"""What a low floor on support costs and gains, in worlds made to be hard on one.

    python -m benchmarks.rare_floor                       # four seeds of every world: half an hour
    python -m benchmarks.rare_floor --worlds parity many --seeds 0 1

Every world has a rare action. Clinicians give it for a reason that is hidden (`hidden`, `many`,
`prognosis`), or visible and too odd for any model here (`parity`, `ripple`, `product`); or they
spare those whom it harms (`contra`). In `helps` and `alike` it should be given more often. Printed
of each log: true risks with the low floor, with the usual one, and of the clinicians.
"""

import argparse
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import etips
from etips.data.decisions import Floats
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories

N_FRESH = 12_000
LOW, FLOOR = 0.01, 0.05


class Known(NamedTuple):
    """A log with what nobody is told: chance and expected loss of every action, shape (n, K)."""

    stays: Trajectories
    chance: Floats
    loss: Floats


class Drawn(NamedTuple):
    """Patients: features in [-1, 1], their signs, and somebody hidden."""

    features: Floats
    side: Floats
    hidden: NDArray[np.bool_]


def two_actions(rare: Floats, usual_loss: Floats, rare_loss: Floats) -> tuple[Floats, Floats]:
    """Chances and losses where one action is usual and the other rare."""
    return np.stack([1 - rare, rare], 1), np.stack([usual_loss, rare_loss], 1)


def hidden(own: Drawn) -> tuple[Floats, Floats]:
    """A hidden good prognosis brings the rare action, which harms by 0.1."""
    loss = np.where(own.hidden, 0.1, 0.6)
    return two_actions(np.where(own.hidden, 0.09, 0.004), loss, loss + 0.1)


def prognosis(own: Drawn) -> tuple[Floats, Floats]:
    """The same for six in ten; elsewhere the action is common, and suits half of the patients."""
    rare, suits = own.features[:, 1] > -0.2, own.side[:, 0]
    loss = np.where(rare, np.where(own.hidden, 0.0, 0.7), 0.5)
    chance = np.where(rare, np.where(own.hidden, 0.1, 0.002), 0.4)
    effect = np.where(rare, 0, 0.2 * suits)
    return two_actions(chance, loss + effect, loss + np.where(rare, 0.1, -effect))


def many(own: Drawn) -> tuple[Floats, Floats]:
    """Ten actions, two usual for each patient; the rest by a hidden good prognosis, harming."""
    action = np.arange(10)
    band = np.minimum(((own.features[:, 1] + 1) / 2 * 5).astype(int), 4)
    usual = (action // 2)[None] == band[:, None]
    rare = np.where(own.hidden, 0.05, 0.006)[:, None]
    base = np.where(own.hidden, 0.25, 0.6)[:, None]
    suits = own.side[:, :1] * np.where(action % 2, 1, -1)[None]
    chance = np.where(usual, (1 - 8 * rare) / 2, rare)
    return chance, np.where(usual, base + 0.15 * suits, base + 0.1)


def spared(
    own: Drawn,
    rare: NDArray[np.bool_],
    harmed: NDArray[np.bool_],
    seldom: tuple[float, float],
    after: tuple[float, float],
) -> tuple[Floats, Floats]:
    """Where it is rare those whom it harms are mostly spared; elsewhere it suits half of all.

    Args:
        own: Patients.
        rare: Where.
        harmed: Whom.
        seldom: Its chance there for these and for others.
        after: Its loss there for these and for others.
    """
    effect = 0.2 * own.side[:, 0]
    chance = np.where(rare, np.where(harmed, *seldom), 0.4)
    usual = np.where(rare, 0.5, 0.5 + effect)
    return two_actions(chance, usual, np.where(rare, np.where(harmed, *after), 0.5 - effect))


def parity(own: Drawn) -> tuple[Floats, Floats]:
    """Visible: by the parity of four signs it helps much or harms much, and clinicians know."""
    harmed = own.side[:, 2:6].prod(1) > 0
    return spared(own, own.features[:, 1] > -0.2, harmed, (0.002, 0.05), (0.98, 0.1))


def ripple(own: Drawn) -> tuple[Floats, Floats]:
    """Visible: a wave decides who is well and who gets the rare action, which harms by 0.08."""
    x = own.features
    well = np.sin(9 * x[:, 0]) * x[:, 1] * x[:, 2] > 0
    loss = np.where(well, 0.2, 0.65)
    return two_actions(np.where(well, 0.05, 0.006), loss, loss + 0.08)


def product(own: Drawn) -> tuple[Floats, Floats]:
    """Visible: given at 4.5 % where a product makes it help, at 1.2 % where it harms as much."""
    helped = own.features[:, 0] * own.features[:, 1] > 0.05
    usual = np.full(len(helped), 0.5)
    return two_actions(np.where(helped, 0.045, 0.012), usual, np.where(helped, 0.1, 0.9))


def contra(own: Drawn) -> tuple[Floats, Floats]:
    """Visible: the same by the parity of three signs, less of each."""
    harmed = own.side[:, 2:5].prod(1) > 0
    return spared(own, own.features[:, 1] > 0, harmed, (0.004, 0.04), (0.9, 0.2))


def helps(own: Drawn) -> tuple[Floats, Floats]:
    """Rare for no reason; good for half of the patients, bad for the others."""
    chance = 0.03 + 0.01 * np.tanh(own.features[:, 1])
    return two_actions(chance, np.full(len(chance), 0.5), 0.5 - 0.4 * own.side[:, 0])


def alike(own: Drawn) -> tuple[Floats, Floats]:
    """By a habit common or rare, suits half of the patients much, whatever the habit."""
    chance = np.exp(-2.2 - 2 * own.features[:, 1])
    effect = 0.3 * own.side[:, 0]
    return two_actions(chance, 0.5 + effect, 0.5 - effect)


WORLDS: Mapping[str, tuple[Callable[[Drawn], tuple[Floats, Floats]], int]] = {
    own.__name__: (own, n)
    for own, n in (
        (hidden, 6_000),
        (prognosis, 3_000),
        (many, 4_000),
        (parity, 8_000),
        (ripple, 6_000),
        (product, 4_000),
        (contra, 6_000),
        (helps, 3_000),
        (alike, 8_000),
    )
}


def make(world: str, n: int, seed: int) -> Known:
    """A log of so many patients, one decision each."""
    rng = np.random.default_rng([seed, n])
    features = rng.uniform(-1, 1, (n, 6))
    chance, loss = WORLDS[world][0](Drawn(features, np.sign(features), rng.random(n) < 0.3))
    last = chance.shape[1] - 1
    action = np.minimum((rng.random(n)[:, None] > chance.cumsum(1)).sum(1), last)
    stays = Trajectories(
        sequence=features.astype(np.float32),
        offsets=np.arange(n + 1),
        schema=Schema(sequence=tuple("abcdef"), n_actions=last + 1, lag=0),
        action=action,
        loss=(rng.random(n) < loss[np.arange(n), action]).astype(np.float64),
    )
    return Known(stays, chance, loss)


def true_risk(learner: etips.EtIPS, fresh: Known) -> float:
    """Of the likeliest action; clinicians decide where the policy abstains."""
    taken = learner.predict_proba(fresh.stays).argmax(1)
    usual = (fresh.chance * fresh.loss).sum(1)
    abstains = learner.fit_.policy.abstains(fresh.stays)
    return float(np.where(abstains, usual, fresh.loss[np.arange(len(taken)), taken]).mean())


def show(world: str, seed: int) -> None:
    """Print what learning comes to in one log."""
    log, fresh = make(world, WORLDS[world][1], seed), make(world, N_FRESH, seed + 1_000)
    low, usual = (
        true_risk(etips.EtIPS(seed=seed, support=floor).fit(log.stays), fresh)
        for floor in (LOW, FLOOR)
    )
    clinicians = float((fresh.chance * fresh.loss).sum(1).mean())
    gap = low - usual
    print(f"{world:10} {seed:4}  {low:.4f}  {usual:.4f}  {gap:+.4f}  {clinicians:.4f}", flush=True)


def main() -> None:
    """Read the options and go through worlds and seeds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3])
    given = parser.parse_args()
    print("world      seed  low     usual   gap      clinicians")
    for world in given.worlds:
        for seed in given.seeds:
            show(world, seed)


if __name__ == "__main__":
    main()
