"""A small policy of stacked models: trees, models of rows and networks, for losses and chances."""

from dataclasses import replace

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

from etips.data.scale import Scaler
from etips.models.bundle import Bundle
from etips.models.encoders.gru import GRU
from etips.models.network import Network
from etips.models.row_model import RowModel, row_width, rows_of
from etips.models.stack import Part, Stack
from etips.models.tree_ensemble import TreeEnsemble
from etips.policies.policy import FittedPolicy


def networks(data, seed=0):
    network = Network(GRU(4), data.sequence.shape[1], data.static.shape[1], data.n_actions)
    return Bundle.start(network, [seed, seed + 1])


def linear(data, reads="summary", seed=0):
    rng, d, k = np.random.default_rng(seed), row_width(data.schema, reads), data.n_actions
    return RowModel(
        reads, "linear", np.zeros(d), np.ones(d), np.zeros((0, d)), np.zeros(0),
        rng.normal(size=(1, d, k)) / d, rng.normal(size=(1, k)),
    )  # fmt: skip


def forest(data, reads="history", seed=0):
    rows, action = rows_of(data, reads), np.eye(data.n_actions)[data.logged_action]
    model = RandomForestRegressor(5, max_depth=4, random_state=seed).fit(rows, action)
    columns = np.arange(rows.shape[1])
    return TreeEnsemble.of_forests([model], reads=reads, columns=columns)


def boosted(data, reads="history"):
    rows, models = rows_of(data, reads), []
    for action in range(data.n_actions):
        own = data.logged_action == action
        model = HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=3, random_state=0)
        models.append(model.fit(rows[own], data.logged_loss[own]))
    return TreeEnsemble.of_boosting(models, reads=reads, columns=np.arange(rows.shape[1]))


def losses(data):
    parts = (boosted(data), 0.5, "amount"), (linear(data), 0.2, "logit")
    return Stack((*(Part(*p) for p in parts), Part(networks(data), 0.3, "amount")), "losses")


def propensities(data):
    parts = (
        (forest(data), 0.6, "amount"),
        (linear(data, "last", 3), 0.1, "softmax"),
        (networks(data, 5), 0.3, "softmax"),
    )
    return Stack(tuple(Part(*part) for part in parts), "propensities", temperature=1.5)


def stacked(data, **more):
    made = FittedPolicy(
        kind="least amount",
        schema=data.schema,
        scaler=Scaler(log=data.schema.logarithms).fit(data),
        propensity=propensities(data),
        networks=losses(data),
        lean=0.05,
    )
    return replace(made, **more)
