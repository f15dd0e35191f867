"""What an explanation may hold; a page, a drawing and lines of text are made from it."""

from dataclasses import dataclass

from etips.explanation.global_attribution import GlobalAttribution, SeedAgreement
from etips.explanation.stay_explanation import StayExplanation
from etips.explanation.tree_report import TreeReport


@dataclass(frozen=True, eq=False)
class ExplanationParts:
    """What was found; None where it was not asked for.

    Args:
        stay: Decision by decision, where one stay was asked about.
        overall: On the whole, where none was.
        seeds: How that changes over seeds, where several policies were given.
        tree: As rules that were learned beside it.
        rules: What it says itself, where it is nothing but rules.
    """

    stay: StayExplanation | None = None
    overall: GlobalAttribution | None = None
    seeds: SeedAgreement | None = None
    tree: TreeReport | None = None
    rules: tuple[str, ...] | None = None

    def to_json(self) -> dict[str, object]:
        """JSON-ready; what was not asked for is null."""
        return {
            "stay": None if self.stay is None else self.stay.to_json(),
            "overall": None if self.overall is None else self.overall.to_json(),
            "seeds": None if self.seeds is None else self.seeds.to_json(),
            "tree": None if self.tree is None else self.tree.to_json(),
            "rules": None if self.rules is None else list(self.rules),
        }
