"""What every learner stands on: prepared stays, propensities, and the actions with support."""

from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from etips.data.decisions import Bools, Floats
from etips.data.trajectories import Trajectories
from etips.errors import SettingError, require_number, require_whole
from etips.learn.fitting.crossfit import fit_sets, out_of_fold
from etips.learn.fitting.prepare import Prepared, choose_device, prepare, seeds_from
from etips.learn.learners.params import check_seed
from etips.learn.nuisance.propensity import (
    FittedPropensity,
    PropensityModel,
    check_model,
    fit_propensity,
    logged_log_propensity,
)
from etips.learn.nuisance.support import choose_support
from etips.learn.training.epoch_report import Report
from etips.learn.training.objectives import bernoulli, squared
from etips.learn.training.settings import Settings
from etips.models.bundle import Bundle
from etips.models.encoders.encoder import Encoder
from etips.models.encoders.gru import GRU
from etips.models.encoders.registry import AnyEncoder, as_encoder
from etips.models.network import Network
from etips.policies.policy import FittedPolicy, Kind
from etips.runs.run import Run

PURPOSE = 2  # of the random numbers drawn for outcome networks

PROPENSITY = Settings(epochs=25, patience=5, dropout=0.1)
OUTCOME = Settings(epochs=20, learning_rate=1e-3, patience=4, dropout=0.1)
POLICY = Settings(epochs=20, learning_rate=2e-3, patience=4, dropout=0.1)
ENCODER = GRU(64, embed=64)
"""What reads the steps if nobody says otherwise: chosen on ICU-Sepsis, see docs/method/learning."""


@dataclass(frozen=True)
class Training:
    """How the networks of a learner are trained.

    Args:
        n_folds: Folds of the cross-fitting; 1 fits and asks the same stays, as the paper does.
        device: "auto" takes the GPU where there is one.
        propensity: Settings of the propensity networks.
        outcome: Of the networks that predict the loss.
        policy: Of the policy networks.
        earlier_actions: Let all of them read the newest earlier action; then a table to recommend
            for must hold the actions taken so far.
        calibrate: Fit a temperature to the propensities.
    """

    n_folds: int = 5
    device: str = "auto"
    propensity: Settings = PROPENSITY
    outcome: Settings = OUTCOME
    policy: Settings = POLICY
    earlier_actions: bool = False
    calibrate: bool = True

    def check(self) -> None:
        """Refuse what no network could be trained with."""
        require_whole("n_folds", self.n_folds, least=1)
        for name in ("earlier_actions", "calibrate"):
            if not isinstance(getattr(self, name), bool):
                raise SettingError(name, "must be true or false")
        for name in STAGES:
            if not isinstance(getattr(self, name), Settings):
                raise SettingError(name, "must be Settings(...)")

    def with_seed(self, seed: int) -> "Training":
        """The same with the batches of every stage drawn from `seed`."""
        stages = {name: replace(getattr(self, name), seed=seed) for name in STAGES}
        return replace(self, **stages)


STAGES = ("propensity", "outcome", "policy")


@dataclass(frozen=True, eq=False)
class Foundation:
    """Stays, propensities and support, ready for an objective.

    Args:
        prepared: The stays.
        propensity: Networks that imitate the clinicians.
        outcome: Networks that predict the loss of every action; None if nobody asked.
        expected: Their out-of-fold predictions, shape (n_decisions, n_actions).
        chance: Propensity of each logged action, clipped, shape (n_decisions,).
        clipped_share: Share of decisions whose propensity was below the clip.
        support: Least propensity of a recommended action.
        allowed: Actions with that much support, out of fold, shape (n_decisions, n_actions).
    """

    prepared: Prepared
    propensity: FittedPropensity
    outcome: Bundle | None
    expected: Floats | None
    chance: Floats
    clipped_share: float
    support: float
    allowed: Bools

    def allowed_rows(self) -> Tensor:
        """Allowed actions by row, shape (n_steps, n_actions)."""
        return self.prepared.by_row(self.allowed)

    def log_chance_rows(self) -> Tensor:
        """Clipped log-propensity of the logged action by row, shape (n_steps,)."""
        return self.prepared.by_row(np.log(self.chance).astype(np.float32))

    def log_propensity_rows(self) -> Tensor:
        """Log-propensity of every action by row, shape (n_steps, n_actions)."""
        return self.prepared.by_row(self.propensity.log_probabilities.astype(np.float32))


def check_pull(kl: float) -> None:
    """Refuse a pull that would push away, or be no number."""
    require_number("kl", kl)
    if not 0 <= kl < np.inf:
        raise SettingError("kl", "must be finite and not negative")


def lay_foundation(
    data: Trajectories,
    *,
    encoder: AnyEncoder,
    model: PropensityModel | None,
    training: Training,
    support: float | None,
    clip: float,
    seed: int,
    outcome: bool = True,
    report: Report | None = None,
    run: Run | None = None,
) -> Foundation:
    """Prepare stays, fit propensities, and find which actions have support.

    Args:
        data: Logged stays.
        encoder: Of every network.
        model: Where the logged propensities come from; our networks if left out.
        training: How to train.
        support: Least propensity of a recommended action. Left out it is 0.05, or 0.1 with lag 1,
            unless the held-out log shows that a floor does harm.
        clip: Logged propensities below this are raised to it.
        seed: Of folds and networks.
        outcome: Whether to fit outcome networks.
        report: Told after every epoch.
        run: Folder that keeps the work, so that it can be taken up again.
    """
    _check(training, support, clip, seed, run)
    check_model(model, data)
    training, shape = training.with_seed(seed), as_encoder(encoder)
    prepared = prepare(
        data,
        n_folds=training.n_folds,
        seed=seed,
        device=choose_device(training.device),
        earlier_actions=training.earlier_actions,
        run=run,
    )
    propensity = fit_propensity(
        prepared,
        shape,
        training.propensity,
        seed=seed,
        calibrate=training.calibrate,
        report=report,
    )
    log_chance = logged_log_propensity(prepared, propensity, model)
    chance = np.maximum(np.exp(log_chance), clip)
    networks = expected = None
    if outcome:
        networks, expected = fit_outcome(
            prepared, shape, training.outcome, seed=seed, report=report
        )
    if support is None:
        support = choose_support(prepared, propensity, chance, training.policy, report=report)
    return Foundation(
        prepared=prepared,
        propensity=propensity,
        outcome=networks,
        expected=expected,
        chance=chance,
        clipped_share=float((np.exp(log_chance) < clip).mean()),
        support=support,
        allowed=np.exp(propensity.log_probabilities) >= support,
    )


def _check(
    training: Training, support: float | None, clip: float, seed: int, run: Run | None
) -> None:
    """Refuse settings outside their limits before anything is trained."""
    if not isinstance(training, Training):
        raise SettingError("training", "must be Training(...)")
    training.check()
    require_number("clip", clip)
    if not 0 < clip <= 1:
        raise SettingError("clip", "must be in (0, 1]")
    if support is not None:
        require_number("support", support)
        if not 0 <= support < 1:
            raise SettingError("support", "must be in [0, 1)")
    check_seed(seed)
    if run is not None and not isinstance(run, Run):
        raise SettingError("run", "must be a run in use", fix="Use with Run(...) as run.")


def fit_outcome(
    prepared: Prepared,
    encoder: Encoder,
    settings: Settings,
    *,
    seed: int,
    additive: bool = False,
    report: Report | None = None,
) -> tuple[Bundle, Floats]:
    """Networks that predict the loss of every action, and their out-of-fold predictions.

    A loss within [0, 1] is predicted as a probability, any other as an amount: networks learn it in
    standard deviations from its mean, so that they need not walk far.
    """
    steps, data, share = prepared.steps, prepared.data, is_share(prepared.data)
    centre, unit = (0.0, 1.0) if share else _spread(data)
    network = Network(
        encoder, steps.n_features, data.static.shape[1], data.n_actions, additive=additive
    )
    formula = bernoulli if share else squared
    loss = (prepared.loss - centre) / unit
    bundle = fit_sets(
        prepared,
        network,
        lambda outputs, seen: formula(outputs, prepared.action[seen], loss[seen]),
        stage="additive" if additive else "outcome",
        settings=settings,
        seeds=list(seeds_from(seed, PURPOSE, prepared.folds.n_networks)),
        report=report,
    )
    found = out_of_fold(bundle, prepared, lambda o, _: o.sigmoid() if share else o)[0]
    return bundle, centre + unit * found.double().cpu().numpy()


def is_share(data: Trajectories) -> bool:
    """Whether every logged loss lies in [0, 1]."""
    loss = data.logged_loss
    return bool(((loss >= 0) & (loss <= 1)).all())


def _spread(data: Trajectories) -> tuple[float, float]:
    """Mean and standard deviation of the logged losses; 1 for the latter where they are equal."""
    loss = data.logged_loss
    return float(loss.mean()), float(loss.std()) or 1.0


def conclude(
    base: Foundation, kind: Kind, *, networks: Bundle | None = None, constant: int | None = None
) -> FittedPolicy:
    """A policy on this foundation."""
    return FittedPolicy(
        kind=kind,
        schema=base.prepared.data.schema,
        scaler=base.prepared.scaler,
        propensity=base.propensity.bundle,
        temperature=base.propensity.temperature,
        support=base.support,
        networks=networks,
        constant=constant,
        earlier_actions=base.prepared.steps.previous is not None,
    )
