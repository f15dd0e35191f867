"""How networks do on held-out stays, and which of their states is kept."""

import math

import numpy as np
import pytest
import torch
from training_runs import COHORT, SEEDS, TRANSLATIONS, etips_objective, folds, network_of, tensors

from etips.learn.training import teams
from etips.learn.training.objectives import Sliced
from etips.learn.training.state import State
from etips.learn.training.validation import Validation, keep_best
from etips.models.bundle import Bundle


def setting(*, objective=None, **more):
    data = COHORT.make()
    bundle = Bundle.start(network_of(data), SEEDS).to(dtype=torch.float64)
    own = objective or etips_objective(data, TRANSLATIONS)
    validation = Validation(bundle.network, tensors(data), own, folds()[1], **more)
    return data, State.start(bundle), validation


def risk_is(values):
    """An objective that says the same of every decision, for each network its own."""
    risks = torch.tensor(values, dtype=torch.float64)[:, None]
    return Sliced(lambda outputs, seen, these: risks[these].expand(-1, len(seen)))


@pytest.mark.parametrize("worth", [0, math.inf], ids=["in teams", "all together"])
def test_a_risk_is_the_mean_over_the_networks_own_held_out_decisions(worth, monkeypatch):
    monkeypatch.setattr(teams, "WORTH", worth)
    data = COHORT.make()
    count = torch.zeros(data.n_steps, dtype=torch.float64)
    count[data.seen_rows] = torch.arange(data.n_decisions, dtype=torch.float64)
    _, state, validation = setting(
        objective=Sliced(lambda o, seen, _: count[seen].expand(len(o), -1))
    )
    assert len(validation.teams) == (1 if worth else 4)
    risk = validation.risks(state.parameters).risk
    out = validation.held_out.numpy()[:, data.decisions().stay]
    wanted = [np.average(np.arange(data.n_decisions), weights=row) for row in out[:3]]
    assert risk.tolist() == pytest.approx([*wanted, 0.0])


def test_a_network_can_be_stopped_by_the_stays_held_out_from_the_others():
    _, state, validation = setting(objective=risk_is([3.0, 1.0, 2.0, 9.0]), by_others=True)
    assert validation.risks(state.parameters).risk.tolist() == pytest.approx([1.5, 2.5, 2.0, 0.0])


def test_the_best_state_is_kept_and_the_epochs_since_it_are_counted():
    _, state, _ = setting()
    for number, risks in enumerate(([3.0, 1.0, 2.0, 9.0], [2.0, 1.5, 2.0, 9.0])):
        for value in state.parameters.values():
            value.fill_(float(number))
        keep_best(state, setting(objective=risk_is(risks))[2], 5)
    assert state.best_risk[:3].tolist() == [2.0, 1.0, 2.0]
    assert state.waited.tolist() == [0, 1, 1, 0]
    assert state.best["head.bias"][:, 0].tolist() == [1.0, 0.0, 0.0, 1.0]  # nobody checks the last


def test_a_network_that_has_stopped_is_not_taken_up_again():
    _, state, _ = setting()
    state.waited = torch.tensor([2, 0, 0, 0])
    keep_best(state, setting(objective=risk_is([1.0] * 4))[2], 2)
    assert state.best_risk[0] == math.inf
    assert state.waited.tolist() == [3, 0, 0, 0]


def test_the_matching_factor_is_found_where_somebody_asks_and_there_is_one():
    assert keep_best(setting()[1], setting()[2], 5) is None
    weighed = setting(weigh=True)[2]
    factor = keep_best(setting()[1], weighed, 5)
    validated = weighed.risks(setting()[1].parameters).factor[:3]
    assert factor == pytest.approx(float(validated.mean()))
    assert keep_best(setting()[1], setting(weigh=True, objective=risk_is([1.0] * 4))[2], 5) is None
