"""What an encoder is: it says what a network has understood after each step, for many at once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field
from typing import Any, ClassVar, Protocol, Self

from torch import Tensor

from etips.errors import SettingError, require_whole

Parameters = dict[str, Tensor]
"""Parameters by name; every tensor has a leading axis, one entry a network."""

Shapes = Iterator[tuple[str, tuple[int, ...]]]
"""Names of parameters and the shape that each has in one network."""


class Encoder(Protocol):
    """Turns the steps of a stay into a state after each, never looking ahead."""

    name: ClassVar[str]
    """What settings and files call it."""

    def start(self, n_features: int, seeds: Sequence[int]) -> Parameters:
        """Fresh parameters, one network a seed; a network depends on its own seed only."""

    def states(self, parameters: Mapping[str, Tensor], inputs: Tensor) -> Tensor:
        """States after every step, shape (J, T, B, hidden), of inputs (T, B, n_features)."""

    def size(self, n_features: int) -> int:
        """Width of the state."""

    def shapes(self, n_features: int) -> Shapes:
        """Shape of every parameter, one after another and without making any.

        Whoever reads a file compares them with what it holds and stops at the first that differs,
        so that a forged size costs nothing.
        """

    def to_json(self) -> dict[str, object]:
        """Its name and its sizes."""


class SizedEncoder(Encoder, Protocol):
    """An encoder that a few whole numbers describe: a frozen dataclass of them."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @classmethod
    def from_json(cls, document: Mapping[str, object]) -> Self:
        """The encoder that `to_json` described; refused unless it holds just what it should."""


def read_sizes(document: Mapping[str, object], names: Sequence[str]) -> dict[str, int]:
    """The whole numbers that describe an encoder, these and no others, from its document."""
    if set(document) != {"name", *names}:
        raise SettingError("encoder", f"must have a name, {' and '.join(names)}, and no more")
    sizes: dict[str, int] = {}
    for name in names:
        value = document[name]
        require_whole(name, value)
        assert isinstance(value, int)
        sizes[name] = value
    return sizes
