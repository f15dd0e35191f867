"""Do paired differences of `etips.compare` hold the truth where propensities are fitted?

    python -m benchmarks.compared            # 100 logs of each world, about 20 minutes of one core
    python -m benchmarks.compared --logs 20

Clinicians treat by what is recorded, along a curve that no straight line follows; three actions.
Compared are a rule by severity, one treatment for all, and what was done. In the second world each
stay has three decisions that share a frailty, in the third no treatment does anything.
"""

import argparse
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import etips

Array = NDArray[np.float64]
NAMES = ("north", "south", "none")
PAIRS = (("rule", "one"), ("rule", "clinicians"), ("one", "clinicians"))
TRUTH = 400_000  # patients that tell the truth


@dataclass(frozen=True)
class World:
    """Patients, what is done to them, and what comes of it.

    Args:
        name: In the table.
        per_stay: Decisions of a stay.
        effect: How much treatments do, on the scale of the logit.
    """

    name: str
    per_stay: int = 1
    effect: float = 1.0

    def draw(self, n: int, seed: int) -> tuple[Array, Array, Array, Array]:
        """Features, frailty by decision, chances of actions, chances of harm by action."""
        rng = np.random.default_rng(seed)
        steps = n * self.per_stay
        severity, age = rng.normal(size=steps), rng.normal(size=steps)
        unit = rng.integers(0, 2, steps).astype(float)
        frail = np.repeat(rng.normal(size=n), self.per_stay) * (self.per_stay > 1)
        wish = np.stack(
            [0.9 * severity + 0.4 * unit, 0.7 * severity**2 - 0.5 * age, 0.3 + 0 * age], axis=1
        )
        chance = np.exp(wish) / np.exp(wish).sum(axis=1, keepdims=True)
        base = -1.0 + 0.8 * severity + 0.4 * age + 0.7 * frail
        gain = np.stack([-0.6 * severity, 0.5 * severity - 0.2, 0 * age], axis=1)
        harm = 1 / (1 + np.exp(-(base[:, None] + self.effect * gain)))
        return np.stack([severity, age, unit], axis=1), frail, chance, harm

    def truths(self) -> dict[str, float]:
        """Risk of each of the compared."""
        features, _, chance, harm = self.draw(TRUTH // self.per_stay, seed=987_654)
        rule = np.where(features[:, 0] > 0, harm[:, 0], harm[:, 1]).mean()
        done = (chance * harm).sum(axis=1).mean()
        return {"rule": float(rule), "one": float(harm[:, 0].mean()), "clinicians": float(done)}

    def log(self, n: int, seed: int) -> etips.Trajectories:
        """A log of `n` stays."""
        features, _, chance, harm = self.draw(n, seed)
        rng = np.random.default_rng([seed, 1])
        action = (rng.random(len(chance))[:, None] > chance.cumsum(axis=1)).sum(axis=1)
        loss = (rng.random(action.size) < harm[np.arange(action.size), action]).astype(float)
        shape = (n, self.per_stay)
        return etips.from_arrays(
            features.reshape(*shape, -1),
            action=action.reshape(shape),
            loss=loss.reshape(shape),
            lengths=[self.per_stay] * n,
            lag=0,
            n_actions=3,
        )


RUNS = (
    (World("one row"), 600),
    (World("one row"), 2000),
    (World("three decisions", per_stay=3), 600),
    (World("no effect", effect=0.0), 600),
)


def measure(world: World, n: int, logs: int) -> list[str]:
    """Rows of a table: coverage, error over spread, how often a difference is shown."""
    truths = world.truths()
    policies = {
        "rule": etips.Rule(lambda s: np.where(s["x0"] > 0, 0, 1), vectorised=True),
        "one": etips.Rule(lambda s: np.zeros(len(s["x0"]), int), vectorised=True),
    }
    hits, errors, widths, shown, usable = ({pair: [] for pair in PAIRS} for _ in range(5))
    for seed in range(logs):
        found = etips.compare(policies, world.log(n, seed))
        for own in found.pairs:
            pair, figure = (own.first, own.second), own.difference
            assert figure.value is not None
            assert figure.low is not None
            assert figure.high is not None
            sign = 1 if pair in PAIRS else -1
            pair = pair if sign > 0 else (own.second, own.first)
            error = sign * figure.value - (truths[pair[0]] - truths[pair[1]])
            true = sign * (truths[pair[0]] - truths[pair[1]])
            hits[pair].append(figure.low <= true <= figure.high)
            errors[pair].append(error)
            widths[pair].append(figure.high - figure.low)
            shown[pair].append(bool(own.differs))
            usable[pair].append(own.verdict != "unusable")
    rows = []
    for pair in PAIRS:
        error = np.array(errors[pair])
        cells = [
            world.name,
            f"{n:,}",
            f"{pair[0]} - {pair[1]}",
            f"{truths[pair[0]] - truths[pair[1]]:+.3f}",
            f"{100 * np.mean(hits[pair]):.0f} %",
            f"{error.mean():+.4f} ± {error.std(ddof=1) / len(error) ** 0.5:.4f}",
            f"{np.mean(widths[pair]):.3f}",
            f"{100 * np.mean(shown[pair]):.0f} %",
            f"{100 * np.mean(usable[pair]):.0f} %",
        ]
        rows.append("| " + " | ".join(cells) + " |")
    return rows


def main() -> None:
    """Print the table of the README."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=100)
    logs = parser.parse_args().logs
    heads = ("world", "stays", "pair", "true", "covered", "mean error", "width", "shown", "usable")
    print("| " + " | ".join(heads) + " |\n|" + " --- |" * len(heads))
    for world, n in RUNS:
        print("\n".join(measure(world, n, logs)), flush=True)


if __name__ == "__main__":
    main()
