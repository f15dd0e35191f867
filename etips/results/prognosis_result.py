"""How well off the weighted patients were before anything was done, as results hold it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class PrognosisResult:
    """Prognosis of the weighted patients minus that of all, in units of the loss.

    With right propensities it is zero but for chance; what is left may be mistaken for a gain.

    Args:
        difference: Below zero the weighted patients were better off to begin with.
        std_error: Of it, clustered.
        sentence: What it means, for a reader.
    """

    difference: float | None
    std_error: float | None
    sentence: str | None = None
