"""What the stages of a method usually cost, and which of them two methods have in common."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from etips.learn.fitting.stages import ENCODER, Training
from etips.learn.learners.catalogue import Stage, find_method
from etips.learn.learners.finishing import MOST
from etips.learn.learners.learner import Learner
from etips.learn.learners.racing import heat_size
from etips.learn.learners.recipes import make_learner
from etips.learn.nuisance.model_choice import Rivals
from etips.studies.stage_work import StageWork, shortened, work_of

SOME_STAYS = 1_000
"""Where nobody knows how many there are."""

_STAY_ROUNDS = 3  # predicted outcomes of stays are learned round by round, most of them short


@dataclass(frozen=True)
class LearnerParts:
    """What decides whether a stage of one learner is that of another."""

    encoder: object
    training: Training
    interaction: object  # False: additive networks predict its losses
    horizon: object  # "stay": networks predict the outcome of the stay, not losses
    races: bool  # whether its translations race
    finishes: bool  # whether its chosen policy goes on with all stays

    @classmethod
    def of(cls, learner: Learner) -> Self:
        """Those of a learner."""
        params = learner.get_params(deep=False)
        training = params["training"]
        assert isinstance(training, Training)
        return cls(
            params["encoder"],
            training,
            params.get("interaction", True),
            params.get("horizon", "decision"),
            params.get("selection") == "held-out" and params.get("init") == "propensity",
            params.get("selection") != "paper" and training.finish,
        )

    def is_like(self, theirs: Self, stage: Stage) -> bool:
        """Whether the stage of one learner is that of the other."""
        one, other = self.training, theirs.training
        same = (self.encoder, one.n_folds, one.earlier_actions, one.propensity) == (
            theirs.encoder,
            other.n_folds,
            other.earlier_actions,
            other.propensity,
        )
        if stage == "propensity":
            return same
        alike = (self.interaction, self.horizon) == (theirs.interaction, theirs.horizon)
        return same and alike and one.outcome == other.outcome


def stage_works(
    method: str, settings: Mapping[str, object], n_stays: int | None = None
) -> dict[str, StageWork]:
    """What each stage of a method usually costs, in order; nothing for one that trains no networks.

    Args:
        method: Which.
        settings: Of it.
        n_stays: That it learns from, if that is known.
    """
    known = find_method(method)
    if known is None or not known.stages:
        return {}
    learner = make_learner(known.name, settings, device="cpu")
    parts = LearnerParts.of(learner)
    training, n_policies = parts.training, known.n_policies(learner)
    brief, n_stays = shortened(training, n_stays or 0), n_stays or SOME_STAYS
    policy = Rivals(ENCODER, brief=True).suit(training.policy, n_stays)  # small logs, small batches
    n_batches = -(-n_stays // policy.batch_size)
    heat = heat_size(policy, n_stays) if parts.races and n_policies > 1 else None
    sets: dict[str, list[int]] = {
        "propensity": [1] * brief,
        "outcome": [1] * training.outcome.epochs,
        "stay": [1] * (_STAY_ROUNDS * training.outcome.epochs),
        "heat": [n_policies] * heat[0] if heat else [],
        "policy": [1 if heat else n_policies] * training.policy.epochs,
        "finish": [1] * min(training.policy.epochs, MOST),
    }
    share = {"heat": heat[1] / n_batches} if heat else {}
    short = ("propensity",) if brief < training.propensity.epochs else ()
    beside = {"policy": [*(["heat"] if heat else []), "policy", *(["finish"] * parts.finishes)]}
    stages = [own for stage in known.stages for own in beside.get(stage, [stage])]
    return {
        stage: work_of(
            stage,
            sets[stage],
            n_folds=training.n_folds,
            brief=stage in short,
            share=share.get(stage, 1.0),
        )
        for stage in stages
    }
