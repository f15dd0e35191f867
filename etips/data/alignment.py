"""Stays of one source read as those of another, and stays of several sources as one data set.

A policy knows the features, the action names and the edges of doses of the data it learned from.
Data of another hospital are brought to those, or refused in one line that says what stands in the
way. Only the schema of the first data is needed: none of their stays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from etips.data.coded import Coded, Features, Floats32
from etips.data.decisions import NO_ACTION, Bools, Ints
from etips.data.intake.dose_classes import DoseClasses, action_of, split_unit
from etips.data.schema import MISSING_SUFFIX, Schema
from etips.data.trajectories import Trajectories
from etips.disclosure import any_few
from etips.errors import DataError
from etips.notes import note

_ABSENT = -1  # a column that is 0 throughout
_NAMED = 5  # features that a message names


def align(stays: Trajectories, like: Schema) -> Trajectories:
    """The same stays with the features and actions of other data, such as a policy was fitted on.

    Features are found by name. Those that are not asked for are left out; a level of a category
    that these data never have is 0 throughout. Doses that are features are put into the classes of
    the other data, actions that have the same names are numbered alike. What cannot be brought over
    is refused.
    """
    known = stays.schema
    if (known.sequence, known.static) != (like.sequence, like.static):
        stays = _with_features(stays, like)
    return _with_actions(stays, known, like)


def _with_features(stays: Trajectories, like: Schema) -> Trajectories:
    known, wanted = stays.schema, {*like.sequence, *like.static}
    for names, features in ((known.sequence, stays.sequence), (known.static, stays.static)):
        for position, name in enumerate(names):
            new = name not in wanted and _category(name, like) is not None
            if new and _columns(features, [position])[:].any():
                fix = "Code it as one of the levels that the policy was fitted with."
                rule = "must have no level that the policy does not know"
                raise DataError(f"data, category {_category(name, like)}", rule, fix=fix)
    sequence = _positions(known.sequence, like.sequence, known, like)
    static = _positions(known.static, like.static, known, like)
    spare = [name for name in (*known.sequence, *known.static) if name not in wanted]
    spare = [name for name in spare if _category(name, like) is None]
    if spare:
        note(f"the policy does not read {_named(spare)}: left out")
    schema = replace(
        known,
        sequence=like.sequence,
        static=like.static,
        categories=like.categories,
        indicators=like.indicators,
        logarithms=like.logarithms,
    )
    return replace(
        stays,
        sequence=_columns(stays.sequence, sequence),
        static=_plain_columns(stays.static, static),
        schema=schema,
    )


def _positions(
    there: Sequence[str], wanted: Sequence[str], known: Schema, like: Schema
) -> list[int]:
    """Where each wanted feature is, `_ABSENT` for one that is 0 throughout."""
    place = {name: number for number, name in enumerate(there)}
    features = (*known.sequence, *known.static)

    def may_be_zero(name: str) -> bool:  # a level that nobody has, a mark of a missing value
        column, source = _category(name, like), name.removesuffix(MISSING_SUFFIX)
        marks = name != source and source in features
        return marks if column is None else column in known.categories

    lacking = [name for name in wanted if name not in place and not may_be_zero(name)]
    units = {split_unit(name)[0]: (name, split_unit(name)[1]) for name in there}
    for name in lacking:
        bare, unit = split_unit(name)
        found, other = units.get(bare, ("", ""))
        if found and unit != other:
            fix = f"Convert it and call it {name}."
            raise DataError(f"data, feature {found}", f"must be {name}: another unit", fix=fix)
    elsewhere = [name for name in lacking if name in features]
    if elsewhere:
        rule = f"{_named(elsewhere)} must not be static in one and not in the other"
        raise DataError("data", rule)
    if lacking:
        fix = "Add the columns, or fit the policy without them."
        rule = f"must hold {_named(lacking)}, which the policy reads"
        raise DataError("data", rule, fix=fix)
    return [place.get(name, _ABSENT) for name in wanted]


def _category(name: str, like: Schema) -> str | None:
    """The categorical column that a feature is a level of."""
    return next((own for own in like.categories if name.startswith(f"{own}=")), None)


def _columns(features: Features, positions: Sequence[int]) -> Features:
    """The columns at some places, 0 throughout where there is none; coded rows stay coded."""
    if isinstance(features, Coded):
        return Coded(_plain_columns(features.expanded_table(), positions), features.code)
    return _plain_columns(features, positions)


def _plain_columns(rows: Floats32, positions: Sequence[int]) -> Floats32:
    chosen: Floats32 = np.where(np.array(positions) == _ABSENT, np.float32(0), rows[:, positions])
    return chosen


def _with_actions(stays: Trajectories, known: Schema, like: Schema) -> Trajectories:
    """The stays with actions numbered, and doses put into classes, as in the other data."""
    own = stays.schema
    named = replace(own, actions=like.actions, n_actions=like.n_actions, recipe=like.recipe)
    if like.dosed_features:
        ours, theirs = (
            [(dose.column, dose.edges, dose.none) for dose in own.dosed_features]
            for own in (known, like)
        )
        if ours == theirs:
            return stays
        action = _action_by_dose(stays, like.dosed_features)
    elif like.actions and known.actions and like.actions != known.actions:
        if known.recipe is not None and known.recipe.doses:
            return stays  # of a table: `read_table(like=...)` has its doses, and these have not
        action = _action_by_name(stays, known, like)
    else:
        return stays
    if not stays.logged or action is None:
        return replace(stays, schema=named, truth=None)
    return replace(stays, schema=named, action=action, propensity=None, truth=None)


def _action_by_dose(stays: Trajectories, doses: Sequence[DoseClasses]) -> Ints | None:
    """The class of each step's doses by the other data's edges; None without a log."""
    own = {dose.column: dose.unit for dose in stays.schema.dosed_features}
    for dose in doses:
        unit = own.get(dose.column)
        if unit and dose.unit and unit != dose.unit:
            fix = f"Convert it to {dose.unit}."
            raise DataError(f"data, dose {dose.column}", "must be in the policy's unit", fix=fix)
    if stays.action is None:
        return None
    place = {name: number for number, name in enumerate(stays.schema.sequence)}
    classes = []
    for dose in doses:
        column = _columns(stays.sequence, [place[dose.column]])[:]
        classes.append(dose.apply(f"dose {dose.column}", column[:, 0].astype(np.float64)))
    action = action_of(classes, [dose.n_classes for dose in doses])
    known: Bools = stays.action != NO_ACTION
    if stays.schema.dosed_features:
        moved = int((action != stays.action)[stays.decision_rows].sum())
        rest = stays.n_decisions - moved
        share = "some" if any_few((moved, rest)) else f"{moved / max(stays.n_decisions, 1):.0%}"
        note(
            "doses are put into the classes of the data that the policy was fitted on; "
            f"{share} of the decisions have another action than by their own"
        )
    return np.where(known, action, NO_ACTION)


def _action_by_name(stays: Trajectories, known: Schema, like: Schema) -> Ints | None:
    """Actions by their names; refused where one was taken that the policy does not know."""
    number = {name: action for action, name in enumerate(like.actions)}
    if len(number) < len(like.actions) or len(set(known.actions)) < len(known.actions):
        return stays.action  # names that do not tell apart: as they are numbered
    unknown = [name for name in known.actions if name not in number]
    if stays.action is None:
        return None
    taken = set(np.unique(stays.action[stays.action != NO_ACTION]).tolist())
    if any(known.actions.index(name) in taken for name in unknown):
        rule = f"must be among those the policy was fitted on, and {len(unknown)} are not"
        raise DataError("data, actions", rule, fix="Name them alike, or fit on both.")
    table = np.array([number.get(name, NO_ACTION) for name in known.actions] + [NO_ACTION])
    moved: Ints = table[stays.action].astype(np.int64)  # the last entry: no action is known
    return moved


def _named(names: Sequence[str]) -> str:
    """A few features, and how many more there are."""
    listed = ", ".join(names[:_NAMED])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"the feature{'s' if len(names) > 1 else ''} {listed}{more}"


def join(parts: Mapping[str, Trajectories]) -> tuple[Trajectories, NDArray[np.str_]]:
    """All stays, and from which part each is, shape (n_stays,).

    Stays and patients keep apart even where two sources number them alike. What only some sources
    know (propensities, truth, negative controls) is left out.
    """
    stays = list(parts.values())
    schema = stays[0].schema
    same = ("sequence", "static", "lag", "n_actions", "actions")
    for own in stays[1:]:
        if any(getattr(own.schema, name) != getattr(schema, name) for name in same):
            fix = "Use etips.align first."
            raise DataError("data", "must have the same features and actions to be joined", fix=fix)
        if not own.schema.means_actions_of(schema):
            raise DataError("data", "must have the same classes of doses to be joined")
    if not all(own.logged for own in stays):
        raise DataError("data", "must hold logged actions and losses in every part")
    names = np.repeat(list(parts), [own.n_stays for own in stays])
    eligible = None
    if any(own.eligible is not None for own in stays):
        eligible = np.concatenate(
            [np.ones(own.n_steps, bool) if own.eligible is None else own.eligible for own in stays]
        )
    lengths = np.concatenate([np.diff(own.offsets) for own in stays])
    steps = [  # labels that are no numbers are counted anew
        own.step
        if np.issubdtype(own.step.dtype, np.number)
        else np.arange(own.n_steps) - np.repeat(own.offsets[:-1], np.diff(own.offsets))
        for own in stays
    ]
    people = {n: own.stay if own.group is None else own.group for n, own in parts.items()}
    joined = Trajectories(
        sequence=np.concatenate([own.sequence[:] for own in stays]),
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        schema=replace(schema, provenance={"joined": ", ".join(parts)}),
        action=np.concatenate([own.action for own in stays if own.action is not None]),
        loss=np.concatenate([own.loss for own in stays if own.loss is not None]),
        static=np.concatenate([own.static for own in stays]),
        eligible=eligible,
        stay=np.concatenate([_labelled(n, own.stay) for n, own in parts.items()]),
        step=np.concatenate(steps),
        group=np.concatenate([_labelled(n, own) for n, own in people.items()]),
        missing_loss=stays[0].missing_loss,
    )
    return joined, names


def _labelled(name: str, labels: NDArray[Any]) -> NDArray[np.str_]:
    """Names that no other source has, in the order of the labels, so that folds stay the same."""
    rank = np.unique(labels, return_inverse=True)[1]
    return np.array([f"{name}: {number:09d}" for number in rank.tolist()])
