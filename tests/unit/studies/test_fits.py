"""One method on one fold: a task that survives its way, learns, answers, and says how it went."""

from small_worlds import CLINIC

from etips.learn.learners.recipes import make_learner
from etips.learn.nuisance.propensity import Quality
from etips.studies.fit_records import fit_from_json
from etips.studies.fits import FitTask, FoldOfStudy, summarize_quality, turn_round
from etips.studies.fold_policies import load_followed
from etips.studies.folds import Dealing
from etips.studies.study_data import SimulatedData, open_log
from etips.tasks.task import Task

FOLD = FoldOfStudy(SimulatedData("clinic", 60, 0), Dealing("table2", folds=2, seed=0), 1)
SETTINGS = {"hidden": 4, "n_folds": 2, "epochs": 1}


def fit_task(method="direct", settings=SETTINGS, **more):
    return FitTask(FOLD, method, settings, device="cpu", seed=0, **more)


def test_a_task_survives_its_way_to_a_worker():
    work = fit_task(turned=True, lends=True, lent={"propensity": "predictive-fold-2"})
    again = Task.from_json(Task("direct-fold-2", work).to_json()).work
    assert again == work
    assert again.lenders == ["predictive-fold-2"]
    assert again.trains_on == "cpu"


def test_it_answers_the_stays_it_holds_out_and_says_how_it_went(tmp_path):
    fit = fit_from_json(fit_task().run(tmp_path / "direct-fold-2"))
    assert (fit.n_learned_from, fit.n_held_out, fit.path) == (30, 30, ())
    assert fit.quality.log_loss > 0
    policy = load_followed(tmp_path / "direct-fold-2").deployed.probabilities
    log = open_log(FOLD.data, tmp_path)
    held = FOLD.dealing.part(log, 1).held
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


def test_quality_is_shown_without_nan():
    shown = summarize_quality(Quality(0.5, 0.25, float("nan")))
    assert shown.calibration_error is None
    assert {shown.log_loss, shown.accuracy} == {0.5, 0.25}


def test_a_turned_direct_method_takes_the_action_of_most_predicted_loss():
    stays = CLINIC.log(60, seed=0)
    settings = {"hidden": 4, "n_folds": 2, "epochs": 3, "support": 0.0, "interaction": False}
    learner = make_learner("direct", settings, device="cpu").fit(stays)
    least, most = learner.predict(stays), turn_round(learner.policy_).predict(stays)
    bias = learner.policy_.networks.parameters["head.bias"].mean(0)
    assert set(least) == {int(bias.argmin())}
    assert set(most) == {int(bias.argmax())}
