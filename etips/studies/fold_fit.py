"""What fitting a method to one fold left on record."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Self, cast

from etips.learn.fitting.candidates import Candidate
from etips.results.study_result import FitRecord, PropensityQuality
from etips.results.translation_path import summarize_path
from etips.runs.path_file import path_from_json, path_to_json
from etips.tasks.task import Json


@dataclass(frozen=True)
class FoldFit:
    """What a method learned from, and what its learner says of itself.

    Args:
        n_learnt_from: Stays it might learn from.
        n_held_out: Stays it is judged on.
        quality: Of its propensities; None if it fits none.
        support: Least propensity of an action it may recommend; None if it has no such floor.
        clipped_share: Of the propensities it learned with; None if it weighs none.
        path: Its candidates.
    """

    n_learnt_from: int
    n_held_out: int
    quality: PropensityQuality | None = None
    support: float | None = None
    clipped_share: float | None = None
    path: tuple[Candidate, ...] = ()

    def summarize(self) -> FitRecord:
        """As results show it."""
        return FitRecord(
            n_learnt_from=self.n_learnt_from,
            n_held_out=self.n_held_out,
            quality=self.quality,
            support=self.support,
            clipped_share=self.clipped_share,
            path=summarize_path(self.path),
        )

    def to_json(self) -> dict[str, object]:
        """As an object that JSON can hold."""
        return {
            "n_learnt_from": self.n_learnt_from,
            "n_held_out": self.n_held_out,
            "quality": None if self.quality is None else asdict(self.quality),
            "support": self.support,
            "clipped_share": self.clipped_share,
            "path": path_to_json(self.path),
        }

    @classmethod
    def from_json(cls, document: Json) -> Self:
        """What `to_json` wrote."""
        values: Any = document
        quality = values["quality"]
        return cls(
            n_learnt_from=values["n_learnt_from"],
            n_held_out=values["n_held_out"],
            quality=None if quality is None else PropensityQuality(**quality),
            support=values["support"],
            clipped_share=values["clipped_share"],
            path=path_from_json(cast(Iterable[Json], values["path"])),
        )
