"""What a super learner tried, what it kept and why: the record that runs keep and pages show."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Literal, Self

from etips.disclosure import shown_count

Tier = Literal["model", "policy", "clinicians"]
"""A model of the stack, judged as if it stood alone; a policy the judge could keep; or nobody's."""


@dataclass(frozen=True)
class Tried:
    """One thing that was judged on held-out decisions.

    Args:
        name: What it is called.
        tier: What it is.
        gap: Its risk less the clinicians'; below zero is better.
        error: Standard error of that, by patient.
        factor: Mean weight of its actions on the log, 1 in expectation.
        size: Effective number of decisions behind it; None where it would tell of a few.
        weight: Its share of the stack, where it is a model of it.
        lean: How much what the clinicians did counts, where it is a policy.
        kept: Whether it became the policy, or part of it.
    """

    name: str
    tier: Tier
    gap: float
    error: float
    factor: float
    size: float | None
    weight: float | None = None
    lean: float | None = None
    kept: bool = False

    @property
    def label(self) -> str:
        """Its name, as short as a table wants it."""
        if self.lean is None:
            return self.name
        return f"stack, lean {self.lean:g}" if self.lean else "stack"

    @property
    def interval(self) -> tuple[float, float]:
        """A 95 % interval of the gap."""
        return self.gap - 1.96 * self.error, self.gap + 1.96 * self.error


@dataclass(frozen=True)
class ChoiceRecord:
    """How a super learner came to its policy.

    Args:
        tried: Models of the stack, simplest first, then policies, then the clinicians.
        corrected: Gap of what choosing comes to: each fold judged by what the others choose.
        error: Standard error of that.
        limit: What `corrected` plus so many standard errors must be below zero by.
        propensities: Share of each model in the propensities, by name.
        outcomes: Share of each model in the predicted losses that scores stand on, by name.
        left_out: About how many seconds each model would take that was left out, by name.
        seconds_of_all: About how many seconds all models of rows would take.
        seconds: That each model took on one core, by name.
    """

    tried: tuple[Tried, ...]
    corrected: float
    error: float
    limit: float
    propensities: Mapping[str, float]
    outcomes: Mapping[str, float]
    left_out: Mapping[str, float]
    seconds_of_all: float
    seconds: Mapping[str, float]

    @property
    def kept(self) -> Tried:
        """What became the policy."""
        return next(tried for tried in self.tried if tried.kept and tried.tier != "model")

    @property
    def sentence(self) -> str:
        """What was kept and why, in words."""
        low, high = (self.corrected + sign * 1.96 * self.error for sign in (-1, 1))
        difference = f"{self.corrected:+.4f} (95 % interval {low:+.4f} to {high:+.4f})"
        n = sum(tried.tier == "policy" for tried in self.tried)
        if self.kept.tier == "clinicians" and self.corrected + self.limit * self.error < 0:
            return (
                f"Kept: as the clinicians. None of {n} policies can be judged by this log: the "
                "matching factor is far from 1 or too few decisions stand behind it, so that the "
                f"change of {difference} that they promise is not believed."
            )
        if self.kept.tier == "clinicians":
            return (
                f"Kept: as the clinicians. Choosing the best of {n} policies would change their "
                f"risk by {difference} on decisions held out from choosing too, which is not "
                f"better beyond noise (it must be below zero by {self.limit:g} standard errors)."
            )
        return (
            f"Kept: {self.kept.name}, of {n} policies the one whose held-out risk, with a standard "
            f"error added, is least. Choosing so changes the clinicians' risk by {difference} on "
            "decisions held out from choosing too, which is better beyond noise "
            f"({self.limit:g} standard errors)."
        )

    @property
    def cost_sentence(self) -> str:
        """What was left out for its cost, and how to have it all the same; nothing where none."""
        if not self.left_out:
            return ""
        each = (f"{name} (about {seconds:.0f} s)" for name, seconds in self.left_out.items())
        most = math.ceil(self.seconds_of_all * 1.01)
        return (
            f"Left out for what they cost on one core: {', '.join(each)}. "
            f"To have them all the same: --set seconds={most} (in Python seconds={most})."
        )

    @property
    def disclosed(self) -> Self:
        """The same as results show it: with equal weights an effective size is a count."""
        tried = (replace(one, size=one.size and shown_count(one.size)) for one in self.tried)
        return replace(self, tried=tuple(tried))

    @property
    def is_judged(self) -> bool:
        """Whether every figure is one: a log of a single patient has no standard errors."""
        return all(map(math.isfinite, (self.corrected, self.error, *(t.error for t in self.tried))))

    def to_json(self) -> dict[str, object]:
        """As files keep it; `etips.results.parsing.read_choice` reads it."""
        return asdict(self)
