"""The evaluated data in counts and words."""

import json
import re
from dataclasses import asdict, replace
from types import SimpleNamespace

import numpy as np
import pytest
from hospital_stays import logged, make_exhibits
from small_worlds import ward

from etips.cli.cohort import funnel_rows
from etips.cohorts.dataset.funnel import Funnel, Stage, draw_funnel
from etips.data.decisions import NO_ACTION
from etips.data.recipe import Outcome, Recipe
from etips.data.schema import Roles, Schema
from etips.disclosure import any_few
from etips.results.data_summary import describe_loss, summarize_data, trace_flow


def test_missing_values_are_counted_where_a_flag_or_nan_says_so(made, exhibits):
    found = exhibits["missingness"]
    gone = np.isnan(made[0].sequence[:, 1])
    assert [f["name"] for f in found["features"]] == ["lactate"]
    assert found["features"][0]["share"] == pytest.approx(gone.mean())
    assert found["n_features"] == 4  # hr, lactate, age, ward
    assert found["n_complete"] == 3


def test_a_gap_of_a_few_people_is_hidden():
    data = ward(n_stays=60, lag=0)
    sequence = np.array(data.sequence)
    sequence[:3, 2] = np.nan
    schema = replace(data.schema, indicators=("lactate",))
    few = replace(data, sequence=sequence, schema=schema)
    table = np.full((few.n_decisions, 3), 1 / 3)
    found = make_exhibits(few, logged(few), {"p": table}, headline="p")["missingness"]
    assert found["features"] == [{"name": "lactate", "share": None}]


def test_the_funnel_of_a_cohort_comes_before_the_data_and_small_steps_are_hidden(made):
    data, log, table = made
    stages = [("all stays", 900), ("adults", 893), ("with sepsis", 400)]
    cohort = {
        "stages": [{"name": name, "n_stays": count} for name, count in stages],
        "n_rows": 1000,
        "missing_share": {"SOFA": 0.25, "rare": 0.004, "whole": 0.0},
    }
    found = make_exhibits(data, log, {"p": table}, headline="p", cohort=cohort)
    assert [(s["name"], s["count"]) for s in found["flow"]["stages"]] == [
        ("all stays", 900),
        ("adults", None),
        ("with sepsis", 400),
        ("stays in the evaluated data", 240),
        ("stays with a decision", 240),
    ]
    shares = {f["name"]: f["share"] for f in found["missingness"]["features"]}
    assert shares == {"SOFA": 0.25, "rare": None}
    assert found["flow"]["source"] == "cohort"


@pytest.mark.parametrize("seed", range(40))
def test_p2_no_two_counts_of_one_run_differ_by_few_wherever_they_stand(seed):
    """The cohort's drawing, what the terminal prints of it, and the results, all pairs."""
    rng = np.random.default_rng(seed)
    data = ward(n_stays=int(rng.integers(30, 60)), lag=1, seed=seed)
    stages = sorted(rng.integers(20, 120, 4).tolist(), reverse=True)
    n = {"A": data.n_decisions, "B": data.n_decisions - int(rng.integers(0, 9))}
    funnel = Funnel(
        profile="p",
        antibiotic_order="o",
        stages=tuple(Stage(f"step {k}", c) for k, c in enumerate((*stages, data.n_stays))),
        n_rows=data.n_steps,
        n_single_row_stays=0,
        n_gaps=0,
        n_gaps_after_first_row=0,
        n_samples=n,
        history=(1, 2.0, 3),
        mean_loss=0.5,
        action_counts=(0,) * 25,
        missing_share={},
    )
    drawn = [
        int(word) for word in re.findall(r">(\d+) (?:stays|rows|samples)", draw_funnel(funnel))
    ]
    printed = [row["count"] for row in funnel_rows(SimpleNamespace(funnel=funnel))]
    cohort = json.loads(json.dumps(asdict(funnel)))
    flow, about = trace_flow(data, cohort), summarize_data(data, cohort)
    told = [stage.count for stage in flow.stages]
    told += [flow.n_steps, flow.n_decisions, about.n_stays, about.n_decisions, about.n_steps]
    counts = [*drawn, *(c for c in printed if isinstance(c, int)), *(c for c in told if c)]
    assert drawn
    assert told[: len(funnel.stages)] == list(funnel.shown.stages)
    assert not any_few(counts)
    assert not any_few(abs(one - other) for one in counts for other in counts)


def test_stays_without_a_decision_cannot_be_had_from_decisions():
    """136 stays of one step each, of which one has no decision: 135 decisions, and no 136."""
    data = ward(n_stays=136, lag=0)
    one = np.diff(data.offsets) >= 1
    first = data.offsets[:-1][one]
    action, loss = (np.array(own)[first] for own in (data.action, data.loss))
    action[:] = 0
    loss[:] = np.arange(136) % 2
    action[5], loss[5] = NO_ACTION, np.nan
    cut = replace(
        data,
        sequence=np.array(data.sequence)[first],
        step=data.step[first],
        offsets=np.arange(137),
        action=action,
        loss=loss,
        propensity=None,
        group=None,
    )
    flow, about = trace_flow(cut, None), summarize_data(cut)
    assert (about.n_decisions, flow.stages[-1].count) == (135, 135)
    assert (about.n_stays, about.n_steps) == (None, None)


SCHEMA = Schema(("x",), 2, roles=Roles(loss="survived"))
BINARY = np.array([0.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("as_it_is", "The loss is column survived as it stands; less is better."),
        ("one_minus", "The loss is 1 minus column survived, since more of it is better"),
        ("minus", "The loss is column survived with its sign turned"),
    ],
)
def test_the_column_and_what_was_done_to_it_are_told(rule, words):
    kind = "loss" if rule == "as_it_is" else "reward"
    schema = replace(SCHEMA, recipe=Recipe(outcome=Outcome(kind, rule)))
    assert describe_loss(schema, BINARY).startswith(words)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (
            Outcome(words=("Dead",)),
            "The loss is 1 where column survived says Dead; less is better.",
        ),
        (
            Outcome("reward", "one_minus", ("yes", "YES")),
            "The loss is 0 where column survived says yes or YES;",
        ),
    ],
)
def test_words_are_told_as_they_were_read(outcome, words):
    assert describe_loss(replace(SCHEMA, recipe=Recipe(outcome=outcome)), BINARY).startswith(words)


def test_a_risk_of_zeros_and_ones_is_a_share_and_any_other_a_mean():
    assert "the share of decisions followed by a loss of 1." in describe_loss(SCHEMA, BINARY)
    assert describe_loss(SCHEMA, np.array([0.5, 2.0])).endswith(
        "The risk is its mean after a decision."
    )


def test_the_words_of_the_data_come_first():
    schema = replace(SCHEMA, provenance={"loss": "dead after 90 days."})
    said = describe_loss(schema, BINARY)
    assert said.startswith("The loss, in the words of the data: dead after 90 days. It is 0 or 1")
