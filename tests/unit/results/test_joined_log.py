"""One log of several sources, each weighed by what was fitted in it."""

import numpy as np
import pytest

from etips.data.alignment import align
from etips.data.joining import join
from etips.errors import DataError
from etips.evaluation.log import Log
from etips.results.evaluation_log import EvaluationLog
from etips.results.joined_log import join_logs
from etips.worlds.two_hospitals import SECOND, simulate_place


@pytest.fixture(scope="module")
def joined():
    first = simulate_place(20, seed=1)
    second = align(simulate_place(30, seed=2, place=SECOND), first.schema)
    return join({"a": first, "b": second})


def shares(part, **more):
    """Every action as often as it is taken in the part: another table in each."""
    taken = (1 + np.bincount(part.logged_action, minlength=9)) / (part.n_decisions + 9)
    table = np.tile(taken, (part.n_decisions, 1))
    return Log.of(part, propensities=table, predicted=table * 0.5, **more)


def test_every_decision_is_weighed_by_its_own_source(joined):
    data, source = joined
    made = join_logs(data, source, lambda part: EvaluationLog(shares(part), {"by": "x"}, None))
    inside = source[data.decisions().stay] == "a"
    for keep, label in ((inside, "a"), (~inside, "b")):
        alone = shares(data.subset(source == label))
        part = made.log.take(keep)
        for name in ("loss", "action", "propensity", "propensities", "predicted", "features"):
            assert np.array_equal(getattr(part, name), getattr(alone, name)), name
    assert not np.array_equal(made.log.propensities[0], made.log.propensities[-1])
    assert made.notes == {"a: by": "x", "b: by": "x"}
    assert np.array_equal(made.log.cluster, data.cluster)


def test_what_was_balanced_in_one_source_alone_is_as_it_was_in_the_other(joined):
    data, source = joined

    def fit(part):
        log = shares(part)
        if part.n_stays == 20:
            log = type(log)(**{**fields_of(log), "unbalanced": np.full(log.n_decisions, 0.5)})
        return EvaluationLog(log, {}, None)

    log = join_logs(data, source, fit).log
    inside = source[data.decisions().stay] == "a"
    assert (log.unbalanced[inside] == 0.5).all()
    assert np.array_equal(log.unbalanced[~inside], log.propensity[~inside])


def fields_of(log):
    names = ("loss", "action", "propensity", "cluster", "n_actions", "propensities", "features")
    return {name: getattr(log, name) for name in names}


def test_sources_must_lie_one_after_the_other(joined):
    data, source = joined
    with pytest.raises(DataError, match="one source after the other"):
        join_logs(data, np.roll(source, 5), lambda part: None)
