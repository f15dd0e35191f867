"""From one hospital to another as a user types it: evaluate, compare and reproduce."""

import json
from dataclasses import replace

import numpy as np
import pytest
from commands import call, refuse
from small_studies import SETTINGS, clinic_document

from etips.files.toml import format_toml
from etips.worlds.two_hospitals import SECOND, simulate_place


def run(*arguments):
    result = call(*arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    return result


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Two hospitals, and a run learned on half of the first."""
    folder = tmp_path_factory.mktemp("hospitals")
    simulate_place(70, seed=1).save(folder / "first")
    simulate_place(60, seed=2, place=SECOND).save(folder / "second")
    small = [f"{name}={json.dumps(SETTINGS[name])}" for name in ("hidden", "n_folds", "batch_size")]
    epochs = [f"{stage}.epochs=2" for stage in ("propensity", "outcome")]
    told = [part for setting in (*small, *epochs) for part in ("--set", setting)]
    out = ("--out", folder / "run", "--hold-out", "0.5")
    run("fit", folder / "first", "--method", "direct", *told, *out)
    return folder


def test_a_run_is_judged_on_another_hospital_by_its_own_doses(place):
    result = run("evaluate", place / "run", place / "second")
    assert "doses are put into the classes of the data that the policy was fitted on" in (
        result.stderr
    )
    assert "standard deviations apart" in result.stdout
    results = json.loads((place / "run" / "results.json").read_bytes())
    shift = results["shift"]
    assert shift["n_features"] == 7
    assert shift["here"]["place"] != shift["there"]["place"]
    run("report", place / "run")
    page = (place / "run" / "report.html").read_text()
    assert "From where it was learned to here" in page
    # Nobody of the second hospital is in the run.
    kept = [path for path in (place / "run").rglob("*") if path.is_file()]
    second = simulate_place(60, seed=2, place=SECOND)
    ages = [f"{age:.4f}" for age in second.static[:, 0].tolist()]
    text = b"".join(path.read_bytes() for path in kept)
    assert not any(age.encode() in text for age in ages)
    assert second.sequence.tobytes()[:64] not in text


def test_figures_are_carried_from_one_to_the_other(place):
    out = run("compare", place / "run", place / "first", "--external", place / "second").stdout
    assert "first to second, overlap" in out
    assert "second to first, overlap" in out


def test_table_2_has_the_columns_of_the_external_test(place, tmp_path):
    document = clinic_document(
        methods=["predictive", "random"],
        world="data",
        n=0,
        quick={},
        presets={"etips": {"lead": "small."}},
    )
    config = tmp_path / "small.toml"
    config.write_text(format_toml(document))
    asked = ("reproduce", "table2", "--data", place / "first", "--external", place / "second",
             "--config", config, "--out", tmp_path / "table2", "--jobs", "1")  # fmt: skip
    table = run(*asked, "--markdown").stdout
    head = next(line for line in table.splitlines() if line.startswith("| policy"))
    assert "| external risk | external change | external verdict |" in head
    row = next(line for line in table.splitlines() if line.startswith("| random"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    names = [cell.strip() for cell in head.strip("|").split("|")]
    assert "[" in cells[names.index("external risk")]
    assert cells[names.index("external verdict")] in ("reliable", "doubtful", "unusable")
    assert "External: another source" in table


def test_what_does_not_fit_is_refused_in_a_line(place, tmp_path):
    second = simulate_place(20, seed=3, place=SECOND)
    schema = replace(second.schema, sequence=("MAP", *second.schema.sequence[1:]))
    replace(second, schema=schema).save(tmp_path / "renamed")
    line = refuse("evaluate", place / "run", tmp_path / "renamed")
    assert "must hold the feature MeanBP, which the policy reads" in line
    line = refuse("reproduce", "table2", "--data", place / "first", "--external",
                  tmp_path / "renamed", "--out", tmp_path / "none")  # fmt: skip
    assert "MeanBP" in line
    assert not (tmp_path / "none").exists()
    assert "needs --data" in refuse("reproduce", "table2", "--external", place / "second")
    line = refuse("compare", place / "run", place / "first", "--external", tmp_path / "nowhere")
    assert "must be a folder" in line
    assert np.isfinite(second.logged_loss).all()
