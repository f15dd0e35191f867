"""Plain learners that `benchmarks.curved` holds etips against, and those of other packages.

Each takes a log and a seed and returns a policy: a function from stays to the probability of every
action at every decision. They read a row a decision: the features, or of a history each feature's
newest value, mean, least, highest and change, and the number of steps.
"""

import warnings
from collections.abc import Callable, Mapping
from importlib.util import find_spec

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LassoCV, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.curved_worlds import Ask, Bools, Floats, Ints, Log, Stays

FEWEST = 10  # decisions of an action from which anything is learned; others are not taken
N_FOLDS = 5
CLIP = 0.01  # least propensity that a score is divided by
CQL_STEPS = 10_000

Contestant = Callable[[Log, int], Ask]
Predict = Callable[[Floats], Floats]


def rows_of(stays: Stays) -> Floats:
    """A row a decision, of nothing later than the decision, shape (n_decisions, columns)."""
    x = stays.features
    if x.shape[1] == 1:
        return x[:, 0]
    count = np.broadcast_to(np.arange(1, x.shape[1] + 1.0)[None, :, None], (*x.shape[:2], 1))
    parts = (
        *(x, x.cumsum(axis=1) / count, np.minimum.accumulate(x, axis=1)),
        *(np.maximum.accumulate(x, axis=1), x - x[:, :1], count),
    )
    return np.concatenate(parts, axis=2)[stays.decides]


def take_least(predict: Predict, n_actions: int) -> Ask:
    """The policy that takes the action of least predicted loss."""
    return lambda stays: np.eye(n_actions)[predict(rows_of(stays)).argmin(axis=1)]


def lasso(_seed: int) -> RegressorMixin:
    """A lasso whose penalty is cross-validated, on standardised features."""
    return make_pipeline(StandardScaler(), LassoCV(cv=5))


def forest(seed: int) -> RegressorMixin:
    """A forest of 100 trees that look at three fifths of the columns at a split."""
    return RandomForestRegressor(100, min_samples_leaf=5, max_features=0.6, random_state=seed)


def fit_arms(
    model: Callable[[int], RegressorMixin], x: Floats, action: Ints, loss: Floats, k: int, seed: int
) -> Predict:
    """A regression of the loss for each action; infinite where an action is too rare to learn."""
    models = [
        model(seed).fit(x[own], loss[own]) if own.sum() >= FEWEST else None
        for own in (action == a for a in range(k))
    ]
    return lambda new: np.stack(
        [np.full(len(new), np.inf) if m is None else m.predict(new) for m in models], axis=1
    )


def lasso_an_arm(log: Log, seed: int) -> Ask:
    """The least prediction of a lasso an arm."""
    x = rows_of(log.stays)
    return take_least(fit_arms(lasso, x, log.action, log.loss, log.n_actions, seed), log.n_actions)


def forest_an_arm(log: Log, seed: int) -> Ask:
    """The least prediction of a forest an arm."""
    x = rows_of(log.stays)
    return take_least(fit_arms(forest, x, log.action, log.loss, log.n_actions, seed), log.n_actions)


def dr_forest(log: Log, seed: int) -> Ask:
    """A forest on doubly robust scores that were cross-fitted by stay."""
    x, action, loss, k = rows_of(log.stays), log.action, log.loss, log.n_actions
    mean, forms = np.zeros((len(x), k)), np.zeros((2, len(x), k))
    for train, test in GroupKFold(N_FOLDS).split(x, groups=log.stays.stay):
        predicted = fit_arms(forest, x[train], action[train], loss[train], k, seed)(x[test])
        mean[test] = np.where(np.isinf(predicted), loss[train].mean(), predicted)
        logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        trees = RandomForestClassifier(100, min_samples_leaf=10, random_state=seed)
        for held_out, model in zip(forms, (logistic, trees), strict=True):
            model.fit(x[train], action[train])
            held_out[np.ix_(test, model.classes_)] = model.predict_proba(x[test])
    forms = np.maximum(forms, CLIP) / np.maximum(forms, CLIP).sum(axis=2, keepdims=True)
    chance = min(forms, key=lambda p: log_loss(action, p, labels=np.arange(k)))
    at, score = np.arange(len(x)), mean.copy()
    score[at, action] += (loss - mean[at, action]) / np.maximum(chance[at, action], CLIP)
    model = forest(seed).fit(x, score)
    rare = np.bincount(action, minlength=k) < FEWEST
    return take_least(lambda new: np.where(rare, np.inf, model.predict(new)), k)


def econml_forest(log: Log, seed: int) -> Ask:
    """econml's DRPolicyForest with its own choice of models."""
    from econml.policy import DRPolicyForest

    common = np.flatnonzero(np.bincount(log.action, minlength=log.n_actions) >= FEWEST)
    kept: Bools = np.isin(log.action, common)
    model = DRPolicyForest(n_estimators=100, n_jobs=1, random_state=seed)
    model.fit(
        Y=(log.loss.max() - log.loss)[kept],
        T=np.searchsorted(common, log.action[kept]),
        X=rows_of(log.stays)[kept],
    )

    def ask(stays: Stays) -> Floats:
        chosen = np.asarray(model.predict(rows_of(stays)), np.int64).ravel()
        return np.eye(log.n_actions)[common[chosen]]

    return ask


def lightgbm_an_arm(log: Log, seed: int) -> Ask:
    """The least prediction of LightGBM an arm, with its defaults."""
    import lightgbm

    def model(number: int) -> RegressorMixin:
        return lightgbm.LGBMRegressor(random_state=number, n_jobs=1, verbose=-1)

    x = rows_of(log.stays)
    return take_least(fit_arms(model, x, log.action, log.loss, log.n_actions, seed), log.n_actions)


def d3rlpy_cql(log: Log, seed: int) -> Ask:
    """d3rlpy's discrete CQL over stays as episodes, with its defaults."""
    import d3rlpy
    import structlog
    import torch
    from d3rlpy.dataset import MDPDataset
    from d3rlpy.logging import NoopAdapterFactory

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002  # it samples by the global generator
    scaler = StandardScaler().fit(rows_of(log.stays))
    stay = log.stays.stay
    last = np.append(stay[1:] != stay[:-1], True)
    later = np.where(last, 0.0, np.append(log.loss[1:], 0.0)) if log.to_come else 0.0
    algorithm = d3rlpy.algos.DiscreteCQLConfig().create(device=False)
    algorithm.fit(
        MDPDataset(
            observations=scaler.transform(rows_of(log.stays)).astype(np.float32),
            actions=log.action[:, None],
            rewards=(later - log.loss).astype(np.float32)[:, None],
            terminals=last.astype(np.float32),
            action_space=d3rlpy.ActionSpace.DISCRETE,
            action_size=log.n_actions,
        ),
        n_steps=CQL_STEPS,
        n_steps_per_epoch=CQL_STEPS,
        logger_adapter=NoopAdapterFactory(),
        show_progress=False,
        save_interval=2,  # beyond the one epoch: no model is written
    )

    def ask(stays: Stays) -> Floats:
        rows = scaler.transform(rows_of(stays)).astype(np.float32)
        return np.eye(log.n_actions)[np.asarray(algorithm.predict(rows), np.int64)]

    return ask


def quietly(contestant: Contestant) -> Contestant:
    """Without the warnings of other packages, when it learns and when it is asked."""

    def learn(log: Log, seed: int) -> Ask:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            policy = contestant(log, seed)

        def ask(stays: Stays) -> Floats:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return policy(stays)

        return ask

    return learn


PLAIN: Mapping[str, Contestant] = {
    "lasso": quietly(lasso_an_arm),
    "forest": quietly(forest_an_arm),
    "dr-forest": quietly(dr_forest),
}
PEERS: Mapping[str, Contestant] = {
    "econml": quietly(econml_forest),
    "lightgbm": quietly(lightgbm_an_arm),
    "d3rlpy": quietly(d3rlpy_cql),
}
"""By the package that must be installed."""


def missing_peers() -> list[str]:
    """Packages that are not installed here."""
    return [name for name in PEERS if find_spec(name) is None]
