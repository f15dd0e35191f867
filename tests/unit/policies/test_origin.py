"""What a policy remembers of the log it learned from."""

import json

import numpy as np
import pytest

from etips.policies.origin import Origin
from etips.worlds.two_hospitals import simulate_place


@pytest.fixture(scope="module")
def stays():
    return simulate_place(200, seed=0)


def test_it_is_shares_and_a_mean(stays):
    origin = Origin.of(stays)
    taken = np.bincount(stays.logged_action, minlength=9) / stays.n_decisions
    assert origin.action_shares == pytest.approx(taken)
    assert origin.mean_loss == pytest.approx(stays.logged_loss.mean())
    again = Origin.from_json(json.loads(json.dumps(origin.to_json())), 9)
    assert again == origin


def test_what_a_few_had_is_not_remembered(stays):
    rare = stays.subset(slice(0, 25))
    origin = Origin.of(rare)
    people = [np.unique(rare.cluster[rare.logged_action == a]).size for a in range(9)]
    assert min(people) < 11
    assert all(
        share is None for share, n in zip(origin.action_shares, people, strict=True) if 0 < n < 11
    )
    few = np.zeros(stays.n_steps)
    few[stays.decision_rows[:4]] = 1
    assert (
        Origin.of(type(stays)(**{**vars_of(stays), "loss": few, "truth": None})).mean_loss is None
    )


def vars_of(stays):
    names = ("sequence", "offsets", "schema", "action", "static", "stay", "step")
    return {name: getattr(stays, name) for name in names}


@pytest.mark.parametrize(
    "document", [{"action_shares": [0.5], "mean_loss": 0.1}, {"action_shares": [0.5] * 9},
                 {"action_shares": ["x"] * 9, "mean_loss": 0.1}, 7,
                 {"action_shares": [float("inf")] * 9, "mean_loss": None}],
)  # fmt: skip
def test_anything_else_is_refused(document):
    with pytest.raises((ValueError, TypeError, KeyError)):
        Origin.from_json(document, 9)
