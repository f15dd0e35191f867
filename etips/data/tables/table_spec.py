"""What is said of a table: which column plays which part, and how its cells are meant.

The arguments of `read_table`, the options of the command line, a table.toml and `[data]` of a
run's config.toml are four spellings of one record.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import ErrorDetails

from etips.data.decisions import MissingLoss
from etips.data.intake.dose_classes import require_doses
from etips.data.recipe import Missing
from etips.data.schema import MOST_ACTIONS, Schema
from etips.data.tables.text_cells import DateOrder, Decimal
from etips.errors import (
    Faults,
    SettingError,
    SeveralFaultsError,
    faults_of,
    refuse_file,
)
from etips.files.toml import read_toml

TABLE_FILE = "table.toml"
"""What `etips check` writes, and every command that reads a table takes."""

ROLES = ("stay", "step", "loss", "propensity", "group", "eligible", "negative_control")
"""Roles that one column plays, the outcome among them; the action may have several."""

WHOLE: Mapping[str, tuple[int, int | None]] = {
    "bins": (2, None),
    "n_actions": (1, MOST_ACTIONS),
    "lag": (0, 1),
}
"""Fields that hold a whole number, and within which limits."""

_SETTLED_BY_POLICY = (
    *("static", "features", "drop", "every", "combine", "lag", "n_actions", "actions"),
)
_ALTERNATIVES = {"loss": "reward", "reward": "loss", "action": "dose", "dose": "action"}
_FINGERPRINT = "fingerprint"  # of the data, which a run keeps beside the columns


def _texts(rule: str, *, alone: bool = False, numbers: bool = False) -> BeforeValidator:
    """A list of texts; one `alone` stands for a list of it, `numbers` are texts too."""
    kinds = (str, int, float) if numbers else (str,)

    def parse(value: object) -> tuple[str, ...]:
        one = isinstance(value, kinds)
        many = [value] if one else value
        if (one and not (alone or numbers)) or not isinstance(many, Sequence):
            raise ValueError(rule)
        if isinstance(many, str) or not all(isinstance(own, kinds) for own in many):
            raise ValueError(rule)
        return tuple(str(own) for own in many)

    return BeforeValidator(parse)


def _pairs(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(
        isinstance(own, str) for own in (*value, *value.values())
    ):
        raise ValueError("must be a table of columns, each with a text")
    return dict(value)


def _whole(value: object, info: ValidationInfo) -> object:
    """Whole numbers within their limits; true and false are none."""
    name = str(info.field_name)
    least, most = WHOLE[name]
    rule = f"must be in {least}..{most}"
    if most == 1:
        rule = "must be 0 or 1"
    elif most is None or type(value) is not int:
        rule = f"must be a whole number of {least} or more"
    if type(value) is not int or value < least or (most is not None and value > most):
        raise ValueError(rule)
    return value


Columns = Annotated[tuple[str, ...], _texts("must be a list of columns")]
Names = Annotated[tuple[str, ...], _texts("must be a list of names")]
ColumnOrColumns = Annotated[
    tuple[str, ...], _texts("must be a text or a list of columns", alone=True)
]
Cells = Annotated[
    tuple[str, ...], _texts("must be a list of values, texts or numbers", numbers=True)
]
Pairs = Annotated[Mapping[str, str], BeforeValidator(_pairs)]
Whole = Annotated[int, BeforeValidator(_whole)]


def _said(text: str, default: object = None) -> Any:  # noqa: ANN401  # as pydantic's
    """A field and what it means, in the words of the command line and of a table.toml."""
    return Field(default, description=text)


class TableSpec(BaseModel):
    """What is said of a table; `given` tells what was said from what has its default."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=False)

    stay: str | None = _said("Column: which stay. Left out, every row is a patient.")
    step: str | None = _said("Column: order within the stay, a number or a time.")
    action: ColumnOrColumns = _said(
        "Column of the treatment; several: their combination. Empty where there is no decision.", ()
    )
    dose: ColumnOrColumns = _said("One or two columns of doses, in place of an action.", ())
    bins: Whole = _said("Classes of each dose, none among them; 5 if left out.", 5)
    loss: str | None = _said("Column: loss of the logged action; lower is better.")
    reward: str | None = _said("Column: the same where more is better.")
    bad: Cells = _said("Values of the loss that are the harm: 1 there, 0 elsewhere.", ())
    static: Columns = _said("Columns: static features, which do not change within a stay.", ())
    propensity: str | None = _said("Column: known propensity of the logged action.")
    group: str | None = _said(
        "Column: the patient, so that splits keep a patient's stays together."
    )
    eligible: str | None = _said("Column: may the step become a decision?")
    negative_control: str | None = _said(
        "Column: something from before the action, which it cannot have changed; no policy sees it."
    )
    missing_loss: MissingLoss = _said(
        "drop (default) or weight: what becomes of an action without a loss.", "drop"
    )
    categorical: Columns = _said("Columns: codes or text to read as categories.", ())
    features: Columns = _said("Columns, * allowed: the only features.", ())
    drop: Columns = _said("Columns, * allowed: nobody may see them.", ())
    missing: Missing = _said(
        "carry (default) or refuse: what becomes of missing values of features.", "carry"
    )
    every: str | None = _said("Length of a step, such as 4h: time stamps become steps.")
    combine: Pairs = _said(
        "column=last|first|mean|sum|min|max: how rows of one step become one.", {}
    )
    n_actions: Whole | None = _said("How many actions there are; those that occur if left out.")
    actions: Names = _said("Names of the actions.", ())
    lag: Whole | None = _said(
        "1: a decision sees earlier steps only (default with step); 0: its own."
    )
    decimal: Decimal | None = _said(
        ", or . before a fraction, where numbers could be meant either way."
    )
    dates: DateOrder | None = _said(
        "dmy or mdy: what stands first in dates, where they could be meant either way."
    )
    limits: Literal["refuse", "value"] | None = _said(
        "value: <5 is read as 5 and 85+ as 85; refuse (default)."
    )
    na: Cells = _said("Cells that mean missing, such as 999, 'not done', or age=999.", ())
    like: InstanceOf[Schema] | None = _said("Schema of the data that a policy was fitted on.")

    def __init__(self, **given: Any) -> None:  # noqa: ANN401  # as pydantic's
        """None means that nothing was said; all that is wrong is refused at once."""
        faults = Faults()
        try:
            super().__init__(**{name: value for name, value in given.items() if value is not None})
        except ValidationError as error:
            for own in error.errors(include_url=False):
                faults.note(_refusal(own))
        faults.raise_any()

    @classmethod
    def of_arguments(cls, given: Mapping[str, object]) -> Self:
        """From the arguments of a Python function: one name for a list of one, empty for none.

        A number names a column, as pandas does where a file has no header.
        """
        said: dict[str, object] = {}
        for name, value in given.items():
            if isinstance(value, int) and name not in WHOLE:
                value = str(value)
            elif isinstance(value, np.integer):
                value = int(value)
            if name in LISTS and value is not None:
                value = (value,) if isinstance(value, str) else tuple(value)  # type: ignore[arg-type]
            if value not in ((), {}):
                said[name] = value
        return cls(**said)

    @classmethod
    def from_texts(cls, given: Mapping[str, str | int | None]) -> Self:
        """As on a command line: lists by comma, `combine` as `column=how`.

        A name that holds a comma stands in quotes.
        """
        parsed: dict[str, object] = dict(given)
        for name, text in given.items():
            if not isinstance(text, str) or name in WHOLE:
                continue
            parsed[name] = text.strip()
            if name in LISTS or name == "combine":
                fields = next(csv.reader([text], skipinitialspace=True), [])
                parts = [part.strip() for part in fields if part.strip()]
                parsed[name] = parts if name in LISTS else _typed_pairs(name, parts)
        return cls(**parsed)

    @classmethod
    def from_document(cls, document: object) -> Self:
        """As in a file: `[data]` of a run's config.toml, or a table.toml."""
        if not isinstance(document, Mapping):
            raise SettingError("data", "must be a table")
        faults, made = Faults(), cls()
        for name in document:
            if name not in (*SAID, _FINGERPRINT):
                meant = get_close_matches(name, SAID, n=1)
                fix = f"Do you mean {meant[0]}?" if meant else f"The keys are {', '.join(SAID)}."
                faults.note(SettingError(f"data.{name}", "is not a key", fix=fix))
        try:
            made = cls(**{name: value for name, value in document.items() if name in SAID})
        except (SettingError, SeveralFaultsError) as error:
            for own in faults_of(error):
                assert isinstance(own, SettingError)
                faults.note(SettingError(f"data.{own.name}", own.rule, fix=own.fix))
        faults.raise_any()
        return made

    @property
    def given(self) -> dict[str, object]:
        """What was said, by field."""
        return {name: getattr(self, name) for name in SAID if name in self.model_fields_set}

    def to_document(self) -> dict[str, object]:
        """What TOML holds; `from_document` reads it back. One action's column is a text."""
        document = {n: list(v) if isinstance(v, tuple) else v for n, v in self.given.items()}
        for name in ("action", "dose"):
            if name in document and len(getattr(self, name)) == 1:
                document[name] = getattr(self, name)[0]
        return document

    def but(self, **changes: Any) -> Self:  # noqa: ANN401  # values of fields
        """The same with some fields changed; None takes back what was said."""
        return type(self)(**{**self.given, "like": self.like, **changes})

    def over(self, below: "TableSpec") -> "TableSpec":
        """What was said here, and where nothing was, what `below` says."""
        given = self.given
        instead = {own: None for own, other in _ALTERNATIVES.items() if other in given}
        if "loss" in given or "reward" in given:
            instead["bad"] = None  # values of another column
        return below.but(**{**instead, **given})

    def require_consistent(self) -> None:
        """Refuse what no table could mend, all of it at once."""
        faults, like = Faults(), self.like
        with faults.noting():
            if self.dose:
                require_doses(self.dose, self.bins)
        if self.action and self.dose:
            faults.note(
                SettingError("action, dose", "name one of them", fix="A dose is the action.")
            )
        for name, what in (("action", "name a column"), ("actions", "give a name")):
            if len(set(getattr(self, name))) != len(getattr(self, name)):
                faults.note(SettingError(name, f"must not {what} twice"))
        if self.loss and self.reward:
            faults.note(SettingError("loss, reward", "name one of them"))
        if self.bad and self.loss is None and (like is None or self.reward is not None):
            fix = "It says which values of that column are the harm: --loss COLUMN --bad 1,2."
            faults.note(SettingError("bad", "goes with loss", fix=fix))
        if like is not None and any(name in self.given for name in _SETTLED_BY_POLICY):
            rule = f"fixes {', '.join(_SETTLED_BY_POLICY)}"
            faults.note(SettingError("like", rule, fix="Leave them out."))
        faults.raise_any()

    @property
    def treatment(self) -> tuple[str, ...]:
        """The columns that say what was done: of the action, or of doses."""
        return self.dose or self.action

    @property
    def columns(self) -> dict[str, str | None]:
        """Column of each of `ROLES`; that of the loss may hold a reward."""
        return {role: getattr(self, role) for role in ROLES} | {"loss": self.loss or self.reward}

    @property
    def known_lag(self) -> int:
        """`lag`, once `settled` has settled it."""
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

    def settled(self, has_steps: bool) -> "TableSpec":
        """The same with what `like` fixes, or without it the lag that the table asks for."""
        own = self.like
        if own is None:
            if self.lag == 1 and not has_steps:
                fix = "Name the column that orders the rows of a stay: --step (step=)."
                raise SettingError("lag", "must be 0 where a stay has one row", fix=fix)
            return self.model_copy(update={"lag": int(has_steps) if self.lag is None else self.lag})
        missing: Missing = "refuse"  # what has an indicator may be missing all the same
        if own.recipe is not None and not self.strict:
            missing = own.recipe.missing
        fixed = {"lag": own.lag, "n_actions": own.n_actions, "actions": own.actions}
        return self.model_copy(update={"missing": missing, **fixed})


SAID = tuple(name for name in TableSpec.model_fields if name != "like")
"""What can be said of a table, in its order; `like` is a policy's to say."""

LISTS = tuple(name for name in SAID if TableSpec.model_fields[name].annotation == tuple[str, ...])
"""Fields that hold several texts."""


def _refusal(error: ErrorDetails) -> SettingError:
    """What pydantic says of a field, in the form of a refusal."""
    name = str(error["loc"][0])
    if name not in SAID:
        return SettingError(name, "is not an argument of check")
    if error["type"] == "literal_error":
        return SettingError(name, "must be " + error["ctx"]["expected"].replace("'", '"'))
    if error["type"] == "value_error":
        return SettingError(name, str(error["ctx"]["error"]))
    return SettingError(name, "must be a text")


def _typed_pairs(name: str, parts: Iterable[str]) -> dict[str, str]:
    pairs = {}
    for part in parts:
        column, equals, word = (own.strip() for own in part.partition("="))
        if not (column and equals and word):
            raise SettingError(name, "must be column=how, by comma")
        pairs[column] = word
    return pairs


def read_columns(path: Path, *, of_run: bool = False) -> TableSpec:
    """What a file says of a table under `[data]`; a file without that part is all about it.

    Args:
        path: A table.toml or a run's config.toml.
        of_run: Settings of a run stand in it beside `[data]`, which may be left out.
    """
    document = read_toml(path)
    try:
        return TableSpec.from_document(document.get("data", {} if of_run else document))
    except (SettingError, SeveralFaultsError) as error:
        raise refuse_file(str(path), faults_of(error)) from error
