"""What the columns of a data set are called and what they mean."""

import operator
from collections import Counter
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, fields
from typing import Self

from etips.data.intake.dose_classes import DoseClasses
from etips.data.recipe import Component, Recipe, find_components, from_document, to_document
from etips.errors import SettingError, as_option, require_whole

MISSING_SUFFIX = "_missing"
"""A feature that may be missing has a second column of this name: 1 where it was, else 0."""


MOST_ACTIONS = 65_536
"""More than this is a slip (a code for "unknown", say), and would ask for room nobody has."""


@dataclass(frozen=True)
class Roles:
    """Names of the columns that are not features, in the table the data came from.

    They are distinct from one another and from every feature, whether the data has them or not.
    """

    stay: str = "stay"
    step: str = "step"
    action: str = "action"
    loss: str = "loss"
    propensity: str = "propensity"
    eligible: str = "eligible"
    group: str = "group"
    negative_control: str = "negative_control"


@dataclass(frozen=True)
class Schema:
    """Names, roles and the history rule of a data set; it holds no patient.

    Args:
        sequence: Names of the sequential features, in the order of the array's columns.
        n_actions: Number of actions K; actions are 0..K-1.
        static: Names of the static features.
        lag: 1 when a decision may see only the steps before it (the paper's rule), 0 when it also
            sees its own step.
        actions: What the actions are called, K names or none.
        roles: Names of the columns that are not features.
        categories: Levels of each categorical column; `ward` with level `icu` is `ward=icu`.
        indicators: Feature columns that may be missing and so have a `_missing` column.
        logarithms: Features whose logarithm learners standardise, skewed doses and enzymes say.
        provenance: Where the data came from, in words; never a path or a patient.
        recipe: How the columns of a table were read; None where there was no table.
    """

    sequence: tuple[str, ...]
    n_actions: int
    static: tuple[str, ...] = ()
    lag: int = 1
    actions: tuple[str, ...] = ()
    roles: Roles = field(default_factory=Roles)
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    indicators: tuple[str, ...] = ()
    logarithms: tuple[str, ...] = ()
    provenance: Mapping[str, str] = field(default_factory=dict)
    recipe: Recipe | None = None

    def __post_init__(self) -> None:
        for name in ("lag", "n_actions"):  # NumPy's whole numbers are welcome, JSON lacks them
            require_whole(name, getattr(self, name))
            object.__setattr__(self, name, operator.index(getattr(self, name)))
        if self.lag not in (0, 1):
            raise SettingError("lag", "must be 0 or 1")
        if not 1 <= self.n_actions <= MOST_ACTIONS:
            raise SettingError("n_actions", f"must be in 1..{MOST_ACTIONS}")
        if self.actions and len(self.actions) != self.n_actions:
            raise SettingError("actions", f"must name all {self.n_actions} actions or none")
        names = Counter((*astuple(self.roles), *self.sequence, *self.static))
        for name in [name for name, times in names.items() if times > 1]:
            if "=" not in name and not name.endswith(MISSING_SUFFIX):
                raise SettingError(f"column {name}", "must play one part only")
            rule = "has the name of a feature that is made of another column"
            fix = f'Rename it, or leave it out: --drop {as_option(name)} (drop=["{name}"]).'
            raise SettingError(f"column {name}", rule, fix=fix)

    @property
    def components(self) -> tuple[Component, ...]:
        """Doses or columns that an action combines, the slowest index first; none for a plain one.

        One dose is a component by itself.
        """
        return find_components(self.recipe)

    @property
    def dosed_features(self) -> tuple[DoseClasses, ...]:
        """Classes of doses that are features of their step too, so that they can be made anew."""
        doses = () if self.recipe is None else self.recipe.doses
        return doses if {own.column for own in doses} <= set(self.sequence) else ()

    def action_name(self, number: int) -> str:
        """What an action is called: its name, or "action 3" where it has none."""
        return self.actions[number] if self.actions else f"action {number}"

    def means_actions_of(self, other: "Schema") -> bool:
        """Whether actions 0..K-1 are also the first K of the other data, as far as both tell.

        Two tables that were read apart may have other labels, or other edges of doses.
        """
        ours, theirs = (own.recipe or Recipe() for own in (self, other))
        if ours.doses and theirs.doses:
            return [(own.edges, own.none) for own in ours.doses] == [
                (own.edges, own.none) for own in theirs.doses
            ]
        if ours.action is not None and theirs.action is not None:
            return ours.action.labels == theirs.action.labels[: self.n_actions]
        unknown = not (self.actions and other.actions)
        return unknown or self.actions == other.actions[: self.n_actions]

    def may_be_missing(self, name: str) -> bool:
        """Whether feature `name` may hold NaN, which the scaler later fills."""
        if self.recipe is not None and self.recipe.missing == "carry":
            return True
        marked = [source for source in self.categories if source in self.indicators]
        return name in self.indicators or any(name.startswith(f"{own}=") for own in marked)

    def to_json(self) -> object:
        """A JSON-ready copy."""
        document = to_document(self)
        assert isinstance(document, dict)
        return {k: own for k, own in document.items() if k != "recipe" or own is not None}

    @classmethod
    def from_json(cls, document: object) -> Self:
        """Rebuild a schema; anything unexpected raises `SettingError`, never a traceback."""
        roles = document.get("roles") if isinstance(document, dict) else None
        for where, kind, own, newer in (
            ("schema", cls, document, {"recipe"}),
            ("schema, roles", Roles, roles, {"negative_control"}),
        ):
            expected = {each.name for each in fields(kind)}
            if not isinstance(own, dict) or {*own, *newer} != expected:  # files of before lack some
                raise SettingError(where, "must hold exactly " + ", ".join(sorted(expected)))
        assert isinstance(document, dict)
        assert isinstance(roles, dict)
        taken, name = str([document.get("sequence"), document.get("static")]), "negative_control"
        while name in taken:  # a name that no feature has
            name += "_"
        roles = {"negative_control": name, **roles}
        return from_document(cls, {**document, "roles": roles}, where="schema")
