"""Policies of a study that decide throughout: what their stays would come to."""

from collections.abc import Mapping

from etips.data.trajectories import Trajectories
from etips.evaluation.log import Log
from etips.learn.fitting.stages import Training
from etips.learn.training.settings import Settings
from etips.models.encoders.gru import GRU
from etips.results.evaluation_log import Models
from etips.results.followed_policies import Followed
from etips.results.results import MethodResult
from etips.results.whole_stay_evaluation import Throughout, assess_throughout
from etips.studies.experiment import Experiment

ENCODER = GRU(16, embed=16)
TRAINING = Settings(epochs=3, learning_rate=5e-3, dropout=0.1)
"""Small, since a study asks for minutes: rounds take two or three epochs each anyway."""


def stay_outcomes(
    experiment: Experiment, policies: Mapping[str, Followed], log: Log, data: Trajectories
) -> dict[str, Throughout]:
    """What becomes of stays under the policies that the study wants looked at throughout.

    Args:
        experiment: Says which; a method that it leaves out is not looked at.
        policies: Of each method one policy on all of `data`.
        log: The decisions of `data`.
        data: Logged stays.
    """
    looked = [name for name in experiment.whole_stay if name in policies]
    wanted = {name: policies[name].deployed for name in looked}
    if not wanted:
        return {}
    training = Training(n_folds=2, outcome=TRAINING)
    models = Models(encoder=ENCODER, training=training, seed=experiment.seed, kind="networks")
    return assess_throughout(wanted, log, data, models, "sum")


def show_stay(method: MethodResult) -> str:
    """The change over a whole stay as a table prints it; a dash where nobody looked."""
    whole = method.whole_stay
    if whole is None or whole.gain.difference is None:
        return "-"
    gain = whole.gain
    limits = "" if gain.low is None or gain.high is None else f" [{gain.low:.3f}, {gain.high:.3f}]"
    return f"{gain.difference:+.3f}{limits}, {whole.verdict}"
