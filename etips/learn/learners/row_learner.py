"""Learners that read one row a decision: rows, propensities, and the policy they end in."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from etips.data.decisions import Floats, Ints
from etips.data.scale import Scaler
from etips.data.splitting import assign_folds
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError, require, require_number, require_seed
from etips.evaluation.log import PROPENSITY_FLOOR
from etips.learn.fitting.prepare import LARGEST_LOSS
from etips.learn.learners.learner import Fit, Learner
from etips.learn.softmax_regression import fit_softmax
from etips.models.row_model import Form, Reads, RowModel, rows_of, spread_of, standardise
from etips.policies.policy import FittedPolicy, Kind


def descend(value: Callable[[Tensor], Tensor], start: Tensor, *, steps: int = 100) -> Tensor:
    """Where a smooth function is least, as far as `steps` iterations lead from `start`.

    Args:
        value: Of a tensor like `start`; a scalar.
        start: Left as it is.
        steps: Iterations at most; it ends sooner where the function gets no better.
    """
    place = start.detach().clone().requires_grad_(True)
    optimiser = torch.optim.LBFGS(
        [place],
        max_iter=steps,
        history_size=10,
        tolerance_grad=1e-7,
        tolerance_change=1e-9,
        line_search_fn="strong_wolfe",
    )

    def ask() -> Tensor:
        optimiser.zero_grad()
        found = value(place)
        found.backward()  # type: ignore[no-untyped-call]
        return found

    with torch.enable_grad():
        optimiser.step(ask)  # type: ignore[no-untyped-call]
    return place.detach()


Propensities = Literal["estimated", "known"]
"""Where logged propensities come from: a logistic regression on the rows, or the data."""

FOLDS = 5


@dataclass(frozen=True, eq=False)
class RowLog:
    """Logged decisions as rows, with the propensities of what was done.

    Args:
        data: The stays.
        scaler: Fitted on them.
        rows: Standardised rows, float32, shape (n, d).
        frame: A model without weights, which knows how rows are made and standardised.
        propensity: The clinicians, as a model of rows.
        chance: Propensity of each logged action, clipped, shape (n,).
        clipped_share: Share of decisions whose propensity was below the clip.
    """

    data: Trajectories
    scaler: Scaler
    rows: Tensor
    frame: RowModel
    propensity: RowModel
    chance: Floats
    clipped_share: float

    @property
    def action(self) -> Ints:
        """Logged actions."""
        return self.data.logged_action

    @property
    def loss(self) -> Floats:
        """Their losses."""
        return self.data.logged_loss

    def fold(self, seed: int, n_folds: int = FOLDS) -> Ints:
        """Fold of each decision: those of a patient share one, shape (n,)."""
        n_units = int(self.data.units.max()) + 1
        if n_units < 2:
            return np.zeros(self.data.n_decisions, np.int64)
        fold = assign_folds(self.data, n_folds=min(n_folds, n_units), seed=seed)
        return fold[self.data.decisions().stay]

    def model(
        self,
        coefficients: Floats,
        *,
        form: Form = "linear",
        basis: Floats | None = None,
        phase: Floats | None = None,
    ) -> RowModel:
        """A model of these rows.

        Args:
            coefficients: Bias first, shape (1 + width, K).
            form: What the weights stand on.
            basis: Directions or centres, where the form has some.
            phase: Of the directions.
        """
        return replace(
            self.frame,
            form=form,
            basis=self.frame.basis if basis is None else basis,
            phase=self.frame.phase if phase is None else phase,
            weight=np.asarray(coefficients[1:][None], np.float64),
            base=np.asarray(coefficients[:1], np.float64),
        )

    def fit(self, kind: Kind, model: RowModel, *, support: float) -> Fit:
        """What a learner hands over: a policy within what clinicians do."""
        policy = FittedPolicy(
            kind=kind,
            schema=self.data.schema,
            scaler=self.scaler,
            propensity=self.propensity,
            support=support,
            networks=model,
        )
        return Fit(policy, support=support, clipped_share=self.clipped_share)


@dataclass(kw_only=True, eq=False)
class RowLearner(Learner):
    """A learner that reads the summary of a history, one row a decision.

    Args:
        propensities: "estimated" by a logistic regression on the rows, or "known".
        support: Least propensity, by that regression, of an action that may be recommended; 0 is
            the method as published, which has no such floor.
        clip: Logged propensities below this are raised to it.
        seed: Of folds and of whatever else is drawn.
    """

    propensities: Propensities = "estimated"
    support: float = 0.05
    clip: float = PROPENSITY_FLOOR
    seed: int = 0

    def _read(self, stays: Trajectories, reads: Reads = "summary") -> RowLog:
        """Rows and propensities; settings and data that make no sense are refused first."""
        self._check_rows(stays)
        rows, frame = frame_of(stays, reads)
        coefficients = fit_softmax(rows.numpy(), stays.logged_action, stays.n_actions)
        known = self.propensities == "known"
        chance = stays.logged_propensity if known else _chances(rows, coefficients, stays)
        log = RowLog(
            data=stays,
            scaler=Scaler(log=stays.schema.logarithms).fit(stays),
            rows=rows,
            frame=frame,
            propensity=frame,
            chance=np.maximum(chance, self.clip),
            clipped_share=float((chance < self.clip).mean()),
        )
        return replace(log, propensity=log.model(coefficients))

    def _check_rows(self, stays: Trajectories) -> None:
        require_seed(self.seed)
        require_number("support", self.support)
        if not 0 <= self.support < 1:
            raise SettingError("support", "must be in [0, 1)")
        require_number("clip", self.clip)
        if not 0 < self.clip < 1:
            raise SettingError("clip", "must be in (0, 1)")
        if self.propensities not in get_args(Propensities):
            raise SettingError("propensities", "must be estimated or known")
        require_log(stays)
        if self.propensities == "known":
            stays.logged_propensity  # noqa: B018  # refuses where there are none


def require_log(stays: Trajectories) -> None:
    """Refuse stays without a decision or with losses beyond all reason."""
    if not stays.logged or not stays.n_decisions:
        raise DataError("data", "must hold at least one decision")
    size = np.abs(stays.logged_loss)
    require("loss", f"must be within +-{LARGEST_LOSS:g}", size <= LARGEST_LOSS, fix="Rescale it.")


def frame_of(stays: Trajectories, reads: Reads) -> tuple[Tensor, RowModel]:
    """Standardised rows of stays, and a model without weights that makes the same of others."""
    rows = rows_of(stays, reads)
    mean, scale = spread_of(rows)
    d = rows.shape[1]
    frame = RowModel(
        reads=reads,
        form="linear",
        mean=mean,
        scale=scale,
        basis=np.zeros((0, d)),
        phase=np.zeros(0),
        weight=np.zeros((1, d, stays.n_actions)),
        base=np.zeros((1, stays.n_actions)),
    )
    return torch.from_numpy(standardise(rows, mean, scale).astype(np.float32)), frame


def _chances(rows: Tensor, coefficients: Floats, stays: Trajectories) -> Floats:
    """Fitted propensity of each logged action."""
    weights = torch.from_numpy(coefficients).to(rows.dtype)
    logits = torch.addmm(weights[0], rows, weights[1:]).double()
    taken = torch.from_numpy(stays.logged_action)[:, None]
    return np.asarray(logits.softmax(1).gather(1, taken)[:, 0].numpy())
