"""A policy learned in one hospital and judged in another: how often the estimate holds the truth.

    python -m benchmarks.external [--pairs 20] [--stays 300]
    python -m benchmarks.external --place lavish --lag 0 --pairs 16 --stays 2000

Pairs of hospitals of `etips.worlds.two_hospitals`: the second has older and sicker patients, gives
more fluid and less vasopressor, to fewer and more by pressure; or, as `lavish`, it gives two to
three times the doses. With lag 1 doses are features of their step, as in a cohort, and no verdict
is ever "reliable", since a decision does not see its own step. With lag 0 it does.

Each pair is learned from in the first (EtIPS and the direct method, short trainings) and judged in
the second, three ways: with the second hospital's doses in the classes of the first, as `etips
evaluate RUN SECOND` does; in its own classes, as if action 3 meant the same dose everywhere; and by
the estimate on stays of the first that were kept apart, as if nothing were known of the second.
Truth: exact, in the first one's classes, over the patients of the second.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

import etips
from etips.data.alignment import align
from etips.data.trajectories import Trajectories
from etips.learn import Settings, Training
from etips.policies.policy import FittedPolicy
from etips.results.followed_policies import follow, true_risk
from etips.results.records import MethodResult
from etips.worlds.two_hospitals import LAVISH, SECOND, Place, simulate_place

_SHORT = Settings(epochs=5, batch_size=64, learning_rate=0.01)
_TRAINING = Training(n_folds=2, device="cpu", propensity=_SHORT, outcome=_SHORT, policy=_SHORT)
PLACES = {"second": SECOND, "lavish": LAVISH}
WAYS = ("doses of the first", "doses of its own", "the first's own estimate")


@dataclass(frozen=True)
class Judged:
    """One policy judged one way."""

    policy: str
    way: str
    risk: float
    low: float
    high: float
    verdict: str
    truth: float

    @property
    def holds(self) -> bool:
        """Whether the interval holds the truth."""
        return self.low <= self.truth <= self.high


def learn(first: Trajectories, seed: int) -> dict[str, FittedPolicy]:
    """Both policies of the first hospital."""
    learners = {
        "etips": etips.EtIPS(training=_TRAINING, translations=(0.3, 0.7), seed=seed),
        "direct": etips.DirectMethod(training=_TRAINING, seed=seed),
    }
    policies = {name: learner.fit(first).policy_ for name, learner in learners.items()}
    return {name: own for name, own in policies.items() if isinstance(own, FittedPolicy)}


def judge_pair(pair: int, n_stays: int, place: Place, lag: int) -> Iterator[Judged]:
    """Every policy and way of one pair of hospitals."""
    whole = simulate_place(2 * n_stays, seed=3 * pair, lag=lag)
    recipe = whole.schema.recipe
    assert recipe is not None
    first, kept = whole.subset(slice(0, n_stays)), whole.subset(slice(n_stays, None))
    seed = 3 * pair + 1
    second = simulate_place(n_stays, seed=seed, place=place, lag=lag)
    known = simulate_place(n_stays, seed=seed, place=place, doses=recipe.doses, lag=lag)
    policies = learn(first, pair)
    mistaken = replace(second, schema=replace(second.schema, recipe=recipe))
    # Without doses among the features their classes are those of reading a table like the first.
    aligned = align(second, whole.schema) if lag else replace(known, truth=None)
    data = (aligned, replace(mistaken, truth=None), replace(kept, truth=None))
    truth = {name: true_risk(follow(own, known).deployed, known) for name, own in policies.items()}
    for way, stays in zip(WAYS, data, strict=True):
        for method in etips.evaluate(policies, stays, estimators=("sndr",)).methods:
            yield _judged(method, way, truth[method.name] or np.nan)


def _judged(method: MethodResult, way: str, truth: float) -> Judged:
    head = method.estimates[0]
    risk, low, high = (np.nan if v is None else v for v in (head.risk, head.low, head.high))
    return Judged(method.name, way, risk, low, high, str(method.verdict), truth)


def main() -> None:
    """Print coverage, error and width by policy and way."""
    options = argparse.ArgumentParser()
    options.add_argument("--pairs", type=int, default=20)
    options.add_argument("--stays", type=int, default=300)
    options.add_argument("--place", choices=PLACES, default="second")
    options.add_argument("--lag", type=int, choices=(0, 1), default=1)
    asked, started = options.parse_args(), time.process_time()
    judged: list[Judged] = []
    for pair in range(asked.pairs):
        judged += judge_pair(pair, asked.stays, PLACES[asked.place], asked.lag)
        print(f"pair {pair + 1}, {time.process_time() - started:.0f} s", flush=True)
    print(
        "| policy | judged by | holds the truth | of those called reliable | mean error | width |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for policy in ("etips", "direct"):
        for way in WAYS:
            own = [one for one in judged if (one.policy, one.way) == (policy, way)]
            sure = [one for one in own if one.verdict == "reliable"]
            error = np.mean([one.risk - one.truth for one in own])
            width = np.mean([one.high - one.low for one in own])
            holds = f"{sum(one.holds for one in own)} of {len(own)}"
            reliable = f"{sum(one.holds for one in sure)} of {len(sure)}"
            print(f"| {policy} | {way} | {holds} | {reliable} | {error:+.4f} | {width:.3f} |")


if __name__ == "__main__":
    main()
