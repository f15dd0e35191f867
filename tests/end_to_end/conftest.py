"""A log and a run for the tests of several commands; what is there may not be changed."""

import numpy as np
import polars as pl
import pytest
from commands import run
from hospital_log import COLUMNS, STATIC, read, settings_for
from small_worlds import ward


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def fitted(place):
    """A run fitted on the Parquet table."""
    run("fit", place / "log.parquet", "--out", place / "run", *COLUMNS, *STATIC, *settings_for())
    return place / "run"
