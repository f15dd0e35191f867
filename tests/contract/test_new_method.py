"""A learner that joins the catalogue is known everywhere, and nothing else is touched for it."""

import sys
from dataclasses import dataclass
from importlib import import_module

import pytest
from commands import refuse, run
from small_studies import clinic_document, small_experiment
from small_worlds import CLINIC

import etips
from etips import cli
from etips.evaluation.log import Log
from etips.learn import PredictiveModel
from etips.learn.learners.catalogue import METHODS, Method, Range
from etips.learn.learners.recipes import Recipe
from etips.results.evaluate import assess_policies
from etips.studies.space import check_space, paper_space, read_space, usual_space
from etips.studies.study_data import data_of
from etips.studies.study_tasks import fit_cost, lent_stages, make_plan

TINY = ("hidden=4", "epochs=1", "n_folds=2")


@dataclass(kw_only=True, eq=False)
class Parrot(PredictiveModel):
    """A learner with a setting of its own."""

    margin: float = 0.5


@pytest.fixture(autouse=True)
def parrot(monkeypatch):
    """A method that is not ours; commands are imported afresh."""
    entry = Method(
        name="parrot",
        label="Echo",
        sentence="Learnt as a weighted classification.",
        learner=Parrot,
        make=Parrot,
        stages=("propensity", "policy"),
        space={"margin": Range(0.1, 2.0)},
    )
    monkeypatch.setitem(METHODS, "parrot", entry)
    for name in ("fitting",):
        import_module(f"etips.cli.{name}")  # so that there is something to put back
        monkeypatch.delitem(sys.modules, f"etips.cli.{name}")
        monkeypatch.delattr(cli, name)
    return entry


def test_python_finds_it():
    assert etips.Parrot is Parrot


def test_its_settings_are_its_fields_and_those_of_networks():
    made = Recipe("parrot", {"margin": 0.7, "hidden": 4, "policy.epochs": 3}).make(device="cpu")
    assert isinstance(made, Parrot)
    assert (made.margin, made.encoder.hidden, made.training.policy.epochs) == (0.7, 4, 3)
    with pytest.raises(etips.SettingError, match=r"^kl: is not a setting of parrot"):
        Recipe("parrot", {"kl": 0.1})


def test_a_search_varies_its_own_setting_too():
    space = usual_space("parrot")
    assert space["margin"] == Range(0.1, 2.0)
    assert "hidden" in space
    assert "margin" not in paper_space("parrot")
    check_space("parrot", read_space({"margin": {"low": 0.1, "high": 0.9}}, "parrot"))


def test_a_study_plans_it_and_lends_to_it():
    methods = ["predictive", "parrot", "etips"]
    experiment = small_experiment(clinic_document(methods=methods))
    waves = make_plan(experiment, data_of(experiment), device="cpu")
    assert "parrot-fold-1" in [task.name for task in waves[-1]]
    assert lent_stages(experiment.methods, "parrot") == {"propensity": "predictive"}
    once = fit_cost("parrot", {"epochs": 1, "n_folds": 2}, ())
    assert fit_cost("parrot", {"epochs": 2, "n_folds": 2}, ()) > once


def test_a_report_explains_it():
    data = CLINIC.log(60, seed=0)
    (method,) = assess_policies({"parrot": data.true_logging()}, Log.of(data), data)
    assert method.sentence == "Learnt as a weighted classification."
    assert method.label == "Echo"


def test_commands_take_it(tmp_path):
    CLINIC.log(60, seed=0).save(tmp_path / "log")
    settings = [word for entry in (*TINY, "margin=0.7") for word in ("--set", entry)]
    said = run(
        "fit", tmp_path / "log", "--method", "parrot", "--out", tmp_path / "run", "--device", "cpu",
        *settings,
    )  # fmt: skip
    assert said.startswith("parrot, fitted in")
    assert "margin = 0.7" in (tmp_path / "run" / "config.toml").read_text()
    told = refuse(
        "tune", tmp_path / "log", "--method", "parrot", "--out", tmp_path, "--space", "none"
    )
    assert "none: " in told
