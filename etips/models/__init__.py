"""Torch modules: causal encoders, the policy network, many of them as one bundle."""

from etips.models.bundle import Bundle
from etips.models.encoders.encoder import Encoder
from etips.models.encoders.gru import GRU
from etips.models.encoders.lstm import LSTM
from etips.models.encoders.module import ModuleEncoder
from etips.models.encoders.transformer import CausalTransformer
from etips.models.network import Network

__all__ = ["GRU", "LSTM", "Bundle", "CausalTransformer", "Encoder", "ModuleEncoder", "Network"]
