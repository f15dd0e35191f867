"""Every command as a user runs it: what it writes, what it prints, how it refuses."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from commands import refuse, run
from small_worlds import one_thread, ward

import etips
from etips.cli.main import main
from etips.learn import RandomPolicy
from etips.worlds.clinic import Clinic

__all__ = ["one_thread"]

QUICK = ("hidden=6", "epochs=2", "n_folds=2", "translations=0.3,0.7")
COLUMNS = ("--stay", "patient", "--step", "t", "--action", "dose", "--loss", "harm")
STATIC = ("--static", "age,weight")
METHODS = ("etips", "tips", "eips", "ips", "direct", "doubly-robust", "predictive")
SIMPLE = ("random", "most-frequent")


def shell(*arguments, **more):
    command = [sys.executable, "-c", "from etips.cli.main import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


def quick(*settings):
    return [part for entry in (*QUICK, *settings) for part in ("--set", entry)]


def settings_for(method):
    if method in SIMPLE:
        return []
    grid = method in ("etips", "tips")
    return [p for e in QUICK if grid or "translations" not in e for p in ("--set", e)]


@pytest.fixture(scope="module")
def table():
    """A log as a hospital would hold it: its own column names, rows in disorder."""
    data = ward(n_stays=24)
    lengths = np.diff(data.offsets)
    frame = pl.DataFrame(
        {
            "patient": np.repeat(data.stay, lengths),
            "t": data.step,
            "hr": data.sequence[:, 0],
            "lactate": data.sequence[:, 2],
            "age": np.repeat(data.static[:, 0], lengths),
            "weight": np.repeat(data.static[:, 1], lengths),
            "dose": data.action,
            "harm": pl.Series(data.loss).fill_nan(None),
            "chance": data.propensity,
        }
    )
    return frame.sample(fraction=1.0, shuffle=True, seed=0)


@pytest.fixture(scope="module")
def place(tmp_path_factory, table):
    """A folder with the log as Parquet and CSV, as Trajectories, and as questions."""
    folder = tmp_path_factory.mktemp("work")
    logged = table.drop("chance")
    logged.write_parquet(folder / "log.parquet")
    logged.write_csv(folder / "log.csv")
    logged.drop("dose", "harm").write_parquet(folder / "asked.parquet")
    table.write_parquet(folder / "known.parquet")
    data = read(folder / "log.parquet")
    data.save(folder / "log")
    return folder


def read(path, lag=1):
    roles = {"stay": "patient", "step": "t", "action": "dose", "loss": "harm"}
    return etips.read_table(path, **roles, static=["age", "weight"], lag=lag)


@pytest.fixture(scope="module")
def fitted(place):
    """A run fitted on the Parquet table."""
    run("fit", place / "log.parquet", "--out", place / "run", *COLUMNS, *STATIC, *quick())
    return place / "run"


def test_the_version_is_printed():
    assert run("--version") == f"etips {etips.__version__}\n"


@pytest.mark.parametrize("command", ["demo", "simulate", "fit", "recommend", "evaluate"])
def test_every_command_is_listed_and_has_help(command):
    assert command in run("--help")
    assert "--help" in run(command, "--help")


def test_without_arguments_the_help_is_shown(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["etips"])
    with pytest.raises(SystemExit):
        main()
    said = capsys.readouterr()
    assert (said.out + said.err).count("Usage") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["fit"],
        ["fit", "log.csv"],
        ["fit", "log.csv", "--out", "run", "--method", "magic"],
        ["fit", "log.csv", "--out", "run", "--lag", "2"],
        ["fit", "log.csv", "--out", "run", "--seed", "-1"],
        ["fit", "log.csv", "--out", "run", "--bogus", "1"],
        ["simulate", "moon", "--out", "x"],
        ["simulate", "clinic", "--out", "x", "--stays", "0"],
        ["demo", "--stays", "1"],
    ],
)
def test_a_slip_in_the_options_is_refused_in_one_line(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["etips", *arguments])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert said.err.startswith("etips")
    assert list(tmp_path.iterdir()) == []


def test_a_bug_keeps_its_traceback(monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr("etips.cli.simulate.clinic.Clinic", broken)
    monkeypatch.setattr(sys, "argv", ["etips", "simulate", "clinic", "--out", "nowhere"])
    with pytest.raises(ZeroDivisionError):
        main()


def test_the_installed_command_runs(tmp_path):
    done = shell("simulate", "clinic", "--stays", "5", "--out", str(tmp_path / "c"), "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)[0]["stays"] == 5
    again = shell("simulate", "clinic", "--stays", "5", "--out", str(tmp_path / "c"))
    assert again.returncode == 2


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """What the demo wrote, and what it said."""
    folder = tmp_path_factory.mktemp("demo") / "out"
    return folder, run("demo", "--out", folder, "--stays", 60, "--jobs", 1)


class TestDemo:
    """`etips demo`."""

    def test_it_writes_a_report_and_results_of_the_contract(self, written):
        folder, output = written
        assert {p.name for p in folder.iterdir()} == {"report.html", "results.json", "figures"}
        results = json.loads((folder / "results.json").read_bytes())
        assert set(results) >= {"data", "methods", "seconds"}
        assert results["methods"]
        for method in results["methods"]:
            wanted = {"name", "estimates", "diagnostics", "verdict", "reasons", "truth"}
            assert set(method) >= wanted
            assert 0 < method["truth"] < 1
            for estimate in method["estimates"]:
                fields = {"estimator", "risk", "std_error", "low", "high"}
                assert set(estimate) >= fields
        assert len(output.splitlines()[-3:]) == 3
        assert "Least true risk" in output
        assert "report.html" in output.splitlines()[-1]

    def test_every_learner_is_judged_and_the_truth_stands_beside(self, written):
        results = json.loads((written[0] / "results.json").read_bytes())
        names = [method["name"] for method in results["methods"]]
        assert names == [
            "predictive",
            "direct",
            "most-frequent",
            "random",
            "eips",
            "etips",
            "doubly-robust",
        ]
        assert all(method["verdict"] for method in results["methods"])

    def test_the_report_loads_nothing_from_elsewhere(self, written):
        page = (written[0] / "report.html").read_text()
        assert not re.search(r"(src|href)\s*=\s*[\"']?(https?:)?//", page)
        assert "default-src 'none'" in page
        assert "not for clinical use" in page

    def test_a_second_run_gives_the_same(self, written):
        folder = written[0]
        before = json.loads((folder / "results.json").read_bytes())
        run("demo", "--out", folder, "--stays", 60, "--jobs", 1)
        after = json.loads((folder / "results.json").read_bytes())
        for results in (before, after):
            del results["seconds"]
        assert before == after

    def test_a_place_that_cannot_be_written_is_refused(self, tmp_path):
        (tmp_path / "file").write_text("keep")
        assert "is not a folder" in refuse("demo", "--out", tmp_path / "file", "--stays", 60)
        assert "must be a folder" in refuse("demo", "--out", tmp_path / "a" / "b", "--stays", 60)
        assert (tmp_path / "file").read_text() == "keep"
        assert sorted(p.name for p in tmp_path.iterdir()) == ["file"]


class TestSimulate:
    """`etips simulate`."""

    @pytest.mark.parametrize(("world", "lag"), [("icu-sepsis", 1), ("clinic", 0)])
    def test_a_world_is_written_with_its_truth(self, world, lag, tmp_path):
        (summary,) = json.loads(
            run("simulate", world, "--stays", 30, "--out", tmp_path / "w", "--json")
        )
        data = etips.load(tmp_path / "w")
        assert (data.n_stays, data.lag) == (30, lag)
        assert summary["decisions"] == data.n_decisions
        assert data.true_risk(data.true_logging()) == pytest.approx(
            summary["true risk of the logging policy"]
        )

    def test_the_lag_of_icu_sepsis_can_be_chosen_and_of_others_not(self, tmp_path):
        run("simulate", "icu-sepsis", "--lag", 0, "--stays", 10, "--out", tmp_path / "w")
        assert etips.load(tmp_path / "w").lag == 0
        line = refuse("simulate", "clinic", "--lag", 1, "--stays", 10, "--out", tmp_path / "x")
        assert "--lag" in line
        assert not (tmp_path / "x").exists()

    def test_the_same_seed_gives_the_same_bytes(self, tmp_path):
        for name, seed in (("a", 3), ("b", 3), ("c", 4)):
            run("simulate", "clinic", "--stays", 10, "--seed", seed, "--out", tmp_path / name)
        steps = {n: (tmp_path / n / "steps.parquet").read_bytes() for n in "abc"}
        assert steps["a"] == steps["b"] != steps["c"]

    def test_a_place_that_is_taken_is_refused_unless_told_otherwise(self, tmp_path):
        run("simulate", "clinic", "--stays", 5, "--out", tmp_path / "w")
        line = refuse("simulate", "clinic", "--stays", 6, "--out", tmp_path / "w")
        assert "exists already" in line
        assert etips.load(tmp_path / "w").n_stays == 5
        run("simulate", "clinic", "--stays", 6, "--out", tmp_path / "w", "--overwrite")
        assert etips.load(tmp_path / "w").n_stays == 6

    @pytest.mark.slow
    @pytest.mark.parametrize(("world", "n_actions"), [("digits-zeros", 3), ("digits-rows", 10)])
    def test_the_digits_are_written_too(self, world, n_actions, tmp_path):
        run("simulate", world, "--stays", 2000, "--out", tmp_path / "w")
        data = etips.load(tmp_path / "w")
        assert data.n_stays == 2000
        assert data.n_actions == n_actions


class TestFit:
    """`etips fit`."""

    @pytest.mark.parametrize("method", [*METHODS, *SIMPLE])
    def test_every_method_learns_from_a_table(self, method, place, tmp_path):
        propensity = ["--propensity", "chance"]
        run(
            *("fit", place / "known.parquet", "--out", tmp_path / "run", "--method", method),
            *(*COLUMNS, *STATIC, *propensity, *settings_for(method)),
        )
        policy = etips.load(tmp_path / "run")
        assert policy.schema.sequence == ("hr", "lactate")
        assert policy.schema.static == ("age", "weight")
        assert policy.schema.lag == 1

    def test_folder_csv_and_parquet_give_the_same_policy(self, place, fitted, tmp_path):
        run("fit", place / "log", "--out", tmp_path / "a", *quick())
        run("fit", place / "log.csv", "--out", tmp_path / "b", *COLUMNS, *STATIC, *quick())
        weights = Path("policy") / "weights.safetensors"
        found = (fitted / weights).read_bytes()
        assert (tmp_path / "a" / weights).read_bytes() == found
        assert (tmp_path / "b" / weights).read_bytes() == found

    def test_the_clinicians_policy_stands_beside_ours(self, place, fitted, tmp_path):
        data = read(place / "log.parquet")
        clinicians = etips.load(fitted / "propensity").predict_proba(data)
        assert clinicians.tobytes() == etips.load(fitted).propensities(data).tobytes()
        run("fit", place / "log", "--out", tmp_path / "a", *quick())
        run("fit", place / "log", "--out", tmp_path / "a", "--method", "random", "--overwrite")
        assert not (tmp_path / "a" / "propensity").exists()  # a uniform policy has none

    def test_another_seed_gives_another_policy(self, place, fitted, tmp_path):
        run("fit", place / "log", "--out", tmp_path / "a", "--seed", 1, *quick())
        weights = Path("policy") / "weights.safetensors"
        assert (tmp_path / "a" / weights).read_bytes() != (fitted / weights).read_bytes()

    def test_it_does_what_python_does(self, place, fitted):
        from etips.learn import EtIPS, Settings, Training
        from etips.learn.foundation import ENCODER, OUTCOME, POLICY, PROPENSITY

        data = read(place / "log.parquet")
        stages = {
            name: Settings(**{**vars(stage), "epochs": 2})
            for name, stage in zip(
                ("propensity", "outcome", "policy"), (PROPENSITY, OUTCOME, POLICY), strict=True
            )
        }
        learner = EtIPS(
            translations=(0.3, 0.7),
            encoder=replace(ENCODER, hidden=6),
            training=Training(n_folds=2, device="auto", **stages),
        ).fit(data)
        same = etips.load(fitted).predict_proba(data)
        assert same.tobytes() == learner.predict_proba(data).tobytes()

    def test_the_lag_is_an_option(self, place, tmp_path):
        run("fit", place / "log.csv", "--out", tmp_path / "a", *COLUMNS, "--lag", 0, *quick())
        assert etips.load(tmp_path / "a").schema.lag == 0
        run("fit", place / "log", "--out", tmp_path / "b", "--lag", 0, *quick())
        assert etips.load(tmp_path / "b").schema.lag == 0

    def test_json_lists_the_candidates_with_one_chosen(self, place, tmp_path):
        text = run("fit", place / "log", "--out", tmp_path / "a", "--json", *quick())
        rows = json.loads(text)
        assert sum(row["chosen"] != "" for row in rows) == 1
        assert {"candidate", "held-out SNIPS", "matching factor", "effective size"} <= set(rows[0])

    def test_json_has_no_word_that_json_lacks(self, place, tmp_path):
        for method in ("eips", "direct", "random"):
            text = run(
                *("fit", place / "log", "--out", tmp_path / method, "--method", method, "--json"),
                *settings_for(method),
            )
            json.loads(text, parse_constant=pytest.fail)

    def test_a_taken_place_is_refused_before_anything_is_read(self, tmp_path):
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "thesis.txt").write_text("keep")
        line = refuse("fit", tmp_path / "no.csv", "--out", tmp_path / "run")
        assert "exists already" in line
        assert [path.name for path in (tmp_path / "run").iterdir()] == ["thesis.txt"]

    def test_overwrite_replaces_runs_and_nothing_else(self, place, fitted, tmp_path):
        run("fit", place / "log", "--out", tmp_path / "r", "--method", "random")
        run(
            "fit",
            place / "log",
            "--out",
            tmp_path / "r",
            "--method",
            "most-frequent",
            "--overwrite",
        )
        assert etips.load(tmp_path / "r").kind == "constant"
        for name in ("file", "folder"):
            other = tmp_path / name
            if name == "file":
                other.write_text("keep")
            else:
                other.mkdir()
                (other / "thesis.tex").write_text("keep")
            line = refuse("fit", place / "log", "--out", other, "--method", "random", "--overwrite")
            assert "is not a run folder, so it stays" in line
        assert (tmp_path / "file").read_text() == "keep"
        assert [p.name for p in (tmp_path / "folder").iterdir()] == ["thesis.tex"]

    def test_a_run_folder_is_for_its_owner_only(self, fitted):
        assert fitted.stat().st_mode & 0o777 == 0o700

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["no.csv", *COLUMNS], "is not a file that exists"),
            (["log.csv", *COLUMNS[4:]], "stay: must name a column"),
            (["log.csv", *COLUMNS[:4]], "--action, --loss: must name columns"),
            (["log.csv", *COLUMNS[:6]], "--action, --loss: must name columns"),
            (["log.csv", *COLUMNS, "--static", "age,height"], "column height: is missing"),
            (["log.csv", "--stay", "nobody", *COLUMNS[2:]], "column nobody: is missing"),
            (["log.csv", *COLUMNS, "--static", "hr"], "must not change within a stay"),
            (["log.csv", *COLUMNS, "--propensity", "hr"], r"must be in \(0, 1\]"),
            (["log", *COLUMNS], "column options: go with a table"),
            (["log/..", "--lag", "1"], "holds no schema.json"),
            (["log", "--method", "tips"], "propensity: is not in the data"),
            (["log", "--set", "hidden"], "--set: takes key=value"),
            (["log", "--set", "colour=red"], "--set colour: is not a setting of etips"),
            (["log", "--set", "hidden=many"], "--set hidden: has a value of the wrong kind"),
            (["log", "--set", "hidden=0"], "hidden: must be"),
            (["log", "--set", "epochs=0"], "epochs: must be at least 1"),
            (["log", "--set", "device.epochs=3"], "device.epochs: is not a setting"),
            (["log", "--set", "policy.colour=3"], "policy.colour: is not a setting"),
            (["log", "--set", "support=2"], r"support: must be in \[0, 1\)"),
            (["log", "--set", "support=nan"], r"support: must be in \[0, 1\)"),
            (["log", "--set", "translations=0.1,nan"], "translations: must hold"),
            (["log", "--set", "init=zero"], "--set init: must be propensity or random"),
            (["log", "--set", "selection=x"], "--set selection: must be held-out or paper"),
            (["log", "--set", "n_folds=0"], "n_folds: must be at least 1"),
            (["log", "--set", "kl=-1"], "kl: must be finite"),
            (["log", "--method", "direct", "--set", "kl=0.1"], "kl: is not a setting of direct"),
            (["log", "--method", "random", "--set", "hidden=3"], "random has no settings"),
        ],
    )
    def test_bad_input_is_refused_and_leaves_nothing(self, arguments, words, place, tmp_path):
        first, *rest = arguments
        line = refuse("fit", place / first, "--out", tmp_path / "run", *rest)
        assert re.search(words, line)
        assert list(tmp_path.iterdir()) == []

    def test_a_place_without_a_parent_is_refused_before_training(self, place, tmp_path):
        line = refuse("fit", place / "no.csv", "--out", tmp_path / "a" / "b")
        assert "must be a folder that exists" in line

    def test_a_run_that_could_not_be_written_is_taken_up_by_the_same_command(
        self, place, tmp_path, monkeypatch
    ):
        def fail(*_, **__):
            raise etips.FileError("disk", "is full")

        command = ("fit", place / "log", "--out", tmp_path / "run", "--method", "random")
        with monkeypatch.context() as patch:
            patch.setattr("etips.learn.policy_files.save_policy", fail)
            assert "disk: is full" in refuse(*command)
        run(*command)
        assert etips.load(tmp_path / "run").kind == "uniform"


class TestRecommend:
    """`etips recommend`."""

    def columns(self, n_actions=3):
        chances = [f"p_{k}" for k in range(n_actions)]
        return ["stay", "step", "logged_action", "recommended_action", *chances, "abstained"]

    def test_a_log_gets_a_row_a_decision_in_decision_order(self, place, fitted, tmp_path):
        out = tmp_path / "r.parquet"
        (said,) = json.loads(run("recommend", fitted, place / "log.csv", "--out", out, "--json"))
        data, table = read(place / "log.csv"), pq.read_table(out)
        assert table.column_names == self.columns()
        stay, step = data.decisions()
        assert table["stay"].to_pylist() == data.stay[stay].tolist()
        assert table["step"].to_pylist() == step.tolist()
        assert table["logged_action"].to_pylist() == data.logged_action.tolist()
        found = np.stack([table[f"p_{k}"].to_numpy() for k in range(3)], axis=1)
        policy = etips.load(fitted)
        assert (found == policy.predict_proba(data)).all()
        assert table["recommended_action"].to_pylist() == policy.predict(data).tolist()
        assert table["abstained"].to_pylist() == policy.abstains(data).tolist()
        assert said["decisions"] == data.n_decisions

    def test_without_action_and_loss_the_next_step_is_asked_too(self, place, fitted, tmp_path):
        out = tmp_path / "r.parquet"
        run("recommend", fitted, place / "asked.parquet", "--out", out)
        table = pq.read_table(out)
        assert table.column_names == self.columns()
        assert table["logged_action"].null_count == table.num_rows
        data = read(place / "log.csv")
        assert table.num_rows == data.n_steps  # one question after every step
        last = {}
        for stay, step in zip(table["stay"].to_pylist(), table["step"].to_pylist(), strict=True):
            last[stay] = step
        lengths = dict(zip(data.stay.tolist(), np.diff(data.offsets).tolist(), strict=True))
        assert last == lengths  # steps 0..T-1 are there; T is what comes next

    def test_with_lag_0_every_step_is_asked_and_no_more(self, place, tmp_path):
        run(
            "fit",
            place / "log.csv",
            "--out",
            tmp_path / "r",
            *COLUMNS,
            *STATIC,
            "--lag",
            0,
            *quick(),
        )
        out = tmp_path / "r.parquet"
        run("recommend", tmp_path / "r", place / "asked.parquet", "--out", out)
        table, data = pq.read_table(out), read(place / "log.csv")
        assert table["step"].to_pylist() == data.step.tolist()

    def test_column_options_may_be_repeated_and_change_nothing(self, place, fitted, tmp_path):
        for name, more in (("a", []), ("b", [*COLUMNS, *STATIC, "--lag", 1])):
            run(
                "recommend", fitted, place / "log.csv", "--out", tmp_path / f"{name}.parquet", *more
            )
        assert pq.read_table(tmp_path / "a.parquet").equals(pq.read_table(tmp_path / "b.parquet"))

    def test_a_table_with_other_names_is_read_by_options(self, table, fitted, place, tmp_path):
        renamed = table.rename({"patient": "id", "t": "hour", "dose": "drug", "harm": "cost"})
        renamed.write_parquet(tmp_path / "other.parquet")
        options = ["--stay", "id", "--step", "hour", "--action", "drug", "--loss", "cost"]
        out = tmp_path / "r.parquet"
        run("recommend", fitted, tmp_path / "other.parquet", "--out", out, *options)
        run("recommend", fitted, place / "log.csv", "--out", tmp_path / "s.parquet")
        assert pq.read_table(out).equals(pq.read_table(tmp_path / "s.parquet"))

    def test_a_folder_is_read_with_the_lag_of_the_run(self, place, tmp_path):
        run("fit", place / "log", "--out", tmp_path / "r", "--lag", 0, *quick())
        out = tmp_path / "r.parquet"
        run("recommend", tmp_path / "r", place / "log", "--out", out)
        assert pq.read_table(out).num_rows == read(place / "log.csv", lag=0).n_decisions

    @pytest.mark.parametrize("method", SIMPLE)
    def test_simple_policies_recommend_too(self, method, place, tmp_path):
        run("fit", place / "log", "--out", tmp_path / "r", "--method", method)
        out = tmp_path / "r.parquet"
        run("recommend", tmp_path / "r", place / "log", "--out", out)
        table = pq.read_table(out)
        assert table.column_names == self.columns()
        if method == "random":
            expected = (
                RandomPolicy().fit(read(place / "log.csv")).predict_proba(read(place / "log.csv"))
            )
            found = np.stack([table[f"p_{k}"].to_numpy() for k in range(3)], axis=1)
            assert (found == expected).all()

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["run", "no.csv"], "is not a file that exists"),
            (["nowhere", "log.csv"], "must be a folder"),
            (["log", "log.csv"], "policy.json"),
            (["run", "log.csv", "--lag", "0"], "--lag: must be as in the data"),
            (["run", "log.csv", "--static", "hr"], "--static: must be as in the data"),
            (["run", "log.csv", "--stay", "nobody"], "column nobody: is missing"),
            (["run", "short.csv"], "column lactate: is missing"),
        ],
    )
    def test_bad_input_is_refused_and_leaves_nothing(
        self, arguments, words, place, fitted, table, tmp_path
    ):
        table.drop("lactate", "chance").write_csv(place / "short.csv")
        named, data, *rest = arguments
        out = tmp_path / "r.parquet"
        line = refuse("recommend", place / named, place / data, "--out", out, *rest)
        assert re.search(words, line)
        assert list(tmp_path.iterdir()) == []

    def test_an_output_that_is_not_parquet_is_refused(self, place, fitted, tmp_path):
        line = refuse("recommend", fitted, place / "log.csv", "--out", tmp_path / "r.csv")
        assert "must end in .parquet" in line

    def test_a_changed_run_is_refused_by_file(self, place, tmp_path):
        run("fit", place / "log", "--out", tmp_path / "r", "--method", "random")
        path = tmp_path / "r" / "policy" / "policy.json"
        path.write_bytes(path.read_bytes().replace(b"uniform", b"softmax"))
        line = refuse("recommend", tmp_path / "r", place / "log", "--out", tmp_path / "o.parquet")
        assert "policy.json: was changed" in line
        assert not (tmp_path / "o.parquet").exists()


class TestEvaluate:
    """`etips evaluate`."""

    def test_runs_are_judged_side_by_side(self, tmp_path):
        Clinic(n_actions=3).log(60, seed=0).save(tmp_path / "data")
        for method in SIMPLE:
            run("fit", tmp_path / "data", "--out", tmp_path / method, "--method", method)
        runs = [tmp_path / method for method in SIMPLE]
        results = json.loads(run("evaluate", *runs, tmp_path / "data", "--json"))
        assert [m["name"] for m in results["methods"]] == list(SIMPLE)
        for method in results["methods"]:
            assert method["verdict"]
            assert {"matching_factor", "effective_sample_size", "n_matched"} <= set(
                method["diagnostics"]
            )
            for estimate in method["estimates"]:
                assert {"estimator", "risk", "std_error", "low", "high"} <= set(estimate)

    def test_too_few_arguments_and_missing_runs_are_refused(self, place):
        assert "must be RUN [RUN ...] DATA" in refuse("evaluate", place / "log")
        assert "must be a folder" in refuse("evaluate", place / "nowhere", place / "log")
