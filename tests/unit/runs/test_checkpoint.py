"""Checkpoints: what comes back is what was kept, and nothing else comes back."""

import json
import os
import stat
from dataclasses import replace

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save as save_tensors

from etips.errors import FileError
from etips.learn.training.state import State
from etips.models.bundle import Bundle, Trained
from etips.models.encoders.gru import GRU
from etips.models.network import Network
from etips.runs import checkpoint
from etips.runs.checkpoint import (
    DamagedError,
    Mark,
    is_sound,
    load_checkpoint,
    read_mark,
    save_networks,
    save_state,
)

MARK = Mark("r" * 64, "s" * 64)
GROUPS = ("parameters", "first", "second", "best")


@pytest.fixture(scope="module")
def start():
    return Bundle.start(Network(GRU(2), n_features=2, n_static=1, n_outputs=2), [0, 1])


@pytest.fixture
def state(start):
    """A state in the midst of things: every tensor different, some risks not known yet."""
    made, generator = State.start(start), torch.Generator().manual_seed(0)
    for group in GROUPS:
        for value in getattr(made, group).values():
            value.copy_(torch.randn(value.shape, generator=generator))
    made.best_risk[0], made.waited[1] = 0.1 + 0.2, 3
    made.epoch = 2
    return made


@pytest.fixture
def path(tmp_path):
    return tmp_path / "stage.safetensors"


def same(left, right):
    return left.dtype == right.dtype and torch.equal(left, right)


def test_a_state_comes_back_as_it_was_kept(state, start, path):
    save_state(path, state, MARK)
    found = load_checkpoint(path, start, MARK)
    assert isinstance(found, State)
    for group in GROUPS:
        own, kept = getattr(found, group), getattr(state, group)
        assert list(own) == list(kept)  # in order: sums over them are rounded in it
        assert all(same(own[name], kept[name]) for name in kept)
    assert same(found.best_risk, state.best_risk)
    assert same(found.waited, state.waited)
    assert same(found.epochs, state.epochs)
    assert found.epoch == 2


@pytest.mark.parametrize("trained", [(), (Trained(3), Trained(7))])
def test_how_the_training_of_networks_ended_comes_back(start, path, trained):
    save_networks(path, replace(start, trained=trained), MARK)
    assert load_checkpoint(path, start, MARK).trained == trained


@pytest.mark.parametrize("trained", [[(3,)], [(3,), (-1,)], [(3,), (0.5,)], [(3, True), (3, True)]])
def test_ends_that_cannot_be_are_damage(start, path, trained):
    save_networks(path, replace(start, trained=trained), MARK)
    with pytest.raises(DamagedError):
        load_checkpoint(path, start, MARK)


def test_what_comes_back_is_training_s_own_memory_and_the_start_is_untouched(state, start, path):
    """Products may round by alignment, and the file's tensors stand anywhere."""
    before = {name: value.clone() for name, value in start.parameters.items()}
    save_state(path, state, MARK)
    found = load_checkpoint(path, start, MARK)
    for group in GROUPS:
        for value in getattr(found, group).values():
            assert value.data_ptr() % 64 == 0
            value.add_(1)
    assert all(torch.equal(before[name], value) for name, value in start.parameters.items())


def test_f9_a_checkpoint_is_one_safetensors_file_for_its_owner_alone(state, path, tmp_path):
    """F9: 0600, and nothing beside it."""
    for _ in range(2):
        save_state(path, state, MARK)
    assert list(tmp_path.iterdir()) == [path]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with safe_open(path, "pt") as file:
        assert "parameters/head.bias" in file.keys()  # noqa: SIM118  # not a dict
        assert json.loads(file.metadata()["checkpoint"])["epoch"] == 2


def test_a_diverged_network_is_kept_but_not_a_best_one_that_is_not_finite(state, start, path):
    state.parameters["head.bias"][0] = torch.nan
    assert is_sound(state)
    save_state(path, state, MARK)
    assert load_checkpoint(path, start, MARK).parameters["head.bias"].isnan().sum() == 2
    state.best["head.bias"][0, 0] = torch.inf
    assert not is_sound(state)


# ---- F6: damage --------------------------------------------------------------------------------


def test_f6_every_flipped_byte_is_refused(state, start, path):
    """F6: safetensors alone would take a changed weight."""
    save_state(path, state, MARK)
    raw = path.read_bytes()
    for position in range(len(raw)):
        changed = bytearray(raw)
        changed[position] ^= 1 << position % 8
        path.write_bytes(changed)
        with pytest.raises(DamagedError, match=r"safetensors: was changed after it was written\.$"):
            read_mark(path)
        if position % 100 == 0:  # loading verifies by the same function
            with pytest.raises(DamagedError):
                load_checkpoint(path, start, MARK)


def test_f6_every_truncation_and_any_addition_is_refused(state, start, path):
    """F6."""
    save_state(path, state, MARK)
    raw = path.read_bytes()
    for changed in [*(raw[:end] for end in range(len(raw))), raw + b"\0", raw + raw]:
        path.write_bytes(changed)
        with pytest.raises(DamagedError, match=r"safetensors: was changed after it was written\.$"):
            read_mark(path)
        if len(changed) % 100 == 0:
            with pytest.raises(DamagedError):
                load_checkpoint(path, start, MARK)


@pytest.mark.parametrize(("kept", "asked"), [("swordfish", None), (None, "swordfish")])
def test_f6_another_kind_of_key_is_refused_and_named(state, start, path, monkeypatch, kept, asked):
    """F6: not taken for damage, since then hours of work would be thrown away."""
    for key, act in ((kept, save_state), (asked, load_checkpoint)):
        monkeypatch.delenv("ETIPS_SEAL_KEY", raising=False)
        if key:
            monkeypatch.setenv("ETIPS_SEAL_KEY", key)
        if act is save_state:
            save_state(path, state, MARK)
            load_checkpoint(path, start, MARK)
            continue
        with pytest.raises(FileError, match=r"another kind of key; see ETIPS_SEAL_KEY\.$") as found:
            load_checkpoint(path, start, MARK)
        assert not isinstance(found.value, DamagedError)


def test_f6_with_the_wrong_key_a_checkpoint_is_damaged(state, start, path, monkeypatch):
    """F6."""
    monkeypatch.setenv("ETIPS_SEAL_KEY", "swordfish")
    save_state(path, state, MARK)
    monkeypatch.setenv("ETIPS_SEAL_KEY", "herring")
    with pytest.raises(DamagedError):
        load_checkpoint(path, start, MARK)


# ---- another run's -----------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["run", "stage"])
def test_the_checkpoint_of_another_run_or_stage_is_refused_in_one_line(state, start, path, part):
    save_state(path, state, MARK)
    assert read_mark(path) == MARK
    with pytest.raises(FileError, match=r"belongs to a run with other data, settings") as found:
        load_checkpoint(path, start, replace(MARK, **{part: "another"}))
    assert not isinstance(found.value, DamagedError)
    assert "\n" not in str(found.value)


# ---- F7: whole, sealed, and yet wrong ----------------------------------------------------------

DOCUMENT = {"kind": "state", "epoch": 1}


def without(name):
    return lambda tensors: tensors.pop(name)


def changed(name, change):
    return lambda tensors: tensors.update({name: change(tensors[name])})


@pytest.mark.parametrize(
    "attack",
    [
        without("first/head.bias"),
        without("waited"),
        lambda tensors: tensors.update({"parameters/../../x": torch.zeros(1)}),
        changed("best/head.bias", lambda v: v[:, :1]),
        changed("best/head.bias", lambda v: v.double()),
        changed("best/head.bias", lambda v: v * torch.nan),
        changed("best/head.bias", lambda v: v + torch.inf),
        changed("best_risk", lambda v: v * torch.nan),
        changed("best_risk", lambda v: -v),
        changed("waited", lambda v: v - 1),
        changed("waited", lambda v: v.int()),
    ],
)
def test_f7_tensors_that_do_not_fit_the_networks_are_refused(start, path, attack):
    """F7: sealed or not."""
    tensors = checkpoint._tensors(State.start(start))
    attack(tensors)
    checkpoint._write(path, tensors, MARK, DOCUMENT)
    rule = r"stage\.safetensors: does not hold the networks of this run\.$"
    with pytest.raises(DamagedError, match=rule):
        load_checkpoint(path, start, MARK)


@pytest.mark.parametrize(
    "about",
    [
        {"epoch": -1},
        {"epoch": 1.0},
        {"epoch": True},
        {"epoch": None},
        {"kind": "networks"},  # with a whole state
    ],
)
def test_f7_a_header_that_makes_no_sense_is_refused(start, path, about):
    """F7."""
    tensors = checkpoint._tensors(State.start(start))
    checkpoint._write(path, tensors, MARK, {**DOCUMENT, **about})
    with pytest.raises(DamagedError, match=r"does not hold the networks of this run\.$"):
        load_checkpoint(path, start, MARK)


@pytest.mark.parametrize("about", [{"format": "etips/policy"}, {"version": 2}])
def test_f7_another_format_or_version_is_refused(start, path, about):
    """F7: and not taken for damage."""
    checkpoint._write(path, {}, MARK, about)
    with pytest.raises(FileError, match=r"must be etips/checkpoint, version 4\.$") as found:
        load_checkpoint(path, start, MARK)
    assert not isinstance(found.value, DamagedError)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"[]",
        b"{}",
        b'{"__metadata__": 3}',
        b'{"__metadata__": {"seal": 3, "checkpoint": ""}}',
        b'{"__metadata__": {"seal": "", "checkpoint": ""}}',
        b'{"__metadata__": {"seal": "\xc3\xa4", "checkpoint": ""}}',
        b"[" * 100_000,
        b'{"__metadata__": {"checkpoint": "' + b"[" * 100_000 + b'", "seal": "sha256:0"}}',
    ],
)
def test_f7_a_header_of_any_other_making_is_refused(start, path, header):
    """F7: deep JSON too."""
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(DamagedError, match=r"was changed after it was written\.$"):
        load_checkpoint(path, start, MARK)


def test_f7_a_header_that_claims_to_be_huge_is_not_read(start, path):
    """F7."""
    path.write_bytes((2**63).to_bytes(8, "little") + save_tensors({"a": torch.zeros(2)}))
    with pytest.raises(DamagedError, match=r"was changed after it was written\.$"):
        load_checkpoint(path, start, MARK)


def test_f7_a_file_larger_than_the_networks_is_not_read(start, path):
    """F7: a terabyte of nothing takes no room on disk, and would take all of memory."""
    path.touch()
    os.truncate(path, 2**40)
    with pytest.raises(DamagedError, match=r"is too large for these networks\.$"):
        load_checkpoint(path, start, MARK)


def test_a_link_a_folder_or_a_pipe_is_no_checkpoint(state, start, path, tmp_path):
    save_state(tmp_path / "real", state, MARK)
    path.symlink_to(tmp_path / "real")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for place in (path, tmp_path / "folder", tmp_path / "pipe", tmp_path / "nowhere"):
        with pytest.raises(FileError, match=r": must be a plain file, not a link\.$"):
            load_checkpoint(place, start, MARK)
