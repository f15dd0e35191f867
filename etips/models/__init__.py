"""Torch modules: causal encoders, the policy network, many of them as one bundle."""

from etips.models.bundle import Bundle
from etips.models.encoders import GRU, LSTM, Encoder, ModuleEncoder
from etips.models.network import Network
from etips.models.transformer import CausalTransformer

__all__ = ["GRU", "LSTM", "Bundle", "CausalTransformer", "Encoder", "ModuleEncoder", "Network"]
