"""What learners say of themselves once they are fitted."""

import pytest
from small_worlds import LEARNERS, NETWORKS, ROWS, ward

FLOORED = {*NETWORKS, *ROWS} - {"PredictiveModel", "AIClinician"}
CHOOSING = {"EtIPS", "TIPS", "EIPS", "IPS", "BetaIPS", "BanditNet", "LogSumExp", "DoublyRobust"}
WEIGHING = {*CHOOSING, *ROWS, "POEM, networks"} - {"AIClinician"}
PREDICTING = ("DirectMethod", "additive DirectMethod", "DoublyRobust")


@pytest.mark.parametrize("name", LEARNERS)
def test_a_fit_holds_what_the_learner_has_and_none_where_it_has_nothing(name):
    data = ward()
    fit = LEARNERS[name]().fit(data).fit_
    assert (fit.propensity is None) == (fit.quality is None) == (name not in NETWORKS)
    assert (fit.support is None) == (name not in FLOORED)
    assert (fit.clipped_share is None) == (name not in WEIGHING)
    assert (len(fit.path) > 0) == (name in CHOOSING)
    assert (fit.outcome is None) == (name not in PREDICTING)
    if fit.outcome is not None:
        assert fit.outcome.expected.shape == (data.n_decisions, data.n_actions)
    if fit.propensity is not None:
        assert fit.quality is fit.propensity.quality
        assert fit.policy.propensity is fit.propensity.together


def test_the_selected_risk_is_the_corrected_one_beside_the_luckiest():
    learner = NETWORKS["EtIPS"]().fit(ward())
    chosen = next(c for c in learner.path_ if c.chosen)
    assert learner.selected_risk_ == (chosen.corrected, chosen.corrected_error, chosen.risk)
    assert learner.fit_.selected_risk == learner.selected_risk_
    assert NETWORKS["PredictiveModel"]().fit(ward()).selected_risk_ is None
