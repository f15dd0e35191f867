"""How networks do on held-out stays, and which of their states is kept."""

import math

import numpy as np
import pytest
import torch
from training_runs import COHORT, SEEDS, TRANSLATIONS, etips_objective, folds, network_of, tensors

from etips.learn.training.objectives import Sliced
from etips.learn.training.state import State
from etips.learn.training.validation import Validation, keep_best, risks_of_others
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


def test_a_risk_is_the_mean_over_the_networks_own_held_out_decisions():
    data = COHORT.make()
    count = torch.zeros(data.n_steps, dtype=torch.float64)
    count[data.seen_rows] = torch.arange(data.n_decisions, dtype=torch.float64)
    _, state, validation = setting(
        objective=Sliced(lambda o, seen, _: count[seen].expand(len(o), -1))
    )
    risk, _ = validation.risks(state.parameters)
    out = validation.held_out.numpy()[:, data.decisions().stay]
    wanted = [np.average(np.arange(data.n_decisions), weights=row) for row in out[:3]]
    assert risk.tolist() == pytest.approx([*wanted, 0.0])
    some = slice(0, 3, 2)
    own = {name: value[some] for name, value in state.parameters.items()}
    assert validation.of(some).risks(own)[0].tolist() == pytest.approx([wanted[0], wanted[2]])


def test_the_best_state_is_kept_and_the_epochs_since_it_are_counted():
    _, state, _ = setting()
    for number, risks in enumerate(([3.0, 1.0, 2.0, 9.0], [2.0, 1.5, 2.0, 9.0])):
        for value in state.parameters.values():
            value.fill_(float(number))
        keep_best(state, torch.tensor(risks).double(), torch.tensor([True] * 3 + [False]), 5)
    assert state.best_risk[:3].tolist() == [2.0, 1.0, 2.0]
    assert state.waited.tolist() == [0, 1, 1, 0]
    assert state.best["head.bias"][:, 0].tolist() == [1.0, 0.0, 0.0, 1.0]  # nobody checks the last


def test_a_network_that_has_stopped_is_not_taken_up_again():
    _, state, _ = setting()
    state.waited = torch.tensor([2, 0, 0, 0])
    keep_best(state, torch.ones(4).double(), torch.tensor([True] * 3 + [False]), 2)
    assert state.best_risk[0] == math.inf
    assert state.waited.tolist() == [3, 0, 0, 0]


def test_the_matching_factor_is_found_where_it_is_asked_for_and_there_is_one():
    def factor(**more):
        _, state, validation = setting(**more)
        return validation.risks(state.parameters)[1]

    assert (factor(weigh=True)[:3] > 0).all()
    assert not factor().any()
    assert not factor(weigh=True, objective=risk_is([1.0] * 4)).any()


def test_a_network_may_be_stopped_by_the_risk_of_all_others():
    risk, validated = torch.tensor([1.0, 2.0, 6.0, 0.0]), torch.tensor([True] * 3 + [False])
    assert risks_of_others(risk, validated).tolist() == [4.0, 3.5, 1.5, 0.0]
    alone = torch.tensor([True, False, False, False])
    assert torch.equal(risks_of_others(risk, alone), risk)  # by its own where there is no other
