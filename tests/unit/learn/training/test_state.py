"""Where training stands."""

import torch
from training_runs import COHORT, SEEDS, network_of

from etips.learn.training.state import State
from etips.models.bundle import Bundle


def start():
    bundle = Bundle.start(network_of(COHORT.make()), SEEDS)
    return bundle, State.start(bundle)


def test_a_training_starts_at_the_bundle_and_leaves_it_alone():
    bundle, state = start()
    for name, value in bundle.parameters.items():
        assert torch.equal(state.parameters[name], value)
        assert torch.equal(state.best[name], value)
        assert not state.first[name].any()
        assert not state.second[name].any()
        state.parameters[name].add_(1.0)
        assert not torch.equal(state.best[name], state.parameters[name])
        assert not torch.equal(bundle.parameters[name], state.parameters[name])
    assert state.best_risk.isinf().all()
    assert state.epoch == 0


def test_some_networks_are_changed_in_the_memory_of_all():
    _, state = start()
    state.share()
    own = state.of(slice(1, 4, 2))
    own.parameters["head.bias"].add_(1.0)
    own.best_risk.fill_(2.0)
    assert state.parameters["head.bias"][:, 0].tolist() == [0.0, 1.0, 0.0, 1.0]
    assert (state.best_risk == 2.0).tolist() == [False, True, False, True]
