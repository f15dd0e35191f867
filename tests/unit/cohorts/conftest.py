"""Where the open demo and its reference output are, and a small simulated hospital."""

import os
from pathlib import Path

import pytest
from cohort_building import built

from etips.worlds.raw_tables import MIMIC3_SHAPE, MIMIC4_SHAPE

_SHARED = Path(__file__).resolve().parents[3] / "../shared/data"


@pytest.fixture(scope="session")
def demo():
    """Folder of the MIMIC-III demo; it is open data but stays outside the repository."""
    folder = Path(os.environ.get("ETIPS_MIMIC3_DEMO", _SHARED / "mimic3-demo"))
    if not folder.is_dir():
        pytest.skip("no MIMIC-III demo at ../shared/data/mimic3-demo or in ETIPS_MIMIC3_DEMO")
    return folder


@pytest.fixture(scope="session")
def reference():
    """Folder with the original scripts' output on half of the demo's stays."""
    folder = _SHARED / "cohort-reference"
    if not folder.is_dir():
        pytest.skip("no reference output at ../shared/data/cohort-reference")
    return folder


@pytest.fixture(scope="session")
def demo4():
    """Folder of the MIMIC-IV demo, likewise."""
    folder = Path(os.environ.get("ETIPS_MIMIC4_DEMO", _SHARED / "mimic4-demo"))
    if not folder.is_dir():
        pytest.skip("no MIMIC-IV demo at ../shared/data/mimic4-demo or in ETIPS_MIMIC4_DEMO")
    return folder


@pytest.fixture(scope="session")
def reference4():
    """Folder with what two public programs give on the stays of that demo with an even id."""
    folder = _SHARED / "cohort-reference-mimic4"
    if not folder.is_dir():
        pytest.skip("no reference output at ../shared/data/cohort-reference-mimic4")
    return folder


@pytest.fixture(scope="session")
def hospital(tmp_path_factory):
    """Raw tables of 60 simulated stays as CSV.gz."""
    folder = tmp_path_factory.mktemp("hospital") / "raw"
    MIMIC3_SHAPE.write_simulated(folder, n_stays=60, seed=3)
    return folder


@pytest.fixture(scope="session")
def hospital4(tmp_path_factory):
    """Raw tables of the MIMIC-IV shape, of 60 simulated stays, as CSV.gz."""
    folder = tmp_path_factory.mktemp("hospital4") / "raw"
    MIMIC4_SHAPE.write_simulated(folder, n_stays=60, seed=3)
    return folder


@pytest.fixture(scope="session")
def paper_cohort(hospital):
    return built(hospital)
