"""Policy learners of other packages: what each is shown, an adapter each, its policy as ours.

A new peer is an adapter and an entry in `PEERS`. An adapter imports its package, which is optional.
"""

import logging
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LassoCV, LogisticRegression

from etips.data.decisions import Bools, Floats, Ints
from etips.data.history_rows import summarise_history
from etips.data.trajectories import Trajectories
from etips.errors import DataError
from etips.models.row_model import spread_of, standardise

MIN_DECISIONS = 20
"""Decisions that an action must have before a model of it alone is asked for anything."""

FLOOR = 0.01
"""Estimated propensities below this are raised to it, as ours are."""

VOWPAL_PASSES = 5
"""Over the decisions, each in another order."""

D3RLPY_STEPS = 10_000
"""Gradient steps: what its own examples take for small tasks."""

Choose = Callable[[Floats], Ints]
"""Of standardised rows (n, d) the recommended action of each, shape (n,)."""

Teach = Callable[["Lesson"], Choose]
"""Learns from a lesson."""


@dataclass(frozen=True, eq=False)
class Lesson:
    """Logged decisions as tabular packages take them, stay by stay in the order of time.

    Args:
        rows: The documented summary of each history, standardised, 0 where missing, shape (n, d).
        propensity: Of the logged action where it is known by design, shape (n,); else None.
        last: Whether a decision is the last of its stay, shape (n,).
        quick: Whether to learn for a moment only.
    """

    rows: Floats
    action: Ints
    loss: Floats
    propensity: Floats | None
    last: Bools
    n_actions: int
    seed: int
    quick: bool = False

    @property
    def common(self) -> Ints:
        """Actions that were taken often enough to learn of them; the others are never chosen."""
        counts = np.bincount(self.action, minlength=self.n_actions)
        enough = np.flatnonzero(counts >= min(MIN_DECISIONS, counts.max(initial=0)))
        return np.asarray(enough, np.int64)

    @property
    def reward(self) -> Floats:
        """What packages that maximise take: not below 0."""
        return np.asarray(self.loss.max() - self.loss)

    def logged_chances(self) -> Floats:
        """Probability of each logged action, known or from a logistic regression, shape (n,)."""
        if self.propensity is not None:
            return self.propensity
        if np.unique(self.action).size < 2:
            return np.ones(self.action.size)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LogisticRegression(max_iter=50 if self.quick else 300)
            model.fit(self.rows, self.action)
        likely = model.predict_proba(self.rows)
        own = likely[np.arange(self.action.size), np.searchsorted(model.classes_, self.action)]
        return np.asarray(np.maximum(own, FLOOR), np.float64)


@dataclass(frozen=True, eq=False)
class PeerPolicy:
    """A learned rule of another package, evaluated like any policy.

    Args:
        mean: Of each column of the summary.
        scale: What each is divided by.
    """

    choose: Choose
    mean: Floats
    scale: Floats
    n_actions: int

    @classmethod
    def learned(cls, teach: Teach, stays: Trajectories, *, seed: int, quick: bool = False) -> Self:
        """What a package learns from logged stays, with propensities only if known by design."""
        rows = summarise_history(stays).astype(np.float64)
        mean, scale = spread_of(rows)
        stay = stays.decisions().stay
        lesson = Lesson(
            rows=standardise(rows, mean, scale),
            action=stays.logged_action,
            loss=stays.logged_loss,
            propensity=None if stays.propensity is None else stays.logged_propensity,
            last=np.append(stay[1:] != stay[:-1], True),
            n_actions=stays.n_actions,
            seed=seed,
            quick=quick,
        )
        return cls(teach(lesson), mean, scale, stays.n_actions)

    def predict_proba(self, data: Trajectories) -> Floats:
        """One sure action a decision, shape (n_decisions, n_actions)."""
        rows = summarise_history(data).astype(np.float64)
        taken = np.asarray(self.choose(standardise(rows, self.mean, self.scale)))
        if taken.shape != (data.n_decisions,):
            raise DataError("peer", "must recommend one action a decision")
        return np.asarray(np.eye(self.n_actions)[taken.astype(np.int64)])


def teach_lightgbm(lesson: Lesson) -> Choose:
    """LightGBM: one regression of the loss an action, then the least."""
    import lightgbm  # noqa: PLC0415  # optional

    models = []
    for action in lesson.common:
        own = lesson.action == action
        model = lightgbm.LGBMRegressor(
            n_estimators=10 if lesson.quick else 100,
            random_state=lesson.seed,
            n_jobs=1,
            verbose=-1,
            deterministic=True,
            force_col_wise=True,
        )
        models.append(model.fit(lesson.rows[own], lesson.loss[own]))

    def choose(rows: Floats) -> Ints:
        predicted = np.stack([model.booster_.predict(rows) for model in models], axis=1)
        return np.asarray(lesson.common[predicted.argmin(axis=1)])

    return choose


def teach_vowpal(lesson: Lesson) -> Choose:
    """Vowpal Wabbit: linear costs of actions, online, by its doubly robust reduction."""
    import vowpalwabbit  # noqa: PLC0415  # optional

    model = vowpalwabbit.Workspace(
        f"--cb {lesson.n_actions} --cb_type dr --quiet --random_seed {lesson.seed + 1}",
        enable_logging=False,
    )

    def as_text(rows: Floats) -> list[str]:
        return [
            " ".join(f"f{j}:{value:.5g}" for j, value in enumerate(row) if value) for row in rows
        ]

    chance, rng = lesson.logged_chances(), np.random.default_rng(lesson.seed)
    lines = as_text(lesson.rows)
    for _ in range(1 if lesson.quick else VOWPAL_PASSES):
        for place in rng.permutation(len(lines)):
            label = f"{lesson.action[place] + 1}:{lesson.loss[place]:.6g}:{chance[place]:.6g}"
            model.learn(f"{label} |x {lines[place]}")

    def choose(rows: Floats) -> Ints:
        chosen = [int(model.predict(f"|x {line}")) - 1 for line in as_text(rows)]
        return np.asarray(chosen, np.int64)

    return choose


def teach_econml_tree(lesson: Lesson) -> Choose:
    """econml: one doubly robust tree."""
    from econml.policy import DRPolicyTree  # noqa: PLC0415  # optional

    return _teach_econml(lesson, DRPolicyTree, **({"max_depth": 2} if lesson.quick else {}))


def teach_econml_forest(lesson: Lesson) -> Choose:
    """econml: a forest of such trees."""
    from econml.policy import DRPolicyForest  # noqa: PLC0415  # optional

    return _teach_econml(lesson, DRPolicyForest, n_estimators=20 if lesson.quick else 100, n_jobs=1)


def _teach_econml(lesson: Lesson, kind: Any, **settings: Any) -> Choose:  # noqa: ANN401  # econml's
    common = lesson.common
    kept = np.isin(lesson.action, common)
    simple: dict[str, object] = {}
    if lesson.quick:  # what it chooses by itself searches for seconds
        simple["model_regression"] = LassoCV(cv=2, alphas=5)
        simple["model_propensity"] = LogisticRegression(max_iter=50)
    # Rewards above the worst of those kept.
    reward = replace(lesson, loss=lesson.loss[kept]).reward
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kind(random_state=lesson.seed, **simple, **settings)
        arm = np.searchsorted(common, lesson.action[kept])
        model.fit(Y=reward, T=arm, X=lesson.rows[kept])

    def choose(rows: Floats) -> Ints:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(common[np.asarray(model.predict(rows), np.int64).ravel()])

    return choose


def teach_obp(lesson: Lesson) -> Choose:
    """Open Bandit Pipeline: a logistic regression weighted by reward over propensity."""
    from obp.policy import IPWLearner  # noqa: PLC0415  # optional

    base = LogisticRegression(max_iter=50 if lesson.quick else 300)
    model = IPWLearner(n_actions=lesson.n_actions, base_classifier=base)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(
            context=lesson.rows,
            action=lesson.action,
            reward=lesson.reward,
            pscore=lesson.logged_chances(),
        )

    def choose(rows: Floats) -> Ints:
        return np.asarray(model.predict(context=rows)[:, :, 0].argmax(axis=1))

    return choose


def teach_cql(lesson: Lesson) -> Choose:
    """d3rlpy: conservative Q-learning over the stays as episodes."""
    return _teach_d3rlpy(lesson, "DiscreteCQLConfig")


def teach_bcq(lesson: Lesson) -> Choose:
    """d3rlpy: batch-constrained Q-learning over the stays as episodes."""
    return _teach_d3rlpy(lesson, "DiscreteBCQConfig")


def _teach_d3rlpy(lesson: Lesson, config: str) -> Choose:
    import d3rlpy  # noqa: PLC0415  # optional
    import structlog  # noqa: PLC0415  # of d3rlpy
    from d3rlpy.dataset import MDPDataset  # noqa: PLC0415
    from d3rlpy.logging import NoopAdapterFactory  # noqa: PLC0415

    quiet = structlog.make_filtering_bound_logger(logging.ERROR)
    structlog.configure(wrapper_class=quiet)  # it would print every step of its way
    n_steps = 50 if lesson.quick else D3RLPY_STEPS
    episodes = MDPDataset(
        observations=lesson.rows.astype(np.float32),
        actions=lesson.action.astype(np.int64)[:, None],
        rewards=-lesson.loss.astype(np.float32)[:, None],
        terminals=lesson.last.astype(np.float32),
        action_space=d3rlpy.ActionSpace.DISCRETE,
        action_size=lesson.n_actions,
    )
    with torch.random.fork_rng():
        torch.manual_seed(lesson.seed)
        np_state = np.random.get_state()  # noqa: NPY002  # it samples by the global generator
        try:
            np.random.seed(lesson.seed)  # noqa: NPY002
            algorithm = getattr(d3rlpy.algos, config)().create(device=False)
            algorithm.fit(
                episodes,
                n_steps=n_steps,
                n_steps_per_epoch=n_steps,
                logger_adapter=NoopAdapterFactory(),
                show_progress=False,
                save_interval=2,  # beyond the one epoch: no model is written
            )
        finally:
            np.random.set_state(np_state)  # noqa: NPY002

    def choose(rows: Floats) -> Ints:
        return np.asarray(algorithm.predict(rows.astype(np.float32)), np.int64)

    return choose


@dataclass(frozen=True)
class Peer:
    """A policy learner of another package.

    Args:
        name: On the command line and in results.
        label: What its makers call it.
        package: Module that must be there.
    """

    name: str
    label: str
    sentence: str
    package: str
    teach: Teach

    @property
    def installed(self) -> bool:
        """Whether its package is here."""
        return find_spec(self.package) is not None

    @property
    def version(self) -> str:
        """Of its package; empty where that is not here."""
        try:
            return version(self.package)
        except PackageNotFoundError:
            return ""


_PEERS = (
    Peer(
        "lightgbm",
        "LightGBM",
        "One model of the loss an action, then the least.",
        "lightgbm",
        teach_lightgbm,
    ),
    Peer(
        "vowpal-wabbit",
        "Vowpal Wabbit",
        "A linear contextual bandit, doubly robust.",
        "vowpalwabbit",
        teach_vowpal,
    ),
    Peer(
        "econml-tree",
        "econml DRPolicyTree",
        "A tree of greatest doubly robust gain.",
        "econml",
        teach_econml_tree,
    ),
    Peer(
        "econml-forest",
        "econml DRPolicyForest",
        "A forest of such trees.",
        "econml",
        teach_econml_forest,
    ),
    Peer(
        "obp-ipw",
        "obp IPWLearner",
        "A classifier weighted by reward over propensity.",
        "obp",
        teach_obp,
    ),
    Peer(
        "d3rlpy-cql",
        "d3rlpy DiscreteCQL",
        "Conservative Q-learning over whole stays.",
        "d3rlpy",
        teach_cql,
    ),
    Peer(
        "d3rlpy-bcq",
        "d3rlpy DiscreteBCQ",
        "Batch-constrained Q-learning over whole stays.",
        "d3rlpy",
        teach_bcq,
    ),
)

PEERS: Mapping[str, Peer] = {peer.name: peer for peer in _PEERS}
"""Every peer by its name, in the order of the page."""
