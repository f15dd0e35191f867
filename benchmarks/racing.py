"""What a race between translations saves and what it costs, in worlds whose truth is known.

    python -m benchmarks.racing                                # ICU-Sepsis, ten seeds, both lags
    python -m benchmarks.racing --tasks digits --n 27000 --seeds 5
    python -m benchmarks.racing --null 16                      # worlds without any effect

Of each seed the propensities are fitted once; then policies are learned twice from them, all
translations to the end, and in a race. Printed: the true risk of the policy's likeliest action on
fresh stays, whether the race dropped the translation that the whole grid chooses, and networks
times epochs and processor seconds of the policies. Of worlds without an effect: how many standard
errors the corrected risk lies from the truth, so that an optimism of racing would show.
"""

import argparse
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import etips
from etips.data.trajectories import Trajectories
from etips.learn.fitting.driver import drive
from etips.learn.fitting.stages import Training
from etips.learn.learners.etips import TIPS, EtIPS
from etips.learn.learners.fit import Fit
from etips.learn.learners.foundation import Foundation
from etips.models.encoders.gru import GRU
from etips.worlds import icu_sepsis
from etips.worlds.clinic import Clinic

N_FRESH = 5000
TASKS = ("icu", "icu-lag1", "digits")


@dataclass(frozen=True)
class Learned:
    """What learning came to.

    Args:
        risk: True risk of the policy's likeliest action; where it abstains clinicians decide.
        chosen: Translation of the chosen candidate; NaN for a constant or the clinicians.
        dropped: Translations that dropped out.
        work: Networks times epochs, by the longest of each set.
        seconds: Of the processor.
    """

    risk: float
    chosen: float
    dropped: frozenset[float]
    work: int
    seconds: float


def make_data(task: str, n: int, seed: int) -> tuple[Trajectories, Trajectories]:
    """Stays to learn from, and fresh ones with their truth."""
    if task == "digits":
        from etips.worlds import digits  # torch, for the logging policy

        logged = digits.rows(n=n + max(n // 5, 200), seed=seed)
        return etips.split(logged, test=(logged.n_stays - n) / logged.n_stays, seed=seed)
    lag = int(task == "icu-lag1")
    fresh = icu_sepsis.simulate(N_FRESH, seed=10_000 + seed, lag=lag)
    return icu_sepsis.simulate(n, seed=seed, lag=lag), fresh


def true_risk(fit: Fit, fresh: Trajectories) -> float:
    """Of the likeliest action everywhere; clinicians decide where the policy abstains."""
    said = fit.policy.predict_proba(fresh)
    greedy = np.eye(fresh.n_actions)[said.argmax(axis=1)]
    abstains = fit.policy.abstains(fresh)[:, None]
    return float(fresh.true_risk(np.where(abstains, fresh.true_logging(), greedy)))


def learn(learner: EtIPS, base: Foundation, fresh: Trajectories, *, racing: bool) -> Learned:
    """Policies by the race or by the whole grid."""
    began = time.process_time()
    fit = drive(learner.learn_policy(base, racing=racing))
    seconds = time.process_time() - began
    rules = [c for c in fit.path if c.is_rule and c.acts == "draws"]
    kept = next(c for c in fit.path if c.chosen)
    return Learned(
        risk=true_risk(fit, fresh),
        chosen=kept.translation if kept.is_rule else math.nan,
        dropped=frozenset(c.translation for c in rules if not c.in_race),
        work=sum(c.epochs or 0 for c in rules) * base.prepared.folds.n_networks,
        seconds=seconds,
    )


def compare(task: str, n: int, seeds: Sequence[int], device: str) -> None:
    """The whole grid and the race, seed by seed."""
    pairs = []
    print(f"{task}, {n} stays: seed, true risk and choice of the grid, of the race, gap, work")
    for seed in seeds:
        stays, fresh = make_data(task, n, seed)
        learner = EtIPS(seed=seed, training=Training(device=device))
        base = drive(learner._lay_foundation(stays, support=None))
        grid, race = (learn(learner, base, fresh, racing=own) for own in (False, True))
        pairs.append((grid, race))
        print(
            f"{seed:4d}  {grid.risk:.5f} {grid.chosen:4.1f}  {race.risk:.5f} {race.chosen:4.1f}  "
            f"{race.risk - grid.risk:+.5f}  {grid.work} {race.work}  "
            f"{grid.seconds:.1f} {race.seconds:.1f} s",
            flush=True,
        )
    gaps = np.array([race.risk - grid.risk for grid, race in pairs])
    lost = [grid.chosen in race.dropped for grid, race in pairs]
    work = np.array([[own.work for own in pair] for pair in pairs]).sum(0)
    seconds = np.array([[own.seconds for own in pair] for pair in pairs]).sum(0)
    spread = np.std([[own.risk for own in pair] for pair in pairs], axis=0)
    error = gaps.std(ddof=1) / math.sqrt(len(gaps)) if len(gaps) > 1 else math.nan
    print(
        f"mean gap {gaps.mean():+.5f} (standard error {error:.5f}); the grid's choice dropped in "
        f"{sum(lost)} of {len(lost)}; spread over seeds {spread[0]:.5f} and {spread[1]:.5f}; work "
        f"{work[0] / work[1]:.1f} times less, processor {seconds[0] / seconds[1]:.1f} times"
    )


def without_effect(n_worlds: int) -> None:
    """How far corrected and plain risks of the choice lie from the truth, in standard errors."""
    found: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for seed in range(n_worlds):
        world = Clinic(effect=0.0, n_contexts=30)
        stays = world.log(300, seed=seed)
        learner = TIPS(encoder=GRU(16), training=Training(device="cpu"), seed=seed)
        known = learner.propensity
        base = drive(learner._lay_foundation(stays, support=None, model=known))
        for racing, told in found.items():
            path = drive(learner.learn_policy(base, racing=racing)).path
            kept = next(c for c in path if c.chosen)
            truth = stays.true_risk(stays.true_logging())
            assert kept.corrected is not None
            assert kept.corrected_error is not None
            z = (
                (kept.corrected - truth) / kept.corrected_error,
                (kept.risk - truth) / kept.std_error,
            )
            told.append(z)
    for racing, told in found.items():
        corrected, plain = np.array(told).T
        print(
            f"{'race' if racing else 'grid'}: corrected {corrected.mean():+.2f}, after selection "
            f"{plain.mean():+.2f} standard errors from the truth ({1 / math.sqrt(len(told)):.2f})"
        )


def main() -> None:
    """Read the options and do what they ask for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=["icu", "icu-lag1"])
    parser.add_argument("--n", type=int, default=6000, help="stays to learn from")
    parser.add_argument("--seeds", type=int, default=10, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--null", type=int, default=0, help="worlds without any effect, instead")
    given = parser.parse_args()
    if given.null:
        without_effect(given.null)
        return
    for task in given.tasks:
        seeds = range(given.first, given.first + given.seeds)
        compare(task, given.n, seeds, given.device)


if __name__ == "__main__":
    main()
