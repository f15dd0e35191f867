"""Propensities and predicted losses by boosted trees, cross-fitted in the folds of the networks."""

from collections.abc import Callable, Sequence

import numpy as np
import torch

from etips.data.decisions import Bools, Floats, Ints
from etips.data.history_rows import last_step
from etips.learn.fitting.prepare import Prepared
from etips.learn.nuisance.boosting import BoostedTrees, Grown, read_amounts, read_classes
from etips.learn.nuisance.outcome import FittedOutcome, Losses, is_share, plain_outputs, spread
from etips.learn.nuisance.propensity import Actions, FittedPropensity, measure
from etips.learn.nuisance.shrinkage import Target, fit_shares, learned_counts, log_frequencies
from etips.learn.nuisance.tree_process import begin
from etips.models.forest import Forest, plant


def fit_tree_propensity(
    prepared: Prepared, settings: BoostedTrees, *, calibrate: bool = True
) -> FittedPropensity:
    """Fit the clinicians' policy by trees, one member a fold; see `begin_tree_propensity`."""
    return begin_tree_propensity(prepared, settings, calibrate=calibrate)()


def begin_tree_propensity(
    prepared: Prepared, settings: BoostedTrees, *, calibrate: bool = True
) -> Callable[[], FittedPropensity]:
    """Begin to fit the clinicians' policy by trees, one member a fold; call what is returned.

    As with networks each member learns from the other folds, stops by a part of the next one, and
    what it learned beyond plain frequencies is shrunk as far as that fits better out of fold.

    Args:
        prepared: The stays.
        settings: How trees are grown.
        calibrate: Shrink, and give every action its frequency as mean propensity.
    """
    data, action = prepared.data, prepared.data.logged_action
    rows = last_step(data).astype(np.float64)
    logged = torch.from_numpy(action.copy())
    counts = torch.from_numpy(learned_counts(prepared))
    start = log_frequencies(logged, data.n_actions, counts).numpy()
    learns, stops = _members(prepared)
    orders = settings.order_classes(rows, action, learns, stops)
    grown = begin(orders, torch.get_num_threads())

    def finish() -> FittedPropensity:
        each = zip(grown(), learns, strict=True)
        forest = _plant(start, [read_classes(own, action, known) for own, known in each])
        target = Actions(logged, log_frequencies(logged, data.n_actions))
        alone, together, outputs, share = _shrink(prepared, forest, rows, target, fit=calibrate)
        log_probabilities = torch.from_numpy(outputs).log_softmax(-1).numpy()
        quality = measure(np.exp(log_probabilities), action)
        return FittedPropensity(alone, together, share, log_probabilities, quality)

    return finish


def fit_tree_outcome(prepared: Prepared, settings: BoostedTrees) -> FittedOutcome:
    """Fit trees that predict the loss of every action; see `begin_tree_outcome`."""
    return begin_tree_outcome(prepared, settings)()


def begin_tree_outcome(prepared: Prepared, settings: BoostedTrees) -> Callable[[], FittedOutcome]:
    """Begin to fit trees that predict the loss of every action; call what is returned.

    One member a fold, by squared error.

    They learn what the mean loss of each action leaves, from what is visible and the action.

    Args:
        prepared: The stays.
        settings: How trees are grown.
    """
    data, action = prepared.data, prepared.data.logged_action
    rows = last_step(data).astype(np.float64)
    centre, unit = spread(data)
    losses = (data.logged_loss - centre) / unit
    start = plain_outputs(prepared, centre, unit, learned_counts(prepared), share=False).numpy()

    learns, stops = _members(prepared)
    rest = losses - start[:, action]
    orders = settings.order_amounts(rows, action, data.n_actions, rest, learns, stops)
    grown = begin(orders, torch.get_num_threads())

    def finish() -> FittedOutcome:
        width = rows.shape[1]
        forest = _plant(start, [read_amounts(own, width, data.n_actions) for own in grown()])
        target = Losses(prepared, centre, unit, share=False)
        _, together, outputs, _ = _shrink(prepared, forest, rows, target)
        expected = centre + unit * outputs
        if is_share(data):
            expected = np.clip(expected, 0.0, 1.0)
        return FittedOutcome(together.scale(unit, centre), expected)

    return finish


def _members(prepared: Prepared) -> tuple[Bools, Bools]:
    """Decisions that each member learns from, and those that it stops by, shape (J, n)."""
    stay = prepared.data.decisions().stay
    learns = prepared.folds.weight.cpu().numpy().astype(bool)[:, stay]
    return learns, prepared.folds.held_out.cpu().numpy().astype(bool)[:, stay]


def _plant(base: Floats, each: Sequence[Grown]) -> Forest:
    """A forest of what each member grew."""
    based = base + np.array([[own.base] for own in each])
    member = [place for place, own in enumerate(each) for _ in own.trees]
    trees = [tree for own in each for tree in own.trees]
    return plant(trees, member, [place for own in each for place in own.output], based)


def _shrink(
    prepared: Prepared, forest: Forest, rows: Floats, target: Target, *, fit: bool = True
) -> tuple[Forest, Forest, Floats, float]:
    """Keep of each member what holds for stays that it did not learn from; see `shrink`.

    Returns:
        Members that are right alone, members whose mean is right, what the former say out of fold
        (n_decisions, K), and the share that they keep.
    """
    stay = prepared.data.decisions().stay
    fold = prepared.folds.fold[stay]
    outputs = _ask(forest, rows, fold, np.ones(len(rows), bool))
    if not fit:
        return forest, forest, outputs, 1.0
    beyond = torch.from_numpy(outputs - forest.base[fold])
    alone, mean = fit_shares(prepared, beyond, _pairs(prepared, forest, rows, beyond), target)
    centre = target.centre.double().cpu()

    def shrunken(share: float) -> tuple[Forest, Floats]:
        shifted = centre + target.shift(centre + share * beyond)
        return forest.shrink(share, shifted.numpy()), (shifted + share * beyond).numpy()

    (own, said), (together, _) = shrunken(alone), shrunken(mean)
    return own, together, said, alone


def _pairs(
    prepared: Prepared, forest: Forest, rows: Floats, beyond: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """What two members learned of decisions that neither learned from, and of which."""
    held_out = prepared.folds.held_out.cpu().numpy().astype(bool)
    stops = held_out[:, prepared.data.decisions().stay]
    some: Bools = np.asarray(stops.any(0)) & (forest.n_members > 1)
    member = stops.argmax(0)
    other = _ask(forest, rows, member, some)[some] - forest.base[member[some]]
    place = torch.from_numpy(np.flatnonzero(some))
    return torch.stack([beyond[place], torch.from_numpy(other)]), place


def _ask(forest: Forest, rows: Floats, member: Ints, some: Bools) -> Floats:
    """What one member says of each of some rows, shape (n, K); zero of the others."""
    said = np.zeros((len(rows), forest.base.shape[1]))
    for number in range(forest.n_members):
        asked = some & (member == number)
        said[asked] = forest.select([number]).outputs(rows[asked])[0]
    return said
