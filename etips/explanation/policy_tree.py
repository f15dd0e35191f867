"""A policy as a few rules: a tree of questions learned from doubly robust scores of a log.

It is not the network retold: every leaf has the action that the log itself speaks for, among those
that clinicians take often enough there. How deep it is, and whether it asks anything at all, is
decided on stays that it was not grown on.
"""

from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from pathlib import Path
from typing import Self

import numpy as np

from etips.data.coded import Floats32
from etips.data.decisions import Bools, Floats, Ints
from etips.data.history_rows import last_step
from etips.data.splitting import assign_folds
from etips.data.trajectories import Trajectories
from etips.disclosure import LEAST_PEOPLE
from etips.errors import SettingError, require_seed, require_whole
from etips.evaluation.censoring import complete_losses
from etips.evaluation.log import PROPENSITY_FLOOR
from etips.explanation.tree_search import Cuts, Search
from etips.learn.training.epoch_report import Report
from etips.policies.policy import FittedPolicy
from etips.policies.policy_files import save_policy
from etips.policies.rule_tree import MOST_LEVELS, RuleTree
from etips.results.evaluation_log import Models, make_log

N_FOLDS = 3
"""Parts of the stays that depths are compared on."""

_MOST = 1_000_000  # scores that questions are searched on; leaves take their action from all
_WIDEST = 48  # features that may be asked for, the most telling ones
_LEAST_SHARE = 0.02  # of the people in a leaf
_USUAL = 0.1  # of the decisions: an action that fewer have support for is no rule
_ONE_SIDED = 1.645  # standard errors by which rules must beat one action for everybody


@dataclass(frozen=True)
class TreeGain:
    """What rules would change against one action for everybody, on stays they were not grown on.

    Args:
        depth: Questions in a row.
        difference: Of the risks; below zero is better.
        std_error: Of it, by person.
    """

    depth: int
    difference: float
    std_error: float

    @property
    def better(self) -> bool:
        """Whether rules are shown to be better, at five per cent on one side."""
        return self.difference < -_ONE_SIDED * self.std_error

    @property
    def limits(self) -> tuple[float, float]:
        """Of 95 %."""
        return self.difference - 1.96 * self.std_error, self.difference + 1.96 * self.std_error


@dataclass(eq=False)
class PolicyTree:
    """Learns a policy of at most `depth` questions in a row.

    Args:
        depth: 1 to 4.
        models: How the log's propensities and predicted losses are fitted.
        seed: Of the folds.
    """

    _: KW_ONLY
    depth: int = 3
    models: Models | None = None
    seed: int = 0
    policy_: FittedPolicy = field(init=False, repr=False)
    gains_: tuple[TreeGain, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        require_whole("depth", self.depth, least=1)
        if self.depth > MOST_LEVELS:
            raise SettingError("depth", f"must be in 1..{MOST_LEVELS}", fix="Rules must be read.")
        require_seed(self.seed)

    def fit(
        self, policy: FittedPolicy, train: Trajectories, *, report: Report | None = None
    ) -> Self:
        """Learn rules beside a fitted policy, whose propensities and floor on support they keep."""
        train = complete_losses(policy.as_fitted_on(train))
        support = max(policy.support, PROPENSITY_FLOOR) if policy.propensity is not None else 0.0
        scores = self._scores(policy, train, support, report)
        tree = self.choose(train, scores)
        self.policy_ = replace(
            policy, kind="tree", tree=tree, networks=None, constant=None, support=support, lean=0.0,
            acts="likeliest",
        ).having_seen(train)  # fmt: skip
        return self

    def choose(self, train: Trajectories, scores: Floats) -> RuleTree:
        """Rules for given scores (n_decisions, K), lower is better, as deep as stays bear."""
        rows, person = last_step(train), person_weights(train.cluster)
        fold = assign_folds(train, n_folds=N_FOLDS, seed=self.seed)[train.decisions().stay]
        values = np.zeros((self.depth + 1, len(scores)))
        for part in range(N_FOLDS):
            learns = np.flatnonzero(fold != part)
            judges = np.flatnonzero(fold == part)
            for depth in range(self.depth + 1):
                tree = self._grow(rows, scores, person, learns, depth)
                values[depth, judges] = scores[judges, tree.actions(rows[judges])]
        self.gains_ = tuple(
            _gain(depth, values[depth] - values[0], train.cluster)
            for depth in range(1, self.depth + 1)
        )
        return self._grow(rows, scores, person, np.arange(len(rows)), self._depth())

    @property
    def individualises(self) -> bool:
        """Whether rules beat one action for everybody on stays they were not grown on."""
        return self._depth() > 0

    @property
    def sentence(self) -> str:
        """What held-out stays say of asking questions at all."""
        best = min(self.gains_, key=lambda own: own.difference)
        low, high = best.limits
        told = f"{best.difference:+.4f} [{low:+.4f}, {high:+.4f}]"
        if not self.individualises:
            return (
                "nothing to individualise: no rules of up to "
                f"{self.depth} questions in a row did better on held-out stays than one action "
                f"for everybody (difference of the risks {told})"
            )
        return f"rules beat one action for everybody on held-out stays: {told}"

    def fitted_policy(self) -> FittedPolicy:
        """The rules as a policy, or a refusal if there are none yet."""
        if "policy_" not in vars(self):
            raise SettingError("PolicyTree", "must be fitted first")
        return self.policy_

    @property
    def tree(self) -> RuleTree:
        """The questions."""
        tree = self.fitted_policy().tree
        assert tree is not None
        return tree

    def rules(self) -> list[str]:
        """One sentence a leaf."""
        return self.tree.rules(self.policy_.schema)

    def apply(self, data: Trajectories) -> Ints:
        """Leaf of each decision, a place of the tree, shape (n_decisions,)."""
        return self.tree.leaf_of(last_step(data))

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the rules as a policy folder; `etips.load` reads it back."""
        save_policy(self.fitted_policy(), folder, overwrite=overwrite)

    def to_json(self) -> dict[str, object]:
        """JSON-ready."""
        return {
            "rules": self.rules(),
            "tree": self.tree.to_json(),
            "sentence": self.sentence,
            "gains": [asdict(own) for own in self.gains_],
        }

    def _depth(self) -> int:
        """The least depth that is as good as the best; 0 if none is shown to be better than none.

        As good is within one standard error of the best.
        """
        best = min(self.gains_, key=lambda own: own.difference)
        if not best.better:
            return 0
        worst = best.difference + best.std_error
        return next(own.depth for own in self.gains_ if own.better and own.difference <= worst)

    def _scores(
        self, policy: FittedPolicy, train: Trajectories, support: float, report: Report | None
    ) -> Floats:
        """Doubly robust scores of every action; an action without support leaves things be."""
        log = make_log({}, train, self.models or Models(), report=report).log
        rows = np.arange(train.n_decisions)
        predicted = log.predicted
        if predicted is None:
            raise SettingError("models", "must predict losses", fix="Models(outcome=True).")
        scores = predicted.copy()
        error = log.loss - predicted[rows, log.action]
        scores[rows, log.action] += error / log.propensity
        if policy.propensity is None:
            return without_rare(scores, log.action, train.cluster)
        supported = policy.propensities(train) >= support
        scores = np.where(supported, scores, log.loss[:, None])
        return without_rare(scores, log.action, train.cluster, supported)

    def _grow(
        self, rows: Floats32, scores: Floats, person: Floats, learns: Ints, depth: int
    ) -> RuleTree:
        """The best tree of a depth on some decisions."""
        if depth == 0:
            return RuleTree.always(cautious_best(scores[learns]))
        used = _used(scores)
        most = _MOST // (len(used) + 1)
        some = learns
        if len(learns) > most:
            some = np.sort(np.random.default_rng(self.seed).permutation(learns)[:most])
        share = person[some].sum()
        least = max(2 * LEAST_PEOPLE, _LEAST_SHARE * share)
        own = scores[some][:, used]
        telling = _telling(rows[some], own, person[some], least)
        tree = Search(Cuts.of(rows[some][:, telling]), own, person[some], least).grow(depth)
        asked = tree.column >= 0
        column = np.where(asked, telling[np.where(asked, tree.column, 0)], tree.column)
        return _with_best_actions(replace(tree, column=column), rows[learns], scores[learns])


def without_rare(
    scores: Floats, action: Ints, person: Ints, supported: Bools | None = None
) -> Floats:
    """Scores (n, K) in which an action that fewer than eleven people had is never the best.

    Nor is one that has support at fewer than a tenth of the decisions, if others have more: a rule
    with it would mostly leave things be, and its few scores are large.
    """
    taken = np.zeros((scores.shape[1], int(person.max()) + 1), bool)
    taken[action, person] = True
    rare = taken.sum(axis=1) < LEAST_PEOPLE
    if supported is not None:
        unusual = rare | (supported.mean(axis=0) < _USUAL)
        rare = rare if unusual.all() else unusual
    worst = np.abs(scores).max() + 1
    return np.where(rare, worst, scores)


def cautious_best(scores: Floats) -> int:
    """The action of least mean score plus one standard error.

    Among many actions a rare one, whose scores are few and large, would else look best by luck.
    """
    error = scores.std(axis=0) / np.sqrt(len(scores))
    return int((scores.mean(axis=0) + error).argmin())


def person_weights(person: Ints) -> Floats:
    """Weight of each decision such that every person counts 1 in all, shape (n,)."""
    return np.asarray(1 / np.bincount(person)[person])


def _used(scores: Floats) -> Ints:
    """Actions that are not the worst everywhere: the others need no place in a search."""
    used = np.flatnonzero((scores < scores.max()).any(axis=0))
    return used if used.size else np.arange(scores.shape[1])


def _telling(rows: Floats32, scores: Floats, person: Floats, least: float) -> Ints:
    """Features that may be asked for: all, or those whose single question tells most."""
    if rows.shape[1] <= _WIDEST:
        return np.arange(rows.shape[1])
    search = Search(Cuts.of(rows), scores, person, least)
    found = search.first_questions(np.arange(len(rows)), 1)
    order = list(dict.fromkeys(question.feature for question in found))[:_WIDEST]
    return np.sort(np.array(order, np.int64)) if order else np.arange(_WIDEST)


def _with_best_actions(tree: RuleTree, rows: Floats32, scores: Floats) -> RuleTree:
    """The same questions, with the best action of all rows at each leaf."""
    leaf, action = tree.leaf_of(rows), tree.action.copy()
    for place in tree.leaves:
        own = leaf == place
        if own.any():
            action[place] = cautious_best(scores[own])
    return replace(tree, action=action)


def _gain(depth: int, difference: Floats, person: Ints) -> TreeGain:
    """Mean difference with its standard error by person."""
    mean = float(difference.mean())
    part = np.bincount(person, difference - mean)
    return TreeGain(depth, mean, float(np.sqrt((part**2).sum()) / len(difference)))
