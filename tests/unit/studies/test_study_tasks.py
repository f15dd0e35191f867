"""Data dealt into folds, tasks in waves, what they lend each other and what they leave."""

from dataclasses import replace

import numpy as np
import pytest
from small_studies import clinic_document, small_experiment, zeros_document
from small_worlds import CLINIC

from etips.errors import FileError, SettingError
from etips.learn.learners.recipes import make_learner
from etips.policies.deployed import Deployed, take_likeliest
from etips.results.followed_policies import Followed, as_followed
from etips.runs.tasks import Task, do
from etips.studies.fit_work import StageWork
from etips.studies.study_data import (
    Dealing,
    FolderData,
    SimulatedData,
    data_of,
    load_array,
    open_log,
)
from etips.studies.study_tasks import (
    PREDICTED,
    PROPENSITIES,
    DataTask,
    EvaluationTask,
    FitTask,
    fit_cost,
    fit_record,
    join_folds,
    lent_stages,
    load_followed,
    make_plan,
    mix_folds,
    turn_round,
)
from etips.worlds.classifier import StoppedLstm
from etips.worlds.clinic import Clinic
from etips.worlds.digits import labelled_rows, labelled_zeros


def test_a_world_and_a_folder_are_told_apart(tmp_path):
    CLINIC.log(5, seed=0).save(tmp_path / "log")
    experiment = small_experiment(clinic_document())
    assert data_of(experiment) == SimulatedData("clinic", 60, 0)
    assert isinstance(data_of(experiment, tmp_path / "log"), FolderData)
    assert data_of(small_experiment(zeros_document())).has_labels


def test_true_propensities_of_a_world_are_kept_from_the_study(tmp_path):
    log = open_log(SimulatedData("icu-sepsis", 8, 1, lag=1), tmp_path)
    assert (log.n_stays, log.lag, log.propensity) == (8, 1, None)
    assert log.truth is not None


def test_a_folder_that_changed_is_refused(tmp_path):
    CLINIC.log(5, seed=0).save(tmp_path / "log")
    data = data_of(small_experiment(clinic_document()), tmp_path / "log")
    assert open_log(data, tmp_path).n_stays == 5
    CLINIC.log(6, seed=0).save(tmp_path / "log", overwrite=True)
    with pytest.raises(FileError, match="has changed since the study began"):
        open_log(data, tmp_path / "elsewhere")


def test_data_without_a_world_needs_a_folder(tmp_path):
    experiment = small_experiment(clinic_document(), world="data", n=0)
    with pytest.raises(SettingError, match=r"^--data: must name a folder"):
        data_of(experiment)
    with pytest.raises(FileError, match=r"must be a folder with schema\.json"):
        data_of(experiment, tmp_path)


@pytest.mark.parametrize(
    ("policy", "rule"),
    [({"depth": 3}, "depth: is not a setting"), ({"hidden": [4]}, "hidden: must be a whole")],
)
def test_a_slip_in_the_logging_policy_is_refused(policy, rule):
    with pytest.raises(SettingError, match=rf"^logging_policy\.{rule}"):
        data_of(small_experiment(zeros_document(logging_policy=policy)))


@pytest.mark.parametrize("world", ["digits-zeros", "digits-rows"])
def test_a_few_samples_bring_only_the_images_they_need(world):
    found = SimulatedData(world, 7, 3).open_labelled()
    whole = labelled_zeros(n=7, seed=3) if world == "digits-zeros" else labelled_rows(n=7)
    assert (found.sequence[:] == whole.sequence[:]).all()
    assert (found.logged_action == whole.logged_action).all()
    assert len(found.sequence.table) <= found.n_steps < len(whole.sequence.table)


@pytest.mark.parametrize(("n", "sizes"), [(10_000, (7_200, 1_000)), (203, (146, 20))])
def test_table_one_holds_out_the_first_tenth_and_a_fold_after_the_other(n, sizes):
    stays = Clinic(decisions_per_stay=1).log(n, seed=0)
    parts = [Dealing("table1", folds=5, seed=0).part(stays, fold) for fold in range(5)]
    assert (parts[0].learn.sum(), parts[0].held.sum()) == sizes  # the paper's
    for part in parts:
        assert np.flatnonzero(part.held).tolist() == list(range(n // 10))
        assert not (part.learn & part.held).any()
    spare = [np.flatnonzero(~part.learn & ~part.held) for part in parts]
    assert np.concatenate(spare).tolist() == list(range(n // 10, n))


def test_too_few_samples_are_refused():
    with pytest.raises(SettingError, match=r"^n: must be at least 50 for 5 folds"):
        Dealing("table1", folds=5, seed=0).part(CLINIC.log(49, seed=0), 0)


def test_every_stay_of_table_two_is_held_out_once_and_no_patient_is_on_both_sides():
    stays = CLINIC.log(40, seed=0)
    stays = replace(stays, group=np.repeat(np.arange(10), 4))
    parts = [Dealing("table2", folds=5, seed=3).part(stays, k) for k in range(5)]
    assert (sum(part.held.astype(int) for part in parts) == 1).all()
    for part in parts:
        assert (part.learn == ~part.held).all()
        assert not set(stays.group[part.learn]) & set(stays.group[part.held])


def plan(document, preset="etips"):
    experiment = small_experiment(document, preset)
    return make_plan(experiment, data_of(experiment), device="cpu")


def test_who_lends_comes_before_who_borrows():
    waves = plan(clinic_document())
    place = {task.name: number for number, wave in enumerate(waves) for task in wave}
    lent = [(t, n) for w in waves for t in w for n in t.needs]
    assert lent
    assert all(place[lender] < place[task.name] for task, lender in lent)


def test_methods_with_the_same_propensity_networks_share_them():
    methods = small_experiment(clinic_document()).methods
    assert lent_stages(methods, "etips") == {"propensity": "predictive"}
    assert lent_stages(methods, "doubly-robust") == {
        "propensity": "predictive",
        "outcome": "direct",
    }
    assert lent_stages(methods, "direct") == {"propensity": "predictive"}
    assert lent_stages(methods, "predictive") == lent_stages(methods, "random") == {}


@pytest.mark.parametrize(
    ("change", "stages"),
    [
        ({"hidden": 5}, set()),
        ({"n_folds": 3}, set()),
        ({"propensity.epochs": 2}, set()),
        ({"policy.epochs": 2}, {"propensity"}),
        ({"clip": 0.2}, {"propensity"}),
        ({"support": 0.1}, {"propensity"}),
        ({"calibrate": False}, {"propensity"}),
        ({"kl": 0.1}, {"propensity"}),
    ],
)
def test_what_is_fitted_otherwise_is_not_borrowed(change, stages):
    methods = small_experiment(clinic_document()).methods
    changed = {**methods, "etips": {**methods["etips"], **change}}
    assert set(lent_stages(changed, "etips")) == stages


def test_who_looks_ahead_to_the_end_of_the_stay_predicts_losses_for_nobody_else():
    plain = {"hidden": 4}
    methods = {"direct": {**plain, "horizon": "stay"}, "doubly-robust": plain}
    assert lent_stages(methods, "doubly-robust") == {}
    methods = {"predictive": plain, "direct": plain, "direct-stay": plain}
    assert lent_stages(methods, "direct-stay") == {"propensity": "predictive"}
    assert fit_cost("direct-stay", plain, ()) > fit_cost("direct", plain, ())


def test_what_is_lent_is_no_work():
    settings = {"n_folds": 3, "policy.epochs": 7, "propensity.epochs": 4, "outcome.epochs": 5}
    predicted = fit_cost("direct", settings, ()) - fit_cost("direct", settings, ("outcome",))
    assert predicted == pytest.approx(StageWork.of("outcome", 5, n_folds=3).total)
    lent = fit_cost("doubly-robust", settings, ("propensity", "outcome"))
    stages = (("policy", 7), ("finish", 7))  # which goes on for no longer than it may learn
    policies = sum(StageWork.of(stage, n, n_folds=3).total for stage, n in stages)
    assert lent == pytest.approx(policies + fit_cost("random", {}, ()))


def test_a_fit_to_many_stays_is_less_work_a_stay():
    assert fit_cost("etips", {}, (), 20_000) < fit_cost("etips", {}, (), 1_000)


DATA, DEALING = SimulatedData("clinic", 60, 0), Dealing("table2", folds=2, seed=0)
SETTINGS = {"hidden": 4, "n_folds": 2, "epochs": 1}
CHANCES = np.array([[0.7, 0.3], [0.2, 0.8]])
AWAY = np.array([False, True])
SURE = Followed(take_likeliest(CHANCES, AWAY), Deployed(CHANCES, AWAY))


def fit_task(method="direct", settings=SETTINGS, **more):
    return FitTask(DATA, DEALING, 1, method, settings, device="cpu", seed=0, **more)


def test_it_answers_the_stays_it_holds_out_and_says_how_it_went(tmp_path):
    fit = fit_record(fit_task().run(tmp_path / "direct-fold-2"))
    assert (fit.n_learned_from, fit.n_held_out, fit.path) == (30, 30, ())
    assert fit.quality.log_loss > 0
    policy = load_followed(tmp_path / "direct-fold-2").deployed.probabilities
    log = open_log(DATA, tmp_path)
    held = DEALING.part(log, 1).held
    assert policy.shape == (log.subset(held).n_decisions, log.n_actions)
    assert not (tmp_path / "direct-fold-2" / "checkpoint").exists()


def test_a_borrowed_stage_changes_nothing_and_a_lender_keeps_it(tmp_path):
    fit_task("predictive", lends=True).run(tmp_path / "predictive-fold-2")
    assert (tmp_path / "predictive-fold-2" / "checkpoint" / "propensity.safetensors").is_file()
    lent = {"propensity": "predictive-fold-2", "outcome": "nobody"}
    borrowed = fit_task(lent=lent).run(tmp_path / "borrows")
    assert borrowed == fit_task().run(tmp_path / "alone")
    one, other = (load_followed(tmp_path / name).deployed for name in ("borrows", "alone"))
    assert (one.probabilities == other.probabilities).all()


def test_a_turned_direct_method_takes_the_action_of_most_predicted_loss():
    stays = CLINIC.log(60, seed=0)
    settings = {"hidden": 4, "n_folds": 2, "epochs": 3, "support": 0.0, "interaction": False}
    learner = make_learner("direct", settings, device="cpu").fit(stays)
    least, most = learner.predict(stays), turn_round(learner.policy_).predict(stays)
    bias = learner.policy_.networks.parameters["head.bias"].mean(0)
    assert set(least) == {int(bias.argmin())}
    assert set(most) == {int(bias.argmax())}


def test_a_mixture_abstains_where_all_do_and_leaves_part_of_the_rest_to_the_clinicians():
    clinicians = np.array([[0.5, 0.5], [0.6, 0.4]])
    both = mix_folds([SURE, SURE], clinicians)
    assert both.deployed.abstained.tolist() == [False, True]
    assert both.drawn.probabilities[0] == pytest.approx([0.7, 0.3])
    one = mix_folds([SURE, as_followed(np.array([[1.0, 0.0], [1.0, 0.0]]))], clinicians)
    assert not one.deployed.abstained.any()
    assert one.deployed.probabilities.tolist() == [[1.0, 0.0], pytest.approx([0.8, 0.2])]


def test_folds_that_were_held_out_once_answer_for_themselves():
    folds = [np.array([True, False, True]), np.array([False, True, False])]
    found = join_folds([SURE, as_followed(np.array([[0.0, 1.0]]))], folds)
    assert found.deployed.probabilities.tolist() == [[1.0, 0.0], [0.0, 1.0], [0.2, 0.8]]
    assert found.deployed.abstained.tolist() == [False, False, True]
    assert found.drawn.probabilities.tolist() == [[0.7, 0.3], [0.0, 1.0], [0.2, 0.8]]


def evaluation(data, table):
    return EvaluationTask(data, Dealing(table, 2, 0), settings=SETTINGS, device="cpu", seed=0)


def test_folds_get_propensities_and_losses_of_all_decisions(tmp_path):
    evaluation(DATA, "table2").run(tmp_path / "evaluation")
    log = open_log(DATA, tmp_path)
    propensities = load_array(tmp_path / "evaluation" / PROPENSITIES)
    predicted = load_array(tmp_path / "evaluation" / PREDICTED)
    assert propensities.shape == predicted.shape == (log.n_decisions, log.n_actions)
    assert propensities.sum(axis=1) == pytest.approx(np.ones(log.n_decisions))
    assert ((predicted > 0) & (predicted < 1)).all()


def test_a_test_part_gets_losses_from_all_outside_it_and_keeps_its_known_propensities(tmp_path):
    policy = StoppedLstm(tolerance=0.6, hidden=4)
    data = SimulatedData("digits-zeros", 60, 0, policy=policy)
    do(Task("data", DataTask(data)), tmp_path / "data")
    assert evaluation(data, "table1").run(tmp_path / "evaluation") == {}
    assert load_array(tmp_path / "evaluation" / PREDICTED).shape == (6, 3)
    assert not (tmp_path / "evaluation" / PROPENSITIES).exists()
