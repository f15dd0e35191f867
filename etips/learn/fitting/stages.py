"""How the networks of a learner are trained: folds, device, and settings of each stage."""

from dataclasses import dataclass, replace
from typing import get_args

from etips.errors import SettingError, require_whole
from etips.learn.training.settings import Settings
from etips.models.encoders.gru import GRU
from etips.models.gpu import Place

PROPENSITY = Settings(epochs=25, patience=5, dropout=0.1)
OUTCOME = Settings(epochs=20, learning_rate=1e-3, patience=4, dropout=0.1)
POLICY = Settings(epochs=20, learning_rate=4e-3, weight_decay=0.1, patience=4, dropout=0.1)
ENCODER = GRU(64, embed=64)
"""What reads the steps if nobody says otherwise: chosen on ICU-Sepsis, see docs/method/learning."""

STAGES = ("propensity", "outcome", "policy")
"""Kinds of networks, each trained by settings of its own."""


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
        calibrate: Shrink propensities to plain frequencies as far as that fits better out of fold.
        finish: Let the networks of the chosen policy go on with all stays; see `finish_of`.
        features: Where features are while networks learn: "auto" keeps them in the host's memory
            where they would take more than half of the GPU's, "host" always, "device" never.
    """

    n_folds: int = 5
    device: str = "auto"
    propensity: Settings = PROPENSITY
    outcome: Settings = OUTCOME
    policy: Settings = POLICY
    earlier_actions: bool = False
    calibrate: bool = True
    finish: bool = True
    features: Place = "auto"

    def check(self) -> None:
        """Refuse what no network could be trained with."""
        require_whole("n_folds", self.n_folds, least=1)
        for name in ("earlier_actions", "calibrate", "finish"):
            if not isinstance(getattr(self, name), bool):
                raise SettingError(name, "must be true or false")
        if self.features not in get_args(Place):
            raise SettingError("features", f"must be {' or '.join(get_args(Place))}")
        for name in STAGES:
            if not isinstance(getattr(self, name), Settings):
                raise SettingError(name, "must be Settings(...)")

    def with_seed(self, seed: int) -> "Training":
        """The same with the batches of every stage drawn from `seed`."""
        stages = {name: replace(getattr(self, name), seed=seed) for name in STAGES}
        return replace(self, **stages)
