"""The default: a stack of learners that leans to the clinicians, and one judge.

Models of every kind predict what each action would lead to. Convex weights make one prediction of
them, the policy takes the action of least predicted loss less `lean` times the log-propensity, and
held-out doubly robust risk says how far it leans and whether it is better than the clinicians at
all. After van der Laan's super learner, for contrasts between actions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from etips.choice_record import ChoiceRecord, Tier, Tried
from etips.data.decisions import Floats, Ints
from etips.data.trajectories import Trajectories
from etips.errors import SettingError, require_number, require_seed
from etips.learn.fitting.prepare import choose_device, prepare
from etips.learn.fitting.stages import ENCODER, Training
from etips.learn.fitting.trainer import Trainer
from etips.learn.judge import CLIP, LEANS, LEAST_LEAN_BLIND, Choice, Judge, Verdict, Z, choose
from etips.learn.learners.learner import Fit, Learner
from etips.learn.library import LOSSES
from etips.learn.nuisance.propensity import (
    KnownPropensity,
    PropensityModel,
    check_model,
    cross_fit_model,
    measure,
)
from etips.learn.nuisances import MODELS, SECONDS, CrossFit, ModelPredictions, Nuisances, shares
from etips.learn.own_candidates import Candidates, OwnAnswers, OwnCandidate
from etips.learn.policy_network import PolicyNetwork
from etips.learn.stacking import LeastSquares, about_mean, weigh
from etips.models.encoders.registry import AnyEncoder
from etips.models.stack import Part, Stack
from etips.notes import note
from etips.policies.policy import FittedPolicy


@dataclass(kw_only=True, eq=False)
class SuperLearner(Learner):
    """Stack learners, lean to the clinicians, and keep what a judge believes.

    Args:
        candidates: Names of `MODELS`, all whose cost allows if left out, and objects with
            `fit(trajectories)` and `predict_proba(trajectories)`. One with `predict_loss` too is
            stacked, any other is judged beside the stack.
        propensity: Where logged propensities come from: a model with `fit` and `predict_proba`.
            Left out those in the data are taken, and fitted where there are none.
        seconds: About how long all models of rows together may take on one core; the dearest are
            left out, and named.
        encoder: `GRU(...)`, `LSTM(...)`, or any causal torch module; of the networks.
        training: Folds, device, and settings of each kind of network.
        seed: Same seed, machine and versions, same policy.
    """

    candidates: Sequence[str | OwnCandidate] | None = None
    propensity: PropensityModel | None = None
    seconds: float = SECONDS
    encoder: AnyEncoder = ENCODER
    training: Training = field(default_factory=Training)
    seed: int = 0

    def _learn(self, stays: Trajectories, trainer: Trainer) -> Fit:
        self._check(stays)
        training, wanted = self.training, Candidates.of(self.candidates, MODELS)
        prepared = prepare(
            stays,
            n_folds=training.n_folds,
            seed=self.seed,
            device=choose_device(training.device),
            earlier_actions=training.earlier_actions,
            features=training.features,
        )
        log = CrossFit.of(
            prepared,
            trainer,
            encoder=self.encoder,
            training=training,
            seed=self.seed,
            models=wanted.names,
            seconds=self.seconds,
        )
        try:
            nuisances = log.nuisances()
            judge = self._judge(log, nuisances)
            recipes = [recipe for recipe in LOSSES if recipe.target == "scores"]
            scores = about_mean(judge.scores)
            on_scores = log.collect(log.start_fits(recipes, scores))
            candidates = wanted.cross_fit(log.data, log.prepared.folds.fold)
            for answers in candidates:
                trainer.fitted(answers.name, answers.seconds)
            stacked = [
                log.candidate_predictions(answers) for answers in candidates if answers.is_stacked
            ]
            beside = [answers for answers in candidates if not answers.is_stacked]
            library = [*nuisances.outcomes, *on_scores, *stacked]
            predicted = [about_mean(model.table) for model in library]
            stack = LeastSquares(predicted, scores, judge.fold)
            log_chance = np.log(nuisances.mixture.table)
            leans = self._leans(log.data)
            network = PolicyNetwork.learn(log, nuisances, judge, min(leans))

            def policies(without: int | None) -> list[Ints]:
                loss = weigh(stack.weights(without), predicted)
                leaning = [(loss - lean * log_chance).argmin(axis=1) for lean in leans]
                networks = [] if network is None else [network.actions]
                return [*leaning, *networks, *(answers.table.argmin(axis=1) for answers in beside)]

            choice = choose(judge, policies)
            weights = stack.weights()
            kept = _Kept(log, nuisances, judge, library, weights, choice, leans, network, beside)
            if log.left_out:
                note(kept.record().cost_sentence)
            return kept.fit()
        finally:
            log.close()

    def _judge(self, log: CrossFit, nuisances: Nuisances) -> Judge:
        """Doubly robust scores of every action, which all that follows is judged by."""
        data, model, expected = log.data, self.propensity, nuisances.expected
        rows, action = np.arange(data.n_decisions), data.logged_action
        if self._known(data):
            chance = data.logged_propensity
        elif model is None:
            chance = nuisances.mixture.table[rows, action]
        else:
            chance = cross_fit_model(model, data, log.prepared.folds.fold)[rows, action]
        scores = expected.copy()
        scores[rows, action] += (log.loss - expected[rows, action]) / np.maximum(chance, CLIP)
        patient = np.unique(data.cluster, return_inverse=True)[1]
        return Judge(action, log.loss, chance, scores, patient, log.fold)

    def _known(self, data: Trajectories) -> bool:
        """Whether propensities are those in the data."""
        model = self.propensity
        return isinstance(model, KnownPropensity) or (model is None and data.propensity is not None)

    def _leans(self, data: Trajectories) -> list[float]:
        """How much what the clinicians do may count."""
        blind = data.schema.lag > 0 and not self._known(data)
        return [lean for lean in LEANS if lean >= LEAST_LEAN_BLIND or not blind]

    def _check(self, stays: Trajectories) -> None:
        if not isinstance(self.training, Training):
            raise SettingError("training", "must be Training(...)")
        self.training.check()
        require_seed(self.seed)
        require_number("seconds", self.seconds)
        if not self.seconds > 0:
            raise SettingError("seconds", "must be above 0")
        Candidates.of(self.candidates, MODELS)
        check_model(self.propensity, stays)


@dataclass(frozen=True, eq=False)
class _Kept:
    """What was chosen, before its models are fitted to all stays.

    Args:
        log: The stays in folds.
        nuisances: Who was given what, and what is expected.
        judge: The scores.
        library: Models of the stack.
        weights: Their shares.
        choice: How far it leans, and whether it is kept.
        leans: Of the policies of the stack.
        network: The policy beside these; None without networks.
        beside: Policies of a user's own, judged last.
    """

    log: CrossFit
    nuisances: Nuisances
    judge: Judge
    library: Sequence[ModelPredictions]
    weights: Floats
    choice: Choice
    leans: Sequence[float]
    network: PolicyNetwork | None
    beside: Sequence[OwnAnswers]

    def fit(self) -> Fit:
        """The policy, its models fitted to all stays, and the record of how it was chosen."""
        log, mixture = self.log, self.nuisances.mixture
        clinicians = _parts(self.nuisances.propensities, mixture.weights)
        policy = FittedPolicy(
            kind="imitation",
            schema=log.data.schema,
            scaler=log.prepared.scaler,
            propensity=Stack(clinicians, "propensities", mixture.temperature),
            earlier_actions=log.prepared.steps.previous is not None,
        )
        best = self.choice.best
        if self.choice.beats_clinicians and best < len(self.leans):
            policy = replace(
                policy,
                kind="least amount",
                networks=Stack(_parts(self.library, self.weights), "losses"),
                lean=self.leans[best] * log.unit,
                acts="likeliest",
            )
        elif self.choice.beats_clinicians and best >= len(self.leans) + (self.network is not None):
            alone = self.beside[best - len(self.choice.verdicts)].part(1.0, data=log.data)
            networks = Stack((alone,), "losses")
            policy = replace(policy, kind="least amount", networks=networks, acts="likeliest")
        elif self.choice.beats_clinicians and self.network is not None:
            finished = self.network.finish(log.trainer)
            policy = replace(policy, kind="softmax", networks=finished, acts="likeliest")
        return Fit(
            policy,
            quality=measure(mixture.table, log.data.logged_action),
            clipped_share=float((self.judge.chance < CLIP).mean()),
            choice=self.record(),
        )

    def record(self) -> ChoiceRecord:
        """What was tried and what was kept, in the units of the loss."""
        won, choice, nuisances = self.choice.beats_clinicians, self.choice, self.nuisances
        stacked = won and choice.best < len(self.leans)
        models = [
            replace(
                self._tried(model.name, "model", self.judge.verdict(model.table.argmin(axis=1))),
                weight=float(weight),
                kept=bool(stacked and weight > 0),
            )
            for model, weight in zip(self.library, self.weights, strict=True)
        ]
        leans = [*self.leans, None] if self.network is not None else self.leans
        named = [(name_of(lean), lean) for lean in leans]
        named += [(answers.name, None) for answers in self.beside]
        policies = [
            replace(
                self._tried(name, "policy", verdict),
                lean=lean,
                kept=won and place == choice.best,
            )
            for place, ((name, lean), verdict) in enumerate(
                zip(named, choice.verdicts, strict=True)
            )
        ]
        size = float(len(self.judge.loss))
        clinicians = Tried("as the clinicians", "clinicians", 0.0, 0.0, 1.0, size, kept=not won)
        return ChoiceRecord(
            tried=(*models, *policies, clinicians),
            corrected=choice.corrected * self.log.unit,
            error=choice.error * self.log.unit,
            limit=Z,
            propensities=shares(nuisances.propensities, nuisances.mixture.weights),
            outcomes=shares(nuisances.outcomes, nuisances.weights),
            left_out=self.log.left_out,
            seconds_of_all=self.log.seconds_of_all,
            seconds={model.name: model.seconds for model in self.library}
            | {answers.name: answers.seconds for answers in self.beside},
        )

    def _tried(self, name: str, tier: Tier, verdict: Verdict) -> Tried:
        unit = self.log.unit
        return Tried(
            name, tier, verdict.gap * unit, verdict.error * unit, verdict.factor, verdict.size
        )


def name_of(lean: float | None) -> str:
    """What a policy of the stack is called that leans so far; that of networks has no lean."""
    if lean is None:
        return "the policy network"
    return "the stack" if not lean else f"the stack, leaning {lean:g} to the clinicians"


def _parts(models: Sequence[ModelPredictions], weights: Floats) -> tuple[Part, ...]:
    """The models that count, fitted to all decisions."""
    shared = zip(models, weights, strict=True)
    return tuple(model.part(float(weight)) for model, weight in shared if weight)
