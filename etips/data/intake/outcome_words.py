"""Words of an outcome: which of them say that harm came, and whether that is clear at all."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Literal

from etips.data.tables.number_cells import MARKERS

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

    Args:
        labels: The distinct labels; marks of a missing value are left to the caller.
        reward: Whether more is better.
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
