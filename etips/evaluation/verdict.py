"""Reliable, doubtful or unusable, with the reasons in plain words."""

from dataclasses import dataclass
from typing import Literal

from etips.disclosure import rounds_to_few
from etips.evaluation.diagnostics import Diagnostics
from etips.evaluation.inference.estimate import Estimate

Label = Literal["reliable", "doubtful", "unusable"]

CAVEAT = (
    "No check on the log can see what the clinicians knew and the log does not; "
    "see the sensitivity bounds."
)


@dataclass(frozen=True)
class Rule:
    """One threshold of the verdict.

    Args:
        measure: Which number of the diagnosis, see `measures`.
        doubtful: From here on the verdict is doubtful.
        unusable: From here on it is unusable.
        bad: Whether "low" or "high" numbers are bad.
        reason: What a reader is told; {value} is filled in.
        because: Where the thresholds come from.
        few: What they are told of a value under 11, if it is near a count of people.
    """

    measure: str
    doubtful: float
    unusable: float
    bad: Literal["low", "high"]
    reason: str
    because: str
    few: str = ""

    def label(self, value: float) -> Label:
        """The label that `value` alone would give; NaN is unusable."""
        sign = 1 if self.bad == "high" else -1
        if not sign * value < sign * self.unusable:
            return "unusable"
        return "doubtful" if not sign * value < sign * self.doubtful else "reliable"

    def tell(self, value: float) -> str:
        """The reason; with equal weights an effective number is a count, so few are not told."""
        if self.few and rounds_to_few(value):
            return self.few
        return self.reason.format(value=value)


RULES = (
    Rule(
        "effective_clusters", 30, 10, "low",
        "The evidence is worth only {value:.0f} stays.",
        "docs/method/coverage.md, overlap 0.1: with 20 to 30 of them coverage is 87 to 94 %.",
        few="The evidence is worth fewer than 11 stays.",
    ),
    Rule(
        "effective_events", 15, 3, "low",
        "The evidence is worth only about {value:.0f} stays with the rarer outcome.",
        "Chosen on wards 0 to 299: coverage 89 % with 3 of them, 91 with 12, 95 with 25.",
        few="The evidence is worth fewer than 11 stays with the rarer outcome.",
    ),
    Rule(
        "effective_share", 0.1, 0.01, "low",
        "Only {value:.1%} of the decisions speak about this policy.",
        "ICU-Sepsis at lag 1: at 7 to 9 % the estimate was 0.42 where the truth was 0.50.",
    ),
    Rule(
        "expected_share", 0.1, 0.01, "low",
        "Over all actions only {value:.1%} of the decisions can speak about this policy.",
        "As for the effective share, which a lucky sample can hide.",
    ),
    Rule(
        "heaviest_cluster", 0.1, 0.5, "high",
        "One stay carries {value:.0%} of the weight.",
        "A tenth in one stay: leaving it out moves the risk by up to 0.1.",
    ),
    Rule(
        "matching_error", 0.1, 0.5, "high",
        "The matching factor is off from 1 by {value:.0%}, beyond chance: the propensities are "
        "wrong, or the policy does what the log does not hold.",
        "Its expectation is 1 whatever the policy; SNIPS hides the deficit, IPS and DR do not.",
    ),
    Rule(
        "propensity_error", 0.1, 0.5, "high",
        "Weights for drawing actions evenly are off from 1 by {value:.0%}, beyond chance: the "
        "propensities are wrong, or some actions are too rare for a log of this size.",
        "The same check for a policy that uses every action.",
    ),
    Rule(
        "calibration_gap", 0.05, 0.2, "high",
        "Stated propensities miss what was done by {value:.0%} in part of their range.",
        "0.05 on a propensity of 0.2 changes a weight by a quarter.",
    ),
    Rule(
        "unsupported", 0.05, 0.3, "high",
        "{value:.0%} of the policy's choices were made less than once in a hundred times.",
        "What is not in the log cannot be estimated from it.",
    ),
    Rule(
        "clipped_share", 0.05, 0.3, "high",
        "{value:.0%} of the propensities were raised to the floor.",
        "Each raised propensity biases the risk towards the decisions that were not raised.",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """A label with its reasons; `caveat` holds for every label."""

    label: Label
    reasons: tuple[str, ...]
    caveat: str = CAVEAT


def judge(diagnostics: Diagnostics, *, rules: tuple[Rule, ...] = RULES) -> Verdict:
    """The worst label of any rule, with the reason of each rule that is not content."""
    numbers = measures(diagnostics)
    label: Label = "reliable"
    reasons = []
    for rule in rules:
        value = numbers[rule.measure]
        if value is None:
            continue
        own = rule.label(value)
        if own == "reliable":
            continue
        reasons.append(rule.tell(value))
        label = "unusable" if "unusable" in (own, label) else "doubtful"
    return Verdict(label, tuple(reasons))


def measures(diagnostics: Diagnostics) -> dict[str, float | None]:
    """The numbers that `Rule.measure` may name; None where the log lacks what it takes."""
    return {
        "effective_clusters": diagnostics.effective_clusters,
        "effective_events": diagnostics.effective_events,
        "effective_share": diagnostics.effective_share,
        "expected_share": diagnostics.expected_share,
        "heaviest_cluster": diagnostics.heaviest_cluster,
        "matching_error": _distance_from_one(diagnostics.matching_factor),
        "propensity_error": _distance_from_one(diagnostics.uniform_factor),
        "calibration_gap": diagnostics.calibration_gap,
        "unsupported": diagnostics.unsupported,
        "clipped_share": diagnostics.clipped_share,
    }


def _distance_from_one(factor: Estimate) -> float:
    """How far a factor is from 1; 0 while its interval reaches there."""
    return 0.0 if factor.low <= 1 <= factor.high else abs(factor.risk - 1)
