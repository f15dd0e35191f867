"""Logs with a hidden state that confounds as much as a given gamma allows."""

import numpy as np

from etips.evaluation import Log


def hidden_state(n, *, gamma, seed, binary):
    """A log, the policy "always 1" and its true risk; no hidden state within `gamma` does worse.

    Those with the higher loss under action 1 got it with odds divided by `gamma`, the others with
    odds multiplied by it, so that the nominal propensities are right given what is visible.
    """
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(n, 3))
    chance = np.clip(1 / (1 + np.exp(-(0.3 + 0.8 * x[:, 0] - 0.5 * x[:, 1]))), 0.1, 0.9)
    odds = chance / (1 - chance)
    low, high = (o / (1 + o) for o in (odds / gamma, odds * gamma))
    share = (high - chance) / (high - low)
    hidden = generator.random(n) < share
    action = (generator.random(n) < np.where(hidden, low, high)).astype(int)
    rank = np.where(
        hidden, 1 - share * generator.random(n), (1 - share) * generator.random(n)
    ).clip(1e-9, 1 - 1e-9)
    model = 1 / (1 + np.exp(-(-0.5 + 1.2 * x[:, 0] + 0.8 * x[:, 2])))
    if binary:
        under_one = (rank > 1 - model).astype(float)
    else:
        under_one = 2 * model + (0.3 + 0.3 * model) * np.log(rank / (1 - rank))
    loss = np.where(action == 1, under_one, generator.random(n) < 0.5)
    table = np.column_stack([1 - chance, chance])
    log = Log(
        loss=loss,
        action=action,
        propensity=table[np.arange(n), action],
        cluster=np.arange(n),
        n_actions=2,
        propensities=table,
        predicted=np.column_stack([np.full(n, 0.5), model if binary else 2 * model]),
    )
    return log, np.tile([0.0, 1.0], (n, 1)), float(under_one.mean())
