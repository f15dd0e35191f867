"""Which candidate becomes the policy: one that beats the clinicians and the constants beyond noise.

The chosen candidate is the luckiest of many, so its risk is too low; `risk_of_choosing` says what
choosing comes to on patients that it did not look at.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np

from etips.data.decisions import Floats, Ints
from etips.evaluation.inference.evidence import Gap
from etips.learn.fitting.candidates import RARE_TOO, REGRESSION, Candidate, Judged

Selection = Literal["held-out", "paper"]
"""How to choose: by what was held out and how much it weighs, or by the paper's plain SNIPS."""

CHANCE = 0.2
"""Chance that any candidate beats the clinicians where none is better. What is chosen is evaluated
on other stays all the same, so that a missed gain weighs more than a false one."""

CAUTION = 0.5
"""Standard errors that are added to the risks of those that are better."""

DRAWING = 1.0
"""Standard errors by which drawing must be better than the likeliest action of the same networks.
Networks are judged one by one and answer together: what they draw is then as good on average, their
likeliest action better."""

KEEPING = 1.0
"""Standard errors by which a regression must be better with the usual floor on support than with
the lower one. That one is there because rare actions bore out what was predicted of them, which
shows more than weights of a few who got them; these may only object."""

USUAL, APART = ("translated", "beta-IPS"), ("smoothed gains", "doubly robust")
"""Forms of translations and of the baseline of least variance, and those that are a kind of their
own beside them."""

LEADING = 1.0
"""Standard errors by which one of another kind must be better than the usual one, and networks than
a regression. Where both are alike these are the safer: the usual ones follow the weighted loss
itself, and a regression has fewer ways to be lucky."""

_DRAWS = 4000  # of the luckiest candidate
_DIGITS = 9  # to which a rule and a constant that do the same are equals: the constant is kept


def choose(judged: Judged, selection: Selection) -> int:
    """Place of the candidate that becomes the policy.

    Held-out: all are compared with the clinicians, paired by patient. A candidate is better if it
    is so by more standard errors than luck explains (`_better`); networks are if they are in either
    form. Of those that are better the lowest risk plus `CAUTION` standard errors wins, so that a
    rule has to beat the constants, too, and the better supported of two equals is kept. The best
    constant is the luckiest of as many as there are actions; what that luck comes to is added to
    constants, and to rules that are one. Networks must lead a regression that is the best of all
    others by `LEADING` standard errors, and those of a kind `APART` the usual ones, if these are
    better. A rule takes its likeliest action unless drawing is better by `DRAWING`, and a
    regression goes down to its lower floor, if it has one, unless the usual one is better by
    `KEEPING`. Where nothing is better it is the clinicians.
    Paper: the lowest SNIPS of those that were trained and draw.
    """
    candidates = judged.candidates
    if selection == "paper":
        trained = [i for i, c in enumerate(candidates) if c.is_rule and c.acts == "draws"]
        return min(trained, key=lambda i: candidates[i].risk)
    gaps = gaps_to_clinicians(judged)
    better = {_origin(candidates[i]) for i in _better(candidates, gaps)}
    return _Contest(judged, gaps).kept([i for i in gaps if _origin(candidates[i]) in better])


def risk_of_choosing(
    judged: Judged, selection: Selection, fold: Ints
) -> tuple[float, float] | None:
    """Risk of what choosing comes to, and its standard error; None without folds.

    The patients of each fold are judged by the candidate that the other folds choose.

    Args:
        judged: The candidates.
        selection: How to choose.
        fold: Of each patient, shape (k,).
    """
    if fold.max() == 0:
        return None
    places = np.empty(len(fold), np.int64)
    for number in range(fold.max() + 1):
        inside = fold == number
        places[inside] = choose(judged.on(~inside), selection)
    evidence = judged.totals.evidence_of_choice(places)
    return evidence.value, evidence.std_error


def place_of_clinicians(judged: Judged) -> int:
    """Where the clinicians stand among the candidates."""
    return next(i for i, c in enumerate(judged.candidates) if c.clinicians)


def gaps_to_clinicians(judged: Judged) -> dict[int, Gap]:
    """Risk less that of the clinicians, paired by patient, of every candidate fit to choose by."""
    clinicians = place_of_clinicians(judged)
    return {
        i: judged.totals.gap(i, clinicians)
        for i, c in enumerate(judged.candidates)
        if c.sound and c.in_race and not c.clinicians
    }


def _better(candidates: Sequence[Candidate], gaps: Mapping[int, Gap]) -> list[int]:
    """Places of those that beat the clinicians by more than luck.

    Rules and constants have half of `CHANCE` each, or one of them all of it where the other is
    missing: by more standard errors than the luckiest of its kind, as alike as these are, would be
    with that chance. Together they would ask the more of a rule the more actions there are, and
    constants of rare actions are many and unlike.

    Args:
        candidates: All of them.
        gaps: Risks less that of the clinicians, by place.
    """
    kinds = [[i for i in gaps if candidates[i].is_rule is rule] for rule in (True, False)]
    some = [own for own in kinds if own]
    reach = [luckiest([gaps[i].influence for i in own], CHANCE / len(some)) for own in some]
    return [
        i for own, far in zip(some, reach, strict=True) for i in own if highest(gaps[i], far) < 0
    ]


@dataclass(frozen=True)
class _Contest:
    """Candidates that are held against each other.

    Args:
        judged: All of them.
        gaps: Risks less that of the clinicians, by place.
    """

    judged: Judged
    gaps: Mapping[int, Gap]

    def kept(self, some: Sequence[int]) -> int:
        """Place of the candidate that is kept of those that are better than the clinicians."""
        best = self._safest(some)
        return place_of_clinicians(self.judged) if best is None else self._taken(best)

    def _safest(self, some: Sequence[int]) -> int | None:
        """The best of some, or what is safer where its lead on that may be luck.

        Networks are left out that do not lead a regression which is the best of all others, then
        those `APART` if the best of them does not lead the usual ones.
        """
        form = [own.form for own in self.judged.candidates]
        networks = [i for i in some if _is_network(self.judged.candidates[i])]
        best, other = self._best(some), self._best([i for i in some if i not in networks])
        if best in networks and other is not None and self.judged.candidates[other].is_rule:
            some = [i for i in networks if self._leads(i, other)] or [other]
            best = self._best(some)
        usual = self._best([i for i in some if i in networks and form[i] in USUAL])
        if best is None or usual is None or form[best] not in APART or self._leads(best, usual):
            return best
        return self._best([i for i in some if form[i] not in APART])

    def _best(self, some: Sequence[int]) -> int | None:
        return min(some, key=self._cautious, default=None)

    def _cautious(self, place: int) -> tuple[float, bool]:
        """What candidates are ordered by: what their risk may be, and constants before rules."""
        luck, lucky = self._luck
        risk, gap = highest(self.gaps[place], CAUTION), round(self.gaps[place].value, _DIGITS)
        rule = self.judged.candidates[place].is_rule
        return round(risk + luck * (gap in lucky), _DIGITS), rule

    @cached_property
    def _luck(self) -> tuple[float, set[float]]:
        """Luck of the best constant, and the gaps of all constants."""
        some = [gap for i, gap in self.gaps.items() if not self.judged.candidates[i].is_rule]
        return _luck_of_best(some), {round(gap.value, _DIGITS) for gap in some}

    def _leads(self, one: int, safer: int) -> bool:
        """Whether a candidate is better than a safer one by `LEADING`, both as they are taken."""
        return highest(self.judged.totals.gap(self._taken(one), self._taken(safer)), LEADING) < 0

    def _taken(self, place: int) -> int:
        """The form in which a candidate is kept: by how it acts, or by its floor."""
        candidates = self.judged.candidates
        same = [i for i in self.gaps if _origin(candidates[i]) == _origin(candidates[place])]
        forms = {_shape(candidates[i]): i for i in same}
        if not candidates[place].is_rule or len(forms) < 2:
            return place
        by_floor = RARE_TOO in forms
        first, second = (REGRESSION, RARE_TOO) if by_floor else ("draws", "likeliest")
        gap = self.judged.totals.gap(forms[first], forms[second])
        return forms[first if highest(gap, KEEPING if by_floor else DRAWING) < 0 else second]


def _is_network(candidate: Candidate) -> bool:
    """Whether it is a rule of networks: neither a regression, a constant, nor the clinicians."""
    return candidate.is_rule and candidate.form not in (REGRESSION, RARE_TOO)


def _origin(candidate: Candidate) -> tuple[int | None, str, str]:
    """What a candidate comes from: an action, networks or a regression, whatever form they take."""
    numbers = f"{candidate.translation} {candidate.strength}"  # NaN differs from itself
    form = REGRESSION if candidate.form == RARE_TOO else candidate.form
    return candidate.action, form, numbers


def _shape(candidate: Candidate) -> str:
    """Which of two forms it takes: of a regression by its floor, of networks by how they act."""
    by_floor = candidate.form in (REGRESSION, RARE_TOO)
    return candidate.form if by_floor else candidate.acts


def highest(gap: Gap, reach: float) -> float:
    """How much worse than the clinicians one may be, at most; infinite where nothing is known."""
    highest = gap.value + reach * gap.std_error
    return highest if np.isfinite(highest) else np.inf


def luckiest(effects: Sequence[Floats], chance: float = CHANCE) -> float:
    """A height that the highest of m standard normal numbers passes with some chance.

    Args:
        effects: What each of k patients adds to each, shape (k,): they correlate as these do.
        chance: That it does.
    """
    return float(np.quantile(_noise(effects).max(axis=1), 1 - chance))


def _luck_of_best(gaps: Sequence[Gap]) -> float:
    """How much lower the lowest of several risks lies than that candidate's own, on average.

    As noise like theirs would have it, were the risks as they are: next to nothing where one of
    them is far ahead, a standard error where five are alike.

    Args:
        gaps: Risks less that of the clinicians.
    """
    known = [gap for gap in gaps if np.isfinite(gap.std_error) and gap.influence.any()]
    if len(known) < 2:
        return 0.0
    noise = _noise([gap.influence for gap in known]) * [gap.std_error for gap in known]
    lowest = (noise + [gap.value for gap in known]).argmin(axis=1)
    return float(-noise[np.arange(len(noise)), lowest].mean())


def _noise(effects: Sequence[Floats]) -> Floats:
    """Standard normal numbers, drawn many times, that correlate as effects do, shape (draws, m)."""
    some = [effect for effect in effects if effect.any()]
    if not some:
        return np.zeros((1, 1))
    alike = np.stack([effect / np.sqrt((effect**2).sum()) for effect in some])
    values, directions = np.linalg.eigh(alike @ alike.T)
    root = directions * np.sqrt(np.maximum(values, 0))
    return np.asarray(_drawn(len(values)) @ root.T)


@lru_cache(maxsize=8)
def _drawn(m: int) -> Floats:
    """Independent standard normal numbers, always the same, shape (draws, m)."""
    drawn = np.random.default_rng(0).normal(size=(_DRAWS, m))
    drawn.flags.writeable = False
    return drawn
