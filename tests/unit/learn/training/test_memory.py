"""Networks that do not fit side by side are trained in parts, with the same result."""

import math

import numpy as np
import pytest
import torch
from small_worlds import small, ward

from etips.errors import ResourceError
from etips.files.fingerprint import fingerprint
from etips.learn import EtIPS
from etips.learn.fitting.prepare import prepare
from etips.learn.training import loop, memory
from etips.learn.training.settings import Settings
from etips.models.answers import BATCH_SIZE
from etips.models.encoders.gru import GRU
from etips.models.encoders.lstm import LSTM
from etips.models.encoders.transformer import CausalTransformer
from etips.models.network import Network
from etips.runs.run import Run, read_log

CPU = torch.device("cpu")
SETTINGS = Settings(batch_size=16)


def steps_of(**more):
    return prepare(ward(**more), n_folds=2, seed=0, device=CPU).steps


def network(encoder, n_features=4):
    return Network(encoder, n_features, 2, 3)


# ---- the estimate ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("encoder", "arrays"),
    [
        (GRU(16), 5),  # two gates, candidate, its recurrent part, state
        (LSTM(16), 7),  # four gates, memory, its tanh, state
    ],
)
def test_what_a_pass_keeps_is_counted_to_the_byte(encoder, arrays):
    one, two = (memory._kept(network(encoder), 6, n_stays) for n_stays in (1, 2))
    inputs, states = 6 * 4, 6 * 16  # steps times features, steps times hidden
    static = 2
    assert two - one == 4 * (inputs + arrays * states + static)


def test_a_larger_batch_a_wider_state_and_more_outputs_take_more():
    steps = steps_of()

    def bytes_of(hidden=16, batch_size=512, n_outputs=3):
        shape = Network(GRU(hidden), 4, 2, n_outputs)
        return memory.estimate(shape, steps, Settings(batch_size=batch_size))

    usual = bytes_of()
    assert bytes_of(hidden=32) > 1.5 * usual
    assert bytes_of(batch_size=1024) > 1.5 * usual
    assert bytes_of(n_outputs=30) > 1.5 * usual


def test_any_encoder_can_be_estimated():
    found = memory.estimate(network(CausalTransformer()), steps_of(), SETTINGS)
    assert found > memory.estimate(network(GRU(64)), steps_of(), SETTINGS)


# ---- what is free ------------------------------------------------------------------------------


def test_free_memory_is_that_of_the_machine_or_less():
    assert 0 < memory.free(CPU) <= 2 * memory._half_of_all()


def test_where_nothing_is_known_half_of_the_memory_counts_as_free(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: None)
    assert memory.free(CPU) == memory._half_of_all() > 10**8
    monkeypatch.setattr(memory, "free_memory", lambda: 0)
    assert memory.free(CPU) == 0


# ---- the parts ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_networks", "room", "sizes"),
    [
        (10, 100, [10]),
        (10, 99, [5, 5]),
        (10, 35, [3, 3, 3, 1]),
        (10, 10, [1] * 10),
        (10, 0, [1] * 10),
        (9, 60, [5, 4]),
        (1, 0, [1]),
    ],
)
def test_networks_are_cut_into_as_few_parts_of_about_one_size_as_fit(n_networks, room, sizes):
    parts = memory.parts_of(n_networks, 10, room)
    assert [part.stop - part.start for part in parts] == sizes
    assert [i for part in parts for i in range(n_networks)[part]] == list(range(n_networks))


def test_fewer_stays_are_asked_at_once_where_memory_is_short(monkeypatch):
    steps, shape = steps_of(), network(GRU(16))
    assert memory.stays_at_once(shape, steps, 5) == BATCH_SIZE
    each = 4 * int(steps.reach.max()) * (3 * 16 + 8 * 3)  # arrays of states and of outputs
    for stays in (1, 7, 100):
        monkeypatch.setattr(memory, "free", lambda _, n=stays: (n * 5 * each + 1) / memory.SHARE)
        assert memory.stays_at_once(shape, steps, 5) == stays
    monkeypatch.setattr(memory, "free", lambda _: 0)
    assert memory.stays_at_once(shape, steps, 5) == 1


def learner(**more):
    return EtIPS(**small(translations=(0.2, 0.5, 0.8), **more))


def little(monkeypatch, networks):
    """Leave memory for so many networks."""
    monkeypatch.setattr(memory, "estimate", lambda *_: 10)
    monkeypatch.setattr(memory, "free", lambda _: 10 * networks / memory.SHARE + 1)


by_fold_or_not = pytest.mark.parametrize("worth", [0, math.inf], ids=["by fold", "together"])
"""Whether the networks of a fold learn by themselves."""


@by_fold_or_not
def test_in_parts_the_same_is_learned(worth, monkeypatch, trained):
    whole = learner().fit(ward())
    monkeypatch.setattr(loop, "WORTH", worth)
    little(monkeypatch, 4)
    trained.clear()
    parts = learner().fit(ward())
    # Propensities, the policies in two parts, and what was chosen among them, which goes on.
    assert trained == [2, 3, 3, 2]
    assert parts.predict_proba(ward()) == pytest.approx(whole.predict_proba(ward()), abs=1e-5)
    for mine, theirs in zip(parts.path_, whole.path_, strict=True):
        assert mine.risk == pytest.approx(theirs.risk, abs=1e-5)
        assert mine.matching_factor == pytest.approx(theirs.matching_factor, abs=1e-5)


def test_every_network_alone_still_learns_the_same(monkeypatch, trained):
    whole = learner().fit(ward())
    little(monkeypatch, 1)
    trained.clear()
    parts = learner().fit(ward())
    assert set(trained) == {1}
    assert parts.predict_proba(ward()) == pytest.approx(whole.predict_proba(ward()), abs=1e-5)


def weights_of(fitted):
    networks = (fitted.policy_.propensity, fitted.policy_.networks)
    return [v.numpy() for bundle in networks if bundle for v in bundle.parameters.values()]


def run_for(folder, *, stop_at=None):
    """Fit in a run folder; `stop_at`: break off at the epoch of this number."""
    told = []

    def report(at):
        told.append(at.stage)
        if len(told) == stop_at:
            raise KeyboardInterrupt

    with Run(folder, fingerprint(work=1), every=0) as run:
        return learner().fit(ward(), report=report, run=run), told


def test_a_run_in_parts_is_resumed_in_the_same_parts_to_the_same_bytes(tmp_path, monkeypatch):
    little(monkeypatch, 2)
    wanted, stages = run_for(tmp_path / "whole")
    parts = [f"policy-{at}-{at + 2}" for at in (0, 2, 4)]
    assert sorted(set(stages)) == sorted(["propensity", *parts, "finish"])
    stop_at = stages.index("policy-2-4") + 1
    with pytest.raises(KeyboardInterrupt):
        run_for(tmp_path / "cut", stop_at=stop_at)
    little(monkeypatch, 100)  # there is more room by now
    found, again = run_for(tmp_path / "cut")
    assert "policy-0-2" not in again
    assert set(again) <= {"policy-2-4", "policy-4-6", "finish"}
    for mine, theirs in zip(weights_of(found), weights_of(wanted), strict=True):
        assert np.array_equal(mine, theirs)
    events = [line.get("event") for line in read_log(tmp_path / "whole" / "log.jsonl")]
    assert "6 networks in 3 parts, for memory" in events


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (torch.OutOfMemoryError("CUDA out of memory."), "memory of the GPU: ran out in training"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), "memory: ran"),
    ],
)
def test_memory_that_runs_out_is_refused_with_a_remedy(error, words):
    with pytest.raises(ResourceError, match=f"^{words}.* Lower batch_size"), memory.refusing_lack():
        raise error


def test_another_failure_is_not_taken_for_a_lack_of_memory():
    with pytest.raises(RuntimeError, match="shapes"), memory.refusing_lack():
        raise RuntimeError("shapes do not match")
    with pytest.raises(RuntimeError, match="pin_memory"), memory.refusing_lack():
        raise RuntimeError("pin the memory, or allocate the tensor with pin_memory=True")


def test_as_many_may_ask_as_memory_holds_and_one_in_any_case(monkeypatch):
    steps, shape = steps_of(), network(GRU(16))
    each = 100 * 3 * memory._asking(shape, steps)
    for room, found in ((3.5 * each, 3), (each, 1), (0.5 * each, 1)):
        monkeypatch.setattr(memory, "room", lambda _, room=room: room)
        assert memory.askers(shape, steps, n_networks=3, n_stays=100) == found
