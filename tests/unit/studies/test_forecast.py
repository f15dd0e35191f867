"""How long a study may take is told before its long part."""

import pytest
from small_studies import clinic_document, small_experiment

from etips.studies import study
from etips.studies.plan import make_plan
from etips.studies.study import TASKS, forecast, run_study
from etips.studies.study_data import Dealing, data_of, open_log


@pytest.fixture(scope="module")
def announced(tmp_path_factory):
    """A study that is announced however short, with all that it was told to say."""
    folder = tmp_path_factory.mktemp("study")
    said = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "TELL_FROM", 0.0)
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


def test_nothing_is_foretold_of_what_is_done(announced):
    experiment, folder, _ = announced
    source = data_of(experiment, None)
    waves = make_plan(experiment, source, device="cpu")
    left = forecast(experiment, source, waves, folder / TASKS, device="cpu", jobs=1)
    assert left is None


def test_more_passes_of_what_a_fold_learns_from_take_longer_and_more_hands_less(announced):
    experiment, folder, _ = announced
    source = data_of(experiment, None)
    waves = make_plan(experiment, source, device="cpu")
    open_tasks = folder / TASKS
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "recorded", lambda task, place: None)
        patch.setattr(study, "seconds_a_pass", lambda stays, settings: 2.0)
        patch.setattr(study.os, "cpu_count", lambda: 2)
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
