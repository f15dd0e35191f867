"""What a fitted policy can do: give probabilities, recommend, abstain."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from etips.data.decisions import Bools, Floats, Ints
from etips.data.history_rows import last_step
from etips.data.scale import Scaler
from etips.data.schema import Schema
from etips.data.tables.arrays import as_trajectories
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError
from etips.models.answers import BATCH_SIZE, answer_decisions
from etips.models.batches import Batch, step_tensors
from etips.models.bundle import Bundle
from etips.models.network import forbid
from etips.models.stack import FLOOR
from etips.policies.asking import Asked, Member, arrays_of, singles
from etips.policies.deployed import Acts, Deployed, draw_from, take_likeliest
from etips.policies.learned_from import Origin, SeenStays, make_salt
from etips.policies.rule_tree import RuleTree

Kind = Literal["softmax", "least loss", "least amount", "constant", "imitation", "uniform", "tree"]
"""How outputs become a policy: their softmax, the action of least predicted loss (as the logit of a
loss in [0, 1], or as an amount), one action for everybody, the propensities themselves, every
action alike, or rules that a tree of questions asks for."""


class Answer(NamedTuple):
    """A policy's answer to every decision.

    Args:
        probabilities: Of each action, shape (n_decisions, n_actions).
        abstained: Where no action had enough support, so that the propensities answer.
    """

    probabilities: Floats
    abstained: Bools


@dataclass(frozen=True, eq=False)
class FittedPolicy:
    """Networks, trees, models of rows or a stack of these, within what clinicians do.

    Like the learner it came from it takes Trajectories, or arrays as `from_arrays` does.

    Args:
        kind: How outputs become a policy.
        schema: Of the data it was fitted on.
        scaler: Fitted on them.
        propensity: What imitates the clinicians; None for a policy that asks nobody.
        temperature: Divides their logits.
        support: Least propensity of an action that may be recommended.
        networks: The policy's own, or what predicts losses in their place; None for a constant or
            an imitation. With a stack of losses the kind is "least amount".
        constant: The one action, where kind is "constant".
        earlier_actions: Whether the networks read the newest earlier action.
        seed: Of the actions that are drawn, where it draws them.
        acts: Whether it takes its likeliest action or draws from its probabilities. What imitates
            the clinicians, or has no preference, always draws.
        seen: Hashes of the stays and patients it learned from; None where that is not known.
        origin: How often actions were taken there, and what came of it; None likewise.
        tree: The questions, where kind is "tree".
        lean: How far it leans towards what clinicians do: the logarithm of an action's propensity,
            so many times, is taken from its predicted loss.
    """

    kind: Kind
    schema: Schema
    scaler: Scaler | None = None
    propensity: Member | None = None
    temperature: float = 1.0
    support: float = 0.0
    networks: Member | None = None
    constant: int | None = None
    earlier_actions: bool = False
    seed: int = 0
    acts: Acts = "likeliest"
    seen: SeenStays | None = None
    origin: Origin | None = None
    tree: RuleTree | None = None
    lean: float = 0.0

    def __post_init__(self) -> None:
        if self.kind in ("imitation", "uniform"):
            object.__setattr__(self, "acts", "draws")

    def predict_proba(self, data: Trajectories | ArrayLike, **arrays: Any) -> Floats:  # noqa: ANN401
        """Probability of every action, shape (n_decisions, n_actions), in decision order."""
        return self.answer(as_trajectories(data, **arrays)).probabilities

    def predict(self, data: Trajectories | ArrayLike, **arrays: Any) -> Ints:  # noqa: ANN401
        """The recommended action of each decision, shape (n_decisions,).

        Where it abstains, the action that it takes the clinicians to choose.
        """
        return self.recommend(self.answer(as_trajectories(data, **arrays)))

    def abstains(self, data: Trajectories | ArrayLike, **arrays: Any) -> Bools:  # noqa: ANN401
        """Where no action has enough support, shape (n_decisions,)."""
        return self.answer(as_trajectories(data, **arrays)).abstained

    def deployed(self, data: Trajectories | ArrayLike, **arrays: Any) -> Deployed:  # noqa: ANN401
        """What it does at every decision once it is followed: this is what an evaluation judges."""
        return self.deploy(self.answer(as_trajectories(data, **arrays)))

    def deploy(self, answer: Answer) -> Deployed:
        """What it does with its answer: its likeliest action for sure, or any of them by chance."""
        if self.acts == "draws":
            return Deployed(*answer)
        return take_likeliest(*answer)

    def recommend(self, answer: Answer) -> Ints:
        """An action of each decision: the likeliest, or one drawn by the seed where it draws."""
        if self.kind == "uniform":
            n, k = answer.probabilities.shape
            return np.asarray(np.random.default_rng(self.seed).integers(k, size=n))
        if self.acts == "draws":
            return draw_from(self.seed, answer.probabilities)
        return np.asarray(answer.probabilities.argmax(axis=1))

    def answer(self, data: Trajectories) -> Answer:
        """Answer every decision of `data`, in decision order."""
        self._require_actions(data)
        if self.tree is not None:
            return self._answer_by_rules(self.tree, self.as_fitted_on(data))
        if self.propensity is None or self.scaler is None:  # it reads no features: any will do
            return self._answer_alike(data.n_decisions)
        data = self.as_fitted_on(data)
        if not data.n_decisions:
            return self._answer_alike(0)
        probabilities, abstained, _ = self._asked(data)
        return Answer(probabilities, abstained)

    def consult(self, data: Trajectories) -> tuple[Answer, Floats | None]:
        """The answer, and what the clinicians would do, shape (n_decisions, K), in one pass.

        None in their place where the policy was fitted without them.
        """
        if self.propensity is None or self.scaler is None:
            return self.answer(data), None
        if self.tree is not None or not data.n_decisions:
            return self.answer(data), self.propensities(data)
        self._require_actions(data)
        *own, clinicians = self._asked(self.as_fitted_on(data))
        return Answer(*own), clinicians

    def _asked(self, data: Trajectories) -> list[NDArray[Any]]:
        """What `_ask` gives for all decisions."""
        assert self.scaler is not None
        steps = step_tensors(
            self.scaler.transform(data),
            earlier_actions=self.earlier_actions,
            device=self._device,
        )
        asked = Asked.of(data, steps, (self.propensity, self.networks), self.schema)
        answers = answer_decisions(steps, partial(self._ask, asked), batch_size=BATCH_SIZE)
        return [own.cpu().numpy() for own in answers]

    def leaf_of(self, data: Trajectories) -> Ints:
        """Leaf of each decision, where the policy is a tree of questions, shape (n_decisions,)."""
        if self.tree is None:
            raise SettingError("policy", "is not a tree of questions")
        return self.tree.leaf_of(last_step(self.as_fitted_on(data)))

    def propensities(self, data: Trajectories) -> Floats:
        """What the clinicians would do, as fitted with the policy, shape (n_decisions, K)."""
        return self.imitation().predict_proba(data)

    def imitation(self) -> "FittedPolicy":
        """The clinicians' policy as it was fitted with this one; refused where none was."""
        if self.propensity is None:
            raise SettingError("policy", "was fitted without propensities")
        return replace(self, kind="imitation", networks=None, constant=None, tree=None, lean=0.0)

    def having_seen(self, stays: Trajectories) -> "FittedPolicy":
        """The same policy, which now knows that it learned from these stays.

        One without a preference learned from nobody.
        """
        if self.kind == "uniform":
            return self
        members = [part for part in (self.propensity, self.networks) if part is not None]
        weights = [
            value.tobytes() for part in members for _, value in sorted(arrays_of(part).items())
        ]
        rules = "" if self.tree is None else str(self.tree.to_json())
        told = f"{self.constant}{rules}".encode()
        salt = make_salt(stays, self.kind.encode(), told, *weights)
        return replace(self, seen=SeenStays.of(stays, salt=salt), origin=Origin.of(stays))

    def _answer_alike(self, n: int) -> Answer:
        """The same answer for everybody: one action, or all alike."""
        probabilities = np.zeros((n, self.schema.n_actions))
        if self.constant is None:
            probabilities[:] = 1 / self.schema.n_actions
        else:
            probabilities[:, self.constant] = 1.0
        return Answer(probabilities, np.zeros(n, bool))

    def _answer_by_rules(self, tree: RuleTree, data: Trajectories) -> Answer:
        """What a tree of questions says; too little support abstains, as anywhere."""
        chosen = tree.actions(last_step(data))
        sure = np.eye(self.schema.n_actions)[chosen]
        if self.propensity is None:
            return Answer(sure, np.zeros(len(sure), bool))
        clinicians = self.imitation().answer(data).probabilities
        silent = clinicians[np.arange(len(chosen)), chosen] < self.support
        return Answer(np.where(silent[:, None], clinicians, sure), silent)

    @property
    def _device(self) -> torch.device:
        """Where its networks are; trees are asked on the CPU."""
        members = singles((self.propensity, self.networks))
        return next((m.device for m in members if isinstance(m, Bundle)), torch.device("cpu"))

    def _ask(self, asked: Asked, batch: Batch, _: int) -> tuple[Tensor, ...]:
        """Probabilities, abstention and averaged propensities at the decisions of a batch."""
        assert self.propensity is not None
        outputs = None if self.networks is None else asked.outputs(self.networks, batch)
        logits = asked.outputs(self.propensity, batch) / self.temperature
        propensities = logits.double().softmax(-1).mean(0)
        return *self.decide(propensities, outputs), propensities

    def decide(self, propensities: Tensor, outputs: Tensor | None) -> tuple[Tensor, Tensor]:
        """Probabilities and abstention at some decisions, from averaged propensities (n, K)."""
        allowed = propensities >= self.support
        none = ~allowed.any(-1)
        if self.kind == "imitation":
            return propensities, torch.zeros_like(none)
        if self.constant is not None:
            own = torch.zeros_like(propensities)
            own[:, self.constant] = 1.0
            none = ~allowed[:, self.constant]
        else:
            assert outputs is not None
            own = self._combine(outputs.double(), allowed, propensities)
        return torch.where(none[:, None], propensities, own), none

    def _require_actions(self, data: Trajectories) -> None:
        """Refuse logged actions that are not those of the policy."""
        if not data.logged:
            return
        k = self.schema.n_actions
        fix = "Read tables with like=policy.schema, other data by etips.align(data, policy.schema)."
        if data.n_actions != k and (self.propensity is None or self.scaler is None):
            raise DataError("data", f"must have the {k} actions the policy was fitted with")
        if data.n_actions <= k and not data.schema.means_actions_of(self.schema):
            raise DataError("data, actions", "are not those the policy was fitted on", fix=fix)

    def as_fitted_on(self, data: Trajectories) -> Trajectories:
        """The data, refused unless like those fitted on; questions may not know all actions."""
        for name in ("sequence", "static", "lag"):
            if getattr(data.schema, name) != getattr(self.schema, name):
                raise DataError(f"data, {name}", "is not as in the data the policy was fitted on")
        if data.n_actions > self.schema.n_actions:
            raise DataError("data, n_actions", "is more than the policy was fitted on")
        if self.earlier_actions and not data.logged:
            raise DataError("data", "must hold the actions taken so far: the policy reads them")
        if data.n_actions == self.schema.n_actions:
            return data
        schema = replace(data.schema, n_actions=self.schema.n_actions, actions=())
        return replace(data, schema=schema, truth=None)

    def costs(self, outputs: Tensor, propensities: Tensor) -> Tensor:
        """What it takes the least of: predicted loss, less what it leans by, shape (n, K).

        Args:
            outputs: Shape (J, n, K).
            propensities: Averaged, shape (n, K).
        """
        losses = (outputs.sigmoid() if self.kind == "least loss" else outputs).mean(0)
        return losses - self.lean * propensities.clamp(min=FLOOR).log() if self.lean else losses

    def _combine(self, outputs: Tensor, allowed: Tensor, propensities: Tensor) -> Tensor:
        """Average the networks' answers (J, n, K), in probability or in predicted loss."""
        if self.kind == "softmax":
            return forbid(outputs, allowed).softmax(-1).mean(0)
        best = self.costs(outputs, propensities).masked_fill(~allowed, torch.inf).argmin(-1)
        return torch.nn.functional.one_hot(best, outputs.shape[-1]).to(outputs.dtype)
