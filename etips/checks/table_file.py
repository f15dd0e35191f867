"""A table.toml to read and to edit: every line says whether it was said or guessed, and why."""

from collections.abc import Mapping, Sequence

from etips.checks.guessing import Guess
from etips.checks.suspicion import Suspect
from etips.data.tables.columns import TABLE_FILE, TableColumns
from etips.files.toml_writer import format_toml

_WORDS: Mapping[str, str] = {
    "stay": "which stay a row belongs to",
    "step": "the order of the rows within a stay",
    "action": "the treatment; several columns: their combination",
    "dose": "one or two columns of doses, in place of an action",
    "bins": "classes of each dose",
    "loss": "what came of it; lower is better",
    "reward": "what came of it; more is better",
    "bad": "values of the loss that are the harm; others are not",
    "static": "what does not change within a stay",
    "propensity": "the known probability of the treatment",
    "group": "the patient",
    "eligible": "may the step become a decision?",
    "negative_control": "measured before the treatment; no policy sees it",
    "missing_loss": "drop or weight a treatment without a loss",
    "categorical": "numbers that are codes",
    "features": "the only columns that a policy sees",
    "drop": "columns that nobody sees",
    "missing": "carry or refuse missing values",
    "every": "length of a step",
    "combine": "how rows of one step become one",
    "n_actions": "how many treatments there are",
    "actions": "what the treatments are called",
    "decimal": "what stands before a fraction",
    "dates": "what stands first in a date: dmy or mdy",
    "limits": "value: <5 is read as 5 and 85+ as 85",
    "na": "cells that mean missing",
    "lag": "1: a decision sees earlier steps only; 0: its own",
}


def format_table_file(
    columns: TableColumns, guesses: Sequence[Guess], suspects: Sequence[Suspect], data: str
) -> str:
    """The text of a table.toml, commented.

    Args:
        columns: How the table is read.
        guesses: What of that was guessed.
        suspects: Columns that a policy had better not see.
        data: How the table is called.
    """
    why = {own.field: own.reason for own in guesses}
    lines = [
        f"# How etips reads {_one_line(data)}. Written by `etips check`.",
        "# Lines marked GUESSED were not said by anybody: look at them before you use the file.",
        f"# Then: etips fit {_one_line(data)} --table {TABLE_FILE} --hold-out 0.3 --out run",
        "",
        "[data]",
    ]
    tables = []
    for name, value in columns.to_document().items():
        words = f"# {_WORDS[name]}"
        if name in why:
            words += f". GUESSED: {_one_line(why[name])}"
        text = format_toml({name: value}).strip()
        if isinstance(value, Mapping):  # a table of its own stands behind all plain keys
            tables += ["", words, text.replace(f"[{name}]", f"[data.{name}]")]
        else:
            lines += [words, text]
    left_out = "drop" in why or "features" in why
    kept = [own for own in suspects if not (own.leave_out and left_out)]
    lines += [f"# {_one_line(own.column)}: {_one_line(own.reason)}. See drop." for own in kept]
    return "\n".join([*lines, *tables]) + "\n"


def _one_line(text: str) -> str:
    """Names are the user's own and may hold anything; a comment is one line."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
