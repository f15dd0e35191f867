"""bfloat16, and steps captured on a GPU, beside the plain loop in float32."""

import logging
from dataclasses import replace

import numpy as np
import pytest
import torch
import training_runs as runs

from etips.learn.training.learning_step import Task, learning_steps
from etips.learn.training.loop import train
from etips.learn.training.objectives import Sliced, cross_entropy, translated_ips
from etips.learn.training.optimiser import epoch_schedule
from etips.learn.training.state import State
from etips.models.bundle import Bundle


def learn_for(n_steps, encoder, *, bfloat16):
    """Networks after some learning steps on the CPU, with products in bfloat16 or not."""
    data, dtype = runs.COHORT.make(), torch.float32
    bundle, steps = (
        Bundle.start(runs.network_of(data, encoder), runs.SEEDS),
        runs.tensors(data, dtype),
    )
    objective = runs.etips_objective(data, runs.TRANSLATIONS, dtype)
    task = Task(bundle.network, steps, objective, runs.folds()[0], runs.SETTINGS, bfloat16)
    state, tally = State.start(bundle), torch.zeros(4, dtype=torch.float64)
    parts = steps.parts(np.arange(runs.N_STAYS), runs.SETTINGS.batch_size, np.random.default_rng(0))
    for number in range(n_steps):
        schedule = epoch_schedule(state, runs.SETTINGS, 0, len(parts))
        learning_steps(task, state, tally)(parts[number], schedule.at(number))
    return bundle, state


@pytest.mark.parametrize("encoder", sorted(runs.ENCODERS))
def test_products_in_bfloat16_teach_nearly_the_same_and_leave_weights_in_float32(encoder):
    start, plain = learn_for(5, runs.ENCODERS[encoder], bfloat16=False)
    _, bfloat16 = learn_for(5, runs.ENCODERS[encoder], bfloat16=True)
    moved = gap = 0.0
    for name, value in plain.parameters.items():
        assert bfloat16.parameters[name].dtype == torch.float32
        assert bfloat16.first[name].dtype == torch.float32
        moved += float((value - start.parameters[name]).square().sum())
        gap += float((value - bfloat16.parameters[name]).square().sum())
    assert 0 < gap < 0.05 * moved


def test_bfloat16_on_the_cpu_is_float32_after_a_warning(caplog):
    data = runs.COHORT.make()
    with caplog.at_level(logging.WARNING):
        plain, _ = runs.fit(data, range(2), torch.float32)
        assert not caplog.records
        asked, _ = runs.fit(
            data, range(2), torch.float32, settings=replace(runs.SETTINGS, precision="bfloat16")
        )
    assert [record.message for record in caplog.records] == [
        "bfloat16 is for a GPU: on the CPU training stays in float32."
    ]
    for name, value in plain.parameters.items():
        assert torch.equal(asked.parameters[name], value)


@pytest.mark.gpu
def test_captured_steps_in_bfloat16_end_near_those_in_float32(caplog):
    data, dtype = runs.COHORT.make(), torch.float32
    weight, held_out = (values.cuda() for values in runs.folds())
    found = []
    for precision in ("float32", "bfloat16"):
        with caplog.at_level(logging.WARNING):
            bundle, _ = train(
                Bundle.start(runs.network_of(data), runs.SEEDS).to("cuda"),
                runs.tensors(data, dtype, device="cuda"),
                lambda outputs, seen: cross_entropy(outputs, torch.zeros_like(seen)),
                weight=weight,
                held_out=held_out,
                settings=replace(runs.SETTINGS, precision=precision),
            )
        found.append(runs.outputs_of(bundle, runs.tensors(data, dtype, device="cuda")))
    assert not caplog.records  # it was captured
    assert 0 < (found[0] - found[1]).norm() / found[0].norm() < 0.1


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_captured_steps_on_a_gpu_teach_what_the_plain_loop_teaches(dtype, monkeypatch, caplog):
    data = runs.COHORT.make()
    weight, held_out = runs.folds()
    found = {}
    for device in ("cpu", "cuda"):
        logged = [
            runs.by_row(data, values, kind).to(device)
            for values, kind in (
                (data.logged_action, torch.long),
                (data.logged_loss, dtype),
                (np.log(data.logged_propensity), dtype),
            )
        ]
        shift = torch.tensor(runs.TRANSLATIONS, dtype=dtype, device=device)[:, None]

        def value(outputs, seen, these, logged=logged, shift=shift):
            return translated_ips(outputs, *(values[seen] for values in logged), shift[these])

        with caplog.at_level(logging.WARNING):
            found[device], _ = train(
                Bundle.start(runs.network_of(data), runs.SEEDS).to(device, dtype),
                runs.tensors(data, dtype, device=device),
                Sliced(value),
                weight=weight.to(device),
                held_out=held_out.to(device),
                settings=runs.SETTINGS,
            )
    assert not caplog.records  # it was captured
    for name, value in found["cpu"].parameters.items():
        torch.testing.assert_close(
            found["cuda"].parameters[name].cpu(), value, atol=runs.TOLERANCE[dtype], rtol=1e-3
        )
