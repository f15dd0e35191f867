"""Stays of several sources as one data set, to be compared with each other."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from etips.data.coded import Coded, Floats32
from etips.data.trajectories import Trajectories
from etips.errors import DataError


def join(parts: Mapping[str, Trajectories]) -> tuple[Trajectories, NDArray[np.str_]]:
    """All stays, and from which part each is, shape (n_stays,).

    Stays and patients keep apart even where two sources number them alike. What only some sources
    know (propensities, truth, negative controls) is left out.

    Args:
        parts: By name; with the same features, actions and lag, see `align`.
    """
    stays = list(parts.values())
    schema = stays[0].schema
    for other in stays[1:]:
        same = ("sequence", "static", "lag", "n_actions", "actions")
        if any(getattr(other.schema, name) != getattr(schema, name) for name in same):
            fix = "Use etips.align first."
            raise DataError("data", "must have the same features and actions to be joined", fix=fix)
        if not other.schema.means_actions_of(schema):
            raise DataError("data", "must have the same classes of doses to be joined")
    if not all(own.logged for own in stays):
        raise DataError("data", "must hold logged actions and losses in every part")
    names = np.repeat(list(parts), [own.n_stays for own in stays])
    offsets = [own.offsets[1:] + at for own, at in zip(stays, _starts(stays), strict=True)]
    eligible = None
    if any(own.eligible is not None for own in stays):
        eligible = np.concatenate([_eligible(own) for own in stays])
    joined = Trajectories(
        sequence=np.concatenate([_rows(own) for own in stays]),
        offsets=np.concatenate([[0], *offsets]),
        schema=replace(schema, provenance={"joined": ", ".join(parts)}),
        action=np.concatenate([_known(own.action) for own in stays]),
        loss=np.concatenate([_known(own.loss) for own in stays]),
        static=np.concatenate([own.static for own in stays]),
        eligible=eligible,
        stay=np.concatenate([_labelled(n, own.stay) for n, own in parts.items()]),
        step=np.concatenate([_steps(own) for own in stays]),
        group=np.concatenate([_people(n, own) for n, own in parts.items()]),
        missing_loss=stays[0].missing_loss,
    )
    return joined, names


def _starts(stays: list[Trajectories]) -> list[int]:
    return [0, *np.cumsum([own.n_steps for own in stays])[:-1].tolist()]


def _rows(stays: Trajectories) -> Floats32:
    rows: Floats32 = stays.sequence[:] if isinstance(stays.sequence, Coded) else stays.sequence
    return rows


def _known(values: NDArray[Any] | None) -> NDArray[Any]:
    assert values is not None
    return values


def _eligible(stays: Trajectories) -> NDArray[np.bool_]:
    return np.ones(stays.n_steps, bool) if stays.eligible is None else stays.eligible


def _steps(stays: Trajectories) -> NDArray[Any]:
    """Step labels as numbers; others are counted anew."""
    if np.issubdtype(stays.step.dtype, np.number):
        return stays.step
    return np.arange(stays.n_steps) - np.repeat(stays.offsets[:-1], np.diff(stays.offsets))


def _labelled(name: str, labels: NDArray[Any]) -> NDArray[np.str_]:
    """Names that no other source has, in the order of the labels, so that folds stay the same."""
    rank = np.unique(labels, return_inverse=True)[1]
    return np.array([f"{name}: {number:09d}" for number in rank.tolist()])


def _people(name: str, stays: Trajectories) -> NDArray[np.str_]:
    return _labelled(name, stays.stay if stays.group is None else stays.group)
