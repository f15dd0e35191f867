"""Whole studies, tiny: what learns from what, resumed or not, and how long they take."""

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_studies import clinic_document, small_experiment, zeros_document
from small_worlds import CLINIC

from etips.errors import FileError
from etips.files.json_documents import canonical
from etips.learn.learners.recipes import make_learner
from etips.results.followed_policies import follow, true_risk
from etips.runs import tasks
from etips.studies import study as study_module
from etips.studies import study_tasks
from etips.studies.paper_tables import TABLE1
from etips.studies.study import TASKS, forecast, run_study
from etips.studies.study_data import Dealing, data_of, load_array, open_log
from etips.studies.study_tasks import load_followed, make_plan


def study(folder, document, preset="etips", data=None, **more):
    folder.mkdir(exist_ok=True)
    experiment = small_experiment(document, preset, **more)
    return run_study(experiment, folder, data=data, device="cpu").to_json()


def timeless(document):
    """All of a document but what the clock said."""
    return canonical({key: value for key, value in document.items() if key != "seconds"})


@pytest.fixture(scope="module")
def clinic(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study") / "clinic"
    return folder, study(folder, clinic_document())


@pytest.fixture(scope="module")
def zeros(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study") / "zeros"
    return folder, study(folder, zeros_document())


def column(document, name, table=0):
    """A column of a table by the first cell of each row."""
    found = document["tables"][table]
    place = found["columns"].index(name)
    return {row[0]: row[place] for row in found["rows"]}


def test_a_study_is_ready_for_json_and_names_every_method(clinic, zeros):
    for (_, document), n in ((clinic, 6), (zeros, 7)):
        json.loads(canonical(document))
        assert len(document["methods"]) == len(document["tables"][0]["rows"]) == n
        assert {m["verdict"] for m in document["methods"]} <= {"reliable", "doubtful", "unusable"}
        for key in ("data", "seconds", "exhibits", "title", "lead", "tables", "charts", "study"):
            assert document[key] is not None


def test_the_same_call_on_a_finished_study_gives_the_same_bytes(clinic):
    folder, document = clinic
    assert canonical(study(folder, clinic_document())) == canonical(document)


def test_a_study_interrupted_between_tasks_ends_as_if_it_had_not_been(
    clinic, tmp_path, monkeypatch
):
    done = []

    def do_some(task, folder):
        if len(done) == 5:
            raise KeyboardInterrupt
        done.append(task.name)
        return tasks_do(task, folder)

    tasks_do = tasks.do
    monkeypatch.setattr(tasks, "do", do_some)
    with pytest.raises(KeyboardInterrupt):
        study(tmp_path / "s", clinic_document())
    monkeypatch.undo()
    assert timeless(study(tmp_path / "s", clinic_document())) == timeless(clinic[1])


def test_borrowed_networks_are_those_a_method_would_have_trained(clinic, tmp_path, monkeypatch):
    monkeypatch.setattr(study_tasks, "lent_stages", lambda methods, method: {})
    alone = study(tmp_path / "s", clinic_document())
    assert timeless(alone) == timeless(clinic[1])


def test_a_folder_with_another_study_is_refused(clinic):
    with pytest.raises(FileError, match="holds other work"):
        study(clinic[0], clinic_document(), seed=1)


def test_networks_of_another_version_are_refused_by_task_and_can_be_done_anew(
    clinic, tmp_path, monkeypatch
):
    folder = tmp_path / "s"
    shutil.copytree(clinic[0], folder)
    shutil.rmtree(folder / "tasks" / "etips-fold-1")
    monkeypatch.setattr(torch, "__version__", "0.0.0")
    with pytest.raises(FileError, match=r"tasks/etips-fold-1: was begun, or .* version") as found:
        study(folder, clinic_document())
    named = re.fullmatch(r"Remove (.*) in .*s/tasks to do them anew; .*", found.value.fix)[1]
    assert named == "etips-fold-1 and predictive-fold-1"
    for name in named.split(" and "):
        shutil.rmtree(folder / "tasks" / name)
    again = study(folder, clinic_document())
    assert all(again[key] == clinic[1][key] for key in ("study", "tables", "methods"))


class Spy:
    """Makes learners that write down which stays they are given."""

    def __init__(self):
        self.learned, self.asked = [], []

    def __call__(self, method, settings, *, device="auto", seed=0):
        learner = make_learner(method, settings, device=device, seed=seed)
        fit = learner.fit

        def spy_fit(stays, **more):
            self.learned.append((method, stays))
            return fit(stays, **more)

        learner.fit = spy_fit
        return learner

    def follow(self, policy, stays):
        self.asked.append((type(policy).__name__, stays))
        return follow(policy, stays)


FEW = ["full-supervision", "direct", "etips", "ips"]


@pytest.mark.parametrize("document", [clinic_document(), zeros_document(methods=FEW)])
def test_no_learner_sees_a_stay_it_is_judged_on(document, tmp_path, monkeypatch):
    spy = Spy()
    monkeypatch.setattr(study_tasks, "make_learner", spy)
    monkeypatch.setattr(study_tasks, "follow", spy.follow)
    study(tmp_path / "s", document)
    assert len(spy.learned) == len(spy.asked) >= 8
    for (_, learned), (_, asked) in zip(spy.learned, spy.asked, strict=True):
        assert not set(learned.stay) & set(asked.stay)


def test_full_supervision_is_told_labels_and_nobody_else_is(tmp_path, monkeypatch):
    spy = Spy()
    monkeypatch.setattr(study_tasks, "make_learner", spy)
    study(tmp_path / "s", zeros_document(methods=["full-supervision", "etips"]))
    for place, (_, stays) in enumerate(spy.learned):
        told = (stays.logged_loss == 0).all()
        assert told == (place < 2)  # its two folds come first


def test_a_folds_figures_are_those_of_the_stays_it_held_out(clinic):
    folder, document = clinic
    experiment = small_experiment(clinic_document())
    log = open_log(data_of(experiment), folder / "tasks")
    answered = np.empty((log.n_decisions, log.n_actions))
    for fold in range(2):
        held = Dealing("table2", folds=2, seed=0).part(log, fold).held
        stays = log.subset(held)
        own = load_followed(folder / "tasks" / f"etips-fold-{fold + 1}").deployed
        found = document["study"]["folds"]["etips"][fold]
        assert found["risk"] == pytest.approx(true_risk(own, stays))
        answered[held[log.decisions().stay]] = own.left_to(stays.true_logging())
    etips = next(m for m in document["methods"] if m["name"] == "etips")
    assert etips["truth"] == pytest.approx(log.true_risk(answered))


def test_the_figures_of_table_one_stand_beside_the_papers(zeros):
    paper = column(zeros[1], "paper")
    for method in ("direct", "random", "ips", "etips"):
        assert paper[method] == str(TABLE1["digits-zeros"][method])
    assert paper["etips"] == "0.923 ± 0.0122"
    assert paper["full-supervision"] == "about 0.95"
    assert paper["predictive"] == "-"
    note = zeros[1]["tables"][0]["note"]
    assert "direct is called DM in the paper. random is called RP in the paper." in note


def test_the_figures_of_table_two_stand_beside_a_mimic_cohort_only(clinic, tmp_path):
    assert "paper" not in clinic[1]["tables"][0]["columns"]
    stays = replace(CLINIC.log(60, seed=0), truth=None)
    provenance = {"cohort": "Sepsis-3 from MIMIC-III"}
    stays = replace(stays, schema=replace(stays.schema, provenance=provenance))
    stays.save(tmp_path / "cohort")
    found = study(tmp_path / "s", clinic_document(), data=tmp_path / "cohort", n=0, world="data")
    table = found["tables"][0]
    assert table["columns"].count("paper") == 4
    row = next(row for row in table["rows"] if row[0] == "etips")
    assert row[2] == "-0.143 ± 0.0099"
    assert "true risk" not in table["columns"]


def test_the_random_policy_is_drawn_as_the_paper_drew_it(zeros):
    folds = zeros[1]["study"]["folds"]["random"]
    assert folds[0]["accuracy"] == folds[1]["accuracy"]
    drawn = np.random.RandomState(0).randint(3, size=10)
    from etips.worlds.digits import labelled_zeros

    assert folds[0]["accuracy"] == pytest.approx(
        (labelled_zeros(n=10).logged_action == drawn).mean()
    )


def test_the_authors_preset_prints_the_facts_and_has_a_constant_direct_method(tmp_path):
    document = study(tmp_path / "s", zeros_document(), "authors")
    assert column(document, "computed", table=1) == column(document, "paper", table=1)
    assert sorted(column(document, "computed", table=1).values()) == ["0.103", "0.343", "0.363"]
    policy = load_array(tmp_path / "s" / "tasks" / "direct-fold-1" / "policy.npy")
    assert (policy == policy[0]).all()
    assert document["study"]["experiment"]["logging"] == "argmax"
    assert "need not be near 1" in document["tables"][0]["note"]


def test_charts_are_points_that_can_be_drawn(clinic, zeros):
    names = {chart["name"]: chart for _, d in (clinic, zeros) for chart in d["charts"]}
    assert {"labels", "accuracy-atenp", "accuracy-ips", "accuracy-dr"} <= set(names)
    assert {"path-snips", "path-factor", "atenp", "truth"} <= set(names)
    for chart in names.values():
        for series in chart["series"]:
            assert len(series["x"]) == len(series["y"])
            assert series["error"] is None or len(series["error"]) == len(series["x"])
    assert names["path-snips"]["series"][0]["x"] == [0.3, 0.7]
    (bars,) = names["atenp"]["series"]
    shown = [row[1].partition(" ±")[0] for row in clinic[1]["tables"][0]["rows"]]
    assert [f"{value:z.3f}" for value in bars["y"]] == [text for text in shown if text != "-"]
    labels = names["labels"]["series"]
    assert all(sum(series["y"]) == pytest.approx(1) for series in labels)


def test_the_paper_preset_weighs_with_raised_propensities_and_says_what_it_chose_by(
    clinic, tmp_path
):
    document = study(tmp_path / "s", clinic_document(), "paper")
    for found, words in (
        (document, "the part that they learned from"),
        (clinic[1], "did not learn"),
    ):
        path = next(chart for chart in found["charts"] if chart["name"] == "path-snips")
        assert words in found["tables"][1]["note"]
        assert words in path["caption"]
    assert document["methods"][0]["notes"]["clip"] == "0.2"
    assert "raised to at least 0.2" in document["tables"][0]["note"]


@pytest.fixture(scope="module")
def announced(tmp_path_factory):
    """A study that is announced however short, with all that it was told to say."""
    folder = tmp_path_factory.mktemp("study")
    said = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study_module, "TELL_FROM", 0.0)
        experiment = small_experiment(clinic_document())
        run_study(
            experiment,
            folder,
            device="cpu",
            report=lambda what, share: said.append((what, share)),
            span=(0.25, 0.75),
            announce=lambda line: said.append((line, -1.0)),
        )
    return experiment, folder, said


def test_a_study_says_how_long_it_may_take_before_it_starts(announced):
    _, _, said = announced
    lines = [line for line, share in said if share < 0]
    assert len(lines) == 1
    assert lines[0].startswith("this may take about ")
    at = said.index((lines[0], -1.0))
    assert not any("fold" in what for what, _ in said[:at])  # nothing is fitted yet


def test_progress_of_one_study_of_several_stays_in_its_span(announced):
    shares = [share for _, share in announced[2] if share >= 0]
    assert shares == sorted(shares)
    assert shares[0] >= 0.25
    assert shares[-1] == 0.75


def test_what_evaluating_takes_is_still_to_come_when_all_tasks_are_done(announced):
    shares = [share for what, share in announced[2] if what.startswith("evaluating")]
    assert shares == pytest.approx([0.625])  # a quarter of such a study


def test_more_passes_of_what_a_fold_learns_from_take_longer_and_more_hands_less(announced):
    experiment, folder, _ = announced
    source = data_of(experiment, None)
    waves = make_plan(experiment, source, device="cpu")
    open_tasks = folder / TASKS
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study_module, "recorded", lambda task, place: None)
        patch.setattr(study_module, "seconds_a_pass", lambda stays, settings: 2.0)
        patch.setattr(study_module.os, "cpu_count", lambda: 2)
        one, two = (
            forecast(experiment, source, waves, open_tasks, device="cpu", jobs=jobs)
            for jobs in (1, 2)
        )
    total = sum(task.cost for wave in waves for task in wave)
    dealing = Dealing(experiment.table, experiment.folds, experiment.seed)
    share = dealing.part(open_log(source, open_tasks), 0).learn.mean()
    assert 0.4 < share < 0.9
    total *= share
    assert one == pytest.approx(2.0 * total)
    assert two == pytest.approx(total)
