"""Losses that are missing and a negative control, from a table to the page."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
from commands import refuse, run
from missing_worlds import make_missing

QUICK = ("--set", "epochs=2", "--set", "hidden=8", "--set", "n_folds=2")
COLUMNS = ("--stay", "stay", "--step", "step", "--action", "action", "--loss", "loss", "--lag", 0)


def write(path, seed):
    """A table with missing losses and, beside the features, a trace of lactate from before."""
    data = make_missing(400, seed=seed).data
    before = data.sequence[:, 0] + np.random.default_rng(seed).normal(size=400)
    columns = {"stay": data.stay, "step": data.step, "action": data.action, "before": before}
    columns["loss"] = pa.array(data.loss, from_pandas=True)
    columns |= {name: data.sequence[:, n] for n, name in enumerate(data.schema.sequence)}
    pyarrow.csv.write_csv(pa.table(columns), path)


def test_missing_losses_are_weighted_told_and_shown_and_the_control_stands_apart(tmp_path):
    write(tmp_path / "learn.csv", 0)
    write(tmp_path / "judge.csv", 1)
    more = ("--missing-loss", "weight", "--negative-control", "before")
    fitted = run("fit", tmp_path / "learn.csv", "--out", tmp_path / "run", *COLUMNS, *more, *QUICK)
    assert "speak for them" in fitted
    config = (tmp_path / "run" / "config.toml").read_text()
    assert 'missing_loss = "weight"' in config
    assert 'negative_control = "before"' in config
    said = run("evaluate", tmp_path / "run", tmp_path / "judge.csv", *more)
    assert "400 decisions" in said
    assert "have none; decisions that look alike and have one speak for them" in said
    assert "Negative control before" in said
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert results["data"]["missing_loss"]["treatment"] == "weight"
    assert results["methods"][0]["negative_control"]["seen"] is False
    run("report", tmp_path / "run", "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert 'id="missing-losses"' in page
    assert 'id="negative-control"' in page
    again = ("evaluate", tmp_path / "run", tmp_path / "judge.csv", "--negative-control", "lactate")
    assert "speak for them" in run(*again)  # as the run was told
    dropped = run(*again, "--missing-loss", "drop")
    assert "they are left out" in " ".join(dropped.split())
    assert "The propensities used this column" in " ".join(dropped.split())
    assert "must be" in refuse(
        "evaluate", tmp_path / "run", tmp_path / "judge.csv", "--missing-loss", "forget"
    )
