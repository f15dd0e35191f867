"""Torch modules: causal encoders, the policy network, many of them as one bundle."""

from etips.models.bundle import Bundle as Bundle
from etips.models.encoders.encoder import Encoder as Encoder
from etips.models.encoders.gru import GRU as GRU
from etips.models.encoders.lstm import LSTM as LSTM
from etips.models.encoders.module import ModuleEncoder as ModuleEncoder
from etips.models.encoders.registry import ENCODERS
from etips.models.encoders.transformer import CausalTransformer as CausalTransformer
from etips.models.network import Network as Network


def __getattr__(name: str) -> object:
    """Any other encoder of the registry."""
    for encoder in ENCODERS.values():
        if encoder.__name__ == name:
            return encoder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
