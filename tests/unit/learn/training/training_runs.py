"""A small world to train on, and four networks that differ in all they may."""

from dataclasses import replace

import numpy as np
import torch
from random_cohorts import Cohort

from etips.learn.training.loop import train
from etips.learn.training.objectives import Weighted, translated_ips, weigh
from etips.learn.training.settings import Settings
from etips.models.answers import answer_decisions, outputs_at
from etips.models.batches import step_tensors
from etips.models.bundle import Bundle
from etips.models.encoders.gru import GRU
from etips.models.encoders.lstm import LSTM
from etips.models.encoders.transformer import CausalTransformer
from etips.models.network import Network

N_STAYS = 60
COHORT = Cohort(seed=3, n_stays=N_STAYS, longest=6, n_features=3, n_static=2, gaps=0.2)
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-9}
ENCODERS = {
    "gru": GRU(5),
    "lstm": LSTM(5),
    "transformer": CausalTransformer(hidden=4, n_heads=2, n_layers=1),
}


def tensors(data, dtype=torch.float64, **more):
    """Steps in a precision: inputs follow the static features."""
    steps = step_tensors(data, earlier_actions=False, **more)
    return replace(steps, static=steps.static.to(dtype))


def by_row(data, values, dtype):
    found = np.zeros(data.n_steps)
    found[data.seen_rows] = values
    return torch.from_numpy(found).to(dtype)


def etips_objective(data, translation, dtype=torch.float64):
    """Translated inverse propensity risk, one translation a network."""
    action = by_row(data, data.logged_action, torch.long)
    loss = by_row(data, data.logged_loss, dtype)
    chance = by_row(data, np.log(data.logged_propensity), dtype)
    shift = torch.as_tensor(translation, dtype=dtype)[:, None]

    def log(seen, device):
        where = seen.cpu()
        return [values[where].to(device) for values in (action, loss, chance)]

    def value(outputs, seen, these):
        return translated_ips(outputs, *log(seen, outputs.device), shift[these].to(outputs.device))

    def weight(outputs, seen, these):
        logged, _, chances = log(seen, outputs.device)
        return weigh(outputs, logged, chances)

    return Weighted(value, weight)


def outputs_of(bundle, steps, **more):
    """Outputs of every network at every decision, shape (J, n_decisions, K)."""
    (outputs,) = answer_decisions(
        steps, lambda batch, _: (outputs_at(bundle, batch, steps),), axis=1, **more
    )
    return outputs


def network_of(data, encoder=None):
    sizes = data.sequence.shape[1], data.static.shape[1], data.n_actions
    return Network(encoder or GRU(5), *sizes)


SETTINGS = Settings(epochs=8, batch_size=9, learning_rate=0.05, patience=2, dropout=0.2, seed=5)
SEEDS, TRANSLATIONS = [11, 12, 13, 11], [0.2, 0.5, 0.9, 0.2]


def folds(dtype=torch.float32):
    """Weights of four networks: two folds, a bootstrap, and one that nobody holds back."""
    rng = np.random.default_rng(0)
    fold = rng.integers(0, 4, N_STAYS)
    weight = np.stack([fold != 0, fold != 1, rng.poisson(1.0, N_STAYS), fold < 9]).astype(float)
    held_out = np.stack([fold == 0, fold == 1, weight[2] == 0, fold > 9]).astype(float)
    return torch.from_numpy(weight).to(dtype), torch.from_numpy(held_out).to(dtype)


def fit(data, members, dtype, *, encoder=None, settings=SETTINGS, objective=None, **more):
    weight, held_out = folds()
    members = list(members)
    seeds = [SEEDS[j] for j in members]
    shift = [TRANSLATIONS[j] for j in members]
    return train(
        Bundle.start(network_of(data, encoder), seeds).to(dtype=dtype),
        tensors(data, dtype),
        objective or etips_objective(data, shift, dtype),
        weight=weight[members],
        held_out=held_out[members],
        settings=settings,
        **more,
    )
