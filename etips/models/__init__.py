"""Torch modules: causal encoders, the policy network, many of them as one bundle."""

from etips.models.bundle import Bundle
from etips.models.encoders.recurrent_encoders import GRU, LSTM, Encoder, ModuleEncoder
from etips.models.encoders.transformer import CausalTransformer
from etips.models.network import Network

__all__ = ["GRU", "LSTM", "Bundle", "CausalTransformer", "Encoder", "ModuleEncoder", "Network"]
