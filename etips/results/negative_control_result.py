"""What an evaluation "finds" in something that the action cannot have changed."""

from dataclasses import dataclass


@dataclass(frozen=True)
class NegativeControlResult:
    """The policy's "gain" in a negative control; away from zero it is a warning.

    Args:
        name: The column, measured before the action.
        seen: Whether it is a feature, so that propensities and policy used it.
        difference: Weighted for the policy, minus as it was; None where there is no number.
        low: Lower limit.
        high: Upper limit.
        level: Share of such intervals that hold zero where nothing is wrong.
        spread: Standard deviation of the column, to judge the difference by.
        warning: Whether the interval leaves out zero.
    """

    name: str
    seen: bool
    difference: float | None
    low: float | None
    high: float | None
    level: float
    spread: float | None
    warning: bool

    @property
    def sentence(self) -> str:
        """In words, for a reader."""
        if self.difference is None or self.low is None or self.high is None:
            return f"Negative control {self.name}: no number."
        by = f"{self.difference:+.3g} [{self.low:+.3g}, {self.high:+.3g}]"
        if self.spread:
            by += f", {abs(self.difference) / self.spread:.2f} standard deviations"
        if not self.warning:
            return (
                f'Negative control {self.name}: a "gain" of {by}; zero is what it should be and '
                "could be." + self._caveat
            )
        return (
            f'Negative control {self.name}: a "gain" of {by}, where no action can have caused one: '
            "what looks like the policy's doing may be who was treated." + self._caveat
        )

    @property
    def _caveat(self) -> str:
        if not self.seen:
            return ""
        return " The propensities used this column: it tests them, not what is hidden."
