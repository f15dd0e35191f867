"""A policy as one ONNX file: raw features in, probabilities and abstention out.

Inputs are `steps` (N, T, d), in the units of the table and with NaN where missing, `static` (N, s)
where there are static features, and `previous_action` (N, T) where the policy reads the newest
action known after each step, -1 for none. Outputs are `probabilities` (N, T, K) and `abstained`
(N, T): place t answers the decision whose last visible step is t. Stays are padded at the end with
anything; no answer looks ahead.
"""

import json
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from etips.data.scale import LIMIT, LOG_SHIFT
from etips.errors import FileError
from etips.explanation.onnx_members import (
    Graph,
    add_ensemble,
    add_networks,
    add_row_model,
    add_summary,
    ints,
)
from etips.files.writing import write_file
from etips.models.bundle import Bundle
from etips.models.network import FORBIDDEN
from etips.models.row_model import Reads, row_width
from etips.models.stack import FLOOR, OwnModel, Stack
from etips.models.tree_ensemble import EVERY, TreeEnsemble, round_down
from etips.policies.asking import Member
from etips.policies.policy import FittedPolicy
from etips.policies.rule_tree import NONE, RuleTree
from etips.results.records import NOTICE

OPSET, OPSET_ML, IR_VERSION = 18, 3, 9
"""Versions of the operations and of the file; runtimes of 2023 and later know them."""


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
    helper, kinds, schema = graph.onnx.helper, graph.onnx.TensorProto, policy.schema
    answer, silent = _Writer(graph, policy).answer()
    for value, name in ((answer, "probabilities"), (silent, "abstained")):
        graph.nodes.append(helper.make_node("Identity", [value], [name]))
    shapes = {"steps": (kinds.FLOAT, ["N", "T", len(schema.sequence)])}
    if schema.static:
        shapes["static"] = kinds.FLOAT, ["N", len(schema.static)]
    if policy.earlier_actions:
        shapes["previous_action"] = kinds.INT64, ["N", "T"]
    given = {
        "probabilities": (kinds.FLOAT, ["N", "T", schema.n_actions]),
        "abstained": (kinds.BOOL, ["N", "T"]),
    }
    inputs, outputs = (
        [helper.make_tensor_value_info(name, *own) for name, own in each.items()]
        for each in (shapes, given)
    )
    made = helper.make_graph(graph.nodes, "policy", inputs, outputs, graph.constants)
    sets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", OPSET_ML)]
    model = helper.make_model(made, opset_imports=sets, ir_version=IR_VERSION)
    model.producer_name, model.doc_string = "etips", NOTICE
    about = {
        "sequence": json.dumps(list(schema.sequence)),
        "static": json.dumps(list(schema.static)),
        "actions": json.dumps([schema.action_name(k) for k in range(schema.n_actions)]),
        "lag": str(schema.lag),
        "acts": policy.acts,
        "support": f"{policy.support:g}",
        "notice": NOTICE,
    }
    helper.set_model_props(model, about)
    graph.onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


class _Writer:
    """Writes a policy into a graph."""

    def __init__(self, graph: Graph, policy: FittedPolicy) -> None:
        self.graph, self.policy, self.add = graph, policy, graph.add
        self.k = policy.schema.n_actions
        self.table = cache(self._table)

    def answer(self) -> tuple[str, str]:
        """Names of the probabilities (N, T, K) and of the abstention (N, T)."""
        own, add = self.policy, self.add
        if own.propensity is None:
            return self._everywhere(self._fixed())
        logits = self._ask(own.propensity)
        if own.temperature != 1:
            logits = [add("Div", one, np.float32(own.temperature)) for one in logits]
        clinicians = self.graph.mean([add("Softmax", one, axis=-1) for one in logits])
        if own.kind == "imitation":
            return self._everywhere(clinicians)
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

    def _everywhere(self, table: str) -> tuple[str, str]:
        """Probabilities of a policy that never abstains."""
        most = self.add("ReduceMax", table, ints(-1), keepdims=0)
        return table, self.add("Less", most, np.float32(-1.0))

    def _fixed(self) -> str:
        """Rules, or the same for everybody, shape (N, T, K)."""
        own = self.policy
        if own.tree is not None:
            return self._ask(_as_ensemble(own.tree, self.k))[0]
        chances = np.full(self.k, 1 / self.k, np.float32)
        if own.constant is not None:
            chances = np.eye(self.k, dtype=np.float32)[own.constant]
        return self.add("Expand", chances, self._shape(self.k))

    def _combined(self, clinicians: str, allowed: str) -> str:
        """What the policy's own networks or trees recommend, within what is allowed."""
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
        if isinstance(member, Bundle):
            return add_networks(self.graph, member, *self._scaled)
        if isinstance(member, Stack):
            return [self._stacked(member)]
        if isinstance(member, OwnModel):
            member.refuse()
        rows = self.table(member.reads)
        if isinstance(member, TreeEnsemble):
            flat = [add_ensemble(self.graph, member, rows)]
        else:
            flat = add_row_model(self.graph, member, rows)
        return [self.add("Reshape", own, self._shape(self.k)) for own in flat]

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

    @cached_property
    def _scaled(self) -> tuple[str, str | None]:
        """Steps and static features as networks read them."""
        own, add = self.policy, self.add
        steps = self._scale(own.schema.sequence, "steps")
        if own.earlier_actions:
            column = add("Unsqueeze", "previous_action", ints(-1))
            earlier = add("Equal", column, np.arange(self.k, dtype=np.int64))
            steps = add("Concat", steps, self.graph.cast(earlier, "FLOAT"), axis=-1)
        return steps, self._scale(own.schema.static, "static") if own.schema.static else None

    def _scale(self, names: tuple[str, ...], raw: str) -> str:
        """Features as networks read them, computed in float64 as `Scaler` does."""
        scaler, add = self.policy.scaler, self.add
        assert scaler is not None
        mean, scale = (
            np.array([own[name] for name in names]) for own in (scaler.mean_, scaler.scale_)
        )
        logs, left = (
            np.array([name in own for name in names], bool) for own in (scaler.log, scaler.left_)
        )
        values = wide = self.graph.cast(raw, "DOUBLE")
        if logs.any():
            shifted = add("Add", wide, np.float64(LOG_SHIFT))
            values = add("Where", logs, add("Log", shifted), wide)
        standard = add("Div", add("Sub", values, mean), scale)
        clipped = add("Clip", standard, np.float64(-LIMIT), np.float64(LIMIT))
        filled = add("Where", add("IsNaN", standard), np.float64(0), clipped)
        if left.any():
            kept = add("Where", add("IsNaN", wide), mean, wide)
            filled = add("Where", left, kept, filled)
        return self.graph.cast(filled, "FLOAT")

    def _table(self, reads: Reads) -> str:
        """The rows that trees and models of rows read, one a step, shape (N * T, columns)."""
        schema, static, rows = self.policy.schema, None, "steps"
        if schema.static:
            wide = self.add("Unsqueeze", "static", ints(1))
            static = self.add("Expand", wide, self._shape(len(schema.static)))  # (N, T, s)
        if reads != "last":
            rows = add_summary(self.graph, schema, static, extremes=reads == "history")
        elif static is not None:
            rows = self.add("Concat", "steps", static, axis=-1)
        return self.add("Reshape", rows, ints(-1, row_width(schema, reads)))

    def _shape(self, width: int) -> str:
        """The shape (N, T, width)."""
        first = self.add("Slice", self.add("Shape", "steps"), ints(0), ints(2))
        return self.add("Concat", first, ints(width), axis=0)


def _as_ensemble(rules: RuleTree, n_actions: int) -> TreeEnsemble:
    """The tree of questions as trees are exported: 1 for the action of a row, 0 for the others."""
    places = np.flatnonzero((rules.column != NONE) | (rules.action != NONE))
    column, asks = rules.column[places], rules.column[places] != NONE
    after = np.searchsorted(places, 2 * places + 1) * asks, np.searchsorted(places, 2 * places + 2)
    return TreeEnsemble(
        reads="last",
        base=np.zeros(n_actions),
        start=np.array([0, len(places)]),
        column=column.astype(np.int32),
        cut=round_down(rules.cut[places]),
        left=after[0].astype(np.int32),
        right=(after[1] * asks).astype(np.int32),
        missing_left=rules.missing_low[places].astype(np.uint8),
        value=np.eye(n_actions, dtype=np.float32)[np.where(asks, 0, rules.action[places])],
        output=np.array([EVERY]),
    )
