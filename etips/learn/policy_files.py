"""Fitted policies on disk: weights as safetensors, the rest as sealed JSON, never an object."""

from collections.abc import Mapping
from pathlib import Path
from typing import cast, get_args

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from etips.data.files import read_artifact, write_artifact
from etips.data.scale import Scaler
from etips.data.schema import Schema
from etips.errors import EtipsError, FileError, SettingError
from etips.learn.foundation import as_encoder
from etips.learn.policy import FittedPolicy, Kind
from etips.models.bundle import Bundle
from etips.models.encoders import GRU, LSTM, Encoder
from etips.models.network import Network

MANIFEST = "policy.json"
_WEIGHTS = "weights.safetensors"
_FORMAT, _VERSION = "etips/policy", 1
_PARTS = ("propensity", "networks")


def save_policy(policy: FittedPolicy, folder: str | Path, *, overwrite: bool = False) -> None:
    """Write a policy folder; it appears whole or not at all. It holds no row of any patient."""
    bundles = {name: getattr(policy, name) for name in _PARTS}
    tensors = {
        f"{part}.{name}": value.detach().cpu().contiguous()
        for part, bundle in bundles.items()
        if bundle is not None
        for name, value in bundle.parameters.items()
    }
    manifest: dict[str, object] = {
        "format": _FORMAT,
        "version": _VERSION,
        "kind": policy.kind,
        "schema": policy.schema.to_json(),
        "scaler": None if policy.scaler is None else policy.scaler.to_json(),
        "temperature": policy.temperature,
        "support": policy.support,
        "constant": policy.constant,
        "earlier_actions": policy.earlier_actions,
        "shapes": {part: _shape(bundle) for part, bundle in bundles.items()},
    }
    files = {_WEIGHTS: save_tensors(tensors)}
    write_artifact(Path(folder), files, manifest, manifest_name=MANIFEST, overwrite=overwrite)


def load_policy(
    folder: str | Path, *, encoder: Encoder | nn.Module | type[nn.Module] | None = None
) -> FittedPolicy:
    """Read a policy folder; anything changed since it was written is refused by name.

    Args:
        folder: What `save` wrote.
        encoder: The torch module the policy was fitted with, if it was not one of ours: code is not
            stored with a policy.
    """
    folder = Path(folder)
    document = read_artifact(folder, manifest_name=MANIFEST)
    if document.get("format") != _FORMAT or document.get("version") != _VERSION:
        raise FileError(str(folder / MANIFEST), f"must be {_FORMAT}, version {_VERSION}")
    try:
        tensors = load_tensors((folder / _WEIGHTS).read_bytes())
        return _rebuild(document, tensors, encoder)
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, EtipsError):
            raise
        raise FileError(str(folder), "does not hold what its manifest says") from error


def _rebuild(
    document: Mapping[str, object],
    tensors: Mapping[str, Tensor],
    encoder: Encoder | nn.Module | type[nn.Module] | None,
) -> FittedPolicy:
    kind, scaler = document["kind"], document["scaler"]
    if kind not in get_args(Kind):
        raise ValueError("unknown kind of policy")
    shapes = document["shapes"]
    assert isinstance(shapes, dict)
    bundles = {part: _bundle(shapes[part], part, tensors, encoder) for part in _PARTS}
    constant = document["constant"]
    return FittedPolicy(
        kind=cast(Kind, kind),
        schema=Schema.from_json(document["schema"]),
        scaler=Scaler.from_json(scaler) if isinstance(scaler, dict) else None,
        temperature=float(cast(float, document["temperature"])),
        support=float(cast(float, document["support"])),
        constant=None if constant is None else int(cast(int, constant)),
        earlier_actions=bool(document["earlier_actions"]),
        **bundles,
    )


def _shape(bundle: Bundle | None) -> dict[str, object] | None:
    if bundle is None:
        return None
    network = bundle.network
    own = {GRU: "gru", LSTM: "lstm"}.get(type(network.encoder), "module")
    return {
        "encoder": own,
        "hidden": network.encoder.size(network.n_features),
        "n_features": network.n_features,
        "n_static": network.n_static,
        "n_outputs": network.n_outputs,
        "additive": network.additive,
        "n_members": bundle.n_members,
    }


def _bundle(
    shape: Mapping[str, object] | None,
    part: str,
    tensors: Mapping[str, Tensor],
    encoder: Encoder | nn.Module | type[nn.Module] | None,
) -> Bundle | None:
    """Rebuild networks, holding every tensor against the shape it must have."""
    if shape is None:
        return None
    numbers = {name: cast(int, shape[name]) for name in ("n_features", "n_static", "n_outputs")}
    if shape["encoder"] == "module":
        if encoder is None:
            raise SettingError("encoder", "is needed: this policy has a torch module of your own")
        reader = as_encoder(encoder)
    else:
        hidden = cast(int, shape["hidden"])
        reader = GRU(hidden) if shape["encoder"] == "gru" else LSTM(hidden)
    network = Network(reader, **numbers, additive=bool(shape["additive"]))
    expected = network.start([0])
    found = {name: tensors[f"{part}.{name}"] for name in expected}
    for name, value in found.items():
        wanted = (cast(int, shape["n_members"]), *expected[name].shape[1:])
        if value.shape != wanted or value.dtype != torch.float32:
            raise ValueError("a tensor has another shape")
        if not np.isfinite(value.numpy()).all():
            raise ValueError("a tensor is not finite")
    return Bundle(network, found)
