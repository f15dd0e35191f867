"""Balancing weights as a propensity model: another model's propensities, corrected to balance."""

import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Self
from weakref import WeakValueDictionary

import numpy as np
import torch

from etips.data.coded import Floats32
from etips.data.decisions import Floats, Ints
from etips.data.history_rows import VisibleColumns, visible_rows
from etips.data.splitting import assign_folds
from etips.data.trajectories import Trajectories
from etips.errors import SettingError
from etips.evaluation.inference.checks import Rows, code_clusters
from etips.evaluation.prognosis import N_FOLDS as PROGNOSIS_FOLDS
from etips.evaluation.prognosis import (
    Prognosis,
    cross_fit,
    cross_fit_plain,
    plain_folds,
    plain_mean,
)
from etips.evaluation.reweighting.rebalance import (
    LEAST_CLUSTERS,
    Correction,
    Decided,
    Effort,
    Rebalanced,
    fit_correction,
    rebalance,
)
from etips.files.fingerprint import fingerprint
from etips.learn.fitting.driver import drive
from etips.learn.fitting.folds_at_once import AtOnce, shared_zeros
from etips.learn.fitting.prepare import Prepared, choose_device, prepare
from etips.learn.fitting.stages import ENCODER, PROPENSITY
from etips.learn.nuisance.propensity import (
    FittedPropensity,
    cross_fit_model,
    fit_propensity,
)
from etips.learn.nuisance.propensity_models import KnownPropensity, PropensityModel, check_model
from etips.learn.training.beside import Arrays, Beside
from etips.learn.training.crew import n_workers
from etips.policies.policy import FittedPolicy

N_FOLDS = 5
BRIEF = Effort(most_rows=25_000, enough=2e-4)
"""How closely the correction is fitted where a policy learns by it. On 63,000 decisions of
ICU-Sepsis this took off 0.020 of a log-loss that was 0.026 too large, as did the full effort in
twice the time."""

MOST_REMEMBERED, LARGEST_REMEMBERED = 4, 2**26
"""Answers of `rebalance_table` that a process keeps, and bytes of the largest table among them."""

LEAST = 1e-300  # of a propensity before its logarithm is taken


@dataclass(eq=False)
class BalancedPropensity:
    """Another model's propensities, corrected where that improves balance on held-out stays.

    Weighted by one over the propensity of their action, decisions should resemble all decisions.
    Where they do not, the propensities are multiplied by an exponential of what is out of balance:
    the prognosis, features, products of them. If stays that the correction was not learned from are
    none the better for it, the propensities stay as they were. Learners and evaluations do this by
    themselves unless `Training(balance=False)` says otherwise.

    Args:
        model: Whose propensities are corrected; our networks if left out. It is copied.
    """

    model: PropensityModel | None = None

    def fit(self, data: Trajectories) -> Self:
        """Fit the model, and the correction to what it says of stays it had not seen."""
        check_propensities(self, data)
        self.model_, table = _fit_networks(data) if self.model is None else _fit(self.model, data)
        decided = None if _too_few(data) else _decided(data, visible_rows(data))
        self.rebalanced_ = None if decided is None else rebalance(table, decided, data.cluster)
        self.correction_: Correction | None = None
        if decided is not None and self.rebalanced_ is not None and self.rebalanced_.used:
            self.correction_ = fit_correction(table, decided)
            self.prognosis_ = Prognosis.fit(
                decided.features, decided.loss, decided.action, data.n_actions
            )
        return self

    def predict_proba(self, data: Trajectories) -> Floats:
        """Probability of every action, shape (n_decisions, n_actions), in decision order."""
        if "model_" not in vars(self):
            raise SettingError("BalancedPropensity", "must be fitted first")
        table = np.asarray(self.model_.predict_proba(data), np.float64)
        if self.correction_ is None:
            return table
        rows = visible_rows(data)
        return self.correction_.apply(table, rows, self.prognosis_.predict(rows)[0])


def check_propensities(model: PropensityModel | None, data: Trajectories) -> None:
    """Refuse what cannot give propensities of these stays, before anything is trained."""
    if not isinstance(model, BalancedPropensity):
        check_model(model, data)
        return
    if isinstance(model.model, KnownPropensity | BalancedPropensity):
        raise SettingError("BalancedPropensity", "needs a model whose propensities are fitted")
    check_model(model.model, data)


class LoggedPropensity(NamedTuple):
    """Propensities of the logged actions.

    Args:
        log: Their logarithms, shape (n_decisions,).
        rebalanced: What balancing did; None where it was not tried.
    """

    log: Floats
    rebalanced: Rebalanced | None


def is_balanced(model: PropensityModel | None, *, balance: bool) -> bool:
    """Whether the propensities of a model are corrected.

    Args:
        model: Where they come from; our networks if None.
        balance: Whether those are that are fitted.
    """
    if isinstance(model, BalancedPropensity):
        return True
    return balance and not isinstance(model, KnownPropensity)


class Ground(NamedTuple):
    """What balancing needs of the log alone, whatever the propensities.

    Args:
        decided: The decisions, what was visible at each, and the prognosis.
        told: Says which log it is.
    """

    decided: Decided
    told: str


def begin_ground(data: Trajectories, device: torch.device) -> Beside[Ground] | None:
    """Let a process lay the ground for balance, briefly; None without one, or with too few stays.

    Learners of the same stays share it. Without a process it is better laid when it is asked for:
    a table that was balanced before needs none.

    Args:
        data: Logged stays.
        device: Where networks are trained meanwhile.
    """
    if _too_few(data):
        return None
    begun = _UNDER_WAY.get(id(data))
    if begun is None:
        columns, n_processes = VisibleColumns.of(data), n_workers(PROGNOSIS_FOLDS)
        # Before there is a process, which writes where it is read later: nothing is sent.
        rows = shared_zeros((data.n_decisions, columns.width), np.float32)
        work = partial(_lay_ground, data, columns, rows, n_processes)
        begun = Beside(work, partial(_ground, data, rows), data, device)
        _UNDER_WAY[id(data)] = begun
    return begun if begun.under_way else None


_UNDER_WAY: WeakValueDictionary[int, Beside[Ground]] = WeakValueDictionary()
"""By the number of the stays, which stay as long as it is under way."""


def _lay_ground(
    data: Trajectories, columns: VisibleColumns, rows: Floats32, n_processes: int
) -> Arrays:
    """Fill the rows, then the prognosis from them: what balancing needs."""
    folds, loss = AtOnce(n_processes), data.logged_loss
    bounds = np.linspace(0, data.n_stays, n_processes + 1).astype(np.int64)
    places = np.searchsorted(data.decisions().stay, bounds)

    def fill(part: int) -> None:
        some = data.subset(slice(bounds[part], bounds[part + 1]))
        columns.write(some, rows[places[part] : places[part + 1]])

    parts = plain_folds(rows, loss, code_clusters(data.cluster, n=data.n_decisions), folds)
    folds.do_each([(fill, n_processes), (parts.fit, parts.n_folds)])
    told = np.frombuffer(_tell(data).encode(), np.uint8)
    return {"prognosis": plain_mean(parts, loss), "told": told}


def _ground(data: Trajectories, rows: Floats32, laid: Arrays) -> Ground:
    decided = Decided(data.logged_action, data.logged_loss, rows, laid["prognosis"])
    return Ground(decided, laid["told"].tobytes().decode())


def _tell(data: Trajectories) -> str:
    """Which log it is: all that a correction is learned from but the propensities."""
    seen = (data.sequence, data.offsets, data.static, data.action, data.seen_rows)
    logged = (data.logged_action, data.logged_loss, data.cluster, data.decisions().stay)
    return fingerprint(seen=seen, logged=logged)


def _too_few(data: Trajectories) -> bool:
    return bool(np.unique(data.cluster).size < LEAST_CLUSTERS)


def logged_propensity(
    prepared: Prepared,
    fitted: FittedPropensity,
    model: PropensityModel | None,
    *,
    balance: bool,
    ground: Beside[Ground] | None = None,
) -> LoggedPropensity:
    """Propensity of each logged action from a model that had not seen its stay.

    Args:
        prepared: The stays.
        fitted: Networks fitted on them.
        model: Instead of the networks; known propensities are taken as they are.
        balance: Correct what is fitted, where that improves balance on held-out stays.
        ground: What that needs, where somebody has begun it.
    """
    data = prepared.data
    if isinstance(model, KnownPropensity):
        return LoggedPropensity(np.log(data.logged_propensity), None)
    balance = is_balanced(model, balance=balance)
    if isinstance(model, BalancedPropensity):
        model = model.model
    table = _table(prepared, fitted, model)
    fold = prepared.folds.fold
    rebalanced = None
    if balance:
        rebalanced = rebalance_table(data, table, fold, brief=True, ground=ground)
    if rebalanced is not None:
        table = rebalanced.propensities
    logged = table[np.arange(data.n_decisions), data.logged_action]
    return LoggedPropensity(np.log(np.maximum(logged, LEAST)), rebalanced)


def _table(prepared: Prepared, fitted: FittedPropensity, model: PropensityModel | None) -> Floats:
    if model is None:
        return np.asarray(np.exp(fitted.log_probabilities))
    return cross_fit_model(model, prepared.data, prepared.folds.fold)


def rebalance_table(
    data: Trajectories,
    table: Floats,
    fold: Ints | None = None,
    *,
    brief: bool = False,
    ground: Beside[Ground] | None = None,
) -> Rebalanced | None:
    """Correct cross-fitted propensities of stays where that improves their balance, held out.

    None where there are too few stays to tell. Asked about the same again, as by several learners
    of one log, a process answers from memory.

    Args:
        data: Logged stays.
        table: Propensities from models that had not seen the stay, shape (n_decisions, n_actions).
        fold: Of each stay, as the models were fitted; others are dealt if left out.
        brief: Fit the correction as closely as learning needs it, not as an evaluation does.
        ground: Of the stays, where somebody has begun to lay it, briefly.
    """
    if _too_few(data):
        return None
    laid = ground() if ground is not None and brief else None
    told = _tell(data) if laid is None else laid.told
    asked = fingerprint(told=told, table=table, fold=fold, brief=brief)
    if (known := _REMEMBERED.get(asked)) is not None:
        return known
    decided = _decided(data, visible_rows(data), brief=brief) if laid is None else laid.decided
    by_decision = None if fold is None or not fold.any() else fold[data.decisions().stay]
    effort = BRIEF if brief else None
    balanced = rebalance(
        table, decided, data.cluster, fold=by_decision, effort=effort, folds=AtOnce()
    )
    _remember(asked, balanced)
    return balanced


_REMEMBERED: dict[str, Rebalanced] = {}


def _remember(asked: str, balanced: Rebalanced) -> None:
    """Keep an answer, in place of the oldest; a large one is none to keep."""
    if balanced.propensities.nbytes > LARGEST_REMEMBERED:
        return
    kept = balanced.propensities.copy()
    kept.flags.writeable = False  # the next who asks must find it as it is
    while len(_REMEMBERED) >= MOST_REMEMBERED:
        _REMEMBERED.pop(next(iter(_REMEMBERED)), None)
    _REMEMBERED[asked] = replace(balanced, propensities=kept)


def forget() -> None:
    """Forget the answers of `rebalance_table`, as for taking the time of a fit again."""
    _REMEMBERED.clear()


def _decided(data: Trajectories, rows: Rows, *, brief: bool = False) -> Decided:
    """The decisions, with all that was visible and the prognosis from that."""
    loss, action, folds = data.logged_loss, data.logged_action, AtOnce()
    clusters = code_clusters(data.cluster, n=data.n_decisions)
    if brief:
        return Decided(action, loss, rows, cross_fit_plain(rows, loss, clusters, folds))
    expected = cross_fit(rows, loss, clusters, action, data.n_actions, folds)
    return Decided(action, loss, rows, expected.plain)


def _fit(model: PropensityModel, data: Trajectories) -> tuple[PropensityModel, Floats]:
    """A copy fitted to all stays, and what copies said of stays they had not seen."""
    n_folds = min(N_FOLDS, int(data.units.max()) + 1)
    fold = assign_folds(data, n_folds=n_folds)
    table = cross_fit_model(model, data, fold)
    own = copy.deepcopy(model)
    own.fit(data)
    return own, table


def _fit_networks(data: Trajectories) -> tuple[PropensityModel, Floats]:
    """The same of our networks."""
    prepared = prepare(data, n_folds=N_FOLDS, seed=0, device=choose_device("auto"))
    fitted = drive(fit_propensity(prepared, ENCODER, PROPENSITY, seed=0))
    return _Networks(prepared, fitted), np.exp(fitted.log_probabilities)


class _Networks:
    """Networks that were fitted, as a propensity model.

    Args:
        prepared: The stays.
        fitted: On them.
    """

    def __init__(self, prepared: Prepared, fitted: FittedPropensity) -> None:
        self.policy = FittedPolicy(
            kind="imitation",
            schema=prepared.data.schema,
            scaler=prepared.scaler,
            propensity=fitted.together,
        )

    def fit(self, data: Trajectories) -> Self:  # noqa: ARG002  # the interface
        """They are fitted."""
        return self

    def predict_proba(self, data: Trajectories) -> Floats:
        """Mean propensity of the networks."""
        return self.policy.predict_proba(data)
