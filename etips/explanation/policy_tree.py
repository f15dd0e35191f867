"""A policy as a few rules: a tree of questions learned from doubly robust scores of a log.

It is not the network retold: every leaf has the action that the log itself speaks for, among those
that clinicians take often enough there. How deep it is, and whether it asks anything at all, is
decided on stays that it was not grown on. It is judged, as a whole and leaf by leaf, on others.
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
from etips.disclosure import LEAST_PEOPLE, hide_together, shown_parts
from etips.errors import SettingError, require_seed, require_whole
from etips.evaluation.assessment import assess
from etips.evaluation.censoring import complete_losses
from etips.evaluation.log import PROPENSITY_FLOOR, Log
from etips.explanation.tree_search import Cuts, Search
from etips.learn.training.epoch_report import Report
from etips.policies.deployed import Deployed
from etips.policies.policy import FittedPolicy
from etips.policies.policy_files import save_policy
from etips.policies.rule_tree import MOST_LEVELS, RuleTree
from etips.results.evaluate import assess_policies
from etips.results.evaluation_log import Models, make_log
from etips.results.followed_policies import follow_unseen, require_unseen_stays
from etips.results.records import MethodResult

RULES, POLICY = "the rules", "the policy"
"""What results call the two."""

N_FOLDS = 3
"""Parts of the stays that depths are compared on."""

_MAX_SCORES = 1_000_000  # that questions are searched on; leaves take their action from all
_MAX_FEATURES = 48  # that may be asked for, the most telling ones
_LEAST_SHARE = 0.02  # of the people in a leaf
_USUAL = 0.1  # of the decisions: an action that fewer have support for is no rule
_ONE_SIDED = 1.645  # standard errors by which rules must beat one action for everybody


@dataclass(frozen=True)
class TreeGain:
    """Risk of rules minus that of one action for everybody, on stays they were not grown on.

    `depth` is that of the questions in a row; the standard error is by person.
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
    """Learns a policy of at most `depth` questions in a row, 1 to 4.

    `models` are those that the log is weighed with, `seed` is of the folds.
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
        tree = self.choose(train, self._scores(policy, train, support, report))
        self.policy_ = replace(
            policy, kind="tree", tree=tree, networks=None, constant=None, support=support, lean=0.0,
            acts="likeliest",
        ).having_seen(train)  # fmt: skip
        return self

    def choose(self, train: Trajectories, scores: Floats) -> RuleTree:
        """Rules for given scores (n_decisions, K), lower is better, as deep as stays bear."""
        rows, cluster = last_step(train), train.cluster
        person = 1 / np.bincount(cluster)[cluster]  # every person counts 1 in all
        fold = assign_folds(train, n_folds=N_FOLDS, seed=self.seed)[train.decisions().stay]
        values = np.zeros((self.depth + 1, len(scores)))
        for part in range(N_FOLDS):
            learns, judges = np.flatnonzero(fold != part), np.flatnonzero(fold == part)
            for depth in range(self.depth + 1):
                tree = self._grow(rows, scores, person, learns, depth)
                values[depth, judges] = scores[judges, tree.actions(rows[judges])]
        gains = []
        for depth, difference in enumerate(values[1:] - values[0], start=1):
            mean = float(difference.mean())
            part_of_person = np.bincount(cluster, difference - mean)
            error = float(np.sqrt((part_of_person**2).sum()) / len(difference))
            gains.append(TreeGain(depth, mean, error))
        self.gains_ = tuple(gains)
        return self._grow(rows, scores, person, np.arange(len(rows)), self._depth())

    @property
    def individualises(self) -> bool:
        """Whether rules beat one action for everybody on stays they were not grown on."""
        return self._depth() > 0

    @property
    def sentence(self) -> str:
        """What held-out stays show of asking questions at all."""
        best = min(self.gains_, key=lambda own: own.difference)
        low, high = best.limits
        gain = f"{best.difference:+.4f} [{low:+.4f}, {high:+.4f}]"
        if self.individualises:
            return f"rules beat one action for everybody on held-out stays: {gain}"
        return (
            "nothing to individualise: no rules of up to "
            f"{self.depth} questions in a row did better on held-out stays than one action "
            f"for everybody (difference of the risks {gain})"
        )

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
        if log.predicted is None:
            raise SettingError("models", "must predict losses", fix="Models(outcome=True).")
        taken, scores = (np.arange(train.n_decisions), log.action), log.predicted.copy()
        scores[taken] += (log.loss - log.predicted[taken]) / log.propensity
        supported = None
        if policy.propensity is not None:
            supported = policy.propensities(train) >= support
            scores = np.where(supported, scores, log.loss[:, None])
        return without_rare(scores, log.action, train.cluster, supported)

    def _grow(
        self, rows: Floats32, scores: Floats, person: Floats, learns: Ints, depth: int
    ) -> RuleTree:
        """The best tree of a depth on some decisions."""
        if depth == 0:
            return RuleTree.always(cautious_best(scores[learns]))
        used = np.flatnonzero((scores < scores.max()).any(axis=0))  # the others are never the best
        used = used if used.size else np.arange(scores.shape[1])
        some, most = learns, _MAX_SCORES // (len(used) + 1)
        if len(learns) > most:
            some = np.sort(np.random.default_rng(self.seed).permutation(learns)[:most])
        least = max(2 * LEAST_PEOPLE, _LEAST_SHARE * person[some].sum())
        own, asked = scores[some][:, used], np.arange(rows.shape[1])
        if len(asked) > _MAX_FEATURES:
            search = Search(Cuts.of(rows[some]), own, person[some], least)
            telling = [one.feature for one in search.first_questions(np.arange(len(some)), 1)]
            first = list(dict.fromkeys(telling))[:_MAX_FEATURES]
            asked = np.sort(np.array(first, np.int64)) if first else asked[:_MAX_FEATURES]
        tree = Search(Cuts.of(rows[some][:, asked]), own, person[some], least).grow(depth)
        column = np.where(tree.column >= 0, asked[np.maximum(tree.column, 0)], tree.column)
        tree, action = replace(tree, column=column), tree.action.copy()
        leaf = tree.leaf_of(rows[learns])
        for place in tree.leaves:
            if (leaf == place).any():
                action[place] = cautious_best(scores[learns][leaf == place])
        return replace(tree, action=action)


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
    return np.where(rare, np.abs(scores).max() + 1, scores)


def cautious_best(scores: Floats) -> int:
    """The action of least mean score plus one standard error.

    Among many actions a rare one, whose scores are few and large, would else look best by luck.
    """
    error = scores.std(axis=0) / np.sqrt(len(scores))
    return int((scores.mean(axis=0) + error).argmin())


@dataclass(frozen=True)
class LeafReport:
    """One rule and what the log shows of it; a figure that would reveal a few people is None.

    Of its decisions, `followed` is the share at which the log does what it recommends, and
    `agreement` that at which the policy does. Low and high are limits of the risk of following it.
    """

    rule: str
    action: str
    share: float | None = None
    followed: float | None = None
    agreement: float | None = None
    logged_loss: float | None = None
    risk: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: str | None = None


@dataclass(frozen=True, eq=False)
class TreeReport:
    """The policy as rules, judged.

    Args:
        agreement: Share of the judged decisions at which rules and policy recommend the same.
        methods: What the log shows of the rules and of the policy they stand beside.
        judged: Where the judged stays come from, in words.
    """

    tree: PolicyTree
    leaves: tuple[LeafReport, ...]
    agreement: float | None
    methods: tuple[MethodResult, ...]
    judged: str

    def to_json(self) -> dict[str, object]:
        """JSON-ready."""
        estimates = [
            {
                "name": own.name,
                "verdict": own.verdict,
                "reasons": list(own.reasons),
                "risk": own.estimates[0].risk,
                "low": own.estimates[0].low,
                "high": own.estimates[0].high,
                "gain": None if own.gain is None else own.gain.difference,
                "truth": own.truth,
                "in_sample": own.in_sample,
            }
            for own in self.methods
        ]
        return {
            **self.tree.to_json(),
            "leaves": [asdict(leaf) for leaf in self.leaves],
            "agreement": self.agreement,
            "judged": self.judged,
            "estimates": estimates,
        }

    def lines(self) -> list[str]:
        """What is known of the rules as a whole, in words."""
        lines = []
        if self.agreement is not None:
            lines.append(
                f"rules and policy recommend the same at {self.agreement:.0%} of decisions"
            )
        for method in self.methods:
            head = method.estimates[0]
            truth = "" if method.truth is None else f", in truth {method.truth:.4f}"
            sample = ", in sample" if method.in_sample else ""
            figures = _figures(head.risk, head.low, head.high)
            lines.append(f"{method.name}: risk {figures} ({method.verdict}{sample}){truth}")
        return [*lines, f"judged on {self.judged}"]


def leaf_words(leaf: LeafReport) -> str:
    """What the log shows of a rule."""
    if leaf.share is None:
        return "not shown: it would tell of a few people"
    words = [f"{leaf.share:.0%} of the decisions"]
    if leaf.agreement is not None:
        words.append(f"the policy says the same at {leaf.agreement:.0%} of them")
    if leaf.logged_loss is not None:
        words.append(f"mean logged loss {leaf.logged_loss:.3f}")
    if leaf.risk is not None:
        words.append(f"risk under the rule {_figures(leaf.risk, leaf.low, leaf.high)}")
    return ", ".join(words + ([] if leaf.verdict is None else [leaf.verdict]))


def _figures(*values: float | None) -> str:
    risk, low, high = ("?" if value is None else f"{value:.4f}" for value in values)
    return f"{risk} [{low}, {high}]"


def report_tree(
    tree: PolicyTree,
    policy: FittedPolicy,
    judged: Trajectories,
    *,
    source: str,
    models: Models | None = None,
    report: Report | None = None,
) -> TreeReport:
    """Judge rules beside the policy on stays that the rules were not learned from.

    If the policy learned from these stays, its estimate says so. `source` says where they are from.
    """
    rules = tree.fitted_policy()
    require_unseen_stays({RULES: rules}, judged)
    judged = complete_losses(judged)
    named = {RULES: rules, POLICY: policy}
    seen = require_unseen_stays(named, judged, allow_seen=True)
    followed = follow_unseen(named, judged, seen)
    made = make_log(named, judged, models or Models(), report=report)
    same = rules.predict(judged) == policy.predict(judged)
    return TreeReport(
        tree,
        _leaves(tree, judged, made.log, followed[RULES].deployed, same),
        _share(same),
        assess_policies(followed, made.log, judged, notes=made.notes),
        source,
    )


def _leaves(
    tree: PolicyTree, judged: Trajectories, log: Log, does: Deployed, same: Bools
) -> tuple[LeafReport, ...]:
    """What the log shows of each rule; of those that enough people meet."""
    leaf, schema = tree.apply(judged), tree.fitted_policy().schema
    each = [leaf == place for place in tree.tree.leaves]
    people = np.array([len(np.unique(judged.cluster[inside])) for inside in each])
    hidden = hide_together(people, np.array([inside.sum() for inside in each]))
    reports = []
    for place, rule, inside, few in zip(tree.tree.leaves, tree.rules(), each, hidden, strict=True):
        action = int(tree.tree.action[place])
        bare = LeafReport(rule, schema.action_name(action))
        if few or not inside.any():
            reports.append(bare)
            continue
        part = log.take(inside)
        verdict = assess(part, does.probabilities[inside], does.abstained[inside])
        head = verdict.estimates[0]
        figures = np.array([part.loss.mean(), head.risk, head.low, head.high])
        # The mean of losses of 0 and 1 counts them.
        if np.isin(part.loss, (0, 1)).all() and _share(part.loss > 0) is None:
            figures[:] = np.nan
        loss, risk, low, high = (v if np.isfinite(v) else None for v in figures.tolist())
        reports.append(
            replace(
                bare,
                share=float(inside.mean()),
                followed=_share(part.action == action),
                agreement=_share(same[inside]),
                logged_loss=loss,
                risk=risk,
                low=low,
                high=high,
                verdict=verdict.verdict.label,
            )
        )
    return tuple(reports)


def _share(holds: Bools) -> float | None:
    """A share, unless it counts a few."""
    n = int(holds.sum())
    return None if None in shown_parts(n, len(holds) - n) else float(holds.mean())
