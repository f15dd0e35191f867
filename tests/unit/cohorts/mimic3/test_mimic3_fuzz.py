"""D1 for raw tables: damaged at random, each is accepted or refused in one line, never a crash."""

import gzip

import numpy as np
import pytest
from cohort_building import built

from etips.cohorts.mimic3.config import CLEAN, PAPER
from etips.errors import EtipsError
from etips.worlds.mimic3_tables import write_simulated

CELLS = (
    b"", b"NaN", b"inf", b"1e308", b"-1", b"0", b"None", b'"', b'""', b"2150-13-45 99:99:99",
    b"9999-12-31 00:00:00", b"0001-01-01 00:00:00", b"\xc3\xa9", b"\xff", b"\x00", b"9" * 20,
    b"3.7", b" 5 ", b"2150-01-01T00:00:00Z", b"2150-01-01", b'"a\nb"', b"=1+1",
)  # fmt: skip


@pytest.fixture(scope="module")
def ward(tmp_path_factory):
    """Ten stays, unpacked."""
    folder = tmp_path_factory.mktemp("ward") / "raw"
    write_simulated(folder, n_stays=10, seed=1)
    return {file.stem: gzip.decompress(file.read_bytes()) for file in sorted(folder.iterdir())}


def one_byte(rng, text):
    at = rng.integers(len(text))
    return text[:at] + bytes([rng.integers(256)]) + text[at + 1 :]


def cut(rng, text):
    return text[: rng.integers(len(text))]


def lose_a_line(rng, text):
    lines = text.split(b"\n")
    del lines[rng.integers(len(lines))]
    return b"\n".join(lines)


def repeat_a_line(rng, text):
    lines = text.split(b"\n")
    return b"\n".join([*lines, *[lines[rng.integers(len(lines))]] * 50])


def change_cells(rng, text, n=1):
    lines = text.split(b"\n")
    column, cell = rng.integers(lines[0].count(b",") + 1), CELLS[rng.integers(len(CELLS))]
    for line in rng.integers(len(lines), size=n):
        fields = lines[line].split(b",")
        if column < len(fields):
            fields[column] = cell
            lines[line] = b",".join(fields)
    return b"\n".join(lines)


def change_many_cells(rng, text):
    return change_cells(rng, text, n=text.count(b"\n") // 3 + 1)


DAMAGE = (one_byte, cut, lose_a_line, repeat_a_line, change_cells, change_cells, change_many_cells)


def survives(ward, folder, seed):
    rng = np.random.default_rng(seed)
    target = sorted(ward)[rng.integers(len(ward))]
    damage = DAMAGE[rng.integers(len(DAMAGE))]
    for name, text in ward.items():
        (folder / name).write_bytes(damage(rng, text) if name == target else text)
    message = ""
    try:
        built(folder, (PAPER, CLEAN)[seed % 2])
    except EtipsError as refusal:
        message = str(refusal)
    assert "\n" not in message


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_table_is_accepted_or_refused(ward, tmp_path, seed):
    survives(ward, tmp_path, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12, 300))
def test_many_damaged_tables_are_accepted_or_refused(ward, tmp_path, seed):
    survives(ward, tmp_path, seed)


def test_a_hospital_without_vasopressors_is_accepted_in_clean(ward, tmp_path):
    """Found by the above: no drug at all left a column without a type."""
    for name, text in ward.items():
        (tmp_path / name).write_bytes(
            text.split(b"\n")[0] + b"\n" if name.startswith("INPUTEVENTS") else text
        )
    assert (built(tmp_path, CLEAN).table["max_dose_vaso"] == 0).all()
