"""The outcome as a loss: a reward turned round, plain words read, codes of harm picked out."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
import pyarrow as pa

from etips.data.decisions import Floats, Ints
from etips.data.intake.action_labels import LabelledColumn, label_column
from etips.data.intake.features import shown
from etips.data.recipe import Outcome
from etips.data.tables.arrow_columns import is_categorical, is_text, numbers
from etips.data.tables.number_cells import MARKERS
from etips.disclosure import LEAST_PEOPLE
from etips.errors import DataError, SettingError
from etips.notes import note

Fate = Literal["harm", "good"]

YES = {"yes", "y", "true", "t", "1", "ja", "j", "oui", "o", "si", "s", "sim"}
NO = {"no", "n", "false", "f", "0", "nein", "non", "nao", "nee"}

_DEATH = {
    *("dead", "died", "death", "deceased", "expired", "fatal", "exitus", "demised", "mortality"),
    *("verstorben", "gestorben", "tot", "tod", "decede", "decedee", "deces", "mort", "morte"),
    *("morto", "morta", "muerto", "muerta", "muerte", "fallecido", "fallecida", "deceduto"),
    *("deceduta", "decesso", "obito", "overleden", "avliden", "nonsurvivor", "nonsurvivors"),
}
_LIFE = {
    *("alive", "living", "survived", "survivor", "survivors", "survives", "lebend", "lebt"),
    *("uberlebt", "ueberlebt", "vivant", "vivante", "vivo", "viva", "sopravvissuto", "levend"),
}
_BAD = {
    *("failure", "failed", "worse", "worsened", "deteriorated", "relapse", "relapsed", "poor"),
    *("bad", "unfavourable", "unfavorable", "adverse", "harm", "harmed", "recurrence", "recurred"),
    *("readmitted", "progression", "progressed", "uncured", "unsuccessful", "nonresponder"),
    *("schlecht", "verschlechtert", "mauvais", "defavorable", "malo", "ruim", "slecht"),
}
_GOOD = {
    *("recovered", "recovery", "cured", "success", "successful", "improved", "better", "remission"),
    *("good", "favourable", "favorable", "resolved", "healed", "healthy", "responder", "responded"),
    *("gut", "geheilt", "gebessert", "gesund", "gueri", "guerie", "bon", "favorables", "bueno"),
    *("curado", "guarito", "genezen"),
}
_LEFT = {
    *("discharged", "discharge", "home", "well", "released", "entlassen", "alta", "zuhause"),
    *("domicile", "sorti", "sortie", "casa", "thuis"),
}
"""Went home: good beside a death, of no clear meaning otherwise."""
_OPEN = {
    *("lost", "unknown", "withdrawn", "withdrew", "censored", "transferred", "transfer", "missing"),
    *("dropout", "refused", "other", "ongoing", "hospice", "verlegt", "unbekannt", "transfere"),
}
"""Nobody knows what came of it, or it hangs on who asks."""
_NOT = {
    *("no", "not", "non", "never", "without", "kein", "keine", "nicht", "pas", "sans", "sin"),
    *("senza", "nao", "sem", "niet", "geen"),
}

_CODE = re.compile(r"^\W*\d+\s*[=:.)\]-]+\s*")  # "1 = dead", "(1) dead", as SPSS and Stata write


def plain_word(text: str) -> str:
    """A label in small letters, without accents and the code before it."""
    folded = unicodedata.normalize("NFKD", text.casefold())
    folded = "".join(letter for letter in folded if not unicodedata.combining(letter))
    return " ".join(_CODE.sub("", folded).split()) or folded.strip()


def is_missing_mark(text: str) -> bool:
    """Whether a label says that there is none."""
    return text.strip().lower() in MARKERS


def fate_of(text: str) -> Fate | None:
    """Whether a label says harm or its contrary; None where that is not clear."""
    words = re.findall(r"[^\W\d_]+", plain_word(text))
    said = set(words)
    if said & _OPEN:
        return None
    dead, alive, bad, good = (said & own for own in (_DEATH, _LIFE, _BAD, _GOOD))
    if (dead and alive) or (bad and good) or (alive and bad):
        return None
    deciding = dead or bad or alive or good
    fate: Fate = "harm" if dead or bad else "good"
    negated = said & _NOT
    if not negated:
        return fate if deciding or said & _LEFT else None
    before = any(a in _NOT and b in deciding for a, b in pairwise(words))
    if len(negated) == 1 and before:
        return "good" if fate == "harm" else "harm"
    return None


def read_words(labels: Sequence[str], *, reward: bool = False) -> Mapping[str, float] | None:
    """What each label counts: harm 1 (of a reward, good 1); None where it is not clear.

    Yes counts 1, no 0. Of two labels one of which is a death, the other is none.
    """
    if not labels:
        return None
    words = {label: plain_word(label) for label in labels}
    if says_yes_no(labels):
        return {label: float(word in YES) for label, word in words.items()}
    fates = {label: fate_of(label) for label in labels}
    open_ones = [label for label, fate in fates.items() if fate is None]
    if open_ones:
        other = next((label for label in labels if label not in open_ones), None)
        settled = len(labels) == 2 and other is not None and _is_death(other)
        rest = set(re.findall(r"[^\W\d_]+", words[open_ones[0]]))
        if not settled or rest & (_OPEN | _NOT | YES | NO):
            return None
        fates[open_ones[0]] = "good"
    one: Fate = "good" if reward else "harm"
    return {label: float(fate == one) for label, fate in fates.items()}


def says_yes_no(labels: Iterable[str]) -> bool:
    """Whether every label is an answer."""
    return all(plain_word(label) in YES | NO for label in labels)


def _is_death(text: str) -> bool:
    said = set(re.findall(r"[^\W\d_]+", plain_word(text)))
    return fate_of(text) == "harm" and bool(said & _DEATH)


_MOST_LABELS = 200  # of an outcome whose harms are named
_MOST_SHOWN = 8


def read_outcome(
    where: str,
    column: pa.ChunkedArray,
    *,
    reward: bool = False,
    bad: Sequence[str] = (),
    known: Outcome | None = None,
) -> tuple[Floats, Outcome]:
    """The loss of each row, NaN where it is missing, and how it came about.

    A reward in [0, 1] becomes one minus it, so that risks stay shares; any other minus it.

    Args:
        where: The place, for refusals.
        column: As the table has it.
        reward: Whether more of it is better.
        bad: The values that are the harm: they count 1, all others 0.
        known: How the outcome of the log was read that a policy was fitted on.
    """
    if bad:
        return _of_codes(where, column, bad)
    values, told = _numbers(where, column, reward=reward, known=known)
    if not reward:
        return values, told
    known_values = values[~np.isnan(values)]
    share = bool(((known_values >= 0) & (known_values <= 1)).all())
    outcome = Outcome("reward", "one_minus" if share else "minus", told.words, told.others)
    if known is not None and known.kind == "reward":
        outcome = known
    return (1.0 - values if outcome.rule == "one_minus" else -values), outcome


def _of_codes(where: str, column: pa.ChunkedArray, bad: Sequence[str]) -> tuple[Floats, Outcome]:
    """1 where the column holds one of `bad`, 0 where another value."""
    labels = label_column(where, where, column)
    if len(labels.labels) > _MOST_LABELS:
        rule = f"must hold at most {_MOST_LABELS} different values where some are named as harm"
        raise DataError(where, rule, fix="Leave --bad (bad=) out: numbers are a loss as they are.")
    harms = set()
    for wanted in bad:
        own = [label for label in labels.labels if _same(label, wanted)]
        if not own:
            fix = "Spell it as the table does."
            raise SettingError(f"bad {wanted}", f"is no value of {where}", fix=fix)
        harms |= set(own)
    values = {label: float(label in harms) for label in labels.labels}
    marks = [label for label in labels.labels if is_missing_mark(label) and label not in harms]
    values = {label: own for label, own in values.items() if label not in marks}
    _tell(where, labels, values, marks)
    return _applied(labels, values), _outcome(values)


def _numbers(
    where: str, column: pa.ChunkedArray, *, reward: bool, known: Outcome | None
) -> tuple[Floats, Outcome]:
    """An outcome as numbers, and the words read as 1 and 0; those not plain are refused."""
    kind = column.type.value_type if is_categorical(column.type) else column.type
    words = known is not None and bool(known.others or is_text(kind)) and bool(known.words)
    if not is_text(kind) and not words:
        return numbers(where, column), Outcome()
    labels = label_column(where, where, column)
    if known is not None and words:
        found = _as_before(where, labels, known)
        if found is not None:
            return found, Outcome(words=known.words, others=known.others)
    if not is_text(kind):
        return numbers(where, column), Outcome()
    marks = [label for label in labels.labels if is_missing_mark(label)]
    values = read_words([own for own in labels.labels if own not in marks], reward=reward)
    if values is None:
        if any(_as_number(word) is not None for word in labels.labels):
            numbers(where, column)  # tells which rows are text
        raise DataError(
            where,
            "holds words of which it is not clear which are the harm",
            fix='Name those that are: --bad WORD,WORD (bad=["WORD", "WORD"]).',
        )
    if not says_yes_no(values) or marks:
        _tell(where, labels, {w: 1 - v if reward else v for w, v in values.items()}, marks)
    return _applied(labels, values), _outcome(values)


def _as_before(where: str, labels: LabelledColumn, known: Outcome) -> Floats | None:
    """By the words and codes of the log that a policy was fitted on; None if it has none of them.

    A value that the log did not have is not known.
    """
    values: dict[str, float] = {}
    for label in labels.labels:
        for own, value in ((known.words, 1.0), (known.others, 0.0)):
            if any(_same(label, word) for word in own):
                values[label] = value
    if not values or not known.others:
        return None
    new = [own not in values and not is_missing_mark(own) for own in labels.labels]
    count = int(np.array([*new, False])[labels.code].sum())
    if count:
        note(f"{where}: {shown(count)} rows hold a value not seen before: their loss is not known")
    return _applied(labels, values)


def _applied(labels: LabelledColumn, values: Mapping[str, float]) -> Floats:
    by_code = [values.get(label, np.nan) for label in labels.labels]
    loss: Floats = np.array([*by_code, np.nan])[labels.code]
    return loss


def _outcome(values: Mapping[str, float]) -> Outcome:
    ones, zeros = (tuple(w for w, value in values.items() if value == own) for own in (1.0, 0.0))
    return Outcome(words=ones, others=zeros)


def _tell(
    where: str, labels: LabelledColumn, loss: Mapping[str, float], marks: Sequence[str]
) -> None:
    """Say what counts as harm; a value that few rows have is not shown."""
    counts = np.bincount(labels.code[labels.code >= 0], minlength=len(labels.labels))
    harm, good = (
        _listed([w for w, own in loss.items() if own == value], labels.labels, counts)
        for value in (1.0, 0.0)
    )
    column = where.partition(", column ")[2] or where
    missing = ", ".join(f'"{mark}"' for mark in marks)
    unknown = f", not known where it is {missing}" if marks else ""
    note(f"the loss is 1 where {column} is {harm}, and 0 where it is {good}{unknown}")


def _listed(words: Sequence[str], labels: tuple[str, ...], counts: Ints) -> str:
    common = [word for word in words if counts[labels.index(word)] >= LEAST_PEOPLE]
    told = [f'"{word}"' if _as_number(word) is None else word for word in common[:_MOST_SHOWN]]
    rest = len(words) - len(told)
    if rest:
        told.append("a value that is not shown")
    return " or ".join(told) if told else "nothing"


def _same(label: str, wanted: str) -> bool:
    if label == wanted or label.casefold() == wanted.strip().casefold():
        return True
    number = _as_number(wanted)
    return number is not None and number == _as_number(label)


def _as_number(word: str) -> float | None:
    try:
        value = float(word)
    except ValueError:
        return None
    return value if np.isfinite(value) else None
