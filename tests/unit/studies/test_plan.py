"""The tasks of a study: names, waves, and what they lend each other."""

import pytest
from small_studies import clinic_document, small_experiment, zeros_document

from etips.studies.experiment import read_experiment, shipped
from etips.studies.fit_work import StageWork
from etips.studies.fits import FitTask
from etips.studies.plan import fit_cost, lent_stages, make_plan
from etips.studies.study_data import data_of


def plan(document, preset="etips"):
    experiment = small_experiment(document, preset)
    return make_plan(experiment, data_of(experiment), device="cpu")


def test_every_method_has_a_task_on_every_fold_and_no_name_comes_twice():
    names = [task.name for wave in plan(zeros_document()) for task in wave]
    assert len(set(names)) == len(names) == 2 + 2 * 7
    assert {"data", "evaluation", "etips-fold-1", "etips-fold-2"} <= set(names)


def test_who_lends_comes_before_who_borrows():
    waves = plan(clinic_document())
    place = {task.name: number for number, wave in enumerate(waves) for task in wave}
    lent = [(t, n) for w in waves for t in w for n in t.needs]
    assert lent
    assert all(place[lender] < place[task.name] for task, lender in lent)


def test_the_longest_of_a_wave_come_first():
    for wave in plan(shipped("table1-rows")):
        assert [task.cost for task in wave] == sorted((t.cost for t in wave), reverse=True)


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


def test_additive_networks_predict_losses_for_nobody_else():
    plain = {"hidden": 4}
    methods = {"direct": {**plain, "interaction": False}, "doubly-robust": plain}
    assert lent_stages(methods, "doubly-robust") == {}
    methods["direct"] = plain
    assert lent_stages(methods, "doubly-robust") == {"outcome": "direct"}


def test_who_looks_ahead_to_the_end_of_the_stay_predicts_losses_for_nobody_else():
    plain = {"hidden": 4}
    methods = {"direct": {**plain, "horizon": "stay"}, "doubly-robust": plain}
    assert lent_stages(methods, "doubly-robust") == {}
    methods = {"predictive": plain, "direct": plain, "direct-stay": plain}
    assert lent_stages(methods, "direct-stay") == {"propensity": "predictive"}
    assert fit_cost("direct-stay", plain, ()) > fit_cost("direct", plain, ())


def test_methods_with_known_propensities_start_from_the_same_networks():
    methods = read_experiment(shipped("table1-zeros"), name="zeros").methods
    assert lent_stages(methods, "tips") == {"propensity": "predictive"}
    assert lent_stages(methods, "full-supervision") == {}


def test_a_task_costs_what_the_networks_that_it_trains_usually_take():
    cost = {
        (task.work.method if isinstance(task.work, FitTask) else task.name, preset): task.cost
        for preset in ("etips", "authors")
        for wave in plan(shipped("table1-zeros"), preset)
        for task in wave
    }
    nothing = cost["random", "etips"]
    assert nothing == cost["logging", "etips"] < 0.01 * cost["direct", "etips"]
    passes = {key: value - nothing for key, value in cost.items()}
    document = shipped("table1-zeros")
    propensity, policy, judge = (
        *(document["settings"][stage]["epochs"] for stage in ("propensity", "policy")),
        document["evaluation"]["settings"]["epochs"],
    )
    ours = document["presets"]["etips"]
    shorter, outcome = (ours["settings"][stage]["epochs"] for stage in ("policy", "outcome"))
    robust = ours["method"]["doubly-robust"]["policy"]["epochs"]
    assert robust < shorter < policy
    folds = {"n_folds": 3}  # each network reads two

    def usual(stage, epochs, sets=1):
        return StageWork.of(stage, epochs, sets=sets, **folds).total

    def policies(epochs, n=1):
        return usual("policy", epochs, n) + usual("finish", 8)

    assert passes["predictive", "etips"] == pytest.approx(usual("propensity", propensity))
    assert passes["direct", "etips"] == pytest.approx(usual("outcome", outcome))
    assert passes["doubly-robust", "etips"] == pytest.approx(policies(robust))
    assert passes["evaluation", "etips"] == pytest.approx(usual("outcome", judge))
    assert passes["etips", "etips"] == pytest.approx(policies(shorter, 2))  # two translations
    folds["n_folds"] = 1
    all_of_them = usual("policy", policy, 15)  # fifteen, without folds
    assert passes["etips", "authors"] == pytest.approx(all_of_them)


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
