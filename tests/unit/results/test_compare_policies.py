"""Comparing policies end to end, of one source or several, and place by place."""

import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import etips
from etips.data.alignment import align, join
from etips.data.tables.reading import read_table
from etips.errors import DataError, EtipsError, SettingError
from etips.evaluation.inference.intervals import DEFAULT
from etips.evaluation.log import Log
from etips.learn.fitting.stages import Training
from etips.learn.training.settings import Settings
from etips.models.encoders.gru import GRU
from etips.results.compare_policies import case_mix_rows, compare, compare_places, join_logs
from etips.results.comparison_result import CLINICIANS, Comparison
from etips.results.evaluate import evaluate
from etips.results.evaluation_log import EvaluationLog, Models
from etips.results.groupings import group_decisions
from etips.results.parsing import from_json
from etips.worlds.two_hospitals import SECOND, simulate_place

QUICK = Training(n_folds=2, **{s: Settings(epochs=2) for s in ("propensity", "outcome", "policy")})
SMALL = Models(encoder=GRU(4), training=QUICK)


def table(n, seed=0, *, sites=("north", "south"), shift=0.0, rare=None):
    """A drug that helps the sick, given to them more often; `shift`: the last site is sicker."""
    rng = np.random.default_rng(seed)
    site = rng.integers(0, len(sites), n)
    x = rng.normal(size=n) + shift * (site == len(sites) - 1)
    chance = 0.3 + 0.4 * (x > 0)
    drug = rng.random(n) < chance
    risk = 0.25 + 0.25 * (x > 0) - 0.25 * (drug & (x > 0)) + 0.15 * (drug & (x <= 0))
    names = np.array(sites)[site].astype(object)
    if rare is not None:
        names[:rare] = "tiny"
    return pa.table(
        {
            "patient": range(n),
            "sick": x,
            "noise": rng.normal(size=n),
            "site": names.astype(str),
            "drug": drug.astype(int),
            "p": np.where(drug, chance, 1 - chance),
            "died": (rng.random(n) < risk).astype(float),
        }
    )


def read(log):
    n = log.num_rows
    log = log.append_column("t", pa.array([0] * n))
    roles = {"stay": "patient", "step": "t", "action": "drug", "loss": "died", "propensity": "p"}
    return etips.read_table(
        log, **roles, lag=0, static=["site"], categorical=["site"], actions=("none", "drug")
    )


SICK = etips.SqlRule("sick", "case when sick > 0 then 'drug' else 'none' end")
ALL = etips.SqlRule("all", "'drug'")
LEAVE = etips.SqlRule("leave", "null")


@pytest.fixture(scope="module")
def data():
    return read(table(1200, shift=0.5))


@pytest.fixture(scope="module")
def found(data):
    return compare([SICK, ALL, LEAVE], data, by="site", models=SMALL)


def test_every_pair_is_there_and_agrees_with_the_evaluation(data, found):
    assert [own.name for own in found.policies] == ["sick", "all", "leave", CLINICIANS]
    assert len(found.pairs) == 6
    judged = {m.name: m for m in evaluate([SICK, ALL, LEAVE], data, models=SMALL).methods}
    for own in found.policies[:-1]:
        assert own.risk.value == judged[own.name].estimates[0].risk
        assert own.verdict == judged[own.name].verdict
    against = {p.first: p for p in found.pairs if p.second == CLINICIANS}
    assert against["sick"].difference.value == judged["sick"].gain.difference
    assert against["leave"].difference.value == pytest.approx(0, abs=1e-12)


def test_a_clear_difference_is_found_and_its_colour_is_that_of_the_finding(found):
    pair = next(p for p in found.pairs if (p.first, p.second) == ("sick", "all"))
    assert pair.differs
    assert pair.verdict == "reliable"
    assert (pair.finding, pair.words) == ("better", "lower risk")
    turned = next(p for p in found.pairs if (p.first, p.second) == ("all", CLINICIANS))
    assert turned.finding in ("worse", "none")


def test_places_have_figures_tests_and_what_is_carried_over(found):
    places = found.places
    assert [own.level for own in places.places] == ["north", "south"]
    assert [own.name for own in places.places[0].figures] == [CLINICIANS, "sick", "all", "leave"]
    assert {own.policy for own in places.alike} == {CLINICIANS, "sick", "all"}
    assert {own.overlap for own in places.overlaps} <= {"good", "fair"}
    south = next(o for o in places.carried if (o.policy, o.source) == (CLINICIANS, "south"))
    assert abs(south.carried.value - south.there.value) < 0.06
    assert south.remaining.low <= 0 <= south.remaining.high


def test_it_goes_through_json_and_becomes_a_frame(found):
    assert from_json(Comparison, found.to_json()) == found
    frame = found.to_frame(library="polars")
    assert frame.shape == (6, 11)
    assert "sick - all" in repr(found)
    assert max(map(len, repr(found).splitlines())) <= 80


def test_a_reference_leaves_the_other_pairs_out(data):
    found = compare([SICK, ALL], data, reference=CLINICIANS, models=replace(SMALL, outcome=False))
    assert [(p.first, p.second) for p in found.pairs] == [("sick", CLINICIANS), ("all", CLINICIANS)]
    assert found.estimator == "snips"


def test_two_that_do_the_same_are_told(data):
    again = etips.Rule(lambda s: "drug", name="again")
    found = compare([ALL, again], data, models=replace(SMALL, outcome=False))
    assert found.pairs[0].words == "they do the same"
    assert found.pairs[0].difference.value == 0
    assert found.pairs[1].words != "they do the same"


def test_places_alone_can_be_compared(data):
    found = compare(None, data, by="site")
    assert found.pairs == ()
    assert [own.policy for own in found.places.alike] == [CLINICIANS]


def test_few_people_are_hidden_and_cannot_be_had_by_subtraction():
    data = read(table(600, sites=("north", "south", "west"), rare=4))
    places = compare(LEAVE, data, by="site", models=replace(SMALL, outcome=False)).places
    assert len(places.places) == 3
    assert "tiny" not in str(places)
    (pooled,) = [own for own in places.places if own.level.endswith(" and others")]
    assert sum(own.n_people for own in places.places) == 600
    assert pooled.n_people > 11 + 4
    assert pooled.level in {own.source for own in places.carried}


def test_where_events_are_few_the_clinicians_are_hidden():
    log = table(300)
    died = np.zeros(300)
    died[:4] = 1
    data = read(log.set_column(log.column_names.index("died"), "died", pa.array(died)))
    found = compare(SICK, data, models=replace(SMALL, outcome=False))
    assert found.policies[-1].risk.value is None
    assert found.pairs[0].difference.value is None
    assert found.pairs[0].finding == "unknown"


def test_poor_overlap_carries_nothing_over():
    data = read(table(800, shift=6.0))
    places = compare(LEAVE, data, by="site", models=replace(SMALL, outcome=False)).places
    assert {own.overlap for own in places.overlaps} == {"poor"}
    assert all(own.carried.value is None for own in places.carried)
    assert re.search("nothing is carried over", places.overlaps[0].words)


def test_what_cannot_be_compared_is_refused(data):
    with pytest.raises(SettingError, match="must hold one policy"):
        compare(None, data)
    with pytest.raises(SettingError, match="must not be called clinicians"):
        compare({"clinicians": SICK}, data)
    with pytest.raises(SettingError, match="reference: must be one of sick, clinicians"):
        compare(SICK, data, reference="x", models=replace(SMALL, outcome=False))
    with pytest.raises(SettingError, match="target: must be one of north, south"):
        compare(None, data, by="site", target="west")
    with pytest.raises(SettingError, match="target: is a place"):
        compare(SICK, data, target="north")
    with pytest.raises(EtipsError, match="column ward"):
        compare(SICK, data, by="ward")


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


def test_what_one_model_says_in_one_source_alone_is_what_all_say_in_the_other(joined):
    data, source = joined

    def fit(part):
        log = shares(part)
        if part.n_stays == 20:
            log = type(log)(**{**fields_of(log), "plain_propensity": np.full(log.n_decisions, 0.5)})
        return EvaluationLog(log, {}, None)

    log = join_logs(data, source, fit).log
    inside = source[data.decisions().stay] == "a"
    assert (log.plain_propensity[inside] == 0.5).all()
    assert np.array_equal(log.plain_propensity[~inside], log.propensity[~inside])


def fields_of(log):
    names = ("loss", "action", "propensity", "cluster", "n_actions", "propensities", "features")
    return {name: getattr(log, name) for name in names}


def test_sources_must_lie_one_after_the_other(joined):
    data, source = joined
    with pytest.raises(DataError, match="one source after the other"):
        join_logs(data, np.roll(source, 5), lambda part: None)


def hospital(n, places, seed=0):
    rng = np.random.default_rng(seed)
    site = rng.integers(0, places, n)
    log = pa.table(
        {
            "stay": range(n),
            "t": [0] * n,
            "dose": rng.integers(0, 2, n),
            "loss": (rng.random(n) < 0.3).astype(float),
            "x": rng.normal(size=n),
            "site": [f"s{i}" for i in site],
        }
    )
    roles = {"stay": "stay", "step": "t", "action": "dose", "loss": "loss", "lag": 0}
    return read_table(log, **roles, categorical=["site"])


def compared(data, **more):
    log = Log.of(data, propensities=np.full((data.n_decisions, 2), 0.5), known=True)
    return compare_places(data, log, {}, group_decisions(data, "site"), "snips", DEFAULT, **more)


def test_up_to_four_places_each_is_held_against_each_and_beyond_all_against_one():
    three = compared(hospital(600, 3))
    assert len(three.overlaps) == 6
    six = compared(hospital(900, 6))
    assert len(six.overlaps) == 5
    assert len({own.target for own in six.overlaps}) == 1
    one = compared(hospital(600, 3), target="s1")
    assert {own.target for own in one.overlaps} == {"s1"}


def test_the_place_itself_is_no_part_of_the_case_mix():
    data = hospital(400, 2)
    rows = case_mix_rows(data, "site")
    assert rows.shape[1] == case_mix_rows(data, "somewhere else").shape[1] - 2
    places = compared(data)
    assert all(own.discrimination < 0.6 for own in places.overlaps)
    assert all(own.policy == CLINICIANS for own in places.carried)
