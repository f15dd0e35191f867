"""POEM and Norm-POEM: counterfactual risk minimisation with a penalty on the variance."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from etips.data.decisions import Bools, Floats
from etips.data.trajectories import Trajectories
from etips.errors import SettingError, require_number
from etips.learn.fitting.stages import Training
from etips.learn.fitting.trainer import Trainer, TrainingRequest
from etips.learn.learners.learner import Fit
from etips.learn.learners.policy_objectives import Logged, policy_objective
from etips.learn.learners.row_learner import RowLearner, RowLog, descend
from etips.learn.nuisance.fitted_nuisances import fit_nuisances
from etips.learn.nuisance.propensity import KnownPropensity
from etips.learn.training.counterfactual import (
    norm_poem_risk,
    norm_poem_values,
    poem_risk,
    poem_values,
)
from etips.learn.training.objectives import weigh
from etips.models.encoders.registry import AnyEncoder

PENALTIES = (0.0, 1.0, 10.0)
"""Weights of the standard error that a held-out part of the log chooses from."""

RIDGE = 1e-4
"""Weight of half the squared coefficients: enough that they stay finite."""

HELD_OUT, STEPS, MORE_STEPS = 5, 40, 200
"""One patient in so many is held out to choose a penalty; iterations of the descent, and those of
the last one where there are few decisions."""

MOST_ROWS = 20_000
"""Penalties are chosen by no more decisions than this."""


@dataclass(kw_only=True, eq=False)
class POEM(RowLearner):
    """Policy optimiser for exponential models (Swaminathan and Joachims 2015).

    A softmax of a line in the summary minimises the clipped inverse propensity risk plus a multiple
    of its standard error, by descent with the whole log from the clinicians' policy. With an
    encoder of ours it is a network instead, trained in batches like `EtIPS` without translations.

    Args:
        penalty: Weight of the standard error; chosen on held-out patients if left out, 1 for
            networks.
        cap: Weights above it are clipped; one over the 10th percentile of the logged propensities
            if left out. Infinity clips none.
        ceiling: Taken off the losses, none of which should be above zero; the largest if left out.
        encoder: None for the line; `GRU(...)` or any other for a network.
        training: Of the network.
        propensities: "estimated" by a logistic regression on the summary, or "known".
        support: Least propensity of an action that may be recommended; published without.
        clip: Logged propensities below this are raised to it.
        seed: Of the held-out part, and of networks.
    """

    penalty: float | None = None
    cap: float | None = None
    ceiling: float | None = None
    encoder: AnyEncoder | None = None
    training: Training = field(default_factory=Training)
    support: float = 0.0

    _risk: ClassVar[Callable[..., Tensor]] = staticmethod(poem_risk)
    _values: ClassVar[Callable[..., Tensor]] = staticmethod(poem_values)

    def _learn(self, stays: Trajectories, trainer: Trainer) -> Fit:
        self._check_poem()
        if self.encoder is not None:
            return self._by_networks(stays, trainer)
        log = self._read(stays)
        loss, cap = self._below_zero(log.loss), self._most_weight(log.chance)
        penalty = self._choose(log, loss, cap) if self.penalty is None else self.penalty
        every = np.ones(len(loss), bool)
        steps = STEPS if len(loss) > MOST_ROWS else MORE_STEPS
        found = self._descend(log, loss, every, cap=cap, penalty=float(penalty), steps=steps)
        return log.fit("softmax", log.model(found), support=self.support)

    def _below_zero(self, loss: Floats) -> Floats:
        """Losses less the largest, or less what was told."""
        return loss - (float(loss.max()) if self.ceiling is None else float(self.ceiling))

    def _most_weight(self, chance: Floats) -> float:
        if self.cap is not None:
            return float(self.cap)
        # Published: the 90th over the 10th percentile, which in a randomised trial is 1 and would
        # clip whatever is surer than the coin.
        return float(1 / np.quantile(chance, 0.1))

    def _descend(
        self,
        log: RowLog,
        loss: Floats,
        these: Bools,
        *,
        cap: float,
        penalty: float,
        steps: int = STEPS,
    ) -> Floats:
        """Coefficients (1 + d, K) of least risk on some decisions, from the clinicians' on."""
        some = torch.from_numpy(np.flatnonzero(these))
        rows = log.rows if these.all() else log.rows[some]
        action = torch.from_numpy(log.action)[some]
        cost = torch.from_numpy(loss.astype(np.float32))[some]
        log_chance = torch.from_numpy(np.log(log.chance).astype(np.float32))[some]

        def value(coefficients: Tensor) -> Tensor:
            logits = torch.addmm(coefficients[0], rows, coefficients[1:])
            weight = weigh(logits[None], action, log_chance)[0]
            risk: Tensor = self._risk(weight, cost, cap=cap, penalty=penalty)
            return risk + 0.5 * RIDGE * coefficients[1:].square().sum()

        usual = np.concatenate([log.propensity.base, log.propensity.weight[0]])
        start = torch.from_numpy(usual.astype(np.float32))
        return np.asarray(descend(value, start, steps=steps).double().numpy())

    def _choose(self, log: RowLog, loss: Floats, cap: float) -> float:
        """The penalty of least self-normalised risk on held-out patients."""
        fold = log.fold(self.seed, HELD_OUT)
        out = fold == fold.max()
        if out.all() or not out.any():
            return PENALTIES[1]
        risks = []
        drawn = np.random.default_rng(self.seed).permutation(len(out)) < MOST_ROWS
        for penalty in PENALTIES:
            found = self._descend(log, loss, ~out & drawn, cap=cap, penalty=penalty)
            logits = log.rows.double().numpy()[out] @ found[1:] + found[0]
            taken = (
                torch.from_numpy(logits).softmax(1).numpy()[np.arange(out.sum()), log.action[out]]
            )
            weight = taken / log.chance[out]
            risks.append(float(weight @ loss[out] / max(weight.sum(), 1e-300)))
        return PENALTIES[int(np.argmin(risks))]

    def _by_networks(self, stays: Trajectories, trainer: Trainer) -> Fit:
        """The same objective for networks, which learn from parts of the log at a time."""
        self._check_rows(stays)
        assert self.encoder is not None
        base = fit_nuisances(
            stays,
            trainer,
            encoder=self.encoder,
            training=self.training,
            seed=self.seed,
            support=self.support,
            model=KnownPropensity() if self.propensities == "known" else None,
            clip=self.clip,
        )
        shift = float((stays.logged_loss - self._below_zero(stays.logged_loss))[0])
        settings = {
            "cap": self._most_weight(base.chance),
            "penalty": 1.0 if self.penalty is None else float(self.penalty),
            "size": stays.n_decisions,
        }

        def risk(logits: Tensor, logged: Logged, _: Tensor, __: slice) -> Tensor:
            weight = weigh(logits, logged.action, logged.log_propensity)
            values: Tensor = self._values(weight, logged.loss - shift, **settings)
            return values

        networks = trainer.train(
            TrainingRequest(
                base.prepared,
                base.propensity.bundle,
                policy_objective(base, risk, kl=0.0),
                stage="policy",
                settings=base.settings(self.training.with_seed(self.seed + 1).policy),
            )
        )
        return Fit(
            base.policy("softmax", networks=networks),
            propensity=base.propensity,
            quality=base.propensity.quality,
            support=base.support,
            clipped_share=base.clipped_share,
        )

    def _check_poem(self) -> None:
        for name, least in (("penalty", 0.0), ("cap", 0.0), ("ceiling", -np.inf)):
            value = getattr(self, name)
            if value is None:
                continue
            require_number(name, value)
            if not least <= value or (name != "cap" and not np.isfinite(value)):
                raise SettingError(
                    name, "must be finite" if name == "ceiling" else "must not be negative"
                )
        if self.cap == 0:
            raise SettingError("cap", "must be above zero")


@dataclass(kw_only=True, eq=False)
class NormPOEM(POEM):
    """Norm-POEM: the self-normalised risk in place of the plain one (Swaminathan, Joachims 2015).

    It does not care for a constant added to the loss, and does not flee the log where losses are
    above zero; settings are those of `POEM`.
    """

    _risk: ClassVar[Callable[..., Tensor]] = staticmethod(norm_poem_risk)
    _values: ClassVar[Callable[..., Tensor]] = staticmethod(norm_poem_values)
