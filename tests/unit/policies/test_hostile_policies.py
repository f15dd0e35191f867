"""F6, F7: policies on disk that somebody changed: nothing in them is believed."""

import json
import subprocess
import sys
import time

import numpy as np
import pytest
from small_worlds import manifest_of, reseal, small, ward
from stacks import stacked

from etips.errors import FileError, SettingError
from etips.files.json_documents import canonical
from etips.learn import DoublyRobust
from etips.models.encoders.transformer import CausalTransformer
from etips.policies.policy_files import load_policy, save_policy

DATA = ward()


def refuse(folder, match="does not hold what its manifest says"):
    started = time.perf_counter()
    with pytest.raises((FileError, SettingError), match=match) as refusal:
        load_policy(folder)
    assert time.perf_counter() - started < 1
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "attack",
    [
        lambda hashes: hashes | {"names": hashes["names"][::-1].copy()},
        lambda hashes: hashes | {"names": hashes["names"][1:]},
        lambda hashes: hashes | {"names": hashes["names"].astype(np.float64)},
        lambda hashes: hashes | {"more": hashes["names"]},
        lambda hashes: {name: values[:0] for name, values in hashes.items()},
        lambda hashes: {"names": hashes["names"]},
        lambda hashes: b"",
    ],
)
def test_f7_hashes_that_are_none_are_refused(folder, attack):
    """F7."""
    reseal(folder, weights=attack, file="seen.safetensors")
    refuse(folder)


def test_f7_a_transformer_of_endless_layers_is_refused_at_once(tmp_path):
    """F7: its first layers fit, and no more than those the file holds are looked at."""
    learner = DoublyRobust(**small(encoder=CausalTransformer(8, 2, 1), support=0.1)).fit(DATA)
    learner.save(tmp_path / "policy")
    reseal(tmp_path / "policy", put("shapes", "networks", "encoder", "n_layers", value=10**15))
    refuse(tmp_path / "policy")


def with_value(value, place=0):
    def change(tensors):
        name = sorted(tensors)[place]
        changed = tensors[name].copy()
        changed.flat[0] = value
        return {**tensors, name: changed}

    return change


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_f7_weights_that_are_no_numbers_are_refused(folder, value):
    """F7: though every checksum fits."""
    reseal(folder, weights=with_value(value))
    refuse(folder)


def huge_header(tensors):
    return (2**40).to_bytes(8, "little") + b"{}"


def long_header(tensors):
    return (90 * 2**20).to_bytes(8, "little") + b'{"a"' + b" " * 100


def overlapping(tensors):
    entry = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}
    return framed({"propensity.head.bias": entry, "networks.head.bias": entry}, 16)


def beyond_the_end(tensors):
    return framed({"x": {"dtype": "F32", "shape": [400], "data_offsets": [0, 1600]}}, 16)


def overflowing_shape(tensors):
    entry = {"dtype": "F32", "shape": [2**62, 2**62], "data_offsets": [0, 16]}
    return framed({"x": entry}, 16)


def deep_header(tensors):
    header = b"[" * 100_000
    return len(header).to_bytes(8, "little") + header


def framed(header, size):
    raw = json.dumps(header).encode()
    return len(raw).to_bytes(8, "little") + raw + b"\0" * size


def empty_file(tensors):
    return b""


def one_missing(tensors):
    return dict(list(tensors.items())[1:])


def one_extra(tensors):
    return {**tensors, "networks.extra": np.zeros(3, np.float32)}


def other_precision(tensors):
    return {name: value.astype(np.float64) for name, value in tensors.items()}


def other_shape(tensors):
    return {name: value[..., :-1].copy() for name, value in tensors.items()}


def no_members(tensors):
    return {name: value[:0].copy() for name, value in tensors.items()}


@pytest.mark.parametrize(
    "attack",
    [
        huge_header,
        long_header,
        overlapping,
        beyond_the_end,
        overflowing_shape,
        deep_header,
        empty_file,
        one_missing,
        one_extra,
        other_precision,
        other_shape,
        no_members,
    ],
)
def test_f7_hostile_weights_are_refused_at_once(folder, attack):
    """F7."""
    reseal(folder, weights=attack)
    refuse(folder)


def put(*path, value):
    def change(document):
        at = document
        for name in path[:-1]:
            at = at[name]
        at[path[-1]] = value

    return change


HOSTILE = {
    "another format": put("format", value="etips/other"),
    "another version": put("version", value=1),
    "a kind nobody knows": put("kind", value="magic"),
    "a constant beside networks": put("constant", value=0),
    "a constant kind without its action": put("kind", value="constant"),
    "an imitation with networks": put("kind", value="imitation"),
    "uniform with networks": put("kind", value="uniform"),
    "an act nobody knows": put("acts", value="dances"),
    "no act": lambda d: d.pop("acts"),
    "hashes that are denied": put("seen", value=None),
    "hashes without salt": lambda d: d["seen"].pop("salt"),
    "a short salt": put("seen", "salt", value="00"),
    "a flag of a word": put("seen", "numbered", value="yes"),
    "no scaler": put("scaler", value=None),
    "a scaler that is a word": put("scaler", value="none"),
    "a scaler with a zero": lambda d: d["scaler"]["scale"].update(hr=0.0),
    "a scaler for other features": lambda d: [d["scaler"][k].pop("hr") for k in ("mean", "scale")],
    "seed negative": put("seed", value=-1),
    "seed too large": put("seed", value=2**32),
    "temperature zero": put("temperature", value=0.0),
    "temperature a word": put("temperature", value="warm"),
    "temperature beyond float": put("temperature", value=10**400),
    "support one": put("support", value=1.0),
    "support negative": put("support", value=-0.1),
    "earlier actions a word": put("earlier_actions", value="false"),
    "earlier actions true": put("earlier_actions", value=True),
    "no shapes": lambda d: d.pop("shapes"),
    "shapes incomplete": lambda d: d["shapes"].pop("networks"),
    "shapes with one more": put("shapes", "extra", value=None),
    "no propensity": put("shapes", "propensity", value=None),
    "no networks": put("shapes", "networks", value=None),
    "an encoder nobody knows": put("shapes", "networks", "encoder", "name", value="os.system"),
    "an encoder whose name is a list": put("shapes", "networks", "encoder", "name", value=[]),
    "an encoder of another kind": put("shapes", "networks", "encoder", "name", value="lstm"),
    "an encoder with one size more": put("shapes", "networks", "encoder", "more", value=1),
    "a transformer without end": put(
        "shapes",
        "networks",
        "encoder",
        value={"name": "transformer", "hidden": 2**40, "n_heads": 1, "n_layers": 10**12},
    ),
    "a module of somebody's": put("shapes", "networks", "encoder", value={"name": "module"}),
    "hidden too large": put("shapes", "networks", "encoder", "hidden", value=10**6),
    "hidden zero": put("shapes", "networks", "encoder", "hidden", value=0),
    "hidden a half": put("shapes", "networks", "encoder", "hidden", value=6.5),
    "embed without weights": put("shapes", "networks", "encoder", "embed", value=5),
    "embed endless": put("shapes", "networks", "encoder", "embed", value=10**30),
    "features too many": put("shapes", "networks", "n_features", value=10**9),
    "static too many": put("shapes", "networks", "n_static", value=10**9),
    "outputs too many": put("shapes", "networks", "n_outputs", value=10**9),
    "members too many": put("shapes", "networks", "n_members", value=10**9),
    "additive a word": put("shapes", "networks", "additive", value="no"),
    "additive where it is not": put("shapes", "networks", "additive", value=True),
    "more actions than outputs": put("schema", "n_actions", value=4),
    "actions endless": put("schema", "n_actions", value=10**12),
    "a feature more": lambda d: d["schema"]["sequence"].append("more"),
    "a feature twice": lambda d: d["schema"]["sequence"].append("hr"),
    "files with a path": put("files", "../../etc/passwd", value={"bytes": 1, "sha256": "0"}),
}


@pytest.mark.parametrize("attack", HOSTILE)
def test_f7_a_hostile_manifest_is_refused_at_once(folder, attack):
    """F7: sealed as it should be, and still not believed."""
    reseal(folder, HOSTILE[attack])
    refuse(folder, r"\.$")


def test_f7_a_manifest_that_lists_no_weights_is_refused(folder):
    """F7: nothing to read is not nothing to check."""
    for file in folder.glob("*.safetensors"):
        file.unlink()
    reseal(folder, put("files", value={}))
    refuse(folder)


def test_f7_a_forged_size_costs_no_memory(folder):
    """F7: under 200 MB beyond what torch itself needs, and in less than a second."""
    reseal(folder, put("shapes", "networks", "encoder", "hidden", value=20_000))
    script = f"""
import resource, time
from etips.policies.policy_files import load_policy
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
started = time.perf_counter()
try:
    load_policy({str(folder)!r})
except OSError as refusal:
    took = time.perf_counter() - started
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print("refused", took < 1, grown < 200 * 1024)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["refused", "True", "True"]


def test_an_honest_change_sealed_anew_still_loads(folder):
    """Else the attacks above would prove nothing."""
    reseal(folder, put("support", value=0.2), weights=lambda tensors: tensors)
    assert load_policy(folder).support == 0.2
    assert canonical(manifest_of(folder)) == (folder / "policy.json").read_bytes()


def shape(document, member="networks"):
    return document["shapes"][member]


def part(document, number, member="networks"):
    return shape(document, member)["members"][number]


HOSTILE_STACKS = {
    "a link that does not mix losses": lambda d: part(d, 0).update(link="softmax"),
    "no link": lambda d: part(d, 0).pop("link"),
    "a member more": lambda d: shape(d)["members"].append(part(d, 0)),
    "members that are none": lambda d: shape(d).update(members=[]),
    "a stack in a stack": lambda d: part(d, 0).update(member=shape(d, "propensity")),
    "losses for propensities": lambda d: shape(d, "propensity").update(stack="losses"),
    "propensities for losses": lambda d: shape(d).update(stack="propensities"),
    "a mix of nothing": lambda d: shape(d).update(stack=["losses"]),
    "a temperature of zero": lambda d: shape(d, "propensity").update(temperature=0),
    "a temperature without end": lambda d: shape(d, "propensity").update(temperature=10**400),
    "a key more": lambda d: shape(d).update(more=1),
    "trees that read other rows": lambda d: part(d, 0)["member"].update(ensemble="last"),
    "trees of another number": lambda d: part(d, 0)["member"].update(n_trees=3),
    "rows of another width": lambda d: part(d, 1)["member"].update(rows="history"),
    "a kind that takes no stack": lambda d: d.update(kind="softmax", lean=0.0),
    "a lean below zero": lambda d: d.update(lean=-0.1),
    "no lean": lambda d: d.pop("lean"),
}


def put_in(name, place, value):
    def change(tensors):
        changed = tensors[name].copy()
        changed[place] = value
        return {**tensors, name: changed}

    return change


STACK_WEIGHTS = {
    "weights that sum to more": put_in("networks.weight", 0, 0.7),
    "a weight below zero": put_in("networks.weight", slice(None), [1.5, -0.7, 0.2]),
    "a weight that is no number": put_in("propensity.weight", 0, np.nan),
    "a weight less": lambda t: t | {"networks.weight": t["networks.weight"][:2]},
    "weights in float32": lambda t: t | {"networks.weight": t["networks.weight"].astype("f4")},
    "no weights": lambda t: {n: v for n, v in t.items() if n != "networks.weight"},
    "a loop in a tree": put_in("networks.0.left", 0, 0),
    "a child of another tree": put_in("networks.0.right", 0, 10_000),
    "a value without end": put_in("propensity.0.value", (0, 0), np.inf),
    "a column that is none": put_in("propensity.0.column", 0, 10_000),
    "a network that is no number": put_in("networks.2.head.bias", 0, np.nan),
    "a tensor more": lambda t: t | {"networks.3.base": np.zeros(3)},
    "a model of rows cut short": lambda t: t | {"networks.1.mean": t["networks.1.mean"][1:]},
}


@pytest.fixture(scope="module")
def stack():
    return stacked(DATA).having_seen(DATA)


@pytest.fixture
def stack_folder(stack, tmp_path):
    save_policy(stack, tmp_path / "policy")
    return tmp_path / "policy"


@pytest.mark.parametrize("attack", HOSTILE_STACKS)
def test_f7_a_hostile_manifest_of_a_stack_is_refused(stack_folder, attack):
    """F7."""
    reseal(stack_folder, HOSTILE_STACKS[attack])
    refuse(stack_folder, r"\.$")


@pytest.mark.parametrize("attack", STACK_WEIGHTS)
def test_f7_hostile_weights_of_a_stack_are_refused(stack_folder, attack):
    """F7."""
    reseal(stack_folder, weights=STACK_WEIGHTS[attack])
    refuse(stack_folder, r"\.$")


def test_an_honest_change_of_a_stack_still_loads(stack_folder):
    honest = put_in("networks.weight", slice(None), [0.2, 0.3, 0.5])
    reseal(stack_folder, lambda d: d.update(lean=0.5), weights=honest)
    assert manifest_of(stack_folder)["version"] == 4
    assert [own.weight for own in load_policy(stack_folder).networks.members] == [0.2, 0.3, 0.5]
