"""What the stages of a method cost, without the studies that it may be part of."""

import subprocess
import sys

from etips.studies.method_work import stage_works


def test_a_method_that_trains_nothing_costs_nothing():
    assert stage_works("random", {}) == {}
    plain = stage_works("etips", {"n_folds": 3, "epochs": 2, "translations": [0.5, 0.7]})
    assert list(plain) == ["propensity", "policy", "finish"]
    assert [own.networks for own in plain.values()] == [3, 6, 3]


def test_a_small_log_has_a_heat_since_its_batches_are_small():
    assert "heat" in stage_works("etips", {}, 600)
    assert "heat" not in stage_works("etips", {"batch_size": 300}, 600)


def test_a_fit_knows_its_work_without_what_studies_import():
    code = (
        "import sys, etips.cli.fitting\n"
        "print(*{'etips.studies.fits', 'etips.results.study_result'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "\n"
