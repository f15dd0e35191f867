"""The encoders that settings and files know by name: one line each."""

from collections.abc import Mapping
from dataclasses import fields

from torch import nn

from etips.errors import SettingError
from etips.models.encoders.encoder import Encoder, SizedEncoder
from etips.models.encoders.gru import GRU
from etips.models.encoders.last_step import LastStep
from etips.models.encoders.lstm import LSTM
from etips.models.encoders.module import ModuleEncoder
from etips.models.encoders.retain import RETAIN
from etips.models.encoders.transformer import CausalTransformer

ENCODERS: Mapping[str, type[SizedEncoder]] = {
    "gru": GRU,
    "lstm": LSTM,
    "transformer": CausalTransformer,
    "last": LastStep,
    "retain": RETAIN,
}
"""By name."""

AnyEncoder = Encoder | nn.Module | type[nn.Module] | str
"""What a learner may be given as its encoder; a text is the name of one of ours."""


def as_encoder(encoder: AnyEncoder) -> Encoder:
    """Ours as they are, or by name; anything else is a torch module to be wrapped."""
    if isinstance(encoder, str) and encoder in ENCODERS:
        return ENCODERS[encoder]()
    if isinstance(encoder, ModuleEncoder):
        return encoder
    for kind in ENCODERS.values():
        if isinstance(encoder, kind):
            return encoder
    theirs = not isinstance(encoder, type) or issubclass(encoder, nn.Module)
    if theirs and callable(encoder):
        return ModuleEncoder(encoder)
    ours = ", ".join(f"{kind.__name__}(...)" for kind in ENCODERS.values())
    raise SettingError("encoder", f"must be {ours}, a name of them or a causal torch module")


def sizes_of(name: str) -> tuple[str, ...]:
    """Names of the sizes that an encoder has."""
    return tuple(entry.name for entry in fields(ENCODERS[name]))


def all_sizes() -> tuple[str, ...]:
    """Names of the sizes that any encoder has."""
    return tuple(dict.fromkeys(size for name in ENCODERS for size in sizes_of(name)))


def encoders_with(*sizes: str) -> tuple[str, ...]:
    """Names of the encoders that have all of these sizes."""
    return tuple(name for name in ENCODERS if set(sizes) <= set(sizes_of(name)))


def make_encoder(name: str, sizes: Mapping[str, object], *, usual: SizedEncoder) -> SizedEncoder:
    """An encoder by name.

    Args:
        name: One of `ENCODERS`.
        sizes: Those that are given; one that the encoder does not have is refused.
        usual: Has the sizes that are not given; the encoder's own default where it has none.
    """
    own = {entry.name: entry.default for entry in fields(ENCODERS[name])}
    for size in sizes:
        if size not in own:
            raise SettingError(size, f"is not a setting of the encoder {name}")
    default = {size: value for size, value in usual.to_json().items() if size in own}
    return ENCODERS[name].from_json({"name": name, **own, **default, **sizes})


def encoder_from_json(document: object) -> SizedEncoder:
    """The encoder that `to_json` described; it is small whatever the document asks for."""
    name = document.get("name") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(name, str) or name not in ENCODERS:
        raise SettingError("encoder", f"must be described, as one of {', '.join(ENCODERS)}")
    return ENCODERS[name].from_json(document)
