"""Where the stays came from and what was missing, in counts that give nobody away."""

from collections.abc import Mapping, Sequence

import numpy as np

from etips.data.schema import MISSING_SUFFIX, Schema
from etips.data.shown_sizes import ShownSizes, show_sizes
from etips.data.trajectories import Trajectories
from etips.disclosure import ShownFunnel, any_few, shown_funnel
from etips.results.exhibits import Flow, FlowStage, MissingFeature, Missingness, Record


def sizes_beside(data: Trajectories, cohort: Record | None = None) -> ShownSizes:
    """What may be told of the size of data, beside what was told of the cohort they came from.

    Args:
        data: The evaluated stays.
        cohort: `funnel.json` of the cohort.
    """
    told = _told(cohort)
    return show_sizes(data, known=() if told is None else told.counts)


def trace_flow(data: Trajectories, cohort: Record | None) -> Flow:
    """Stays left after each step, from the cohort's funnel if there is one, to the decisions.

    Args:
        data: The evaluated stays.
        cohort: `funnel.json` of the cohort.
    """
    sizes, told = sizes_beside(data, cohort), _told(cohort)
    own = [
        ("stays in the evaluated data", sizes.n_stays),
        ("stays with a decision", sizes.n_with_decision),
    ]
    stages = [name for name, _ in _stages(cohort)]
    before = () if told is None else zip(stages, told.stages, strict=True)
    return Flow(
        source="data" if cohort is None else "cohort",
        stages=tuple(FlowStage(name, count) for name, count in (*before, *own)),
        n_steps=sizes.n_steps,
        n_decisions=sizes.n_decisions,
    )


def _told(cohort: Record | None) -> ShownFunnel | None:
    """What the cohort's drawing and the terminal told of it; the same rule gives the same here."""
    if cohort is None:
        return None
    rows, samples = cohort.get("n_rows"), cohort.get("n_samples")
    decisions = samples.values() if isinstance(samples, Mapping) else ()
    return shown_funnel(
        [count for _, count in _stages(cohort)],
        rows if isinstance(rows, int) else None,
        [count if isinstance(count, int) else None for count in decisions],
    )


def count_missing(data: Trajectories, cohort: Record | None) -> Missingness:
    """Share of rows in which each feature was missing, the most incomplete first."""
    if cohort is not None:
        basis, shares = "charted columns of the cohort before gaps were filled", _charted(cohort)
    else:
        basis, shares = "steps (sequential) and stays (static) of the evaluated data", _gaps(data)
    order = sorted(shares, key=lambda name: (shares[name] is None, -(shares[name] or 0), name))
    return Missingness(
        basis=basis,
        n_features=len(shares),
        n_complete=sum(share == 0 for share in shares.values()),
        features=tuple(MissingFeature(name, shares[name]) for name in order if shares[name] != 0),
    )


def _stages(cohort: Record | None) -> list[tuple[str, int | None]]:
    listed = cohort.get("stages") if cohort is not None else None
    if not isinstance(listed, Sequence):
        return []
    return [
        (str(stage["name"]), stage.get("n_stays"))
        for stage in listed
        if isinstance(stage, Mapping) and isinstance(stage.get("n_stays"), int | None)
    ]


def _charted(cohort: Record) -> dict[str, float | None]:
    shares, n_rows = cohort.get("missing_share"), cohort.get("n_rows")
    if not isinstance(shares, Mapping) or not isinstance(n_rows, int):
        return {}
    known = {str(name): None if share is None else float(share) for name, share in shares.items()}
    gone = {name: round((share or 0.0) * n_rows) for name, share in known.items()}
    return {
        name: None if any_few((gone[name], n_rows - gone[name])) else share
        for name, share in known.items()
    }


def _gaps(data: Trajectories) -> dict[str, float | None]:
    """Of every feature that may be missing; a flag beside it says where, or it is NaN there."""
    names = {_source(name, data.schema) for name in (*data.schema.sequence, *data.schema.static)}
    stay = np.repeat(np.arange(data.n_stays), np.diff(data.offsets))
    shares: dict[str, float | None] = {}
    for part, owner, columns in (
        (data.sequence, stay, data.schema.sequence),
        (data.static, np.arange(data.n_stays), data.schema.static),
    ):
        table = part[:]
        for number, column_name in enumerate(columns):
            name = _source(column_name, data.schema)
            if name in shares or name.removesuffix(MISSING_SUFFIX) in names - {name}:
                continue
            flag = f"{name}{MISSING_SUFFIX}"
            column = table[:, columns.index(flag) if flag in columns else number]
            gone = column == 1 if flag in columns else np.isnan(column)
            people = np.unique(owner[gone]).size, np.unique(owner[~gone]).size
            few = any_few((*people, gone.sum(), gone.size - gone.sum()))
            shares[name] = None if few else float(gone.mean())
    return shares


def _source(name: str, schema: Schema) -> str:
    """The feature a column stands for: a rare level of a category may name somebody."""
    source, level, _ = name.partition("=")
    return source if level and source in schema.categories else name
