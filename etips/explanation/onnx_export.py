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

from etips.data.scale import LIMIT, LOG_SHIFT, Scaler
from etips.errors import FileError
from etips.explanation.onnx_graph import IR_VERSION, OPSET, OPSET_ML, Graph, ints
from etips.explanation.onnx_networks import add_networks
from etips.explanation.onnx_rows import add_ensemble, add_questions, add_row_model, add_summary
from etips.files.writing import write_file
from etips.models.bundle import Bundle
from etips.models.masking import FORBIDDEN
from etips.models.own_model import OwnModel
from etips.models.row_model import Reads, row_width
from etips.models.stack import FLOOR, Stack
from etips.models.tree_ensemble import TreeEnsemble
from etips.policies.asking import Member
from etips.policies.policy import FittedPolicy
from etips.results.records import NOTICE


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
    names = [schema.action_name(k) for k in range(schema.n_actions)]
    about = {
        "sequence": json.dumps(list(schema.sequence)),
        "static": json.dumps(list(schema.static)),
        "actions": json.dumps(names),
        "lag": str(schema.lag),
        "acts": policy.acts,
        "support": f"{policy.support:g}",
        "notice": NOTICE,
    }
    helper.set_model_props(model, about)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


class _Writer:
    """Writes a policy into a graph."""

    def __init__(self, graph: Graph, policy: FittedPolicy) -> None:
        self.graph, self.policy, self.add = graph, policy, graph.add
        self.k = policy.schema.n_actions
        self._inputs: tuple[str, str | None] | None = None
        self._tables: dict[Reads, str] = {}

    def answer(self) -> tuple[str, str]:
        """Names of the probabilities (N, T, K) and of the abstention (N, T)."""
        own, add = self.policy, self.add
        if own.propensity is None:
            same = self._fixed()
            return same, self._never(same)
        logits = self._ask(own.propensity)
        if own.temperature != 1:
            logits = [add("Div", one, np.float32(own.temperature)) for one in logits]
        clinicians = self.graph.mean([add("Softmax", one, axis=-1) for one in logits])
        if own.kind == "imitation":
            return clinicians, self._never(clinicians)
        allowed = add("GreaterOrEqual", clinicians, np.float32(own.support))
        some = self.graph.cast(allowed, "FLOAT")
        if own.kind in ("constant", "tree"):
            sure = self._fixed()
            some = add("Mul", some, sure)
        else:
            sure = self._combined(clinicians, allowed)
        most = add("ReduceMax", some, ints(-1), keepdims=1)
        silent = add("Less", most, np.float32(0.5))
        return add("Where", silent, clinicians, sure), add("Squeeze", silent, ints(-1))

    def _fixed(self) -> str:
        """Rules, or the same for everybody, shape (N, T, K)."""
        own = self.policy
        if own.tree is not None:
            return self._unfolded(
                add_questions(self.graph, own.tree, self._table("last"), self.k), self.k
            )
        chances = np.full(self.k, 1 / self.k, np.float32)
        if own.constant is not None:
            chances = np.eye(self.k, dtype=np.float32)[own.constant]
        return self.add("Expand", chances, self._shape(self.k))

    def _never(self, table: str) -> str:
        """That it abstains nowhere, shape (N, T)."""
        most = self.add("ReduceMax", table, ints(-1), keepdims=0)
        return self.add("Less", most, np.float32(-1.0))

    def _combined(self, clinicians: str, allowed: str) -> str:
        """What the policy's own networks or trees say, within what is allowed."""
        own, add = self.policy, self.add
        assert own.networks is not None
        outputs = self._ask(own.networks)
        if own.kind == "softmax":
            masked = [add("Where", allowed, one, np.float32(FORBIDDEN)) for one in outputs]
            return self.graph.mean([add("Softmax", one, axis=-1) for one in masked])
        if own.kind == "least loss":
            outputs = [add("Sigmoid", one) for one in outputs]
        losses = self.graph.mean(outputs)
        if own.lean:
            losses = add("Sub", losses, add("Mul", np.float32(own.lean), self._log(clinicians)))
        losses = add("Where", allowed, losses, np.float32(np.inf))
        best = add("ArgMin", losses, axis=-1, keepdims=0)
        return add("OneHot", best, np.int64(self.k), np.array([0, 1], np.float32), axis=-1)

    def _ask(self, member: Member) -> list[str]:
        """Outputs of each network or member, shape (N, T, K) each."""
        graph, k = self.graph, self.k
        if isinstance(member, Bundle):
            return add_networks(graph, member, *self._scaled())
        if isinstance(member, Stack):
            return [self._stacked(member)]
        if isinstance(member, TreeEnsemble):
            return [self._unfolded(add_ensemble(graph, member, self._table(member.reads)), k)]
        if isinstance(member, OwnModel):
            member.refuse()
        said = add_row_model(graph, member, self._table(member.reads))
        return [self._unfolded(own, k) for own in said]

    def _stacked(self, stack: Stack) -> str:
        """Predicted losses about their mean, or logarithms of propensities; see `Stack.mix`."""
        add, weighted = self.add, []
        for part in stack.members:
            outputs = self._ask(part.member)
            if part.link == "logit":
                outputs = [add("Sigmoid", one) for one in outputs]
            elif part.link == "softmax":
                outputs = [add("Softmax", one, axis=-1) for one in outputs]
            table = self.graph.mean(outputs)
            if stack.mixes == "losses":
                table = add("Sub", table, add("ReduceMean", table, ints(-1)))
            weighted.append(add("Mul", table, np.float32(part.weight)))
        total = add("Sum", *weighted)
        if stack.mixes == "losses":
            return total
        tempered = add("Div", self._log(total), np.float32(stack.temperature))
        return add("LogSoftmax", tempered, axis=-1)

    def _log(self, chances: str) -> str:
        return self.add("Log", self.add("Max", chances, np.float32(FLOOR)))

    def _scaled(self) -> tuple[str, str | None]:
        """Steps and static features as networks read them."""
        if self._inputs is None:
            own = self.policy
            assert own.scaler is not None
            steps = _scale(self.graph, own.scaler, own.schema.sequence, "steps")
            if own.earlier_actions:
                column = self.add("Unsqueeze", "previous_action", ints(-1))
                earlier = self.add("Equal", column, np.arange(self.k, dtype=np.int64))
                steps = self.add("Concat", steps, self.graph.cast(earlier, "FLOAT"), axis=-1)
            names = own.schema.static
            static = _scale(self.graph, own.scaler, names, "static") if names else None
            self._inputs = steps, static
        return self._inputs

    def _table(self, reads: Reads) -> str:
        """The rows that trees and models of rows read, one a step, shape (N * T, columns)."""
        if reads not in self._tables:
            schema, static = self.policy.schema, None
            if schema.static:
                wide = self.add("Unsqueeze", "static", ints(1))
                static = self.add("Expand", wide, self._shape(len(schema.static)))  # (N, T, s)
            if reads != "last":
                rows = add_summary(self.graph, schema, static, extremes=reads == "history")
            else:
                rows = "steps" if static is None else self.add("Concat", "steps", static, axis=-1)
            self._tables[reads] = self.add("Reshape", rows, ints(-1, row_width(schema, reads)))
        return self._tables[reads]

    def _unfolded(self, flat: str, width: int) -> str:
        """Rows (N * T, width) as (N, T, width)."""
        return self.add("Reshape", flat, self._shape(width))

    def _shape(self, width: int) -> str:
        """The shape (N, T, width)."""
        first = self.add("Slice", self.add("Shape", "steps"), ints(0), ints(2))
        return self.add("Concat", first, ints(width), axis=0)


def _scale(graph: Graph, scaler: Scaler, names: tuple[str, ...], raw: str) -> str:
    """Features as networks read them, computed in float64 as `Scaler` does."""
    mean, scale = (
        np.array([values[name] for name in names]) for values in (scaler.mean_, scaler.scale_)
    )
    logs = np.array([name in scaler.log for name in names], bool)
    left = np.array([name in scaler.left_ for name in names], bool)
    values = wide = graph.cast(raw, "DOUBLE")
    if logs.any():
        shifted = graph.add("Add", wide, np.float64(LOG_SHIFT))
        values = graph.add("Where", logs, graph.add("Log", shifted), wide)
    standard = graph.add("Div", graph.add("Sub", values, mean), scale)
    clipped = graph.add("Clip", standard, np.float64(-LIMIT), np.float64(LIMIT))
    filled = graph.add("Where", graph.add("IsNaN", standard), np.float64(0), clipped)
    if left.any():
        kept = graph.add("Where", graph.add("IsNaN", wide), mean, wide)
        filled = graph.add("Where", left, kept, filled)
    return graph.cast(filled, "FLOAT")
