"""The one place where learners' networks are trained: reports, checkpoints, parts, groups.

A learner only asks (`requests.py`). What it asks for is trained all at once if memory allows, else
in parts one after another, with the same result; it is taken from the checkpoints if an earlier
process trained it; and like requests of several learners are trained as one bundle.
"""

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from torch import Tensor

from etips.learn.fitting.checkpoints import Checkpoints, NoCheckpoints, Stage
from etips.learn.fitting.groups import group_alike, join_reports, join_requests
from etips.learn.fitting.requests import ModelFitted, Requests, TrainingRequest
from etips.learn.training import memory
from etips.learn.training.epoch_report import EpochReport, Report
from etips.learn.training.loop import train
from etips.learn.training.sharing import Sharing
from etips.learn.training.state import State
from etips.models.bundle import Bundle

T = TypeVar("T")


def drive(
    requests: Requests[T],
    *,
    report: Report | None = None,
    checkpoints: Checkpoints | None = None,
    sharing: Sharing | None = None,
) -> T:
    """Train all that one learner asks for; return what it learned.

    Args:
        requests: The learner at work.
        report: Told after every epoch.
        checkpoints: Keep the work and take it up where it was stopped.
        sharing: Trainings that share the device with these.
    """
    kept = () if checkpoints is None else (checkpoints,)
    return drive_together([requests], report=report, checkpoints=kept, sharing=sharing)[0]


def drive_together(
    each: Sequence[Requests[T]],
    *,
    report: Report | None = None,
    checkpoints: Sequence[Checkpoints] = (),
    sharing: Sharing | None = None,
) -> list[T]:
    """Train what several learners ask for, like requests as one bundle; return what each learned.

    The learners take turns in their order, so the result does not depend on chance. When all of
    them wait for networks, those are trained. A stage that was finished before is taken from the
    checkpoints; one that was not begins anew. The first error, in the order of the learners, is
    raised once all have ended; of a training that fails, all who asked for it are told.

    Args:
        each: The learners at work, on the same stays. A single one is taken up within a stage too.
        report: Told after every epoch of a bundle.
        checkpoints: One a learner, or none.
        sharing: Trainings that share the device with these.
    """
    kept = list(checkpoints) or [NoCheckpoints() for _ in each]
    options = _Options(report, sharing or Sharing(), alone=len(each) == 1)
    works = [_answered(own, place, options) for own, place in zip(each, kept, strict=True)]
    learned: dict[int, T] = {}
    errors: dict[int, Exception] = {}
    answers: Mapping[int, Bundle | Exception | None] = dict.fromkeys(range(len(works)))
    while answers:
        waiting: dict[int, _Waiting] = {}
        for number, answer in sorted(answers.items()):
            try:
                waiting[number] = _send(works[number], answer)
            except StopIteration as end:
                learned[number] = end.value
            except Exception as error:  # noqa: BLE001  # raised once all have ended
                errors[number] = error
        answers = _train_groups(waiting, options)
    if errors:
        raise errors[min(errors)]
    return [learned[number] for number in range(len(works))]


@dataclass(frozen=True, eq=False)
class _Options:
    """How learners are driven.

    Args:
        report: Told after every epoch.
        sharing: Trainings that share the device.
        alone: Whether there is one learner, whose stages are kept while they go on.
    """

    report: Report | None
    sharing: Sharing
    alone: bool


@dataclass(frozen=True, eq=False)
class _Waiting:
    """A training that a learner waits for.

    Args:
        request: Some or all of the networks that it asked for.
        these: Which of all.
        stage: Where they are kept.
    """

    request: TrainingRequest
    these: slice
    stage: Stage


_Answering = Generator[_Waiting, Bundle, T]
"""Waits for trainings one after the other, is sent the networks of each, and returns something."""


def _answered(requests: Requests[T], checkpoints: Checkpoints, options: _Options) -> _Answering[T]:
    """A learner whose every request is answered, in parts and from checkpoints if need be."""
    try:
        request = next(requests)
        while True:
            if isinstance(request, ModelFitted):
                _tell(request, checkpoints, options.report)
                request = next(requests)
                continue
            try:
                bundle = yield from _fetch(request, checkpoints, options)
            except Exception as error:  # noqa: BLE001  # the learner is told where it asked
                request = requests.throw(error)
            else:
                request = requests.send(bundle)
    except StopIteration as end:
        learned: T = end.value
        return learned


def _tell(fitted: ModelFitted, checkpoints: Checkpoints, report: Report | None) -> None:
    """Say that a model was fitted, in the log of a run and to those who watch."""
    checkpoints.note(fitted.name, f"fitted in {fitted.seconds:.1f} s on one core")
    if report is not None:
        nothing = math.nan
        report(EpochReport(1, 1, nothing, nothing, 0.0, None, fitted.name, fitted.seconds))


def _fetch(
    request: TrainingRequest, checkpoints: Checkpoints, options: _Options
) -> _Answering[Bundle]:
    """All networks of a request; those of a single learner in parts if memory asks for it."""
    n_networks = request.bundle.n_members
    parts = _parts(request, options.sharing) if options.alone else [slice(0, n_networks)]
    if options.alone and (size := checkpoints.part_size(request.stage)):
        parts = memory.cut(n_networks, size)  # as the interrupted run had them
    if len(parts) == 1:
        return (yield from _fetch_part(request, parts[0], checkpoints))
    checkpoints.note(request.stage, f"{n_networks} networks in {len(parts)} parts, for memory")
    bundles = []
    for these in parts:
        bundles.append((yield from _fetch_part(request.part(these), these, checkpoints)))
    return Bundle.join(bundles)


def _fetch_part(
    request: TrainingRequest, these: slice, checkpoints: Checkpoints
) -> _Answering[Bundle]:
    """Networks as an earlier process finished them; others are waited for.

    Args:
        request: Of these networks alone.
        these: Which of all that were asked for.
        checkpoints: Keep them.
    """
    start = request.bundle.to(request.prepared.steps.device)
    stage = checkpoints.stage(request.stage, start, request.settings)
    if stage.networks is not None:
        return stage.networks
    return stage.finish((yield _Waiting(request, these, stage)))


def _send(work: _Answering[T], answer: Bundle | Exception | None) -> _Waiting:
    """Send networks, or the error of their training; return what is waited for next."""
    if answer is None:
        return next(work)
    return work.throw(answer) if isinstance(answer, Exception) else work.send(answer)


def _train_groups(
    waiting: Mapping[int, _Waiting], options: _Options
) -> dict[int, Bundle | Exception]:
    """Train all that learners wait for, like with like."""
    answers: dict[int, Bundle | Exception] = {}
    for numbers in group_alike({number: own.request for number, own in waiting.items()}):
        group = [waiting[number] for number in numbers]
        try:
            train_all = _train_alone if options.alone else _train_group
            answers |= zip(numbers, train_all(group, options), strict=True)
        except Exception as error:  # noqa: BLE001  # every one of them is told
            answers |= dict.fromkeys(numbers, error)
    return answers


def _train_alone(group: Sequence[_Waiting], options: _Options) -> list[Bundle]:
    """Train what a single learner waits for, from where an earlier process left it."""
    return [
        _train(
            own.request,
            own.these,
            options.sharing,
            report=own.stage.reporting(options.report),
            state=own.stage.state,
            keep=own.stage.keep,
        )
        for own in group
    ]


def _train_group(group: Sequence[_Waiting], options: _Options) -> list[Bundle]:
    """Train like requests as one bundle, in parts if memory asks for it; to each its networks."""
    joined = join_requests([own.request for own in group])
    others = [own.stage.reporting(None) for own in group[1:]]
    report = join_reports([group[0].stage.reporting(options.report), *others])
    trained = [
        _train(
            joined.request.part(these),
            these,
            options.sharing,
            report=report,
            learning_rates=joined.learning_rates[these],
            weight_decays=joined.weight_decays[these],
        )
        for these in _parts(joined.request, options.sharing)
    ]
    return joined.deal(Bundle.join(trained))


def _parts(request: TrainingRequest, sharing: Sharing) -> list[slice]:
    """Networks that train at once."""
    steps = request.prepared.steps
    each = memory.estimate(request.bundle.network, steps, request.settings)
    room = memory.room(steps.device, sharers=sharing.n_trainings)
    return memory.parts_of(request.bundle.n_members, each, room)


def _train(
    request: TrainingRequest,
    these: slice,
    sharing: Sharing,
    *,
    report: Report | None,
    state: State | None = None,
    keep: Callable[[State], None] | None = None,
    learning_rates: Tensor | None = None,
    weight_decays: Tensor | None = None,
) -> Bundle:
    """Train networks that are these of all that were asked for; see `train`."""
    prepared = request.prepared
    n_sets = -(-these.stop // prepared.folds.n_networks)
    weight, held_out = (values[these] for values in prepared.folds.tile(n_sets))
    with memory.refusing_lack():
        best, _ = train(
            request.bundle.to(prepared.steps.device),
            prepared.steps,
            request.objective,
            weight=weight,
            held_out=held_out,
            settings=request.settings,
            learning_rates=learning_rates,
            weight_decays=weight_decays,
            report=report,
            state=state,
            keep=keep,
            halt=sharing.halt,
        )
    return best
