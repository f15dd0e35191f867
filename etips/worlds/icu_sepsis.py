"""ICU-Sepsis: stays simulated from a published model of sepsis care, with every risk exact.

The model (Choudhary, Gupta and Thomas, 2024) has 716 states and the 25 actions of the paper. It was
estimated from MIMIC-III by its authors; we ship its one data file and read no code of theirs.
"""

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from etips.data.coded import Coded, Floats32, Truth
from etips.data.decisions import Bools, Floats, Ints
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError
from etips.evaluation.whole_stay_course import Outcome, require_outcome
from etips.worlds.deployment import ENDED, Deployment, HistoryPolicy, deploy
from etips.worlds.draws import Chances, generator, require_policy, require_settings
from etips.worlds.shipped import read_shipped
from etips.worlds.world_registry import Simulation

N_STATES, N_ACTIONS = 716, 25
DEATH, SURVIVAL, END = 713, 714, 715
"""States from which no treatment is given; those below `DEATH` are patients."""

# Order of the stored features: the groups of the cohort's normalisation, one after the other.
FEATURES = (
    *("gender", "mechvent", "max_dose_vaso", "re_admission"),
    # standardised
    *("age", "Weight_kg", "GCS", "HR", "SysBP", "MeanBP", "DiaBP", "RR", "Temp_C", "FiO2_1"),
    *("Potassium", "Sodium", "Chloride", "Glucose", "Magnesium", "Calcium", "Hb", "WBC_count"),
    *("Platelets_count", "PTT", "PT", "Arterial_pH", "paO2", "paCO2", "Arterial_BE", "HCO3"),
    *("Arterial_lactate", "SOFA", "SIRS", "Shock_Index", "PaO2_FiO2", "cumulated_balance"),
    # logarithm, then standardised
    *("SpO2", "BUN", "Creatinine", "SGOT", "SGPT", "Total_bili", "INR"),
    *("input_total", "input_4hourly", "output_total", "output_4hourly"),
)
ACTIONS = tuple(f"fluid {action // 5}, vasopressor {action % 5}" for action in range(N_ACTIONS))

LossKind = Literal["sofa", "mortality"]
"""What a step costs: the paper's loss, or 1 where the patient dies and 0 elsewhere. The sum of the
latter over a stay, and its last, is the death of the patient."""

_UNCHANGED_IS_GOOD = 5  # SOFA up to which "no change" counts as success: the paper's loss


@dataclass(frozen=True, eq=False)
class _World:
    features: Floats32  # (716, 47)
    start: Floats  # (716,)
    clinicians: Floats  # (716, 25); no action, so zeros, in the last three states
    expected_loss: Floats  # (716, 25)
    under_clinicians: Floats  # (716, 716): from one patient state to the next
    worse: Bools  # (716, 716): loss of moving from a state to another
    deadly: Floats  # (716, 25): chance of death at once
    moves: Chances  # row state * 25 + action
    chance: Floats  # of each entry of `moves`

    def expected(self, loss: LossKind) -> Floats:
        """Expected loss of each action in each state."""
        return self.expected_loss if loss == "sofa" else self.deadly

    def under(self, policy: Floats) -> Floats:
        """From one patient state to the next where a policy (713, 25) decides, (713, 713)."""
        entries = self.moves.last - self.moves.first + 1
        state, action = np.divmod(np.repeat(np.arange(entries.size), entries), N_ACTIONS)
        kept = (state < DEATH) & (self.moves.value < DEATH)
        state, action = state[kept], action[kept]
        place = state * DEATH + self.moves.value[kept]
        flow = np.bincount(place, policy[state, action] * self.chance[kept], DEATH * DEATH)
        return np.asarray(flow.reshape(DEATH, DEATH), np.float64)


def simulate(
    n_stays: int, *, seed: int, lag: int = 1, max_steps: int = 18, loss: LossKind = "sofa"
) -> Trajectories:
    """Simulate stays treated by the clinicians until death, survival or `max_steps` steps.

    Every step of a patient is logged with its action, loss and true propensity. A stay has at least
    one step; with `lag=1` its first step is not a decision, so a stay of one step has none.

    Args:
        n_stays: How many stays.
        seed: Same seed, same stays.
        lag: 1 hides the state the clinicians saw, which is unmeasured confounding; 0 shows it.
        max_steps: Longest stay; 18 is the paper's longest history.
        loss: What is logged as the loss of a step.
    """
    require_settings(n_stays=(n_stays >= 1, "must be at least 1"))
    _check(max_steps, loss)
    world = _world()
    stay, step, state, action, following = _walk(world, n_stays, max_steps, generator(seed))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(stay, minlength=n_stays))])
    row = np.empty(stay.size, np.int64)
    row[offsets[stay] + step] = np.arange(stay.size)  # steps come time by time, and go stay by stay
    state, action, following = state[row], action[row], following[row]
    code = state.astype(np.int32)
    return Trajectories(
        sequence=Coded(world.features, code),
        offsets=offsets,
        schema=_schema(seed, lag, max_steps, loss),
        action=action,
        loss=_loss(world, state, following, loss),
        propensity=world.clinicians[state, action],
        truth=Truth(code, world.expected(loss), world.clinicians),
    )


def simulate_stays(wanted: Simulation) -> Trajectories:
    """`simulate`, as the registry of worlds asks for it."""
    return simulate(wanted.n_stays or 0, seed=wanted.seed, lag=wanted.lag)


def simulate_mortality(wanted: Simulation) -> Trajectories:
    """`simulate` with death as the loss, as the registry of worlds asks for it."""
    return simulate(wanted.n_stays or 0, seed=wanted.seed, lag=wanted.lag, loss="mortality")


def exact_risk(policy: Floats, *, max_steps: int | None = 18, lag: int = 0) -> float:
    """Exact one-step risk of a policy over the states that the clinicians' patients pass through.

    Args:
        policy: Probability of each action in each state, shape (716, 25); the last three rows are
            not looked at.
        max_steps: Longest stay, as in `simulate`; None for stays that run to their end.
        lag: 1 leaves out first steps, which are then no decisions.
    """
    patients = _of_patients(policy)
    visits = occupancy(max_steps=max_steps, lag=lag)[:DEATH]
    return float(visits @ (patients * _world().expected_loss[:DEATH]).sum(axis=1))


def stay_risk(
    policy: Floats,
    *,
    loss: LossKind = "mortality",
    outcome: Outcome = "sum",
    max_steps: int | None = None,
) -> float:
    """Exact expected outcome of a stay that a policy treats from admission to its end.

    As it stands it is the mortality: the share of patients who die under the policy.

    Args:
        policy: As in `exact_risk`; it looks at the present state alone.
        loss: What a step costs.
        outcome: The sum of the stay's losses, or the last of them.
        max_steps: Longest stay, as in `simulate`; None for stays that run to their end.
    """
    _check(max_steps, loss)
    require_outcome(outcome)
    patients, world = _of_patients(policy), _world()
    under, now = world.under(patients), world.start[:DEATH]
    cost, deadly = ((patients * t[:DEATH]).sum(1) for t in (world.expected(loss), world.deadly))
    if max_steps is None:
        visits = np.linalg.solve(np.eye(DEATH) - under.T, now)
        return float(visits @ (cost if outcome == "sum" else deadly))
    total = 0.0
    for step in range(max_steps):
        # Of the last losses all but that of a stay cut short are of death or survival.
        last = outcome == "last" and step < max_steps - 1
        total += float(now @ (deadly if last else cost))
        now = now @ under
    return total


def table_of(policy: HistoryPolicy) -> Floats:
    """What a policy does in each state of a patient just admitted, shape (716, 25).

    That is all of a policy which looks at the present alone; `deploy` is for the others.
    """
    first = Trajectories(_world().features[:DEATH], np.arange(DEATH + 1), _schema(0, 0, 1, "sofa"))
    table = np.full((N_STATES, N_ACTIONS), 1 / N_ACTIONS)
    table[:DEATH] = policy(first)
    return table


def deploy_policy(
    policy: HistoryPolicy,
    *,
    n_stays: int,
    seed: int = 0,
    lag: int = 0,
    max_steps: int = 18,
    loss: LossKind = "mortality",
) -> Deployment:
    """What becomes of new patients under a policy of histories; see `deployment.deploy`."""
    ward = SepsisWard(lag=lag, max_steps=max_steps, loss=loss)
    return deploy(ward, policy, n_stays=n_stays, seed=seed)


@dataclass(frozen=True)
class SepsisWard:
    """ICU-Sepsis as a world that can be walked through step by step.

    Args:
        lag: As in `simulate`, like the others.
        max_steps: Longest stay.
        loss: What a step costs.
    """

    lag: int = 0
    max_steps: int = 18
    loss: LossKind = "mortality"

    def __post_init__(self) -> None:
        _check(self.max_steps, self.loss)

    @property
    def schema(self) -> Schema:
        """As that of `simulate`."""
        return _schema(0, self.lag, self.max_steps, self.loss)

    def draw(self, n_stays: int, rng: np.random.Generator) -> Floats:
        """Uniform numbers for the action and for what follows."""
        return rng.random((n_stays, 2))

    def admit(self, draws: Floats) -> Ints:
        """States of admission."""
        return Chances.of(_world().start[None]).at(np.zeros(len(draws), np.int64), draws[:, 0])

    def observe(self, state: Ints, draws: Floats) -> Floats32:  # noqa: ARG002  # nothing by chance
        """The features of the states."""
        return _world().features[state]

    def clinicians(self, state: Ints) -> Floats:
        """What the clinicians do in these states."""
        return _world().clinicians[state]

    def advance(self, state: Ints, action: Ints, draws: Floats) -> tuple[Floats, Ints]:
        """The loss of a step and the next state, over with death or survival."""
        world = _world()
        following = world.moves.at(state * N_ACTIONS + action, draws[:, 1])
        cost = _loss(world, state, following, self.loss)
        return cost, np.where(following < DEATH, following, ENDED)


def occupancy(*, max_steps: int | None = 18, lag: int = 0) -> Floats:
    """Share of each state among the decisions of the clinicians' patients, shape (716,)."""
    if lag not in (0, 1):
        raise SettingError("lag", "must be 0 or 1")
    world = _world()
    visits = -lag * world.start
    if max_steps is None:
        visits = visits + np.linalg.solve(np.eye(N_STATES) - world.under_clinicians.T, world.start)
    else:
        _check(max_steps, "sofa")
        if max_steps <= lag:
            raise SettingError("max_steps", "must exceed lag, or no decision is left")
        now = world.start
        for _ in range(max_steps):
            visits = visits + now
            now = now @ world.under_clinicians
    return np.asarray(visits / visits.sum())


def clinicians() -> Floats:
    """The clinicians' policy, shape (716, 25); zeros in the three states without treatment."""
    return _world().clinicians


def expected_loss() -> Floats:
    """Exact expected loss of each action in each state, shape (716, 25)."""
    return _world().expected_loss


@cache
def _world() -> _World:
    moves, start, clinicians, centers, sofa = read_shipped(
        "icu_sepsis.npz", "tx_mat", "d_0", "expert_policy", "state_cluster_centers", "sofa_scores"
    )
    worse = _worse(sofa)
    loss = np.einsum("sat,st->sa", moves, worse.astype(np.float64))
    under_clinicians = np.einsum("sa,sat->st", clinicians, moves)
    under_clinicians[:, DEATH:] = 0  # a stay has no steps after its last treatment
    loss[DEATH:] = 0
    deadly = moves[:, :, DEATH].copy()
    deadly[DEATH:] = 0
    rows = moves.reshape(-1, N_STATES)
    arrays = (centers.astype(np.float32), start, clinicians, loss, under_clinicians, worse, deadly)
    for array in arrays:
        array.flags.writeable = False  # one copy serves everybody
    return _World(*arrays, moves=Chances.of(rows), chance=rows[rows > 0])


def _worse(sofa: Floats) -> Bools:
    """The paper's loss of each move: SOFA rises, or stays the same above 5; death is 1.

    SOFA is the mean of a state, a real number: only a state and itself are "the same".
    """
    before, after = sofa[:, None], sofa[None, :]
    worse: Bools = (after > before) | ((after == before) & (before > _UNCHANGED_IS_GOOD))
    worse[:, DEATH] = True  # both ends are stored with SOFA 0
    worse[:, SURVIVAL] = False
    return worse


def _walk(
    world: _World, n_stays: int, max_steps: int, rng: np.random.Generator
) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """All steps, time by time: stay, step, state, action, next state."""
    treat, steps = Chances.of(world.clinicians), []
    stay = np.arange(n_stays)
    state = Chances.of(world.start[None]).draw(np.zeros(n_stays, np.int64), rng)
    for step in range(max_steps):
        action = treat.draw(state, rng)
        following = world.moves.draw(state * N_ACTIONS + action, rng)
        steps.append((stay, np.full(stay.size, step), state, action, following))
        alive = following < DEATH
        stay, state = stay[alive], following[alive]
    stays, numbers, states, actions, nexts = map(np.concatenate, zip(*steps, strict=True))
    return stays, numbers, states, actions, nexts


def _loss(world: _World, state: Ints, following: Ints, loss: LossKind) -> Floats:
    """Loss of moves, shape (n,)."""
    worse = following == DEATH if loss == "mortality" else world.worse[state, following]
    return worse.astype(np.float64)


def _of_patients(policy: Floats) -> Floats:
    """The rows of a policy that treat somebody, refused unless they hold probabilities."""
    if policy.shape != (N_STATES, N_ACTIONS):
        raise DataError("policy", f"must have shape {(N_STATES, N_ACTIONS)}")
    patients = policy[:DEATH]
    require_policy(patients)
    return patients


def _schema(seed: int, lag: int, max_steps: int, loss: LossKind) -> Schema:
    return Schema(
        sequence=FEATURES,
        n_actions=N_ACTIONS,
        lag=lag,
        actions=ACTIONS,
        provenance={
            "world": "icu-sepsis" if loss == "sofa" else "icu-sepsis-mortality",
            "source": "dynamics.npz of the package icu-sepsis 2.0.1 (MIT)",
            "logging": "the clinicians' policy of the source",
            "loss": "SOFA change; death 1, survival 0" if loss == "sofa" else "death",
            "seed": str(seed),
            "max_steps": str(max_steps),
        },
    )


def _check(max_steps: int | None, loss: str) -> None:
    require_settings(
        max_steps=(max_steps is None or max_steps >= 1, "must be at least 1"),
        loss=(loss in ("sofa", "mortality"), "must be 'sofa' or 'mortality'"),
    )
