"""From a table that nobody prepared to a policy: check, fit with what it wrote, recommend."""

import tomllib

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from commands import call

import etips

N = 240


@pytest.fixture
def place(tmp_path):
    """A trial as it is published: one row a patient, text, gaps, what came after beside it."""
    rng = np.random.default_rng(0)
    age = rng.integers(30, 95, N)
    table = pa.table(
        {
            "HOSPITAL": rng.integers(1, 12, N),
            "AGE": age,
            "SEX": rng.choice(["M", "F"], N),
            "RSBP": pa.array([None if rng.random() < 0.2 else float(v) for v in age + 60]),
            "RXASP": rng.choice(["Y", "N"], N),
            "RXHEP": rng.choice(["N", "L"], N),
            "BLEED14": rng.choice(["Y", "N", "U"], N),
            "DEAD14": rng.integers(0, 2, N),
            "REMARK": [f"remark {n}" for n in range(N)],
            "DIED": rng.integers(0, 2, N),
        }
    )
    pa_csv.write_csv(table, tmp_path / "trial.csv")
    return tmp_path


def done(*arguments):
    result = call(*arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    return result


def test_what_check_writes_is_what_the_other_commands_need(place):
    data, table = place / "trial.csv", place / "table.toml"
    said = done("check", data, "--action", "RXASP,RXHEP").stdout
    assert "GUESSED" in table.read_text()
    assert "240 decisions" in said
    done("fit", data, "--table", table, "--method", "most-frequent", "--out", place / "run")
    kept = tomllib.loads((place / "run" / "config.toml").read_text())["data"]
    assert kept["action"] == ["RXASP", "RXHEP"]
    assert kept["loss"] == "DIED"
    policy = etips.load(place / "run")
    assert "DEAD14" not in policy.schema.sequence
    assert {"AGE", "RSBP"} <= {*policy.schema.sequence, *policy.schema.static}
    for more in ((), ("--table", table)):
        done("recommend", place / "run", data, "--out", place / "advice.csv", *more)


def test_fit_never_guesses(place):
    result = call("fit", place / "trial.csv", "--out", place / "run")
    assert result.exit_code == 2
    assert "--action (or --dose) and --loss (or --reward): must name columns" in result.stderr
    assert "etips check" in result.stderr
    assert not (place / "run").exists()


def test_a_run_hands_on_what_becomes_of_missing_losses(place):
    rows = (place / "trial.csv").read_text().splitlines()
    rows[1:20] = [row.rpartition(",")[0] + "," for row in rows[1:20]]
    (place / "gaps.csv").write_text("\n".join(rows))
    done("check", place / "gaps.csv", "--action", "RXASP,RXHEP", "--missing-loss", "weight")
    given = ("--table", place / "table.toml", "--method", "most-frequent")
    done("fit", place / "gaps.csv", *given, "--out", place / "run")
    said = done("recommend", place / "run", place / "gaps.csv", "--out", place / "a.csv").stdout
    assert "240" in said  # dropped, there would be 221
