"""The result of a bench as data: who did what in which world, and how they stand to each other."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from etips.results.exhibits import Record
from etips.results.serialization import STRICT, to_json

Group = Literal["ours", "told", "simple", "peer"]
"""Of this package; the same told the true propensities; policies that learn nothing of patients;
other packages. Those told are shown beside the others and not ranked."""

Place = Literal["first", "level", "behind", "told", "failed"]
"""First, within one standard error of first, behind it, not ranked, or without a policy."""


@dataclass(frozen=True)
class BenchEntry:
    """One method in one world at one seed; None where a figure does not exist.

    Args:
        world: Which.
        method: Which.
        seed: Of world and learner.
        failed: Why there is no policy, in words.
        risk: True risk of the policy as it is followed; of the trial, by its known odds.
        std_error: Of that risk, from the stays that judge.
        estimate: What `etips evaluate` would say without knowing the truth.
        low: Lower limit of the estimate.
        high: Upper limit of the estimate.
        verdict: Of the estimate.
        stay_risk: Mortality where the policy treats from admission to the end.
        abstained: Share of decisions left to the clinicians.
        rare: Share of decisions with an action that clinicians take in under 5 % of such patients.
        seconds: Of learning.
        processor: The same of all cores.
        memory: Most megabytes while learning.
    """

    world: str
    method: str
    seed: int
    failed: str | None = None
    risk: float | None = None
    std_error: float | None = None
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: str | None = None
    stay_risk: float | None = None
    abstained: float | None = None
    rare: float | None = None
    seconds: float | None = None
    processor: float | None = None
    memory: float | None = None


@dataclass(frozen=True)
class BenchRow:
    """One method in one world, over all seeds.

    Args:
        method: Which.
        group: Whose.
        place: How it stands.
        n_seeds: Seeds that have a policy.
        risk: Mean true risk.
        behind: Mean paired difference to the first.
        behind_error: Standard error of that difference.
        estimate: Mean estimate.
        verdicts: How often each verdict was given.
        stay_risk: Mean mortality over whole stays.
        rare: Mean share of decisions with a rare action.
        seconds: Mean.
        processor: Mean.
        memory: Largest.
        failed: Why seeds have no policy, in words.
    """

    method: str
    group: Group
    place: Place
    n_seeds: int
    risk: float | None = None
    behind: float | None = None
    behind_error: float | None = None
    estimate: float | None = None
    verdicts: Mapping[str, int] = field(default_factory=dict)
    stay_risk: float | None = None
    rare: float | None = None
    seconds: float | None = None
    processor: float | None = None
    memory: float | None = None
    failed: str | None = None


@dataclass(frozen=True)
class BenchStanding:
    """One world: its size, what is possible there, and the methods, the best first.

    Args:
        world: Name.
        sentence: What it is.
        measure: What is told of a policy.
        n_learn: Stays learned from.
        n_test: Stays that judge.
        clinicians: True risk of what was done.
        best: True risk of the best policy that sees the world's own state; None where unknown.
        clinicians_stay: Mortality of the clinicians' own stays.
        rows: The methods.
        first: Who is first.
        best_of_ours: The best of this package.
        ours_level: Whether that is first or within one standard error of first.
        why: Where it is not, what is known of the reason.
    """

    world: str
    sentence: str
    measure: Literal["accuracy", "risk", "trial"]
    n_learn: int
    n_test: int
    clinicians: float | None
    best: float | None
    clinicians_stay: float | None
    rows: tuple[BenchRow, ...]
    first: str | None
    best_of_ours: str | None
    ours_level: bool | None
    why: tuple[str, ...] = ()

    def row(self, method: str | None) -> BenchRow | None:
        """Of a method."""
        return next((own for own in self.rows if own.method == method), None)


@dataclass(frozen=True)
class Bench:
    """A bench.

    Args:
        lead: What a reader must know before the figures: the size of the run.
        quick: Whether its figures say little.
        seeds: Seeds in each world.
        labels: What a reader knows each method by.
        sentences: What each method does.
        standings: World by world.
        entries: Every method, world and seed.
        machine: Where it ran, and with which versions.
        absent: Peers that were not installed.
        seconds: Processor time of all learning.
    """

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    lead: str
    quick: bool
    seeds: int
    labels: Mapping[str, str]
    sentences: Mapping[str, str]
    standings: tuple[BenchStanding, ...]
    entries: tuple[BenchEntry, ...]
    machine: Record
    absent: tuple[str, ...] = ()
    seconds: float = 0.0

    def to_json(self) -> dict[str, object]:
        """As `results.json` holds it."""
        return to_json(self)
