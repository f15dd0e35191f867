"""Attributions of a stay along its decisions: the strongest columns, one row a decision."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from etips.data.decisions import Floats
from etips.explanation.stay_explanation import DecisionExplanation, StayExplanation


@dataclass(frozen=True, eq=False)
class TimeLine:
    """What a drawing of a stay shows.

    Args:
        columns: The strongest first.
        labels: Of the decisions: step, and what is recommended.
        values: What each column adds at each decision, shape (decisions, columns).
        unit: What that is in.
    """

    columns: tuple[str, ...]
    labels: tuple[str, ...]
    values: Floats
    unit: str

    @classmethod
    def of(cls, stay: StayExplanation, *, most: int) -> Self:
        """That of the strongest `most` columns."""
        sums = [
            {} if own.attribution is None else own.attribution.by_column() for own in stay.decisions
        ]
        sizes: dict[str, float] = {}
        for one in sums:
            for name, value in one.items():
                sizes[name] = sizes.get(name, 0.0) + abs(value)
        columns = tuple(sorted(sizes, key=lambda name: -sizes[name])[:most])
        values = np.array([[one.get(name, 0.0) for name in columns] for one in sums])
        units = [own.attribution.unit for own in stay.decisions if own.attribution is not None]
        return cls(
            columns,
            tuple(_label(own, stay) for own in stay.decisions),
            values.reshape(len(sums), len(columns)),
            units[0] if units else "none",
        )


def _label(own: DecisionExplanation, stay: StayExplanation) -> str:
    action = "wait" if own.abstained else stay.schema.action_name(own.recommended)
    return f"{own.label}: {action}"
