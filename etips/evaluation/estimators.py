"""Every risk estimator there is, one entry each: what others need to know of it is listed here.

To add one, write its formula (see `risk`) and its entry. `assess`, the results, the command line
and the report read this list.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from etips.errors import SettingError
from etips.evaluation import risk
from etips.evaluation.inference.checks import Floats
from etips.evaluation.inference.estimate import Estimate
from etips.evaluation.inference.intervals import DEFAULT, Interval
from etips.evaluation.log import Log, View

WEIGHTS = ("loss", "weight")
MODEL = ("predicted_policy",)
BOTH = (*WEIGHTS, "predicted", *MODEL)
"""Arrays of a log, and of a policy seen through it, that a formula takes by name."""


@dataclass(frozen=True)
class Estimator:
    """A way to estimate the risk of a policy.

    Args:
        name: How results and the command line call it; the name of its formula too.
        label: How a page calls it, in 14 letters at most: more do not fit beside an interval.
        sentence: What it does, in plain words.
        formula: A function of the arrays named in `needs`, of `cluster` and of `interval`.
        needs: `WEIGHTS`, `MODEL` or `BOTH`.
        beside: Shown beside the headline where there is room for few.
    """

    name: str
    label: str
    sentence: str
    formula: Callable[..., Estimate]
    needs: tuple[str, ...]
    beside: bool = False

    def allowed(self, log: Log) -> bool:
        """Whether `log` holds what it needs: predicted losses, if it is one that uses a model."""
        return log.predicted is not None or self.needs == WEIGHTS

    def estimate(
        self,
        log: Log,
        policy: View,
        *,
        interval: Interval = DEFAULT,
        count: Floats | None = None,
    ) -> Estimate:
        """Risk of a policy, seen through `log`; `count` says how often each decision counts."""
        arrays = {
            "loss": log.loss,
            "weight": policy.weight,
            "predicted": policy.predicted,
            "predicted_policy": policy.predicted_policy,
        }
        needed = {name: arrays[name] for name in self.needs}
        return self.formula(**needed, cluster=log.clusters, count=count, interval=interval)


_ALL = (
    Estimator(
        "snips", "SNIPS",
        "Mean loss of the decisions that did what the policy would do, each with its weight.",
        risk.snips, WEIGHTS, beside=True,
    ),
    Estimator(
        "ips", "IPS",
        "The same without dividing by the sum of the weights: wrong where that sum is off.",
        risk.ips, WEIGHTS, beside=True,
    ),
    Estimator(
        "clipped_ips", "Clipped IPS", "IPS with heavy weights cut.", risk.clipped_ips, WEIGHTS
    ),
    Estimator(
        "dm", "Direct method",
        "What a model predicts under the policy. Its interval leaves out the model's own error, "
        "so it may be narrow and wrong.",
        risk.dm, MODEL,
    ),
    Estimator(
        "dr", "Doubly robust",
        "The model's prediction, corrected by the weighted decisions: right if either is.",
        risk.dr, BOTH, beside=True,
    ),
    Estimator(
        "sndr", "Self-norm. DR",
        "The same, the correction divided by the sum of the weights.",
        risk.sndr, BOTH,
    ),
    Estimator(
        "switch_dr", "Switch DR",
        "Doubly robust without correction where weights are heavy.",
        risk.switch_dr, BOTH,
    ),
    Estimator(
        "dr_shrinkage", "Shrunk DR",
        "Doubly robust with heavy weights shrunk.",
        risk.dr_shrinkage, BOTH,
    ),
)  # fmt: skip

ESTIMATORS: Mapping[str, Estimator] = {entry.name: entry for entry in _ALL}
"""By name, in the order of tables."""

HEADLINES = ("sndr", "snips")
"""The default headline is the first of these that a log allows: predicted losses take out what the
weights leave unbalanced, and SNIPS needs none."""

BESIDE = tuple(entry.name for entry in _ALL if entry.beside)
"""Names of those shown where there is room for few."""


def estimator_names(log: Log) -> tuple[str, ...]:
    """Estimators that `log` allows, the default headline first."""
    allowed = [name for name, entry in ESTIMATORS.items() if entry.allowed(log)]
    headline = next(name for name in HEADLINES if name in allowed)
    return (headline, *(name for name in allowed if name != headline))


def find_estimators(names: tuple[str, ...], log: Log) -> tuple[Estimator, ...]:
    """The estimators of these names, or all that `log` allows; any other name is refused."""
    allowed = estimator_names(log)
    if not set(names) <= set(allowed):
        raise SettingError("estimators", f"must be among {', '.join(allowed)}")
    return tuple(ESTIMATORS[name] for name in names or allowed)
