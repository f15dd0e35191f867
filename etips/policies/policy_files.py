"""Fitted policies on disk: weights and trees as safetensors, the rest as sealed JSON."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, cast, get_args

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from etips.data.scale import Scaler
from etips.data.schema import Schema
from etips.errors import MOST_SEEDS, EtipsError, FileError, SettingError
from etips.files.artifacts import read_artifact, write_artifact
from etips.models.bundle import Bundle
from etips.models.encoders.encoder import Encoder
from etips.models.encoders.module import ModuleEncoder
from etips.models.encoders.registry import (
    ENCODERS,
    AnyEncoder,
    as_encoder,
    encoder_from_json,
)
from etips.models.network import Network
from etips.models.row_model import Reads, RowModel, row_width
from etips.models.stack import Link, Mixes, OwnModel, Part, Stack
from etips.models.tree_ensemble import TreeEnsemble
from etips.policies.asking import Member, arrays_of
from etips.policies.deployed import Acts
from etips.policies.learned_from import Origin, SeenStays
from etips.policies.policy import FittedPolicy, Kind
from etips.policies.policy_manifest import MANIFEST as MANIFEST
from etips.policies.rule_tree import RuleTree

_WEIGHTS = "weights.safetensors"
_FORMAT, _VERSION = "etips/policy", 4
_SEEN = "seen.safetensors"
_PARTS = ("propensity", "networks")
_LARGEST = 1e300  # of a number in a manifest; JSON's whole numbers have no end


def save_policy(policy: FittedPolicy, folder: str | Path, *, overwrite: bool = False) -> None:
    """Write a policy folder; it appears whole or not at all.

    It holds no row of any patient, but hashes of those it learned from; see `SeenStays`.
    """
    members = {name: getattr(policy, name) for name in _PARTS}
    tensors = {
        f"{part}.{name}": torch.from_numpy(value)
        for part, own in members.items()
        if own is not None
        for name, value in arrays_of(own).items()
    }
    manifest: dict[str, object] = {
        "format": _FORMAT,
        "version": _VERSION,
        "kind": policy.kind,
        "schema": policy.schema.to_json(),
        "scaler": None if policy.scaler is None else policy.scaler.to_json(),
        "temperature": policy.temperature,
        "support": policy.support,
        "lean": policy.lean,
        "constant": policy.constant,
        "earlier_actions": policy.earlier_actions,
        "seed": policy.seed,
        "acts": policy.acts,
        "shapes": {part: _shape(own) for part, own in members.items()},
        "seen": None if policy.seen is None else policy.seen.to_json(),
        "origin": None if policy.origin is None else policy.origin.to_json(),
    }
    if policy.tree is not None:
        manifest["tree"] = policy.tree.to_json()
    files = {_WEIGHTS: save_tensors(tensors)}
    if policy.seen is not None:
        files[_SEEN] = save_arrays(policy.seen.arrays())
    write_artifact(Path(folder), files, manifest, manifest_name=MANIFEST, overwrite=overwrite)


def load_policy(folder: str | Path, *, encoder: AnyEncoder | None = None) -> FittedPolicy:
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
        policy = _rebuild(document, tensors, encoder)
        seen = document["seen"]
        _require((seen is not None) == (folder / _SEEN).exists())
        if seen is not None:
            hashes = load_arrays((folder / _SEEN).read_bytes())
            policy = replace(policy, seen=SeenStays.from_json(seen, hashes))
    except EtipsError:
        raise
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise FileError(str(folder), "does not hold what its manifest says") from error
    return policy


def _rebuild(
    document: Mapping[str, object],
    tensors: Mapping[str, Tensor],
    encoder: AnyEncoder | None,
) -> FittedPolicy:
    """The policy without the hashes of whom it learned from."""
    schema, scaler = Schema.from_json(document["schema"]), document["scaler"]
    shapes, earlier_actions = document["shapes"], document["earlier_actions"]
    constant, origin = document["constant"], document["origin"]
    _require(isinstance(shapes, dict) and set(shapes) == set(_PARTS))
    _require(isinstance(earlier_actions, bool))
    _require(constant is None or _whole(constant, schema.n_actions) >= 0)
    build = _Builder(schema, bool(earlier_actions), encoder)
    members = {
        part: None if shape is None else build.member(shape, _part(tensors, part))
        for part, shape in cast(dict[str, Mapping[str, object] | None], shapes).items()
    }
    _require(set(tensors) == {f"{p}.{n}" for p, m in members.items() if m for n in arrays_of(m)})
    tree = None
    if "tree" in document:
        width = len(schema.sequence) + len(schema.static)
        tree = RuleTree.from_json(document["tree"], n_columns=width, n_actions=schema.n_actions)
    policy = FittedPolicy(
        kind=cast(Kind, document["kind"]),
        schema=schema,
        scaler=Scaler.from_json(scaler) if isinstance(scaler, dict) else None,
        temperature=_number(document["temperature"]),
        support=_number(document["support"]),
        lean=_number(document["lean"]),
        constant=cast(int | None, constant),
        earlier_actions=bool(earlier_actions),
        seed=_whole(document["seed"], MOST_SEEDS),
        acts=cast(Acts, document["acts"]),
        propensity=members["propensity"],
        networks=members["networks"],
        tree=tree,
        origin=None if origin is None else Origin.from_json(origin, schema.n_actions),
    )
    _require_whole_policy(policy)
    return policy


def _require_whole_policy(policy: FittedPolicy) -> None:
    """Refuse a policy that could be built but could not answer."""
    kind, learned = policy.kind, policy.propensity is not None
    _require(kind in get_args(Kind) and policy.acts in get_args(Acts))
    _require(policy.temperature > 0 and 0 <= policy.support < 1)
    _require((policy.scaler is not None) == learned)
    names = {*policy.schema.sequence, *policy.schema.static}
    _require(policy.scaler is None or names == set(policy.scaler.mean_))
    _require((policy.constant is not None) == (kind == "constant"))
    _require((policy.tree is not None) == (kind == "tree"))
    own = kind in ("softmax", "least loss", "least amount")
    _require((policy.networks is not None) == own)
    _require(learned or kind in ("constant", "uniform", "tree"))
    _require(not (learned and kind == "uniform"))
    _require(policy.lean >= 0 and (policy.lean == 0 or kind in ("least loss", "least amount")))
    if isinstance(policy.propensity, Stack):
        _require(policy.propensity.mixes == "propensities")
    if isinstance(policy.networks, Stack):
        _require(policy.networks.mixes == "losses" and kind == "least amount")


def _shape(member: Member | None) -> dict[str, object] | None:
    if member is None:
        return None
    if isinstance(member, Stack):
        parts = [{"link": part.link, "member": _shape(part.member)} for part in member.members]
        return {"stack": member.mixes, "temperature": member.temperature, "members": parts}
    if isinstance(member, OwnModel):
        member.refuse()
    if isinstance(member, RowModel | TreeEnsemble):
        return member.shape
    network = member.network
    return {
        "encoder": network.encoder.to_json(),
        "n_features": network.n_features,
        "n_static": network.n_static,
        "n_outputs": network.n_outputs,
        "additive": network.additive,
        "n_members": member.n_members,
    }


class _Builder(NamedTuple):
    """Rebuilds members, holding all that a file says of them against what the policy reads.

    Args:
        schema: Of the policy.
        earlier_actions: Whether its networks read the action before.
        encoder: The user's own, where there is one.
    """

    schema: Schema
    earlier_actions: bool
    encoder: AnyEncoder | None

    def member(self, shape: Mapping[str, object], tensors: Mapping[str, Tensor]) -> Member:
        """Networks, trees, a model of rows or a stack, whichever a manifest describes."""
        if "stack" in shape:
            return self._stack(shape, tensors)
        return self._single(shape, tensors)

    def _stack(self, shape: Mapping[str, object], tensors: Mapping[str, Tensor]) -> Stack:
        parts, weights = shape["members"], tensors["weight"].numpy()
        _require(isinstance(parts, list) and set(shape) == {"stack", "temperature", "members"})
        parts = cast(list[Mapping[str, Mapping[str, object]]], parts)
        _require(weights.dtype == np.float64 and weights.shape == (len(parts),))
        _require(all(set(part) == {"link", "member"} for part in parts))
        members = tuple(
            Part(
                self._single(part["member"], _part(tensors, str(place))),
                weight=float(weights[place]),
                link=cast(Link, part["link"]),
            )
            for place, part in enumerate(parts)
        )
        return Stack(members, cast(Mixes, shape["stack"]), _number(shape["temperature"]))

    def _single(
        self, shape: Mapping[str, object], tensors: Mapping[str, Tensor]
    ) -> Bundle | RowModel | TreeEnsemble:
        arrays = {name: value.numpy() for name, value in tensors.items()}
        n_outputs = self.schema.n_actions
        if "ensemble" in shape:
            reads = shape["ensemble"]
            _require(reads in get_args(Reads))
            width = row_width(self.schema, cast(Reads, reads))
            trees = TreeEnsemble.from_arrays(
                arrays, reads=reads, n_columns=width, n_outputs=n_outputs
            )
            _require(shape == trees.shape)
            return trees
        if "rows" in shape:
            reads, form = shape["rows"], shape["form"]
            rows = RowModel.from_arrays(arrays, reads=reads, form=form, n_outputs=n_outputs)
            _require(shape == rows.shape)
            _require(rows.mean.size == row_width(self.schema, rows.reads))
            return rows
        return self._bundle(shape, tensors)

    def _bundle(self, shape: Mapping[str, object], tensors: Mapping[str, Tensor]) -> Bundle:
        """Rebuild networks, holding every tensor against the shape it must have.

        Nothing is made that is larger than what the file holds: a manifest can ask for anything.
        """
        n_actions = self.schema.n_actions
        n_features = len(self.schema.sequence) + (n_actions if self.earlier_actions else 0)
        numbers = (n_features, len(self.schema.static), n_actions)
        names = ("n_features", "n_static", "n_outputs")
        _require(tuple(shape[name] for name in names) == numbers)
        _require(isinstance(shape["additive"], bool))
        n_members = _whole(shape["n_members"])
        _require(n_members >= 1)
        reader = _encoder(shape["encoder"], self.encoder)
        network = Network(reader, *numbers, additive=bool(shape["additive"]))
        parameters: dict[str, Tensor] = {}
        for name, wanted in network.shapes():  # ends at the first that the file does not hold
            value = parameters[name] = tensors[name]
            _require(value.shape == (n_members, *wanted))
            _require(value.dtype == torch.float32 and bool(value.isfinite().all()))
        return Bundle(network, parameters)


def _encoder(document: object, own: AnyEncoder | None) -> Encoder:
    """The encoder that a manifest describes; the user's own where it is a module."""
    if isinstance(document, dict) and document.get("name") == ModuleEncoder.name:
        if own is None:
            raise SettingError("encoder", "is needed: this policy has a torch module of your own")
        return as_encoder(own)
    if isinstance(document, dict) and document.get("name") not in ENCODERS:
        rule = "must be one of this installation: " + ", ".join(ENCODERS)
        raise SettingError("encoder of the policy", rule)
    try:
        return encoder_from_json(document)
    except SettingError as error:
        raise ValueError("no encoder is like that") from error


def _part(tensors: Mapping[str, Tensor], part: str) -> dict[str, Tensor]:
    start = f"{part}."
    return {name[len(start) :]: v for name, v in tensors.items() if name.startswith(start)}


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError("the parts of the policy do not fit together")


def _whole(value: object, below: int | None = None) -> int:
    _require(isinstance(value, int) and not isinstance(value, bool))
    whole = cast(int, value)
    _require(whole >= 0 and (below is None or whole < below))
    return whole


def _number(value: object) -> float:
    _require(isinstance(value, int | float) and not isinstance(value, bool))
    _require(abs(cast(float, value)) < _LARGEST)
    return float(cast(float, value))
