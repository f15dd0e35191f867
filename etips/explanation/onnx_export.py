"""A policy as one ONNX file: raw features in, probabilities and abstention out.

Inputs are `steps` (N, T, d), in the units of the table and with NaN where missing, `static` (N, s)
where there are static features, and `previous_action` (N, T) where the policy reads the newest
action known after each step, -1 for none. Outputs are `probabilities` (N, T, K) and `abstained`
(N, T): place t answers the decision whose last visible step is t. Stays are padded at the end with
anything; no answer looks ahead.
"""

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from etips.data.scale import LIMIT, LOG_SHIFT, Scaler
from etips.errors import FileError, SettingError
from etips.explanation.onnx_graph import IR_VERSION, OPSET, OPSET_ML, Graph
from etips.explanation.onnx_networks import add_networks
from etips.explanation.onnx_trees import add_forest, add_questions
from etips.files.writing import write_file
from etips.models.bundle import Bundle
from etips.models.forest import Forest
from etips.models.masking import FORBIDDEN
from etips.policies.asking import Member
from etips.policies.policy import FittedPolicy

NOTICE = "For research, not for clinical use."


def export_onnx(policy: FittedPolicy, place: str | Path) -> Path:
    """Write a policy for other programs; return where it is."""
    place = Path(place)
    if place.suffix != ".onnx":
        raise FileError(str(place), "must end in .onnx")
    write_file(place, to_onnx(policy))
    return place


def to_onnx(policy: FittedPolicy) -> bytes:
    """The policy as ONNX; refused where it has parts that ONNX has no form of here."""
    graph = Graph()
    onnx, schema = graph.onnx, policy.schema
    answer, silent = _Writer(graph, policy).answer()
    graph.rename(answer, "probabilities")
    graph.rename(silent, "abstained")
    helper, kinds = onnx.helper, onnx.TensorProto
    inputs = [helper.make_tensor_value_info("steps", kinds.FLOAT, ["N", "T", len(schema.sequence)])]
    if schema.static:
        shape = ["N", len(schema.static)]
        inputs.append(helper.make_tensor_value_info("static", kinds.FLOAT, shape))
    if policy.earlier_actions:
        inputs.append(helper.make_tensor_value_info("previous_action", kinds.INT64, ["N", "T"]))
    outputs = [
        helper.make_tensor_value_info("probabilities", kinds.FLOAT, ["N", "T", schema.n_actions]),
        helper.make_tensor_value_info("abstained", kinds.BOOL, ["N", "T"]),
    ]
    made = helper.make_graph(graph.nodes, "policy", inputs, outputs, graph.constants)
    sets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", OPSET_ML)]
    model = helper.make_model(made, opset_imports=sets, ir_version=IR_VERSION)
    model.producer_name, model.doc_string = "etips", NOTICE
    helper.set_model_props(model, _told(policy))
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def _told(policy: FittedPolicy) -> dict[str, str]:
    """What whoever runs it must know."""
    schema = policy.schema
    names = [schema.action_name(k) for k in range(schema.n_actions)]
    return {
        "sequence": json.dumps(list(schema.sequence)),
        "static": json.dumps(list(schema.static)),
        "actions": json.dumps(names),
        "lag": str(schema.lag),
        "acts": policy.acts,
        "support": f"{policy.support:g}",
        "notice": NOTICE,
    }


class _Writer:
    """Writes a policy into a graph."""

    def __init__(self, graph: Graph, policy: FittedPolicy) -> None:
        self.graph, self.policy = graph, policy
        self.k = policy.schema.n_actions
        self.has_static = bool(policy.schema.static)
        self._inputs: tuple[str, str | None] | None = None

    def answer(self) -> tuple[str, str]:
        """Names of the probabilities (N, T, K) and of the abstention (N, T)."""
        own, add = self.policy, self.graph.add
        if own.propensity is None:
            same = self._alike() if own.tree is None else self._questions(own)
            return same, self._nowhere(same)
        logits = [self._divided(one) for one in self._ask(own.propensity)]
        clinicians = self._mean([add("Softmax", one, axis=-1) for one in logits])
        if own.kind == "imitation":
            return clinicians, self._nowhere(clinicians)
        allowed = self._at_least(clinicians, own.support)
        if own.kind in ("constant", "tree"):
            sure = self._alike() if own.tree is None else self._questions(own)
            some = add("Mul", self.graph.cast(allowed, "FLOAT"), sure)
        else:
            sure = self._combined(logits, allowed)
            some = self.graph.cast(allowed, "FLOAT")
        axis = self.graph.constant(np.array([-1], np.int64))
        most = add("ReduceMax", some, axis, keepdims=1)
        silent = add("Less", most, self.graph.constant(np.float32(0.5)))
        told = add("Where", silent, clinicians, sure)
        return told, add("Squeeze", silent, axis)

    def _combined(self, logits: list[str], allowed: str) -> str:
        """What the policy's own networks or trees say, within what is allowed."""
        own, add = self.policy, self.graph.add
        assert own.networks is not None
        outputs = self._ask(own.networks)
        if own.kind == "softmax":
            if isinstance(own.propensity, Forest):
                starts = [add("LogSoftmax", one, axis=-1) for one in logits]
                outputs = [add("Add", *pair) for pair in zip(outputs, starts, strict=True)]
            never = self.graph.constant(np.float32(FORBIDDEN))
            masked = [add("Where", allowed, one, never) for one in outputs]
            return self._mean([add("Softmax", one, axis=-1) for one in masked])
        if own.kind == "least loss":
            outputs = [add("Sigmoid", one) for one in outputs]
        worst = self.graph.constant(np.float32(np.inf))
        losses = add("Where", allowed, self._mean(outputs), worst)
        best = add("ArgMin", losses, axis=-1, keepdims=0)
        depth = self.graph.constant(np.int64(self.k))
        values = self.graph.constant(np.array([0, 1], np.float32))
        return add("OneHot", best, depth, values, axis=-1)

    def _ask(self, member: Member) -> list[str]:
        """Outputs of each network or member, shape (N, T, K) each."""
        graph = self.graph
        if isinstance(member, Bundle):
            return add_networks(graph, member, *self._scaled())
        if isinstance(member, Forest):
            flat = add_forest(graph, member, self._rows())
            table = self._unfolded(flat, member.n_members * self.k)
            cuts = graph.constant(np.full(member.n_members, self.k, np.int64))
            return graph.add_many("Split", table, cuts, n_outputs=member.n_members, axis=-1)
        rule = "reads a summary of the history, which cannot be exported"
        fix = "Fit one of networks: with etips or doubly-robust, --set others=false."
        raise SettingError("policy", rule, fix=fix)

    def _scaled(self) -> tuple[str, str | None]:
        """Steps and static features as networks read them."""
        if self._inputs is None:
            own = self.policy
            assert own.scaler is not None
            steps = _scale(self.graph, own.scaler, own.schema.sequence, "steps")
            if own.earlier_actions:
                actions = self.graph.constant(np.arange(self.k, dtype=np.int64))
                last = self.graph.constant(np.array([-1], np.int64))
                column = self.graph.add("Unsqueeze", "previous_action", last)
                earlier = self.graph.cast(self.graph.add("Equal", column, actions), "FLOAT")
                steps = self.graph.add("Concat", steps, earlier, axis=-1)
            names = own.schema.static
            static = _scale(self.graph, own.scaler, names, "static") if names else None
            self._inputs = steps, static
        return self._inputs

    def _rows(self) -> str:
        """Each step with the static features, as trees read them, shape (N * T, d + s)."""
        graph, schema = self.graph, self.policy.schema
        rows = "steps"
        if self.has_static:
            middle = graph.constant(np.array([1], np.int64))
            shape = graph.add("Shape", "steps")
            start, stop = (graph.constant(np.array([at], np.int64)) for at in (0, 2))
            first = graph.add("Slice", shape, start, stop)
            width = graph.constant(np.array([len(schema.static)], np.int64))
            wanted = graph.add("Concat", first, width, axis=0)
            spread = graph.add("Expand", graph.add("Unsqueeze", "static", middle), wanted)
            rows = graph.add("Concat", "steps", spread, axis=-1)
        flat = np.array([-1, len(schema.sequence) + len(schema.static)], np.int64)
        return graph.add("Reshape", rows, graph.constant(flat))

    def _unfolded(self, flat: str, width: int) -> str:
        """Rows (N * T, width) as (N, T, width)."""
        graph = self.graph
        shape = graph.add("Shape", "steps")
        start, stop = (graph.constant(np.array([at], np.int64)) for at in (0, 2))
        last = graph.constant(np.array([width], np.int64))
        wanted = graph.add("Concat", graph.add("Slice", shape, start, stop), last, axis=0)
        return graph.add("Reshape", flat, wanted)

    def _questions(self, own: FittedPolicy) -> str:
        assert own.tree is not None
        return self._unfolded(add_questions(self.graph, own.tree, self._rows(), self.k), self.k)

    def _alike(self) -> str:
        """The same for everybody, shape (N, T, K)."""
        own = np.full(self.k, 1 / self.k, np.float32)
        if self.policy.constant is not None:
            own = np.eye(self.k, dtype=np.float32)[self.policy.constant]
        nothing = self.graph.constant(np.zeros((1, 1, self.k), np.float32))
        spread = self._unfolded_zero(nothing)
        return self.graph.add("Add", spread, self.graph.constant(own))

    def _unfolded_zero(self, nothing: str) -> str:
        graph = self.graph
        shape = graph.add("Shape", "steps")
        start, stop = (graph.constant(np.array([at], np.int64)) for at in (0, 2))
        last = graph.constant(np.array([self.k], np.int64))
        wanted = graph.add("Concat", graph.add("Slice", shape, start, stop), last, axis=0)
        return graph.add("Expand", nothing, wanted)

    def _nowhere(self, table: str) -> str:
        """That it never abstains, shape (N, T)."""
        axis = self.graph.constant(np.array([-1], np.int64))
        most = self.graph.add("ReduceMax", table, axis, keepdims=0)
        return self.graph.add("Less", most, self.graph.constant(np.float32(-1.0)))

    def _at_least(self, table: str, floor: float) -> str:
        return self.graph.add("GreaterOrEqual", table, self.graph.constant(np.float32(floor)))

    def _divided(self, logits: str) -> str:
        if self.policy.temperature == 1:
            return logits
        by = self.graph.constant(np.float32(self.policy.temperature))
        return self.graph.add("Div", logits, by)

    def _mean(self, parts: list[str]) -> str:
        return parts[0] if len(parts) == 1 else self.graph.add("Mean", *parts)


def _scale(graph: Graph, scaler: Scaler, names: tuple[str, ...], raw: str) -> str:
    """Features as networks read them, computed in float64 as `Scaler` does."""

    def column(values: dict[str, float]) -> NDArray[np.float64]:
        return np.array([values[name] for name in names])

    wide = graph.cast(raw, "DOUBLE")
    mean, scale = (graph.constant(column(own)) for own in (scaler.mean_, scaler.scale_))
    logs = np.array([name in scaler.log for name in names], bool)
    left = np.array([name in scaler.left_ for name in names], bool)
    values = wide
    if logs.any():
        shifted = graph.add("Add", wide, graph.constant(np.float64(LOG_SHIFT)))
        values = graph.add("Where", graph.constant(logs), graph.add("Log", shifted), wide)
    standard = graph.add("Div", graph.add("Sub", values, mean), scale)
    limits = (graph.constant(np.float64(sign * LIMIT)) for sign in (-1, 1))
    clipped = graph.add("Clip", standard, *limits)
    nothing = graph.constant(np.float64(0))
    filled = graph.add("Where", graph.add("IsNaN", standard), nothing, clipped)
    if left.any():
        kept = graph.add("Where", graph.add("IsNaN", wide), mean, wide)
        filled = graph.add("Where", graph.constant(left), kept, filled)
    return graph.cast(filled, "FLOAT")
