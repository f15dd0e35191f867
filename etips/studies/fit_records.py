"""How a method was fitted to one fold, as a task leaves it in JSON."""

from dataclasses import asdict
from typing import Any

from etips.results.path_candidate import PathCandidate
from etips.results.study_result import FitRecord, PropensityQuality
from etips.tasks.task import Json


def fit_to_json(record: FitRecord) -> dict[str, object]:
    """As an object that JSON can hold."""
    return asdict(record)


def fit_from_json(document: Json) -> FitRecord:
    """What `fit_to_json` wrote."""
    values: Any = dict(document)
    quality, path = values.pop("quality"), values.pop("path")
    return FitRecord(
        quality=None if quality is None else PropensityQuality(**quality),
        path=tuple(PathCandidate(**candidate) for candidate in path),
        **values,
    )
