"""What the caller of `read_table` asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

from etips.data.decisions import MissingLoss
from etips.data.intake.dose_classes import require_doses
from etips.data.intake.recipe import Missing
from etips.data.requirements import require_missing_loss
from etips.data.schema import MOST_ACTIONS, Schema
from etips.errors import Faults, SettingError

ROLES = ("stay", "step", "loss", "propensity", "group", "eligible", "negative_control")
"""Roles that one column plays, the outcome among them; the action may have several."""

_FIXED = ("static", "features", "drop", "every", "combine", "lag", "n_actions", "actions")
_LISTS = ("action", "bad", "dose", "static", "categorical", "features", "drop", "actions", "na")


@dataclass(frozen=True)
class Request:
    """The arguments of `read_table` beside the table.

    Args:
        stay: Column that says which stay a row belongs to: whole numbers or text. Left out, every
            row is a stay of its own.
        step: Column that orders the rows of a stay: numbers or times. Left out, a stay has one row.
        action: Column of the logged action, null at steps without a decision, or several columns,
            whose combination it is; with the outcome left out too, the table holds questions, not
            a log.
        loss: Column of its loss; left out, it is not known yet, and `with_loss` computes it.
        reward: Column of its reward, instead of a loss.
        bad: Values of the column of the loss that are the harm (codes, words): they count 1, all
            others 0.
        dose: One or two columns of doses, instead of an action.
        bins: Classes of each dose.
        static: Columns that do not change within a stay.
        propensity: Column of the known probability of the logged action.
        group: Column of the patient, so that splits keep a patient's stays together.
        eligible: Column of booleans, false at a step that must not become a decision.
        negative_control: Column of something from before the action, which no policy sees.
        missing_loss: "drop" an action without a loss, which then is no decision, or "weight": it
            is one, and decisions with a loss speak for it when a policy is learned or evaluated.
        categorical: Columns of codes or text to read as categories.
        features: The columns that are features, `R*` stands for all that begin so; left out, every
            column without a part is one.
        drop: Columns that nobody may see.
        missing: "carry" the stay's last value forward and add a column `name_missing`; what has no
            earlier value is left to the scaler. Or "refuse" a missing feature value.
        every: Length of a step, "4h": rows are put into steps counted from the stay's first.
        combine: What becomes of several values of one step, by column; the last one if left out.
        lag: 1 if a decision may see only earlier steps (the paper's rule), 0 if also its own; left
            out, 1 where there is a `step`.
        n_actions: Number of actions; left out, as many as there are.
        actions: Names of the actions.
        decimal: "," or ".": what stands before a fraction, where a file could be meant either way.
        dates: "dmy" or "mdy": what stands first in dates that could be meant either way.
        limits: "value" to read cells such as <5 and 85+ as their number; refused if left out.
        na: Cells that mean "missing", beside the empty ones and the well-known marks.
        like: Read the table as this schema wants it (that of the data a policy was fitted on): the
            same columns, levels and roles. Further columns are left alone.
    """

    stay: str | None = None
    step: str | None = None
    action: tuple[str, ...] = ()
    loss: str | None = None
    reward: str | None = None
    bad: tuple[str, ...] = ()
    dose: tuple[str, ...] = ()
    bins: int = 5
    static: tuple[str, ...] = ()
    propensity: str | None = None
    group: str | None = None
    eligible: str | None = None
    negative_control: str | None = None
    missing_loss: MissingLoss = "drop"
    categorical: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    missing: Missing = "carry"
    every: str | None = None
    combine: Mapping[str, str] = field(default_factory=dict)
    lag: int | None = None
    n_actions: int | None = None
    actions: tuple[str, ...] = ()
    decimal: str | None = None
    dates: str | None = None
    limits: str | None = None
    na: tuple[str, ...] = ()
    like: Schema | None = None

    @classmethod
    def of(cls, **given: Any) -> Self:  # noqa: ANN401  # the arguments of read_table
        """From the arguments of `read_table`: one name or several become a tuple."""
        given |= {name: str(own) for name, own in given.items() if _numbers_column(name, own)}
        given |= {name: as_names(given[name]) for name in _LISTS if name in given}
        given |= {name: tuple(map(str, given[name])) for name in ("bad", "na") if name in given}
        made = cls(**(given | {"combine": dict(given.get("combine") or {})}))
        made.check()
        return made

    @property
    def treatment(self) -> tuple[str, ...]:
        """The columns that say what was done: of the action, or of doses."""
        return self.dose or self.action

    @property
    def columns(self) -> dict[str, str | None]:
        """Column of each of `ROLES`; that of the loss may hold a reward."""
        return {role: getattr(self, role) for role in ROLES} | {"loss": self.loss or self.reward}

    def check(self) -> None:
        """Refuse what no table could mend, all of it at once."""
        faults = Faults()
        with faults.noting():
            require_missing_loss(self.missing_loss)
        with faults.noting():
            if self.dose:
                require_doses(self.dose, self.bins)
        for wrong, name, rule, fix in self._rules():
            if wrong:
                faults.note(SettingError(name, rule, fix=fix))
        faults.raise_any()

    def _rules(self) -> tuple[tuple[object, str, str, str], ...]:
        """What must not be, and of it the argument, the rule and the remedy."""
        return (
            (self.missing not in ("refuse", "carry"), "missing", 'must be "refuse" or "carry"', ""),
            (self.lag not in (None, 0, 1), "lag", "must be 0 or 1", ""),
            (
                self.n_actions is not None and not 1 <= self.n_actions <= MOST_ACTIONS,
                "n_actions",
                f"must be in 1..{MOST_ACTIONS}",
                "",
            ),
            (
                self.action and self.dose,
                "action, dose",
                "name one of them",
                "A dose is the action.",
            ),
            (
                len(set(self.action)) != len(self.action),
                "action",
                "must not name a column twice",
                "",
            ),
            (
                len(set(self.actions)) != len(self.actions),
                "actions",
                "must not give a name twice",
                "",
            ),
            (self.loss and self.reward, "loss, reward", "name one of them", ""),
            (
                self.bad and self.loss is None and (self.like is None or self.reward is not None),
                "bad",
                "goes with loss",
                "It says which values of that column are the harm: --loss COLUMN --bad 1,2.",
            ),
            (
                self.like is not None and any(self._is_given(name) for name in _FIXED),
                "like",
                f"fixes {', '.join(_FIXED)}",
                "Leave them out.",
            ),
        )

    def _is_given(self, name: str) -> bool:
        return getattr(self, name) not in (None, (), {})

    @property
    def known_lag(self) -> int:
        """`lag`, once `as_like` has settled it."""
        return 1 if self.lag is None else self.lag

    @property
    def in_steps(self) -> bool:
        """Whether rows are put into steps."""
        recipe = None if self.like is None else self.like.recipe
        return self.every is not None or (recipe is not None and recipe.every is not None)

    @property
    def strict(self) -> bool:
        """Whether what is missing or was not seen before is refused."""
        return self.missing == "refuse"

    def as_like(self, has_steps: bool) -> "Request":
        """The same with what `like` fixes, or without it the lag that the table asks for.

        Args:
            has_steps: Whether the table has a column of steps.
        """
        own = self.like
        if own is None:
            if self.lag == 1 and not has_steps:
                fix = "Name the column that orders the rows of a stay: --step (step=)."
                raise SettingError("lag", "must be 0 where a stay has one row", fix=fix)
            return replace(self, lag=int(has_steps) if self.lag is None else self.lag)
        missing: Missing = "refuse"  # what has an indicator may be missing all the same
        if own.recipe is not None and not self.strict:
            missing = own.recipe.missing
        return replace(
            self, missing=missing, lag=own.lag, n_actions=own.n_actions, actions=own.actions
        )


def _numbers_column(name: str, value: object) -> bool:
    """Whether a column is called by a number, as pandas does where a file has no header."""
    return isinstance(value, int) and name not in ("bins", "lag", "n_actions")


def as_names(value: str | Sequence[str] | None) -> tuple[str, ...]:
    """One column, several or none, as a tuple."""
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


ARGUMENTS = tuple(own.name for own in fields(Request))
"""The arguments of `read_table` beside the table, in their order."""
