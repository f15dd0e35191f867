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
    assert (state.epoch, state.batch, state.step) == (0, 0, 0)


def test_some_networks_are_changed_in_the_memory_of_all():
    _, state = start()
    own = state.moving.of(slice(1, 4, 2))
    own.parameters["head.bias"].add_(1.0)
    own.tally.add_(2.0)
    assert state.parameters["head.bias"][:, 0].tolist() == [0.0, 1.0, 0.0, 1.0]
    assert state.tally.tolist() == [0.0, 2.0, 0.0, 2.0]


def test_all_that_a_step_changes_is_told():
    _, state = start()
    places = {tensor.data_ptr() for tensor in state.moving.tensors()}
    groups = (state.parameters, state.first, state.second)
    assert places == {v.data_ptr() for group in groups for v in group.values()} | {
        state.tally.data_ptr()
    }
