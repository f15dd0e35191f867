"""How objectives bear bad propensities, in worlds whose truth is known.

    python -m benchmarks.noise_sweep --out sweep                 # what is there is not done again
    python -m benchmarks.noise_sweep --out sweep --worlds icu clinic --levels known "noise 1"

Levels: known propensities; the same times lognormal noise of growing spread; fitted as learners do
it; fitted on 500, 2,000 and 10,000 other stays; fitted on 10,000 without the feature that tells
most of what clinicians do. Of each world and seed the clinicians are fitted once; all objectives
learn from the same start, and each chooses among its candidates by the held-out rule. Written: one
file a world, level and seed. A stopped sweep goes on where it was.
"""

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from etips.data.coded import Coded
from etips.data.decisions import Floats
from etips.data.trajectories import Trajectories
from etips.learn.fitting.stages import Training
from etips.learn.fitting.trainer import Trainer
from etips.learn.learners.baselines import PredictiveModel
from etips.learn.learners.learner import Fit
from etips.learn.learners.policy_search import PolicyLearner
from etips.learn.learners.weighted import (
    DoublyRobust,
    EtIPS,
    ExponentialSmoothing,
    LogSmoothing,
    LogSumExp,
    Pessimistic,
    WeightedLikelihood,
)
from etips.learn.nuisance.fitted_nuisances import SUPPORT, FittedNuisances, logged_propensity
from etips.learn.nuisance.outcome import FittedOutcome
from etips.learn.nuisance.propensity import KnownPropensity, PropensityModel
from etips.worlds import icu_sepsis
from etips.worlds.clinic import Clinic

SPREADS = (0.5, 1.0, 2.0)
SIZES = (500, 2000, 10_000)
LEVELS = (
    "known",
    *(f"noise {spread:g}" for spread in SPREADS),
    "fitted",
    *(f"fitted on {size}" for size in reversed(SIZES)),
    "feature missing",
)
N_FRESH = 4000
N_ASKED = 500  # stays that tell which feature matters most
TRANSLATIONS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class Stays:
    """A world.

    Args:
        logged: To learn from.
        others: To fit propensities on.
        fresh: To find the true risk.
    """

    logged: Trajectories
    others: Trajectories
    fresh: Trajectories


def _icu(lag: int) -> Callable[[int, int], Stays]:
    def make(n: int, seed: int) -> Stays:
        sizes = ((n, seed), (max(SIZES), 5000 + seed), (N_FRESH, 10_000 + seed))
        return Stays(*(icu_sepsis.simulate(size, seed=own, lag=lag) for size, own in sizes))

    return make


def _clinic(n: int, seed: int) -> Stays:
    world = Clinic()
    sizes = ((n, seed), (max(SIZES), 5000 + seed), (N_FRESH, 10_000 + seed))
    return Stays(*(world.log(size, seed=own) for size, own in sizes))


def _digits(n: int, seed: int) -> Stays:
    from etips.worlds import digits  # torch, for the logging policy

    logged = digits.rows(n=n + max(SIZES) + N_FRESH, seed=seed)
    place = np.arange(logged.n_stays)
    ends = (place < n, (place >= n) & (place < n + max(SIZES)), place >= n + max(SIZES))
    return Stays(*(logged.subset(part) for part in ends))


WORLDS: Mapping[str, Callable[[int, int], Stays]] = {
    "icu": _icu(0),
    "icu-lag1": _icu(1),
    "digits": _digits,
    "clinic": _clinic,
}


def learners(*, few: bool = False) -> dict[str, PolicyLearner]:
    """One learner an objective; `few` asks for fewer candidates of each, for small machines."""
    half = slice(0, 1 if few else 2)
    return {
        "translated": EtIPS(translations=(0.3, 0.5, 0.7) if few else TRANSLATIONS),
        "beta-IPS": EtIPS(),
        "doubly robust": DoublyRobust(),
        "log-sum-exp": LogSumExp(strengths=(0.1, 1.0)[half]),
        "log smoothing": LogSmoothing(strengths=(0.1, 1.0)[half]),
        "exp. smoothing": ExponentialSmoothing(strengths=(0.5, 0.8)[half]),
        "weighted likelihood": WeightedLikelihood(),
        "pessimistic": Pessimistic(strengths=(1.0, 5.0)[half]),
    }


@dataclass(eq=False)
class Given:
    """Propensities of a policy that was fitted elsewhere.

    Args:
        imitation: The policy.
        missing: Feature that it was fitted without.
    """

    imitation: PredictiveModel
    missing: int | None = None

    def fit(self, _: Trajectories) -> "Given":
        """It is fitted."""
        return self

    def predict_proba(self, data: Trajectories) -> Floats:
        """What it says."""
        return self.imitation.predict_proba(without(data, self.missing))


def without(data: Trajectories, feature: int | None) -> Trajectories:
    """The same with one feature set to zero everywhere."""
    if feature is None:
        return data
    sequence = data.sequence
    if isinstance(sequence, Coded):
        table = np.array(sequence.table)
        table[:, feature] = 0
        return replace(data, sequence=Coded(table, sequence.code, sequence.unit))
    plain = np.array(sequence)
    plain[:, feature] = 0
    return replace(data, sequence=plain)


def telling_feature(imitation: PredictiveModel, stays: Trajectories) -> int:
    """The feature without which the logged actions are least likely."""
    some = stays.subset(np.arange(stays.n_stays) < N_ASKED)
    rows = np.arange(some.n_decisions)

    def likelihood(feature: int) -> float:
        said = imitation.predict_proba(without(some, feature))[rows, some.logged_action]
        return float(np.log(np.maximum(said, 1e-9)).mean())

    return min(range(len(stays.schema.sequence)), key=likelihood)


def propensities_at(
    level: str, stays: Stays, training: Training, seed: int
) -> tuple[Trajectories, PropensityModel | None]:
    """The log as a level has it, and where its propensities come from."""
    logged, others = stays.logged, stays.others
    if level == "fitted":
        return logged, None
    if level == "known" or level.startswith("noise"):
        spread = 0.0 if level == "known" else float(level.split()[1])
        noise = np.exp(spread * np.random.default_rng([seed, 7]).normal(size=logged.n_steps))
        rows = logged.decision_rows
        chance = np.full(logged.n_steps, np.nan)
        true = logged.true_logging()[np.arange(rows.size), logged.logged_action]
        chance[rows] = np.clip(true * noise[rows], 1e-6, 1.0)
        return replace(logged, propensity=chance), KnownPropensity()
    size = max(SIZES) if level == "feature missing" else int(level.split()[-1])
    some = others.subset(np.arange(others.n_stays) < size)
    imitation = PredictiveModel(training=training, seed=seed).fit(some)
    if level != "feature missing":
        return logged, Given(imitation)
    lost = telling_feature(imitation, some)
    blind = PredictiveModel(training=training, seed=seed).fit(without(some, lost))
    return logged, Given(blind, lost)


def true_risk(fit: Fit, fresh: Trajectories) -> float:
    """Of the likeliest action; clinicians decide where the policy abstains."""
    said = fit.policy.predict_proba(fresh)
    greedy = np.eye(fresh.n_actions)[said.argmax(axis=1)]
    abstains = fit.policy.abstains(fresh)[:, None]
    return float(fresh.true_risk(np.where(abstains, fresh.true_logging(), greedy)))


@dataclass(frozen=True, eq=False)
class Start:
    """What all levels of a world and seed share."""

    stays: Stays
    learner: EtIPS
    fitted: FittedNuisances
    outcome: FittedOutcome

    @classmethod
    def of(cls, stays: Stays, training: Training, seed: int) -> "Start":
        """Clinicians and losses, fitted."""
        learner = EtIPS(training=training, seed=seed)
        base = learner._fit_nuisances(stays.logged, Trainer(), support=0.0)
        outcome = learner._fit_outcome(base, Trainer())
        return cls(stays, learner, base, outcome)

    def at(self, level: str) -> FittedNuisances:
        """What was fitted, with the propensities of a level."""
        training, seed = self.learner.training, self.learner.seed
        data, model = propensities_at(level, self.stays, training, seed)
        prepared = replace(self.fitted.prepared, data=data)
        plain = logged_propensity(prepared, self.fitted.propensity, model)
        clip = self.learner.clip
        return replace(
            self.fitted,
            prepared=prepared,
            chance=np.maximum(plain, clip),
            clipped_share=float((plain < clip).mean()),
            support=SUPPORT,
            allowed=np.exp(self.fitted.propensity.log_probabilities) >= SUPPORT,
        )


def sweep_level(start: Start, level: str, *, few: bool) -> dict[str, object]:
    """True risk of what every objective chooses."""
    base, fresh, risks = start.at(level), start.stays.fresh, {}
    for name, learner in learners(few=few).items():
        usual = replace(learner, training=start.learner.training, seed=start.learner.seed)
        outcome = start.outcome if name == "doubly robust" else None
        risks[name] = true_risk(usual.learn_on(base, Trainer(), outcome), fresh)
    return {
        "level": level,
        "risk": risks,
        "clinicians": float(fresh.true_risk(fresh.true_logging())),
        "floor": base.support,
    }


def main() -> None:
    """Read the options and do what they ask for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of figures")
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS))
    parser.add_argument("--levels", nargs="+", choices=LEVELS, default=list(LEVELS))
    parser.add_argument("--n", type=int, default=20_000, help="stays to learn from")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--few", action="store_true", help="fewer candidates of each objective")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    training = Training(device=given.device, n_folds=given.folds)
    for world in given.worlds:
        for seed in given.seeds:
            sweep_world(world, seed, training, given)


def sweep_world(world: str, seed: int, training: Training, given: argparse.Namespace) -> None:
    """The levels of one world and seed that are not there yet."""
    levels = {level: f"{world}-{level.replace(' ', '_')}-{seed}.json" for level in given.levels}
    left = [level for level, name in levels.items() if not (given.out / name).exists()]
    if not left:
        return
    start = Start.of(WORLDS[world](given.n, seed), training, seed)
    for level in left:
        risks = sweep_level(start, level, few=given.few)
        sizes = {"n": given.n, "folds": given.folds, "few": given.few}
        found = {"world": world, "seed": seed, **sizes, **risks}
        part = given.out / f"{levels[level]}.part"
        part.write_text(json.dumps(found, indent=1))
        part.replace(given.out / levels[level])
        print(world, seed, level, {k: round(v, 4) for k, v in risks["risk"].items()}, flush=True)


if __name__ == "__main__":
    main()
