"""Networks that predict the outcome of the stay: fitted Q evaluation, one pass a stay.

A network reads a stay once. Its outputs at a decision are what the rest of the stay costs if each
action is taken now and the policy decides from then on. It first learns what each decision cost at
once, which shows best what matters in a history; then what followed it in the log; then, round by
round, each decision's loss plus what the policy makes of the next one.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from etips.data.decisions import Floats
from etips.evaluation.whole_stay_course import Course, Outcome
from etips.learn.fitting.crossfit import out_of_fold
from etips.learn.fitting.prepare import Prepared, seeds_from
from etips.learn.fitting.trainer import Trainer, TrainingRequest
from etips.learn.training import memory
from etips.learn.training.objectives import Sliced, bernoulli, squared
from etips.learn.training.settings import Settings
from etips.models.answers import answer_decisions, outputs_at
from etips.models.batches import Batch, as_tensor
from etips.models.bundle import Bundle
from etips.models.encoders.encoder import Encoder
from etips.models.network import Network

PURPOSE = 5  # of the random numbers drawn here

LEAST_BATCHES = 32
"""Batches of an epoch: those of a small log are made smaller, since a round needs steps."""

ROUND_STEPS = 200
"""Learning steps, or two epochs if that is more, before the targets are made anew. A round starts
where the last one ended. With 16 steps networks kept a tenth of a harm that came late (2,000 stays
of 8 decisions), with 200 about two thirds."""

LEAST_PATIENCE = 8
"""Epochs without a better held-out error before a network stops: outcomes of stays are noisy."""

LEAST_RATE = 3e-3
"""Learning rate at least: a round must follow its targets, not average them with earlier ones."""

MOST_ROUNDS = 30
"""Rounds at most; each carries a loss one decision back, so that short stays need fewer."""

SETTLED = 0.05
"""A round that moves the mean value by less, in standard errors of the mean outcome, and another
after it: the values have settled."""

LEAST_STAYS = 30
"""Stays that must have a decision of a number for its mean to be a start of its own."""


@dataclass(frozen=True, eq=False)
class FittedStayValue:
    """Networks that predict the rest of the stay, and what they said of stays they had not seen.

    Args:
        bundle: One network a fold, one output an action. Outputs rank the actions; amounts are in
            `expected`, which adds what all actions have in common.
        expected: Predicted outcome still to come if an action is taken now and the policy decides
            afterwards, out of fold, shape (n_decisions, n_actions).
        logged: The same if the clinicians decide afterwards, as the log has it.
        rounds: How often the targets were made anew.
        error: Standard error of the mean value of a stay as far as it comes from which stays the
            networks learned from: delete-a-fold jackknife. 0 for a single network.
    """

    bundle: Bundle
    expected: Floats
    logged: Floats
    rounds: int
    error: float = 0.0


def fit_stay_value(
    prepared: Prepared,
    encoder: Encoder,
    settings: Settings,
    trainer: Trainer,
    *,
    seed: int,
    policy: Floats | None,
    outcome: Outcome,
    allowed: Floats | None = None,
) -> FittedStayValue:
    """Fit networks that predict the outcome of a stay in which a policy decides.

    Args:
        prepared: The stays. Networks should read earlier actions: they are part of the history.
        encoder: Of the networks.
        settings: Of the training.
        trainer: Trains them.
        seed: Of the networks.
        policy: Probabilities of the policy, shape (n_decisions, n_actions); None for the policy
            that always takes the action with the least predicted outcome.
        outcome: Of a stay.
        allowed: Above zero where that policy may take an action, at least one a decision, shape
            (n_decisions, n_actions); everywhere if left out.
    """
    data, steps = prepared.data, prepared.steps
    course = Course.of(data.decisions().stay, data.logged_loss, outcome)
    settings = _in_small_batches(settings, course.n_stays)
    task = _Task.of(prepared, course, policy, allowed)
    network = Network(encoder, steps.n_features, data.static.shape[1], data.n_actions + 1)
    bundle = Bundle.start(network, seeds_from(seed, PURPOSE, prepared.folds.n_networks))
    bundle.parameters["head.weight"].zero_()  # an action starts where all of them are
    if (course.lengths > 1).any():
        request = task.request(bundle, task.at_once(), "stay-value-now", settings, prepared)
        bundle = trainer.train(request)
    to_go = prepared.by_row(course.to_go.astype(np.float32)).expand(bundle.n_members, -1)
    bundle = trainer.train(task.request(bundle, to_go, "stay-value", settings, prepared))
    values, logged = task.values(bundle), task.expected(bundle)
    to_the_end = _without_stopping(prepared)
    rounds, calm = 0, 0
    while rounds < min(MOST_ROUNDS, int(course.lengths.max()) - 1) and calm < 2:
        rounds += 1
        own = _of_round(settings, rounds, course.n_stays)
        target = task.targets(values)
        request = task.request(bundle, target, f"stay-value-{rounds}", own, to_the_end)
        bundle = trainer.train(request)
        before, values = values, task.values(bundle)
        calm = calm + 1 if task.moved(before, values) < SETTLED else 0
    answers, error = task.expected(bundle), task.error(values)
    return FittedStayValue(_folded(bundle), answers, logged, rounds, error)


@dataclass(frozen=True, eq=False)
class _Task:
    """What the networks learn, all rounds alike.

    Args:
        prepared: The stays.
        course: Their decisions in order.
        policy: By row, shape (n_steps, n_actions); None for the greedy one.
        allowed: By row, where that one may go.
        share: Whether outcomes are predicted as probabilities.
        usual: Mean outcome to go at decisions of the same number, by row, shape (J, n_steps).
        start: The same on the scale of the outputs: what a network says before it learns.
        unit: Of the outputs, where they are amounts.
    """

    prepared: Prepared
    course: Course
    policy: Tensor | None
    allowed: Tensor | None
    share: bool
    usual: Tensor
    start: Tensor
    unit: float

    @classmethod
    def of(
        cls, prepared: Prepared, course: Course, policy: Floats | None, allowed: Floats | None
    ) -> "_Task":
        share, unit = course.is_share, float(course.to_go.std()) or 1.0
        means = np.stack([_usual(course, course.to_go, w) for w in _weights(prepared)])
        means = np.clip(means, 1e-3, 1 - 1e-3) if share else means
        start = np.log(means / (1 - means)) if share else means / unit
        return cls(
            prepared,
            course,
            None if policy is None else prepared.by_row(policy.astype(np.float32)),
            None if allowed is None else prepared.by_row((allowed > 0).astype(np.bool_)),
            share,
            _rows(prepared, means),
            _rows(prepared, start),
            1.0 if share else unit,
        )

    def request(
        self, bundle: Bundle, target: Tensor, stage: str, settings: Settings, stays: Prepared
    ) -> TrainingRequest:
        """Networks that are to predict `target`, by row, shape (J, n_steps), and from whom."""
        formula = bernoulli if self.share else squared
        action, start, wanted = self.prepared.action, self.start, target / self.unit

        def value(outputs: Tensor, seen: Tensor, these: slice) -> Tensor:
            predicted = _of_actions(outputs) + _at(start, these, seen)[..., None]
            return formula(predicted, action[seen], _at(wanted, these, seen))

        return TrainingRequest(stays, bundle, Sliced(value), stage, settings)

    def at_once(self) -> Tensor:
        """What each decision cost at once, around the usual outcome to go, by row.

        A loss to come is hidden by the chance of all decisions in between; what a decision cost
        shows plainly what earlier treatment has done. Networks that learned it first kept four
        fifths of a harm that came late, others a third (2,000 stays of 8 decisions).
        """
        course = self.course
        usual = _usual(course, course.charge, np.ones(course.stay.size))
        beyond = self.prepared.by_row((course.charge - usual).astype(np.float32))
        wanted = self.usual + beyond
        return wanted.clamp(0, 1) if self.share else wanted

    def values(self, bundle: Bundle) -> Tensor:
        """What the policy makes of every decision, each network for all stays, (J, n_decisions)."""
        every = slice(0, self.start.shape[0])
        fold = as_tensor(self.prepared.folds.fold, self.start.device)

        def ask(batch: Batch, _: int) -> tuple[Tensor, ...]:
            amounts = self._amounts(
                outputs_at(bundle, batch, self.prepared.steps), batch.seen, every
            )
            if self.policy is not None:
                return ((amounts * self.policy[batch.seen]).sum(-1),)
            if self.allowed is not None:
                amounts = amounts.masked_fill(~self.allowed[batch.seen], torch.inf)
            return (_least(amounts, fold[batch.owner]),)

        size = memory.stays_at_once(bundle.network, self.prepared.steps, bundle.n_members)
        return answer_decisions(self.prepared.steps, ask, batch_size=size, axis=1)[0]

    def targets(self, values: Tensor) -> Tensor:
        """Each decision's loss plus what the policy makes of the next one, by row."""
        course, device = self.course, values.device
        later = torch.roll(values, -1, dims=1) * as_tensor(~course.ends, device)
        target = as_tensor(course.charge.astype(np.float32), device) + later
        spread = values.new_zeros(len(values), self.prepared.data.n_steps)
        spread[:, as_tensor(self.prepared.seen, device)] = (
            target.clamp(0, 1) if self.share else target
        )
        return spread

    def moved(self, before: Tensor, after: Tensor) -> float:
        """How far the mean value of stays, out of fold, has moved, in its standard errors."""
        course = self.course
        fold = self.prepared.folds.fold[self.prepared.data.decisions().stay[course.first]]
        own = as_tensor(fold, after.device), as_tensor(course.first, after.device)
        shift = abs(float((after[own] - before[own]).double().mean()))
        error = float(course.outcomes.std()) / np.sqrt(course.n_stays)
        return shift / error if error > 0 else 0.0

    def error(self, values: Tensor) -> float:
        """Jackknife standard error of the mean value of stays, a fold left out at a time."""
        means = values[:, as_tensor(self.course.first, values.device)].double().mean(1)
        return float(((means - means.mean()).square().sum() * (1 - 1 / len(means))).sqrt())

    def expected(self, bundle: Bundle) -> Floats:
        """The outcome still to come after every action, out of fold, (n_decisions, n_actions)."""
        fold = as_tensor(self.prepared.folds.fold, self.start.device)
        stay = as_tensor(
            np.repeat(np.arange(self.prepared.data.n_stays), np.diff(self.prepared.data.offsets)),
            self.start.device,
        )

        def readout(outputs: Tensor, seen: Tensor) -> Tensor:
            member = int(fold[stay[seen[0]]])  # a batch is of one fold
            return self._amounts(outputs, seen, slice(member, member + 1))

        answers = out_of_fold(bundle, self.prepared, readout)[0]
        return answers.double().cpu().numpy()

    def _amounts(self, outputs: Tensor, seen: Tensor, these: slice) -> Tensor:
        """Predicted outcomes, shape (J, n, n_actions)."""
        predicted = _of_actions(outputs) + _at(self.start, these, seen)[..., None]
        return predicted.sigmoid() if self.share else predicted * self.unit


def _least(amounts: Tensor, fold: Tensor) -> Tensor:
    """What the action with the least amount costs, the same for every network, shape (J, n).

    The least of several guesses is a guess that erred downwards. So the networks that learned from
    a stay choose the action, and the one that did not says what it costs: double Q-learning.

    Args:
        amounts: Predicted outcomes, infinite where an action may not be taken, (J, n, n_actions).
        fold: Network that did not learn from the stay, shape (n,).
    """
    if len(amounts) == 1:
        return amounts.amin(-1)
    own = amounts[fold, torch.arange(len(fold), device=fold.device)]
    others = amounts.sum(0) - own.masked_fill(own.isinf(), 0.0)
    best = others.argmin(-1)
    return own.gather(1, best[:, None]).squeeze(1).expand(len(amounts), -1)


def _without_stopping(prepared: Prepared) -> Prepared:
    """The same stays, none of which stops a network: those that did are learned from.

    A round moves its networks by little, and the noise of the few that stop by would hide it: they
    would stay where they were, and lose what comes late (a third of it, 2,000 stays).
    """
    folds = prepared.folds
    learned = folds.weight + folds.held_out
    stops = torch.zeros_like(folds.held_out)
    return replace(prepared, folds=replace(folds, weight=learned, held_out=stops))


def _in_small_batches(settings: Settings, n_stays: int) -> Settings:
    """Settings with enough steps an epoch."""
    size = min(settings.batch_size, max(n_stays // LEAST_BATCHES, 8))
    rate = max(settings.learning_rate, LEAST_RATE)
    patience = max(settings.patience, LEAST_PATIENCE)
    return replace(settings, batch_size=size, learning_rate=rate, patience=patience)


def _of_round(settings: Settings, number: int, n_stays: int) -> Settings:
    """Settings of one of the rounds: a few epochs, in an order of its own."""
    epochs = max(2, -(-ROUND_STEPS * settings.batch_size // n_stays))
    epochs = min(epochs, settings.epochs)
    return replace(settings, epochs=epochs, seed=settings.seed + number)


def _of_actions(outputs: Tensor) -> Tensor:
    """What all actions share plus what is each one's own, shape (J, n, n_actions).

    The last output is shared, so that rare actions are taken to be like the others until the log
    says otherwise.
    """
    return outputs[..., :-1] + outputs[..., -1:]


def _folded(bundle: Bundle) -> Bundle:
    """The same networks with one output an action: the head is linear."""
    own = dict(bundle.parameters)
    for name in ("head.weight", "head.bias"):
        own[name] = _of_actions(own[name].detach())
    network = replace(bundle.network, n_outputs=bundle.network.n_outputs - 1)
    return Bundle(network, own)


def _rows(prepared: Prepared, values: Floats) -> Tensor:
    """Values of networks (J, n_decisions) by row, shape (J, n_steps)."""
    return prepared.by_row(values.T.astype(np.float32)).T.contiguous()


def _at(values: Tensor, these: slice, seen: Tensor) -> Tensor:
    """Values of some networks (J, n_steps) at rows (n,)."""
    return values[these][:, seen]


def _weights(prepared: Prepared) -> Floats:
    """How much each decision counts for each network, shape (J, n_decisions)."""
    weight = prepared.folds.weight.double().cpu().numpy()
    return np.asarray(weight[:, prepared.data.decisions().stay])


def _usual(course: Course, values: Floats, weight: Floats) -> Floats:
    """Mean of `values` (n_decisions,) at decisions of the same number, shape (n_decisions,).

    Late decisions that few stays have share one mean.
    """
    longest = int(course.number.max()) + 1
    count = np.bincount(course.number, weight, longest)
    enough = np.flatnonzero(count >= LEAST_STAYS)
    number = np.minimum(course.number, enough[-1] + 1 if enough.size else 0)
    total = np.bincount(number, weight * values)
    count = np.bincount(number, weight)
    overall = float(weight @ values) / max(float(weight.sum()), 1.0)
    mean = np.divide(total, count, out=np.full(count.size, overall), where=count >= 10)
    return np.asarray(mean[number])
