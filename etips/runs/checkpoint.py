"""Where training stands, on disk: one safetensors file, sealed, that knows its run and stage.

A file appears whole or not at all (`files.writing`). safetensors itself takes a changed tensor
without complaint, so the header carries a seal over every other byte of the file, keyed if
`ETIPS_SEAL_KEY` is set.
"""

import hashlib
import hmac
import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from etips.errors import FileError
from etips.files.artifacts import KEY_VARIABLE, seal
from etips.files.json_documents import canonical
from etips.files.writing import refusing, write_file
from etips.learn.training.state import State
from etips.models.bundle import Bundle, Trained

_FORMAT, _VERSION = "etips/checkpoint", 4
_GROUPS = ("parameters", "first", "second", "best")
_SINGLES = ("best_risk", "waited", "epochs")
_HEADER_LIMIT = 64 * 2**20  # names and shapes; more than this is an attack
_BLOCK = 2**20


class DamagedError(FileError):
    """A checkpoint that is not as it was written. The run it belongs to can do without it."""


class ForeignError(FileError):
    """A checkpoint that is whole, but of another run or another stage of this one."""


@dataclass(frozen=True)
class Mark:
    """What a checkpoint belongs to.

    Args:
        run: Fingerprint of the run.
        stage: Fingerprint of the stage.
    """

    run: str
    stage: str


def save_state(path: Path, state: State, mark: Mark) -> None:
    """Write where a stage stands, replacing where it stood."""
    _write(path, _tensors(state), mark, {"kind": "state", "epoch": state.epoch})


def save_networks(path: Path, bundle: Bundle, mark: Mark) -> None:
    """Write the networks of a finished stage, replacing where it stood."""
    tensors = {f"best/{name}": value for name, value in bundle.parameters.items()}
    _write(
        path, tensors, mark, {"kind": "networks", "trained": [list(own) for own in bundle.trained]}
    )


def load_checkpoint(path: Path, start: Bundle, mark: Mark) -> State | Bundle:
    """Where the stage stood, or its networks if it was finished, on the device of `start`.

    Raises `DamagedError` for a file that is not as it was written, and `ForeignError` for one that
    is whole but belongs to something else.
    """
    template = State.start(start)
    wanted = _tensors(template)
    room = _HEADER_LIMIT + sum(value.nbytes for value in wanted.values())
    with _opened(path) as file:
        if os.fstat(file.fileno()).st_size > room:
            raise DamagedError(str(path), "is too large for these networks")
        document = _verify(path, file)
        require_mark(path, _mark(path, document), mark)
        file.seek(0)
        raw = file.read()
    try:
        tensors = load_tensors(raw)
        if document["kind"] == "networks":
            wanted = {name: value for name, value in wanted.items() if name.startswith("best/")}
            parameters = _group(_like(tensors, wanted), "best")
            return Bundle(start.network, parameters, _trained(document, start.n_members))
        return _state(_like(tensors, wanted), document)
    except (SafetensorError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise DamagedError(str(path), "does not hold the networks of this run") from error


def read_mark(path: Path) -> Mark:
    """What a checkpoint belongs to, once every byte of it has been verified."""
    with _opened(path) as file:
        return _mark(path, _verify(path, file))


def require_mark(path: Path, mark: Mark, wanted: Mark) -> None:
    """Refuse the checkpoint of another run, or of another stage of this one."""
    if mark != wanted:
        rule = "belongs to a run with other data, settings, device or version of torch"
        fix = f"Give it the same, choose another folder, or remove {path.parent.name}/."
        raise ForeignError(str(path), rule, fix=fix)


def is_sound(state: State) -> bool:
    """Whether the best networks so far are finite, so that there is something worth keeping.

    A network that has diverged since may have any parameters: the run goes on with the others.
    """
    return all(bool(value.isfinite().all()) for value in state.best.values())


def _write(
    path: Path, tensors: Mapping[str, Tensor], mark: Mark, about: Mapping[str, object]
) -> None:
    document = {"format": _FORMAT, "version": _VERSION, **asdict(mark), **about}
    blank = "0" * len(_sealed(hashlib.sha256()))
    # Cloned, since safetensors refuses views of one memory, which a fused optimiser may well hold.
    copies = {name: value.detach().cpu().clone().contiguous() for name, value in tensors.items()}
    raw = save_tensors(copies, {"checkpoint": canonical(document).decode(), "seal": blank})
    start = 8 + int.from_bytes(raw[:8], "little")
    header = raw[:start]
    assert header.count(blank.encode()) == 1
    signed = header.replace(blank.encode(), _sealed(hashlib.sha256(raw)).encode())

    def content(file: BinaryIO) -> None:
        file.write(signed)
        file.write(memoryview(raw)[start:])

    write_file(path, content)


def _verify(path: Path, file: BinaryIO) -> dict[str, object]:
    """Check every byte against the seal and return what the header says of the checkpoint."""
    damaged = DamagedError(str(path), "was changed after it was written")
    length = file.read(8)
    header = file.read(min(int.from_bytes(length, "little"), _HEADER_LIMIT))
    try:
        about = json.loads(header)["__metadata__"]
        stated, text = about["seal"].encode("ascii"), about["checkpoint"]
        digest = hashlib.sha256(length + header.replace(stated, b"0" * len(stated), 1))
        while block := file.read(_BLOCK):
            digest.update(block)
        expected = _sealed(digest).encode()
        kind, _, value = stated.partition(b":")
        if kind != expected.partition(b":")[0] and kind in (b"sha256", b"hmac-sha256") and value:
            raise FileError(str(path), f"was sealed with another kind of key; see {KEY_VARIABLE}")
        if not hmac.compare_digest(stated, expected):
            raise damaged
        document = json.loads(text)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise damaged from error
    if not isinstance(document, dict):
        raise damaged
    return document


def _sealed(digest: "hashlib._Hash") -> str:
    return str(seal({"sha256": digest.hexdigest()})["seal"])


def _mark(path: Path, document: Mapping[str, object]) -> Mark:
    if document.get("format") != _FORMAT or document.get("version") != _VERSION:
        raise FileError(str(path), f"must be {_FORMAT}, version {_VERSION}")
    return Mark(str(document.get("run")), str(document.get("stage")))


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    if path.is_symlink() or not path.is_file():  # a pipe would keep us waiting for ever
        raise FileError(str(path), "must be a plain file, not a link")
    with refusing(path, "cannot be read"), path.open("rb") as file:
        yield file


def _tensors(state: State) -> dict[str, Tensor]:
    """Every tensor of a state under the name it has in the file."""
    grouped = {
        f"{group}/{name}": value
        for group in _GROUPS
        for name, value in getattr(state, group).items()
    }
    return grouped | {name: getattr(state, name) for name in _SINGLES}


def _like(tensors: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors in the order, on the device and of the kind that training has them.

    In the same order, since sums over them are rounded in it; copied into torch's own memory, since
    matrix products may round by how their operands are aligned.
    """
    if tensors.keys() != wanted.keys():
        raise ValueError("tensors are missing or added")
    for name, value in tensors.items():
        if value.shape != wanted[name].shape or value.dtype != wanted[name].dtype:
            raise ValueError("a tensor has another shape or dtype")
        if name.startswith("best/") and not value.isfinite().all():
            raise ValueError("a tensor is not finite")
    return {name: torch.empty_like(value).copy_(tensors[name]) for name, value in wanted.items()}


def _trained(document: Mapping[str, object], n_networks: int) -> tuple[Trained, ...]:
    """How the training of each network of a finished stage ended."""
    ends = document["trained"]
    if not isinstance(ends, list) or len(ends) not in (0, n_networks):
        raise ValueError("there must be one end a network")
    trained = tuple(Trained(*own) for own in ends)
    for own in trained:
        if type(own.epochs) is not int or own.epochs < 0:
            raise ValueError("epochs must be whole and not negative")
    return trained


def _state(tensors: Mapping[str, Tensor], document: Mapping[str, object]) -> State:
    epoch = document["epoch"]
    if type(epoch) is not int or epoch < 0:
        raise ValueError("epochs must be whole and not negative")
    counts = torch.cat([tensors["waited"], tensors["epochs"]])
    if not (tensors["best_risk"] > -math.inf).all() or not (counts >= 0).all():
        raise ValueError("risks and counts must be in range")
    parameters, first, second, best = (_group(tensors, group) for group in _GROUPS)
    return State(
        parameters=parameters,
        first=first,
        second=second,
        best=best,
        best_risk=tensors["best_risk"],
        waited=tensors["waited"],
        epochs=tensors["epochs"],
        epoch=epoch,
    )


def _group(tensors: Mapping[str, Tensor], group: str) -> dict[str, Tensor]:
    start = f"{group}/"
    return {name[len(start) :]: v for name, v in tensors.items() if name.startswith(start)}
