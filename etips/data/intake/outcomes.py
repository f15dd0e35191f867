"""The outcome as a loss: a reward turned round, plain words read, codes of harm picked out."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal

import numpy as np
import pyarrow as pa

from etips.data.decisions import Floats
from etips.data.intake.labelled_columns import LabelledColumn, label_column
from etips.data.recipe import Outcome
from etips.data.tables.arrow_columns import is_text, numbers, plain_type
from etips.data.tables.text_cells import MARKERS
from etips.disclosure import LEAST_PEOPLE, shown_or_few
from etips.errors import DataError, SettingError
from etips.notes import note

Fate = Literal["harm", "good"]

_YES = {"yes", "y", "true", "t", "1", "ja", "j", "oui", "o", "si", "s", "sim"}
_NO = {"no", "n", "false", "f", "0", "nein", "non", "nao", "nee"}

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

_MOST_LABELS = 200  # of an outcome whose harms are named
_SHOWN = 8
_CODE = re.compile(r"^\W*\d+\s*[=:.)\]-]+\s*")  # "1 = dead", "(1) dead", as SPSS and Stata write


def is_missing_mark(text: str) -> bool:
    """Whether a label says that there is none."""
    return text.strip().lower() in MARKERS


def _plain(text: str) -> str:
    """A label in small letters, without accents and the code before it."""
    folded = unicodedata.normalize("NFKD", text.casefold())
    folded = "".join(letter for letter in folded if not unicodedata.combining(letter))
    return " ".join(_CODE.sub("", folded).split()) or folded.strip()


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+", _plain(text))


def fate_of(text: str) -> Fate | None:
    """Whether a label says harm or its contrary; None where that is not clear."""
    words = _words(text)
    found = set(words)
    if found & _OPEN:
        return None
    dead, alive, bad, good = (found & own for own in (_DEATH, _LIFE, _BAD, _GOOD))
    if (dead and alive) or (bad and good) or (alive and bad):
        return None
    deciding = dead or bad or alive or good
    fate: Fate = "harm" if dead or bad else "good"
    negated = found & _NOT
    if not negated:
        return fate if deciding or found & _LEFT else None
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
    if says_yes_no(labels):
        return {label: float(_plain(label) in _YES) for label in labels}
    fates = {label: fate_of(label) for label in labels}
    unclear = [label for label, fate in fates.items() if fate is None]
    if unclear:
        other = next((label for label in labels if label not in unclear), "")
        death = fates.get(other) == "harm" and bool(_DEATH & set(_words(other)))
        rest = set(_words(unclear[0])) & (_OPEN | _NOT | _YES | _NO)
        if len(labels) != 2 or not death or rest:
            return None
        fates[unclear[0]] = "good"
    one: Fate = "good" if reward else "harm"
    return {label: float(fate == one) for label, fate in fates.items()}


def says_yes_no(labels: Iterable[str]) -> bool:
    """Whether every label is an answer."""
    return all(_plain(label) in _YES | _NO for label in labels)


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
    values, outcome = _numbers(where, column, reward=reward, known=known)
    if not reward:
        return values, outcome
    if known is not None and known.kind == "reward":
        outcome = known
    else:
        there = values[~np.isnan(values)]
        share = bool(((there >= 0) & (there <= 1)).all())
        rule: Literal["one_minus", "minus"] = "one_minus" if share else "minus"
        outcome = replace(outcome, kind="reward", rule=rule)
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
    known = [own for own in labels.labels if own in harms or not is_missing_mark(own)]
    values = {label: float(label in harms) for label in known}
    _remark(where, labels, values)
    return _applied(labels, values), _outcome(values)


def _numbers(
    where: str, column: pa.ChunkedArray, *, reward: bool, known: Outcome | None
) -> tuple[Floats, Outcome]:
    """An outcome as numbers, and the words read as 1 and 0; those not plain are refused."""
    text = is_text(plain_type(column.type))
    words = known is not None and bool(known.others or text) and bool(known.words)
    if not text and not words:
        return numbers(where, column), Outcome()
    labels = label_column(where, where, column)
    if known is not None and words and (before := _as_before(where, labels, known)) is not None:
        return before, Outcome(words=known.words, others=known.others)
    if not text:
        return numbers(where, column), Outcome()
    marks = [label for label in labels.labels if is_missing_mark(label)]
    values = read_words([own for own in labels.labels if own not in marks], reward=reward)
    if values is None:
        if any(_as_number(word) is not None for word in labels.labels):
            numbers(where, column)  # tells which rows are text
        rule = "holds words of which it is not clear which are the harm"
        fix = 'Name those that are: --bad WORD,WORD (bad=["WORD", "WORD"]).'
        raise DataError(where, rule, fix=fix)
    if not says_yes_no(values) or marks:
        _remark(where, labels, {w: 1 - v if reward else v for w, v in values.items()})
    return _applied(labels, values), _outcome(values)


def _as_before(where: str, labels: LabelledColumn, known: Outcome) -> Floats | None:
    """By the words and codes of the log that a policy was fitted on; None if it has none of them.

    A value that the log did not have is not known.
    """
    values = {
        label: value
        for label in labels.labels
        for own, value in ((known.words, 1.0), (known.others, 0.0))
        if any(_same(label, word) for word in own)
    }
    if not values or not known.others:
        return None
    new = [own not in values and not is_missing_mark(own) for own in labels.labels]
    if any(new):
        count = shown_or_few(int(labels.counts[new].sum()))
        note(f"{where}: {count} rows hold a value not seen before: their loss is not known")
    return _applied(labels, values)


def _applied(labels: LabelledColumn, values: Mapping[str, float]) -> Floats:
    loss: Floats = np.array([*(values.get(own, np.nan) for own in labels.labels), np.nan])
    return loss[labels.code]


def _outcome(values: Mapping[str, float]) -> Outcome:
    ones, zeros = (tuple(w for w, value in values.items() if value == own) for own in (1.0, 0.0))
    return Outcome(words=ones, others=zeros)


def _remark(where: str, labels: LabelledColumn, loss: Mapping[str, float]) -> None:
    """Say what counts as harm; a value that few rows have is not shown."""
    counts = dict(zip(labels.labels, labels.counts, strict=True))

    def listed(value: float) -> str:
        words = [word for word, own in loss.items() if own == value]
        shown = [word for word in words if counts[word] >= LEAST_PEOPLE][:_SHOWN]
        texts = [f'"{word}"' if _as_number(word) is None else word for word in shown]
        rest = ["a value that is not shown"] if len(words) > len(shown) else []
        return " or ".join([*texts, *rest]) or "nothing"

    column = where.partition(", column ")[2] or where
    missing = ", ".join(f'"{label}"' for label in labels.labels if label not in loss)
    unknown = f", not known where it is {missing}" if missing else ""
    note(f"the loss is 1 where {column} is {listed(1.0)}, and 0 where it is {listed(0.0)}{unknown}")


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
