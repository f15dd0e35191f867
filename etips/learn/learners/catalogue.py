"""The methods: one entry each, with everything that others need to know of it.

A new learner is its own file, its import here, and its entry in `METHODS`. Commands, studies,
searches, tables, reports and `etips.NAME` read the entry.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Literal

from etips.errors import SettingError
from etips.learn.learners.ai_clinician import AIClinician as AIClinician
from etips.learn.learners.baselines import MostFrequent as MostFrequent
from etips.learn.learners.baselines import PredictiveModel as PredictiveModel
from etips.learn.learners.baselines import RandomPolicy as RandomPolicy
from etips.learn.learners.direct import DirectMethod as DirectMethod
from etips.learn.learners.direct import StayDirectMethod as StayDirectMethod
from etips.learn.learners.lasso import QLearning as QLearning
from etips.learn.learners.learner import Learner
from etips.learn.learners.machines import OWL as OWL
from etips.learn.learners.machines import RWL as RWL
from etips.learn.learners.poem import POEM as POEM
from etips.learn.learners.poem import NormPOEM as NormPOEM
from etips.learn.learners.weighted import EIPS as EIPS
from etips.learn.learners.weighted import IPS as IPS
from etips.learn.learners.weighted import TIPS as TIPS
from etips.learn.learners.weighted import BanditNet as BanditNet
from etips.learn.learners.weighted import BetaIPS as BetaIPS
from etips.learn.learners.weighted import DoublyRobust as DoublyRobust
from etips.learn.learners.weighted import EtIPS as EtIPS
from etips.learn.learners.weighted import ExponentialSmoothing as ExponentialSmoothing
from etips.learn.learners.weighted import LogSmoothing as LogSmoothing
from etips.learn.learners.weighted import LogSumExp as LogSumExp
from etips.learn.learners.weighted import Pessimistic as Pessimistic
from etips.learn.learners.weighted import StrengthLearner
from etips.learn.learners.weighted import WeightedLikelihood as WeightedLikelihood
from etips.learn.super_learner import SuperLearner as SuperLearner


@dataclass(frozen=True)
class Choice:
    """One of some values; of one, it is fixed.

    Args:
        values: At least one, none twice.
    """

    values: tuple[object, ...]


@dataclass(frozen=True)
class Range:
    """Any value between two ends, both of them possible.

    Args:
        low: The least.
        high: The most.
        log: Whether 1 to 10 is as far as 10 to 100.
        whole: Whether whole numbers only.
    """

    low: float
    high: float
    log: bool = False
    whole: bool = False


Space = Mapping[str, Choice | Range]
"""By key of `recipes`; what a space does not name has the learner's default."""


Stage = Literal["propensity", "outcome", "stay", "policy"]
"""What is trained: the clinicians, predicted losses, predicted outcomes of stays, and policies."""

_MACHINES: Space = {
    "kernel": Choice(("linear", "rbf")),
    "support": Choice((0.05, 0.0, 0.02, 0.1)),
}
_PAPER_GRID: Space = {"translations": Choice(([round(0.1 * k, 1) for k in range(1, 16)],))}


def _one(_: Learner) -> int:
    return 1


def _one_a_translation(learner: Learner) -> int:
    assert isinstance(learner, EtIPS)
    return len(learner.variants())


def _one_a_strength(learner: Learner) -> int:
    assert isinstance(learner, StrengthLearner)
    return len(learner.strengths)


@dataclass(frozen=True)
class Method:
    """A way to learn a policy.

    Args:
        name: On the command line and in studies.
        label: What the paper calls it, where it has a name for it.
        sentence: What it does, for the reader of a report.
        learner: Its class, whose plain fields are its settings.
        make: Makes one from keyword arguments: the class itself, or a function that sets some of
            them. Its `__name__` is what Python users call the method.
        stages: What it trains, at most; nothing for a simple policy.
        lends: Stages that other methods may take over from it, since it trains them as they would.
        known_propensities: Whether the data must hold the propensities.
        imitates: Whether its policy is the fitted propensities, so that no weighted risk tells one
            such policy from another.
        predicts_loss: Whether it takes the action of least predicted loss.
        draws: Whether it draws its actions and has no preference.
        n_policies: Policies that a learner trains in a fold.
        space: What a search varies besides the networks.
        paper_space: The same, as the paper's code does.
    """

    name: str
    label: str
    sentence: str
    learner: type[Learner]
    make: Callable[..., Learner]
    stages: tuple[Stage, ...] = ()
    lends: tuple[Stage, ...] = ()
    known_propensities: bool = False
    imitates: bool = False
    predicts_loss: bool = False
    draws: bool = False
    n_policies: Callable[[Learner], int] = _one
    space: Space = field(default_factory=dict)
    paper_space: Space = field(default_factory=dict)

    @property
    def python_name(self) -> str:
        """What it is called in Python: `etips.NAME`."""
        return self.make.__name__

    @property
    def parameters(self) -> frozenset[str]:
        """What `make` takes."""
        return frozenset(own.name for own in fields(self.learner))  # type: ignore[arg-type]


_ETIPS = Method(
    name="etips",
    label="etIPS",
    sentence="Learned from weighted decisions, a baseline or translation taken off the loss.",
    learner=EtIPS,
    make=EtIPS,
    stages=("propensity", "policy"),
    n_policies=_one_a_translation,
    paper_space=_PAPER_GRID,
)
_TIPS = replace(
    _ETIPS,
    name="tips",
    label="tIPS",
    sentence="As etips, with propensities that are known, not estimated.",
    make=TIPS,
    known_propensities=True,
)
_EIPS = replace(
    _ETIPS,
    name="eips",
    label="eIPS",
    sentence="Learnt from weighted decisions without a translation.",
    make=EIPS,
    paper_space={},
)
_IPS = replace(
    _EIPS,
    name="ips",
    label="IPS",
    sentence="As eips, with propensities that are known, not estimated.",
    make=IPS,
    known_propensities=True,
)


def _since(
    name: str, label: str, sentence: str, learner: type[Learner], *, strengths: bool = True
) -> Method:
    """An objective published since the paper."""
    return Method(
        name=name,
        label=label,
        sentence=sentence,
        learner=learner,
        make=learner,
        stages=("propensity", "policy"),
        n_policies=_one_a_strength if strengths else _one,
    )


_METHODS = (
    Method(
        name="auto",
        label="super learner",
        sentence="Stacks models of every kind and leans to the clinicians as far as held-out "
        "decisions say.",
        learner=SuperLearner,
        make=SuperLearner,
        stages=("propensity", "outcome"),
    ),
    _ETIPS,
    _TIPS,
    _EIPS,
    _IPS,
    Method(
        name="direct",
        label="DM",
        sentence="Predicts the loss of every action and takes the least.",
        learner=DirectMethod,
        make=DirectMethod,
        stages=("propensity", "outcome"),
        lends=("outcome",),
        predicts_loss=True,
    ),
    Method(
        name="direct-stay",
        label="DM, stay",
        sentence="Predicts the outcome of the stay after every action and takes the least.",
        learner=DirectMethod,
        make=StayDirectMethod,
        stages=("propensity", "stay"),
        space={"support": Choice((0.05, 0.02, 0.1))},
    ),
    Method(
        name="doubly-robust",
        label="DoublyRobust",
        sentence="Learnt from predicted losses, corrected by weighted decisions.",
        learner=DoublyRobust,
        make=DoublyRobust,
        stages=("propensity", "outcome", "policy"),
    ),
    replace(
        _ETIPS,
        name="beta-ips",
        label="beta-IPS",
        sentence="As etips by the baseline of least variance.",
        make=BetaIPS,
        paper_space={},
    ),
    _since(
        "log-sum-exp",
        "LSE",
        "Learned from the log-sum-exp of weighted gains, which hears no single one.",
        LogSumExp,
    ),
    _since(
        "log-smoothing",
        "LS",
        "Learned from logarithms of weighted gains.",
        LogSmoothing,
    ),
    _since(
        "exponential-smoothing",
        "ES",
        "Learned from gains over a power of the propensity.",
        ExponentialSmoothing,
    ),
    _since(
        "weighted-likelihood",
        "WLL",
        "Learned from the likelihood of logged actions, weighted by what they gained.",
        WeightedLikelihood,
        strengths=False,
    ),
    _since(
        "pessimistic",
        "PPL",
        "Learned from an upper bound of the weighted risk.",
        Pessimistic,
    ),
    Method(
        name="predictive",
        label="PredictiveModel",
        sentence="Imitates the clinicians.",
        learner=PredictiveModel,
        make=PredictiveModel,
        stages=("propensity",),
        lends=("propensity",),
        imitates=True,
    ),
    Method(
        name="q-learning",
        label="Q-learning",
        sentence="Regresses the loss on a summary of the history and takes the least.",
        learner=QLearning,
        make=QLearning,
        space={"support": Choice((0.05, 0.0, 0.02, 0.1))},
    ),
    Method(
        name="owl",
        label="OWL",
        sentence="Classifies the action taken, decisions weighted by their reward.",
        learner=OWL,
        make=OWL,
        space=_MACHINES,
    ),
    Method(
        name="rwl",
        label="RWL",
        sentence="As owl, weighted by what the loss has beyond a baseline.",
        learner=RWL,
        make=RWL,
        space=_MACHINES,
    ),
    Method(
        name="poem",
        label="POEM",
        sentence="Learned from clipped weighted losses and how much they vary.",
        learner=POEM,
        make=POEM,
        space={"penalty": Range(0.1, 100.0, log=True)},
    ),
    Method(
        name="norm-poem",
        label="Norm-POEM",
        sentence="As poem, with weights that are divided by their sum.",
        learner=NormPOEM,
        make=NormPOEM,
        space={"penalty": Range(0.1, 100.0, log=True)},
    ),
    replace(
        _TIPS,
        name="bandit-net",
        label="BanditNet",
        sentence="As tips, from a random start and without a floor on support.",
        make=BanditNet,
        paper_space={},
    ),
    Method(
        name="ai-clinician",
        label="AI Clinician",
        sentence="Counts what follows actions in groups of patients; least outcome of the stay.",
        learner=AIClinician,
        make=AIClinician,
        space={"rare": Choice((5, 12, 20)), "n_states": Choice((100, 300, 750))},
    ),
    Method(
        name="random",
        label="RP",
        sentence="Every action alike, whoever the patient.",
        learner=RandomPolicy,
        make=RandomPolicy,
        draws=True,
    ),
    Method(
        name="most-frequent",
        label="most frequent",
        sentence="Gives everybody the action that was logged most often.",
        learner=MostFrequent,
        make=MostFrequent,
    ),
)

DEFAULT = _METHODS[0].name
"""What we recommend, and what is taken where nothing is said."""

METHODS: Mapping[str, Method] = {method.name: method for method in _METHODS}
"""Every method by its name, in the order of help pages."""


def find_method(name: str) -> Method | None:
    """The method of this name, if there is one."""
    return METHODS.get(name)


def require_method(name: str) -> Method:
    """The method of this name; any other is refused."""
    method = find_method(name)
    if method is None:
        raise SettingError("method", f"must be one of {', '.join(METHODS)}")
    return method


def find_learner(python_name: str) -> Callable[..., Learner] | None:
    """What makes the learner that Python users call so."""
    return next((m.make for m in METHODS.values() if m.python_name == python_name), None)
