"""The evaluated data in counts: what they are, where they came from, what was missing."""

from collections.abc import Mapping, Sequence

import numpy as np

from etips.data.decisions import Floats
from etips.data.recipe import Outcome
from etips.data.schema import MISSING_SUFFIX, Schema
from etips.data.sizes import ShownSizes, show_sizes
from etips.data.trajectories import Trajectories
from etips.disclosure import ShownFunnel, any_few, shown_funnel, shown_parts
from etips.results.exhibits import Flow, FlowStage, MissingFeature, Missingness
from etips.results.records import DataSummary, Record

_LOSS_RULES = {
    "as_it_is": "column {column} as it stands",
    "minus": "column {column} with its sign turned, since more of it is better",
    "one_minus": "1 minus column {column}, since more of it is better",
}


def summarize_data(data: Trajectories, cohort: Record | None = None) -> DataSummary:
    """What policies were evaluated on; a mean loss times the decisions is a count of events.

    Args:
        cohort: `funnel.json` of the cohort they came from: what it showed must not be shown again
            by subtraction.
    """
    sizes, loss, n = _sizes(data, cohort), data.logged_loss, data.n_decisions
    mean_loss: float | None = float(loss.mean())
    n_events = None
    if np.isin(loss, (0, 1)).all():
        n_events, _ = shown_parts(int(loss.sum()), n - int(loss.sum()))
        mean_loss = None if n_events is None else mean_loss
    return DataSummary(
        n_stays=sizes.n_stays,
        n_steps=sizes.n_steps,
        n_decisions=sizes.n_decisions,
        n_events=n_events,
        n_actions=data.n_actions,
        lag=data.lag,
        mean_loss=mean_loss,
        actions=tuple(data.schema.actions),
        provenance=dict(data.schema.provenance),
        loss=describe_loss(data.schema, loss),
        one_decision=bool(np.bincount(data.decisions().stay, minlength=1).max() <= 1),
    )


def describe_loss(schema: Schema, losses: Floats) -> str:
    """What the loss is, by its column and how it was read, and what a risk then says."""
    words = schema.provenance.get("loss")
    if words:
        what = f"The loss, in the words of the data: {words.rstrip('.')}."
    else:
        outcome = Outcome() if schema.recipe is None else schema.recipe.outcome
        rule = _LOSS_RULES[outcome.rule]
        if outcome.words:
            loss = 0 if outcome.rule == "one_minus" else 1
            rule = f"{loss} where column {{column}} says {' or '.join(outcome.words)}"
        what = f"The loss is {rule.format(column=schema.roles.loss)}; less is better."
    if np.isin(losses, (0, 1)).all():
        share = "the share of decisions followed by a loss of 1"
        return f"{what} It is 0 or 1, so that the risk is {share}."
    return f"{what} The risk is its mean after a decision."


def trace_flow(data: Trajectories, cohort: Record | None) -> Flow:
    """Stays left after each step, from the cohort's `funnel.json` if given, to the decisions."""
    sizes, shown = _sizes(data, cohort), _shown(cohort)
    names = [name for name, _ in _stages(cohort)]
    before = () if shown is None else zip(names, shown.stages, strict=True)
    last = (
        ("stays in the evaluated data", sizes.n_stays),
        ("stays with a decision", sizes.n_with_decision),
    )
    return Flow(
        source="data" if cohort is None else "cohort",
        stages=tuple(FlowStage(name, count) for name, count in (*before, *last)),
        n_steps=sizes.n_steps,
        n_decisions=sizes.n_decisions,
    )


def _sizes(data: Trajectories, cohort: Record | None) -> ShownSizes:
    """What may be shown of the size of data, beside what was shown of the cohort they came from."""
    shown = _shown(cohort)
    return show_sizes(data, known=() if shown is None else shown.counts)


def _shown(cohort: Record | None) -> ShownFunnel | None:
    """What the cohort's drawing and the terminal showed of it, by the same rule."""
    if cohort is None:
        return None
    rows, samples = cohort.get("n_rows"), cohort.get("n_samples")
    decisions = samples.values() if isinstance(samples, Mapping) else ()
    return shown_funnel(
        [count for _, count in _stages(cohort)],
        rows if isinstance(rows, int) else None,
        [count if isinstance(count, int) else None for count in decisions],
    )


def _stages(cohort: Record | None) -> list[tuple[str, int | None]]:
    listed = cohort.get("stages") if cohort is not None else None
    return [
        (str(stage["name"]), stage.get("n_stays"))
        for stage in (listed if isinstance(listed, Sequence) else ())
        if isinstance(stage, Mapping) and isinstance(stage.get("n_stays"), int | None)
    ]


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


def _charted(cohort: Record) -> dict[str, float | None]:
    shares, n_rows = cohort.get("missing_share"), cohort.get("n_rows")
    if not isinstance(shares, Mapping) or not isinstance(n_rows, int):
        return {}
    shown: dict[str, float | None] = {}
    for name, share in shares.items():
        gone = round((share or 0.0) * n_rows)
        few = share is None or any_few((gone, n_rows - gone))
        shown[str(name)] = None if few else float(share)
    return shown


def _gaps(data: Trajectories) -> dict[str, float | None]:
    """Of every feature that may be missing; a flag beside it says where, or it is NaN there."""
    schema = data.schema
    names = {source_of(name, schema) for name in (*schema.sequence, *schema.static)}
    stay = np.repeat(np.arange(data.n_stays), np.diff(data.offsets))
    shares: dict[str, float | None] = {}
    for table, owner, columns in (
        (data.sequence[:], stay, schema.sequence),
        (data.static, np.arange(data.n_stays), schema.static),
    ):
        for number, column_name in enumerate(columns):
            name = source_of(column_name, schema)
            if name in shares or name.removesuffix(MISSING_SUFFIX) in names - {name}:
                continue
            flag = f"{name}{MISSING_SUFFIX}"
            column = table[:, columns.index(flag) if flag in columns else number]
            gone = column == 1 if flag in columns else np.isnan(column)
            people = np.unique(owner[gone]).size, np.unique(owner[~gone]).size
            few = any_few((*people, gone.sum(), gone.size - gone.sum()))
            shares[name] = None if few else float(gone.mean())
    return shares


def source_of(name: str, schema: Schema) -> str:
    """The feature a column stands for: a rare level of a category may name a person."""
    source, level, _ = name.partition("=")
    return source if level and source in schema.categories else name
