"""Logged decisions that resemble one: how many they are, what was done, what came of it.

Decisions resemble one another by what was last visible, its mean so far and static features, each
as heavy as it is for the policy and for the clinicians. How near is near is the same for all
decisions of a log, so that an unusual patient has few who resemble them. What is shown stands for
eleven people or more.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from etips.data.decisions import Floats, Ints
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.disclosure import LEAST_PEOPLE, are_few, hide_together, rounds_to_few
from etips.errors import DataError
from etips.explanation.attribution import attribute_inputs, place_of
from etips.explanation.preference import Histories, Preference
from etips.policies.policy import FittedPolicy

_MAX_DECISIONS = 40_000  # of a log that are looked through
_MAX_FEATURES = 64  # that a distance is made of, the heaviest
_ASKED = 120  # decisions that say how heavy features are
_TYPICAL = 200  # decisions that say how near is near
_NEAREST = 40  # people that a usual decision resembles, at least
_EVEN = 0.3  # of the weight that all features share alike
_PAST = 0.5  # weight of a mean so far beside that of the last value


@dataclass(frozen=True)
class Done:
    """How often an action was taken at similar decisions, and the mean loss that followed.

    The loss has 95 % limits; a figure that would reveal a few people is None.
    """

    action: int
    share: float | None
    loss: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, eq=False)
class SimilarDecisions:
    """Logged decisions that resemble one.

    Args:
        people: Effective number of people whose decisions they are; None if fewer than eleven, and
            nothing else is known then.
        done: By action, the most frequent first; those of a few people have no share.
        loss: Mean loss of all of them.
    """

    people: int | None
    done: tuple[Done, ...] = ()
    loss: float | None = None

    def to_json(self, schema: Schema) -> dict[str, object]:
        """JSON-ready, with the actions' names."""
        done = [asdict(own) | {"action": schema.action_name(own.action)} for own in self.done]
        return {"people": self.people, "loss": self.loss, "done": done}


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """A log made ready to be searched, once for a policy.

    Args:
        preference: Of the policy.
        schema: Of the log.
        scaled: What networks read at the last step of each decision, shape (n, n_features).
        rows: The same in the units of the table, and static features, shape (n, d + s).
        points: Where decisions lie, shape (n, p).
        columns: Which of last values, means so far and static features those are, shape (p,).
        weight: Of them, shape (p,).
        reach: How far decisions may be that resemble one another.
        person: Of each decision, shape (n,).
        names: Whom each number stands for.
        action: Logged, shape (n,).
        loss: That followed, NaN where not known, shape (n,).
        varies: How often each sequential feature changes from one step to the next, shape (d,).
    """

    preference: Preference
    schema: Schema
    scaled: Floats
    rows: Floats
    points: Floats
    columns: Ints
    weight: Floats
    reach: float
    person: Ints
    names: Mapping[object, int]
    action: Ints
    loss: Floats
    varies: Floats

    @classmethod
    def of(cls, policy: FittedPolicy, log: Trajectories, *, seed: int = 0) -> "Neighbourhood":
        """Make a log ready; of more than 40,000 decisions some stays are drawn."""
        if not log.logged or not log.n_decisions:
            raise DataError("data", "holds no logged decision to compare with")
        generator = np.random.default_rng(seed)
        if log.n_decisions > _MAX_DECISIONS:
            order = generator.permutation(log.n_stays)
            counts = np.bincount(log.decisions().stay, minlength=log.n_stays)[order]
            n_stays = max(int((counts.cumsum() <= _MAX_DECISIONS).sum()), 1)
            log = log.subset(np.sort(order[:n_stays]))
        preference = Preference(policy)
        histories, person = preference.read(log), log.cluster
        heavy = _importance(preference, histories, generator)
        columns = np.sort(np.argsort(-heavy, kind="stable")[:_MAX_FEATURES])
        points = _summary(histories)[:, columns] * heavy[columns]
        last = histories.steps[np.arange(len(person)), histories.last]
        later = np.setdiff1d(np.arange(log.n_steps), log.offsets)
        now, before = log.sequence[later], log.sequence[later - 1]
        changed = (now != before) & ~(np.isnan(now) & np.isnan(before))
        who = log.stay if log.group is None else log.group
        return cls(
            preference=preference,
            schema=policy.schema,
            scaled=last.numpy(),
            rows=histories.rows,
            points=points,
            columns=columns,
            weight=heavy[columns],
            reach=_usual_reach(points, person, generator),
            person=person,
            names=dict(zip(who.tolist(), log.units.tolist(), strict=True)),
            action=log.logged_action,
            loss=log.logged_loss,
            varies=changed.sum(axis=0) / max(len(later), 1),
        )

    def distances(self, histories: Histories) -> Floats:
        """How far every logged decision is from one history, shape (n,)."""
        point = _summary(histories)[0, self.columns] * self.weight
        return np.asarray(np.sqrt(((self.points - point) ** 2).sum(axis=1)))

    def resemblance(self, stay: Trajectories, step: int) -> Floats:
        """How much each logged decision resembles one, 0 for the patient's own, shape (n,)."""
        histories = self.preference.read(stay).take(np.array([place_of(stay, step)]))
        return self.without(stay, nearness(self.distances(histories), self.reach))

    def without(self, stay: Trajectories, weight: Floats) -> Floats:
        """Weights, 0 for decisions of the patient who is asked about."""
        who = (stay.stay if stay.group is None else stay.group).tolist()[0]
        return np.where(self.person == self.names.get(who, -1), 0.0, weight)


def similar_decisions(neighbours: Neighbourhood, stay: Trajectories, step: int) -> SimilarDecisions:
    """What was done at logged decisions that resemble one of a stay, and what came of it."""
    weight = neighbours.resemblance(stay, step)
    near = weight > 0
    action, person = neighbours.action[near], neighbours.person[near]
    weight, loss = weight[near], neighbours.loss[near]
    people = effective_people(weight, person)
    if rounds_to_few(people) or len(np.unique(person)) < LEAST_PEOPLE:
        return SimilarDecisions(None)
    k = neighbours.schema.n_actions
    counts = np.bincount(action, minlength=k)
    pairs = np.unique(np.stack([action, person]), axis=1)
    hidden = hide_together(np.bincount(pairs[0], minlength=k), counts)
    share = np.bincount(action, weight, minlength=k) / weight.sum()
    done = []
    for chosen in np.argsort(-share, kind="stable")[: (counts > 0).sum()].tolist():
        own = action == chosen
        figures = _mean_loss(weight[own], loss[own], person[own])
        shown = Done(chosen, float(share[chosen]), *figures)
        done.append(Done(chosen, None) if hidden[chosen] else shown)
    return SimilarDecisions(round(people), tuple(done), _mean_loss(weight, loss, person)[0])


def effective_people(weight: Floats, person: Ints) -> float:
    """Effective number of people behind weighted decisions."""
    if not weight.size:
        return 0.0
    own = np.bincount(np.unique(person, return_inverse=True)[1], weight)
    return float(own.sum() ** 2 / (own**2).sum())


def nearness(distance: Floats, reach: float) -> Floats:
    """Weight of a decision at a distance: 1 at none, 0 from `reach` on (tricube)."""
    if reach <= 0:
        return (distance <= 0).astype(np.float64)
    return np.asarray(np.clip(1 - (distance / reach) ** 3, 0, None) ** 3)


def _mean_loss(
    weight: Floats, loss: Floats, person: Ints
) -> tuple[float | None, float | None, float | None]:
    """Weighted mean loss with limits by person; nothing where it would count a few people."""
    known = ~np.isnan(loss)
    weight, loss, person = weight[known], loss[known], person[known]
    if rounds_to_few(effective_people(weight, person)):
        return None, None, None
    if np.isin(loss, (0, 1)).all():
        events = (len(np.unique(person[loss == value])) for value in (0, 1))
        if any(are_few(n) for n in events):
            return None, None, None
    mean = float(weight @ loss / weight.sum())
    part = np.bincount(np.unique(person, return_inverse=True)[1], weight * (loss - mean))
    spread = 1.96 * float(np.sqrt((part**2).sum()) / weight.sum())
    return mean, mean - spread, mean + spread


def _summary(histories: Histories) -> Floats:
    """Last values, means so far, static features, shape (n, 2 d + s)."""
    steps, last = histories.steps.numpy(), histories.last.numpy()
    n, longest, _ = steps.shape
    inside = np.arange(longest) <= last[:, None]
    mean = np.einsum("nt,ntd->nd", inside, steps) / inside.sum(axis=1, keepdims=True)
    return np.concatenate([steps[np.arange(n), last], mean, histories.static.numpy()], axis=1)


def _importance(
    preference: Preference, histories: Histories, generator: np.random.Generator
) -> Floats:
    """How heavy each column of a summary is: for the policy and for the clinicians, and evenly."""
    some = histories.take(generator.permutation(len(histories.last))[:_ASKED])
    width, n_static = some.steps.shape[2], some.static.shape[1]
    total = np.zeros(width + n_static)
    for own in (preference, Preference(preference.policy.imitation())):
        values = attribute_inputs(own, some, *own.two_likeliest(some))
        size = np.concatenate([np.abs(values.steps).sum(axis=1), np.abs(values.static)], axis=1)
        mean = size.mean(axis=0)
        total += mean / mean.sum() if mean.sum() > 0 else 1 / len(mean)
    heavy = np.sqrt((1 - _EVEN) * total / 2 + _EVEN / len(total))
    past = heavy[:width] * (_PAST if (some.last > 0).any() else 0.0)
    return np.concatenate([heavy[:width], past, heavy[width:]])


def _usual_reach(points: Floats, person: Ints, generator: np.random.Generator) -> float:
    """Distance within which a usual decision finds enough other people."""
    n_people = int(person.max()) + 1
    wanted = min(max(_NEAREST, round(np.sqrt(n_people))), max(n_people - 1, 1))
    reaches = []
    for row in generator.permutation(len(points))[:_TYPICAL]:
        distance = np.sqrt(((points - points[row]) ** 2).sum(axis=1))
        distance[person == person[row]] = np.inf
        nearest = np.full(n_people, np.inf)
        np.minimum.at(nearest, person, distance)
        reaches.append(np.partition(nearest, wanted - 1)[wanted - 1])
    finite = np.array(reaches)[np.isfinite(reaches)]
    # Weights fall towards the edge, so the edge lies a little further out.
    return float(np.median(finite) * 1.3) if finite.size else 0.0
