"""A policy run by another program answers as ours does."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_worlds import small, ward
from stacks import boosted, linear, stacked
from stacks import forest as deep

from etips.data.trajectories import Trajectories
from etips.errors import FileError, SettingError
from etips.explanation.onnx_export import export_onnx, to_onnx
from etips.learn import EtIPS
from etips.models.bundle import Bundle
from etips.models.encoders.gru import GRU
from etips.models.encoders.last_step import LastStep
from etips.models.encoders.lstm import LSTM
from etips.models.encoders.module import ModuleEncoder
from etips.models.encoders.transformer import CausalTransformer
from etips.models.network import Network
from etips.models.row_model import RowModel, rows_of, spread_of
from etips.models.tree_ensemble import TreeEnsemble
from etips.policies.policy import FittedPolicy
from etips.policies.rule_tree import NONE, RuleTree

onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")


class OwnModule(torch.nn.Module):
    """A module of somebody's own."""

    def __init__(self, n_features):
        super().__init__()
        self.layer = torch.nn.Linear(n_features, 4)

    def forward(self, batch):
        return self.layer(batch)


def padded(log):
    """Stays as an array that is padded at the end with nonsense."""
    lengths = np.diff(log.offsets)
    steps = np.full((log.n_stays, lengths.max(), log.sequence.shape[1]), 7.0, np.float32)
    for number, length in enumerate(lengths):
        steps[number, :length] = log.sequence[log.offsets[number] : log.offsets[number + 1]]
    return steps


def asked(policy, log, **more):
    """What the exported policy says of the decisions of a log."""
    session = onnxruntime.InferenceSession(to_onnx(policy), providers=["CPUExecutionProvider"])
    inputs = {"steps": padded(log), "static": log.static, **more}
    wanted = {own.name for own in session.get_inputs()}
    said, silent = session.run(None, {k: v for k, v in inputs.items() if k in wanted})
    stay, step = log.decisions()
    return said[stay, step - log.lag], silent[stay, step - log.lag]


def same(policy, log, **more):
    said, silent = asked(policy, log, **more)
    wanted = policy.answer(log)
    np.testing.assert_allclose(said, wanted.probabilities, atol=2e-5)
    assert (silent == wanted.abstained).all()
    return said


def gaps(log, seed=0):
    """The same log with missing values, which its schema allows."""
    rng = np.random.default_rng(seed)
    sequence = np.array(log.sequence)
    sequence[rng.random(sequence.shape) < 0.2] = np.nan
    schema = replace(log.schema, indicators=log.schema.sequence)
    return replace(log, sequence=sequence, schema=schema)


def drawn(encoder, log, seed=0, n_members=2):
    """Networks with random weights."""
    network = Network(encoder, log.sequence.shape[1], log.static.shape[1], log.n_actions)
    bundle = Bundle.start(network, list(range(seed, seed + n_members)))
    bias = torch.randn(n_members, log.n_actions, generator=torch.Generator().manual_seed(seed))
    return replace(bundle, parameters={**bundle.parameters, "head.bias": bias})


@pytest.mark.parametrize(
    "encoder",
    [GRU(5), GRU(5, embed=4), LSTM(5), LSTM(4, embed=3), LastStep(6), CausalTransformer(8, 2, 2)],
    ids=str,
)
@pytest.mark.parametrize("kind", ["softmax", "least loss", "least amount", "imitation"])
def test_networks_of_any_kind_answer_alike(policy, log, encoder, kind):
    own = replace(
        policy,
        kind=kind,
        networks=None if kind == "imitation" else drawn(encoder, log, 5),
        propensity=drawn(encoder, log),
        support=0.25,
        temperature=1.3,
    )
    said = same(own, log)
    assert len(np.unique(said[:, 0])) > 1


def test_missing_values_logarithms_and_columns_that_are_left_are_scaled_alike():
    log = ward(60)
    sequence = np.abs(np.array(log.sequence))
    sequence[:, 3] = sequence[:, 3] > 1
    schema = replace(log.schema, logarithms=("lactate",))
    holey = gaps(replace(log, sequence=sequence, schema=schema))
    own = EtIPS(**small(translations=(0.3, 0.7))).fit(holey).policy_
    assert "lactate" in own.scaler.log
    own = replace(own, kind="softmax", constant=None, networks=drawn(GRU(5), holey, 5))
    same(own, holey)


def test_a_policy_that_reads_earlier_actions_gets_them(log):
    network = Network(GRU(4), 4 + 3, 2, 3)
    bundle = Bundle.start(network, [0, 1])
    fitted = EtIPS(**small(translations=(0.3, 0.7))).fit(log).policy_
    own = replace(
        fitted, kind="softmax", constant=None, networks=bundle, propensity=bundle,
        earlier_actions=True, support=0.0,
    )  # fmt: skip
    lengths = np.diff(log.offsets)
    previous = np.full((log.n_stays, lengths.max()), -1)
    for number, length in enumerate(lengths):
        previous[number, :length] = log.action[log.offsets[number] : log.offsets[number + 1]]
    same(own, log, previous_action=previous)


@pytest.mark.parametrize("form", ["linear", "squares", "waves", "nearest"])
@pytest.mark.parametrize("reads", ["last", "summary", "history"])
def test_models_of_rows_answer_alike(policy, log, form, reads):
    holey = gaps(log)
    rows = rows_of(holey, reads)
    mean, scale = spread_of(rows)
    rng, d, m = np.random.default_rng(0), rows.shape[1], 5
    width, basis = (d, 0) if form == "linear" else (m, m)
    model = RowModel(
        reads, form, mean, scale, rng.normal(size=(basis, d)), rng.normal(size=basis),
        rng.normal(size=(2, width, 3)), rng.normal(size=(2, 3)),
    )  # fmt: skip
    for kind in ("softmax", "least amount"):
        own = replace(
            policy, schema=holey.schema, kind=kind, networks=model,
            propensity=linear(holey, reads), support=0.05,
        )  # fmt: skip
        said = same(own, holey)
        assert len(np.unique(said, axis=0)) > 1


@pytest.mark.parametrize("lag", [0, 1])
def test_a_summary_of_marked_gaps_and_logarithms_is_made_alike(lag):
    log = ward(80, lag=lag)
    sequence, marks = np.abs(np.array(log.sequence)), []
    for place, name in enumerate(log.schema.sequence[:2]):
        marks.append((f"{name}_missing", np.random.default_rng(place).random(log.n_steps) < 0.3))
    schema = replace(
        log.schema,
        sequence=(*log.schema.sequence, *(name for name, _ in marks)),
        indicators=log.schema.sequence[:2],
        logarithms=("lactate", "hr"),
    )
    columns = [sequence, *(own[:, None].astype(np.float32) for _, own in marks)]
    marked = replace(log, sequence=np.concatenate(columns, axis=1), schema=schema)
    for lean in (0.0, 0.3):
        said = same(stacked(marked, lean=lean), marked)
        assert len(np.unique(said[:, 0])) > 1


@pytest.mark.parametrize("kind", ["least amount", "least loss", "softmax", "imitation"])
def test_deep_trees_and_a_lean_answer_alike_with_gaps_too(log, kind):
    holey = gaps(log)
    trees = None if kind == "imitation" else boosted(holey)
    lean = 0.1 if kind.startswith("least") else 0.0
    for support in (0.0, 0.3):
        own = stacked(
            holey, kind=kind, networks=trees, propensity=deep(holey), lean=lean, support=support
        )
        same(own, holey)


def test_a_stack_of_stays_of_one_step_answers_alike(log):
    """Where the data had no past the summary is that of the step itself."""
    rows = log.offsets[:-1]
    single = Trajectories(
        sequence=log.sequence[rows], offsets=np.arange(log.n_stays + 1), static=log.static,
        schema=replace(log.schema, lag=0), action=log.action[rows], loss=log.loss[rows],
    )  # fmt: skip
    single = single.subset(np.flatnonzero((single.action >= 0) & np.isfinite(single.loss)))
    same(stacked(single), single)


def test_an_infinite_cut_and_trees_of_one_leaf_answer_alike(log):
    holey = gaps(log)
    d = holey.sequence.shape[1] + holey.static.shape[1]
    trees = TreeEnsemble.from_arrays(
        {
            "base": np.zeros(3),
            "start": np.array([0, 3, 6, 7]),
            "column": np.array([0, -1, -1, 1, -1, -1, -1], np.int32),
            "cut": np.array([np.inf, 0, 0, -np.inf, 0, 0, 0], np.float32),
            "left": np.array([1, 0, 0, 1, 0, 0, 0], np.int32),
            "right": np.array([2, 0, 0, 2, 0, 0, 0], np.int32),
            "missing_left": np.array([0, 0, 0, 1, 0, 0, 0], np.uint8),
            "value": np.array([[9], [1], [-1], [9], [2], [-2], [0.5]], np.float32),
            "output": np.array([0, 1, 2]),
        },
        reads="last", n_columns=d, n_outputs=3,
    )  # fmt: skip
    own = stacked(holey, kind="imitation", propensity=trees, networks=None, lean=0.0)
    assert len(np.unique(same(own, holey)[:, 0])) == 4


def test_rules_constants_and_chance_answer_alike(policy, log):
    questions = RuleTree(
        np.array([0, NONE, 4, NONE, NONE, NONE, NONE]),
        np.array([0.1, 0, -0.3, 0, 0, 0, 0]),
        np.array([True, False, False, False, False, False, False]),
        np.array([NONE, 1, NONE, NONE, NONE, 2, 0]),
    )
    rules = FittedPolicy("tree", log.schema, tree=questions)
    assert set(same(rules, log).argmax(axis=1)) == {0, 1, 2}
    same(FittedPolicy("constant", log.schema, constant=2), log)
    same(FittedPolicy("uniform", log.schema), log)
    kept = {"networks": None, "support": 0.35, "propensity": drawn(GRU(4), log)}
    same(replace(policy, kind="constant", constant=1, **kept), log)
    same(replace(policy, kind="tree", tree=questions, **kept), log)


def test_a_file_says_what_goes_in(policy, tmp_path):
    place = export_onnx(policy, tmp_path / "policy.onnx")
    session = onnxruntime.InferenceSession(str(place), providers=["CPUExecutionProvider"])
    told = session.get_modelmeta().custom_metadata_map
    assert json.loads(told["sequence"]) == ["hr", "map", "lactate", "flat"]
    assert told["lag"] == "1"
    assert told["notice"] == "For research, not for clinical use."


def test_what_cannot_be_exported_is_refused(policy, log, tmp_path, monkeypatch):
    with pytest.raises(FileError, match=r"must end in \.onnx"):
        export_onnx(policy, tmp_path / "policy.bin")
    odd = replace(policy, networks=drawn(ModuleEncoder(OwnModule), log))
    with pytest.raises(SettingError, match="encoder module cannot be exported"):
        to_onnx(odd)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(SettingError, match=r"etips\[onnx\]"):
        to_onnx(policy)
    assert not list(tmp_path.iterdir())


def test_later_steps_change_no_answer_of_a_transformer(policy, log):
    own = replace(policy, networks=drawn(CausalTransformer(8, 2, 1), log, 5), support=0.0)
    session = onnxruntime.InferenceSession(to_onnx(own), providers=["CPUExecutionProvider"])
    steps = padded(log)
    whole, part = (
        session.run(None, {"steps": steps[:, :length], "static": log.static})[0]
        for length in (steps.shape[1], 4)
    )
    np.testing.assert_allclose(whole[:, :4], part, atol=1e-6)
