"""The training loop: right gradients, members that do not touch, best weights, same bytes."""

import hashlib
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from training_runs import (
    COHORT,
    ENCODERS,
    N_STAYS,
    SEEDS,
    SETTINGS,
    TOLERANCE,
    TRANSLATIONS,
    by_row,
    etips_objective,
    fit,
    folds,
    network_of,
    outputs_of,
    tensors,
)

from etips.learn.training import learning_step, loop
from etips.learn.training.learning_step import Task, dropout_masks, epoch_parts
from etips.learn.training.loop import train
from etips.learn.training.objectives import Weighted, cross_entropy
from etips.learn.training.settings import Settings
from etips.learn.training.state import State
from etips.learn.training.validation import Validation
from etips.models.answers import forward, outputs_at
from etips.models.bundle import Bundle
from etips.models.encoders.gru import GRU


@pytest.mark.parametrize("gaps", [0.0, 0.5])
@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize("encoder", sorted(ENCODERS))
def test_one_pass_a_stay_has_the_gradient_of_expanding_windows(encoder, lag, gaps):
    data = replace(COHORT, n_stays=9, lag=lag, gaps=gaps).make()
    steps, objective = tensors(data), etips_objective(data, [0.3, 0.8])
    bundle = Bundle.start(network_of(data, ENCODERS[encoder]), [1, 2]).to(dtype=torch.float64)
    moving = {name: value.requires_grad_() for name, value in bundle.parameters.items()}
    batch = steps.batch(np.unique(data.decisions().stay))
    values = objective(outputs_at(bundle, batch, steps), batch.seen)
    found = torch.autograd.grad(values.mean(1).sum(), list(moving.values()))

    windows = data.histories()
    wanted = [torch.zeros_like(value) for value in moving.values()]
    for number, length in enumerate(windows.lengths):
        outputs = bundle.network.outputs(
            moving,
            torch.from_numpy(windows.sequence[number, :length, None]).double(),
            torch.from_numpy(windows.static[number : number + 1]).double(),
            slots=torch.tensor([length - 1]),
        )
        seen = torch.tensor([data.decision_rows[number] - data.lag])
        one = torch.autograd.grad(objective(outputs, seen).sum(), list(moving.values()))
        for total, part in zip(wanted, one, strict=True):
            total += part / data.n_decisions
    assert batch.slots.numel() == data.n_decisions
    assert len(set(windows.lengths.tolist())) > 2
    for left, right in zip(found, wanted, strict=True):
        torch.testing.assert_close(left, right, atol=1e-6, rtol=1e-6)


def by_fold(data, monkeypatch, worth, **more):
    """Two translations of three folds, set by set; by themselves where they are worth so much."""
    monkeypatch.setattr(loop, "WORTH", worth)
    fold = np.random.default_rng(1).integers(0, 3, N_STAYS)
    held_out = torch.from_numpy(np.stack([fold == k for k in (0, 1, 2)] * 2)).double()
    return train(
        Bundle.start(network_of(data), range(6)).to(dtype=torch.float64),
        tensors(data),
        etips_objective(data, [0.2] * 3 + [0.7] * 3),
        weight=1 - held_out,
        held_out=held_out,
        settings=SETTINGS,
        n_folds=3,
        **more,
    )


def test_networks_of_a_fold_learn_by_themselves_what_all_learn_together(monkeypatch):
    """Only the stays that count are read, and the rest of the bundle does not show it."""
    data, told, step = COHORT.make(), {0: [], math.inf: []}, learning_step.learn_batch
    monkeypatch.setattr(learning_step, "learn_batch", reading(step, fewer := [], apart=True))
    apart, one = by_fold(data, monkeypatch, 0, report=told[0].append)
    monkeypatch.setattr(learning_step, "learn_batch", reading(step, more := []))
    together, other = by_fold(data, monkeypatch, math.inf, report=told[math.inf].append)
    assert (max(fewer), max(more)) == (2, 6)  # networks at a time
    assert one.epoch == other.epoch
    torch.testing.assert_close(one.best_risk, other.best_risk, atol=1e-9, rtol=1e-9)
    for name, value in together.parameters.items():
        torch.testing.assert_close(apart.parameters[name], value, atol=1e-9, rtol=1e-9)
    for first, second in zip(*told.values(), strict=True):
        assert first.loss == pytest.approx(second.loss, rel=1e-9)
        assert first.matching_factor == pytest.approx(second.matching_factor, rel=1e-9)


def reading(step, read, *, apart=False):
    """A learning step that notes of how many networks it is, once their stays are seen to count."""

    def noted(task, state, tally, batch, schedule):
        read.append(len(task.weight))
        if apart:
            count = task.weight[:, batch.stay] > 0
            assert count.all() or (len(batch.stay) == 1 and not count.any())  # none of this batch
        step(task, state, tally, batch, schedule)

    return noted


def test_folds_that_have_stopped_cost_nothing_more(monkeypatch):
    data, read = COHORT.make(), []
    monkeypatch.setattr(learning_step, "learn_batch", reading(learning_step.learn_batch, read))
    _, state = by_fold(data, monkeypatch, 0)
    n_batches = -(-int((tensors(data).reach > 0).sum()) // SETTINGS.batch_size)
    ended = state.epoch - (state.waited - SETTINGS.patience).clamp_min(0)  # when each stopped
    by_fold_ended = ended.view(2, 3).amax(0)
    assert len(set(by_fold_ended.tolist())) > 1
    assert sum(read) == 2 * n_batches * int(by_fold_ended.sum())


@pytest.mark.parametrize(
    ("encoder", "dtype"),
    [
        ("gru", torch.float32),
        ("gru", torch.float64),
        ("lstm", torch.float64),
        ("transformer", torch.float64),
    ],
)
def test_a_network_in_a_bundle_becomes_what_it_becomes_alone(encoder, dtype):
    data, reader = COHORT.make(), ENCODERS[encoder]
    together, state = fit(data, range(4), dtype, encoder=reader)
    stopped = set()
    for j in range(4):
        alone, own = fit(data, [j], dtype, encoder=reader)
        stopped.add(own.epoch)
        for name, value in alone.parameters.items():
            torch.testing.assert_close(
                together.parameters[name][j], value[0], atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype]
            )
        assert float(state.best_risk[j]) == pytest.approx(float(own.best_risk[0]), rel=1e-4)
    if encoder == "gru":
        assert len(stopped) > 1  # some stop early while others go on
        assert state.epoch == SETTINGS.epochs


def test_seed_translation_and_fold_are_each_networks_own():
    data = COHORT.make()
    weight = torch.ones(5, N_STAYS)
    weight[3, : N_STAYS // 2] = 0
    found, _ = train(
        Bundle.start(network_of(data), [1, 2, 1, 1, 1]),
        tensors(data, torch.float32),
        etips_objective(data, [0.5, 0.5, 0.6, 0.5, 0.5], torch.float32),
        weight=weight,
        held_out=torch.zeros(5, N_STAYS),
        settings=replace(SETTINGS, learning_rate=0.01),
    )
    head = found.parameters["head.weight"]
    gaps = (head - head[0]).abs().amax((1, 2))
    assert (gaps[1:4] > 1e-3).all()
    assert gaps[4] < 1e-6  # the same in everything


def snapshots(data, **more):
    """Train, and keep every network as it was at the end of every epoch."""
    kept = []

    def keep(state):
        kept.append({name: value.clone() for name, value in state.parameters.items()})

    best, state = fit(data, range(4), torch.float64, keep=keep, **more)
    return best, state, kept


def test_early_stopping_restores_the_best_weights():
    data = COHORT.make()
    best, state, kept = snapshots(data)
    _, held_out = folds()
    objective, steps = etips_objective(data, TRANSLATIONS), tensors(data)
    validation = Validation(best.network, steps, objective, held_out)
    risks = torch.stack([validation.risks(own)[0] for own in kept])
    for j in range(3):  # the fourth has nothing to be judged by
        waited, place = 0, 0
        for epoch in range(1, len(kept)):
            if waited == SETTINGS.patience:
                break
            better = risks[epoch, j] < risks[place, j]
            waited, place = (0, epoch) if better else (waited + 1, place)
        for name, value in best.parameters.items():
            assert torch.equal(value[j], kept[place][name][j])
        assert float(state.best_risk[j]) == pytest.approx(float(risks[place, j]))
    assert (state.waited[:3] >= SETTINGS.patience).any()


def test_a_network_that_has_stopped_moves_no_more_and_one_without_a_judge_goes_to_the_end():
    best, state, kept = snapshots(COHORT.make())
    stopped = int((state.waited >= SETTINGS.patience + 1).nonzero()[0])
    for name, value in best.parameters.items():
        assert torch.equal(kept[-1][name][stopped], kept[-2][name][stopped])
        assert torch.equal(value[3], kept[-1][name][3])


def test_stays_without_weight_have_no_influence():
    data = COHORT.make()
    weight, held_out = folds()
    weight[:, ::3] = held_out[:, ::3] = 0
    changed, static = data.sequence.copy(), data.static.copy()
    for stay in range(0, N_STAYS, 3):
        changed[data.offsets[stay] : data.offsets[stay + 1]] *= -7.0
        static[stay] += 3.0
    found = []
    for own in (data, data.with_features(changed, static)):
        bundle = Bundle.start(network_of(data), SEEDS)
        best, _ = train(
            bundle,
            tensors(own, torch.float32),
            etips_objective(data, TRANSLATIONS, torch.float32),
            weight=weight,
            held_out=held_out,
            settings=SETTINGS,
        )
        found.append(best.parameters)
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])


def digest(bundle):
    values = b"".join(value.numpy().tobytes() for value in bundle.parameters.values())
    return hashlib.sha256(values).hexdigest()


def test_f1_the_same_seed_gives_the_same_bytes():
    data = COHORT.make()
    runs = []
    for seed in (5, 5, 6):
        torch.manual_seed(len(runs))
        np.random.seed(len(runs))  # noqa: NPY002  # neither generator may matter
        best, _ = fit(data, range(4), torch.float32, settings=replace(SETTINGS, seed=seed))
        runs.append(digest(best))
    assert runs[0] == runs[1] != runs[2]


def test_training_leaves_the_global_generators_and_the_start_alone():
    data = COHORT.make()
    torch.manual_seed(1)
    before = torch.get_rng_state()
    start = Bundle.start(network_of(data), SEEDS)
    kept = {name: value.clone() for name, value in start.parameters.items()}
    weight, held_out = folds()
    train(
        start,
        tensors(data, torch.float32),
        etips_objective(data, TRANSLATIONS, torch.float32),
        weight=weight,
        held_out=held_out,
        settings=replace(SETTINGS, epochs=1),
    )
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(start.parameters[name], kept[name]) for name in kept)
    assert not any(value.requires_grad for value in start.parameters.values())


class InterruptError(Exception):
    pass


@pytest.mark.parametrize("worth", [0, math.inf], ids=["by fold", "all together"])
@pytest.mark.parametrize("after", [1, 3])
def test_a_run_goes_on_after_the_epoch_where_it_stood(after, worth, monkeypatch):
    monkeypatch.setattr(loop, "WORTH", worth)
    data = COHORT.make()
    whole, _ = fit(data, range(4), torch.float32)

    def interrupt(state):
        if state.epoch == after:
            raise InterruptError

    state = State.start(Bundle.start(network_of(data), SEEDS))
    with pytest.raises(InterruptError):
        fit(data, range(4), torch.float32, state=state, keep=interrupt)
    assert state.epoch == after
    resumed, _ = fit(data, range(4), torch.float32, state=state)
    assert digest(resumed) == digest(whole)


def test_training_lowers_the_risk_and_reports_every_epoch():
    data = COHORT.make()
    action = by_row(data, data.logged_action, torch.long)
    hint = np.eye(data.n_actions, dtype=np.float32)[np.roll(data.action, -1)]
    informed = data.with_features(hint, data.static)  # every step tells the next action
    said = []
    settings = Settings(epochs=30, batch_size=16, learning_rate=0.05, patience=30)
    weight = torch.ones(1, N_STAYS)
    steps = tensors(informed, torch.float32)
    best, state = train(
        Bundle.start(network_of(informed, GRU(8)), [0]),
        steps,
        lambda outputs, seen: cross_entropy(outputs, action[seen]),
        weight=weight,
        held_out=weight,
        settings=settings,
        report=said.append,
    )
    chosen = outputs_of(best, steps)[0].argmax(1).numpy()
    assert (chosen == data.logged_action).mean() > 0.95
    assert [entry.epoch for entry in said] == list(range(1, state.epoch + 1))
    assert said[-1].held_out < said[0].held_out
    assert said[-1].loss < said[0].loss
    assert all(entry.epochs == 30 for entry in said)
    assert all(entry.matching_factor is None for entry in said)  # it has no weights


def test_the_loss_of_a_report_is_the_mean_over_batches_and_networks():
    data, reports = COHORT.make(), []
    steps, weight = tensors(data, torch.float32), folds()[0]
    objective = etips_objective(data, TRANSLATIONS, torch.float32)
    still = replace(SETTINGS, epochs=1, learning_rate=1e-30)
    bundle, _ = fit(data, range(4), torch.float32, settings=still, report=reports.append)
    task = Task(network_of(data), steps, objective, weight, still)
    wanted = torch.zeros(4)
    parts = epoch_parts(task, 0)
    for number, part in enumerate(parts):
        batch = steps.batch(part)
        key = torch.tensor((still.seed * 1_000_003 + number) % 2**31)
        masks = dropout_masks(task, batch, key, bundle.parameters["head.weight"])
        outputs = forward(task.network, bundle.parameters, batch, steps, keep_state=masks.state)
        shares = weight[:, batch.owner]
        total = shares.sum(1).clamp_min(1e-12)  # of a batch in which no stay may count
        wanted += (objective(outputs, batch.seen) * shares).sum(1) / total
    assert reports[0].loss == pytest.approx(float(wanted.mean()) / len(parts), rel=1e-5)


def test_policies_tell_the_mean_weight_of_their_held_out_decisions():
    data, told = COHORT.make(), []
    steps, (weight, held_out) = tensors(data, torch.float32), folds()
    seen = data.decision_rows - data.lag
    count = torch.zeros(data.n_steps)
    count[seen] = torch.arange(data.n_decisions, dtype=torch.float32)
    objective = Weighted(
        etips_objective(data, TRANSLATIONS, torch.float32).value,
        lambda outputs, seen, these: count[seen].expand(len(outputs), -1),
    )
    train(
        Bundle.start(network_of(data), SEEDS),
        steps,
        objective,
        weight=weight,
        held_out=held_out,
        settings=replace(SETTINGS, epochs=2),
        report=told.append,
    )
    stay = data.decisions().stay
    out = held_out.numpy()[:, stay]
    wanted = [np.average(np.arange(data.n_decisions), weights=row) for row in out[:3]]
    assert not out[3].any()  # nothing is held back from the last network
    assert told[0].matching_factor == pytest.approx(np.mean(wanted), rel=1e-5)
