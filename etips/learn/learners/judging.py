"""Policies that could be chosen, judged on stays that their networks did not learn from."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from etips.data.decisions import Bools, Floats, Ints
from etips.learn.fitting.candidates import (
    RARE_TOO,
    REGRESSION,
    Candidate,
    Judged,
    blank,
    judge,
)
from etips.learn.fitting.crossfit import out_of_fold
from etips.learn.fitting.risk_totals import Weighing
from etips.learn.learners.aims import Aim
from etips.learn.learners.foundation import Foundation
from etips.learn.learners.regression import Regression
from etips.learn.learners.selection import Selection, choose, risk_of_choosing
from etips.models.bundle import Bundle, Trained
from etips.models.masking import forbid
from etips.policies.deployed import Acts
from etips.policies.policy import FittedPolicy

FORMS: tuple[Acts, ...] = ("draws", "likeliest")
"""What a softmax may be taken for: probabilities to draw from, or a likeliest action."""


def judge_all(
    base: Foundation,
    bundle: Bundle,
    aims: Sequence[Aim],
    *,
    expected: Floats | None = None,
    constants: bool = True,
    regression: Regression | None = None,
) -> Judged:
    """Every set of trained networks in both forms, every constant, a regression, the clinicians.

    Where nothing is allowed, or not the constant, a policy abstains: the clinicians decide, and the
    weight is 1.

    Args:
        base: What the policies stand on.
        bundle: Networks of policies, set by set.
        aims: What each set was trained by.
        expected: Predicted loss of every action, out of fold, shape (n_decisions, n_actions).
        constants: Whether these are among them.
        regression: That stands beside them, if any does.
    """
    data, logged = base.prepared.data, base.prepared.data.logged_action
    said = None if expected is None else expected[np.arange(len(logged)), logged]
    weighing = Weighing(base.chance, data.logged_loss, data.cluster, said)
    chosen, predicted = _of_rules(base, bundle, expected)
    rules = _of_sets(aims, bundle.trained, base.prepared.folds.n_networks)
    candidates = [replace(own, acts=acts) for acts in FORMS for own in rules]
    abstains: list[Bools] = [np.asarray(~base.allowed.any(axis=1))] * len(candidates)
    for action in np.flatnonzero(base.allowed.any(axis=0) & constants):
        candidates.append(blank(math.nan, int(action), "likeliest"))
        chosen.append((logged == action).astype(np.float64))
        predicted.append(None if expected is None else expected[:, action])
        abstains.append(~base.allowed[:, action])
    for form, (own, best) in _of_regression(base, regression).items():
        candidates.append(replace(blank(math.nan, None, "likeliest"), form=form))
        chosen.append((logged == best).astype(np.float64))
        predicted.append(None if expected is None else expected[np.arange(len(best)), best])
        abstains.append(np.asarray(~own.allowed.any(axis=1)))
    candidates.append(replace(blank(math.nan, None), clinicians=True))
    chosen.append(base.chance)
    predicted.append(said)
    abstains.append(np.ones(len(logged), bool))
    followed = zip(abstains, chosen, strict=True)
    deployed = [np.where(where, base.chance, own) for where, own in followed]
    return judge(candidates, weighing.totals(deployed, _predicted(abstains, predicted, said)))


def follow_rule(bases: Sequence[Foundation], networks: Bundle, acts: Acts) -> list[Floats]:
    """Probability of the logged action by networks that did not learn from it, shape (n,) each.

    Args:
        bases: What they stand on; apart from the floor on support all the same.
        networks: Of one set.
        acts: Which form they take.
    """
    base, allowed = bases[0], [own.allowed_rows() for own in bases]

    def readout(outputs: Tensor, seen: Tensor) -> Tensor:
        free = base.start.logits(outputs.double(), seen)
        logits = torch.cat([forbid(free, own[seen]) for own in allowed])
        forms = logits.softmax(-1) if acts == "draws" else _likeliest(logits)
        return _of_logged(forms, base.prepared.action[seen])

    return list(out_of_fold(networks, base.prepared, readout).cpu().numpy())


def settle(base: Foundation, judged: Judged, selection: Selection) -> tuple[Candidate, ...]:
    """The candidates, one of them chosen, with the risk that choosing comes to."""
    best = choose(judged, selection)
    fold = _fold_of_patients(base)
    corrected = risk_of_choosing(judged, selection, fold) or (None, None)
    path = list(judged.candidates)
    path[best] = replace(
        path[best], chosen=True, corrected=corrected[0], corrected_error=corrected[1]
    )
    return tuple(path)


def chosen_set(path: Sequence[Candidate], n_sets: int) -> int | None:
    """Number of the set of networks that was chosen; None where it was something else.

    Args:
        path: The candidates, one of them chosen: sets in one form, then in the other, then others.
        n_sets: How many sets there are.
    """
    place = next(i for i, c in enumerate(path) if c.chosen)
    return place % n_sets if place < len(FORMS) * n_sets else None


def chosen_policy(
    base: Foundation,
    path: Sequence[Candidate],
    networks: Bundle | None,
    regression: Regression | None = None,
) -> FittedPolicy:
    """The policy that the chosen candidate stands for.

    Args:
        base: What it stands on.
        path: The candidates, one of them chosen.
        networks: Of the chosen set; None where none is.
        regression: As judged, like the others.
    """
    winner = next(c for c in path if c.chosen)
    if winner.clinicians:
        return base.policy("imitation")
    if winner.action is not None:
        return base.policy("constant", constant=winner.action)
    if winner.form in (REGRESSION, RARE_TOO):
        assert regression is not None
        own, _ = _of_regression(base, regression)[winner.form]
        return own.policy("least amount", networks=regression.model)
    return base.policy("softmax", networks=networks, acts=winner.acts)


def _of_regression(
    base: Foundation, regression: Regression | None
) -> dict[str, tuple[Foundation, Ints]]:
    """What each candidate of a regression stands on, and its action at each decision, by form."""
    if regression is None:
        return {}
    grounds = {REGRESSION: base}
    if regression.floor is not None:
        grounds[RARE_TOO] = base.with_floor(regression.floor)
    return {form: (own, regression.least(own.allowed)) for form, own in grounds.items()}


def _of_rules(
    base: Foundation, bundle: Bundle, expected: Floats | None
) -> tuple[list[Floats], list[Floats | None]]:
    """Probability of the logged action, and predicted loss, of every set in every form."""
    allowed, action = base.allowed_rows(), base.prepared.action
    losses = None if expected is None else base.prepared.by_row(expected)

    def readout(outputs: Tensor, seen: Tensor) -> Tensor:
        logits = forbid(base.start.logits(outputs.double(), seen), allowed[seen])
        forms = torch.cat([logits.softmax(-1), _likeliest(logits)])  # in the order of FORMS
        kept = [_of_logged(forms, action[seen])]
        if losses is not None:
            kept.append((forms * losses[seen]).sum(-1))
        return torch.cat(kept)

    answers = list(out_of_fold(bundle, base.prepared, readout).cpu().numpy())
    if losses is None:
        return answers, [None] * len(answers)
    half = len(answers) // 2
    return answers[:half], list(answers[half:])


def _likeliest(logits: Tensor) -> Tensor:
    """Probabilities of a policy that takes its likeliest action."""
    return torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1]).double()


def _of_logged(forms: Tensor, action: Tensor) -> Tensor:
    """Of each policy, shape (k, n, n_actions), the probability of the logged action."""
    taken = action[:, None].expand(len(forms), -1, 1)
    return forms.gather(2, taken).squeeze(2)


def _of_sets(aims: Sequence[Aim], trained: Sequence[Trained], n_folds: int) -> list[Candidate]:
    """A candidate for each set of networks."""
    return [
        _of_set(aim, trained[place * n_folds : (place + 1) * n_folds])
        for place, aim in enumerate(aims)
    ]


def _of_set(aim: Aim, trained: Sequence[Trained]) -> Candidate:
    """A candidate with how the training of its networks ended, as far as that is known."""
    return replace(
        blank(aim.translation, None),
        form=aim.form,
        strength=aim.strength,
        epochs=max((own.epochs for own in trained), default=None),
        in_race=all(own.in_race for own in trained),
    )


def _predicted(
    abstains: Sequence[Bools], predicted: Sequence[Floats | None], said: Floats | None
) -> list[Floats]:
    """Predicted loss of what each policy does, the clinicians' own where it abstains."""
    if said is None:
        return []
    each = zip(abstains, predicted, strict=True)
    return [np.where(where, said, own) for where, own in each if own is not None]


def _fold_of_patients(base: Foundation) -> Ints:
    """Fold of every patient with a decision, in the order of their numbers."""
    data = base.prepared.data
    _, first = np.unique(data.cluster, return_index=True)
    return np.asarray(base.prepared.folds.fold[data.decisions().stay[first]])
