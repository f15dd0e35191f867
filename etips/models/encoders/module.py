"""Any causal torch module as an encoder, for many networks at once."""

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn

from etips.errors import SettingError
from etips.models.encoders.encoder import Parameters, Shapes


class ModuleEncoder:
    """Any causal `torch.nn.Module` that maps (batch, steps, features) to (batch, steps, hidden).

    Networks of the bundle run through `torch.func.vmap`; a module that it cannot handle runs one
    network after another, with the same result. The module runs as in `eval()`: what is hidden
    while training is up to the settings of the training.

    Args:
        make: Builds a fresh module for a number of features; a module class that takes it will do.
            A module instance is copied, and its layers' `reset_parameters` gives each seed its own.
    """

    name: ClassVar[str] = "module"

    def __init__(self, make: Callable[[int], nn.Module] | nn.Module) -> None:
        self.make = make
        self._skeletons: dict[int, nn.Module] = {}
        self._one_by_one: set[bool] = set()

    def start(self, n_features: int, seeds: Sequence[int]) -> Parameters:
        """Build one module a seed, each under its own seed, and stack their parameters."""
        modules = [self._build(n_features, seed) for seed in seeds]
        if any(True for _ in modules[0].buffers()):
            raise SettingError("encoder", "must not keep buffers such as running averages")
        require_causal(modules[0], n_features)
        names = [name for name, _ in modules[0].named_parameters()]
        each = [dict(module.named_parameters()) for module in modules]
        return {name: torch.stack([one[name].detach() for one in each]) for name in names}

    def states(self, parameters: Mapping[str, Tensor], inputs: Tensor) -> Tensor:
        """States after every step."""
        batch, learning = inputs.transpose(0, 1), torch.is_grad_enabled()
        call = partial(self._call, self._skeleton(inputs.shape[-1]))
        if not parameters:  # nothing to learn: one state serves all networks
            return call({}, batch)[None].transpose(1, 2)
        if learning not in self._one_by_one:
            try:
                states: Tensor = torch.func.vmap(call, in_dims=(0, None))(dict(parameters), batch)
                return states.transpose(1, 2)
            except (RuntimeError, ValueError):  # the module does what vmap cannot batch
                self._one_by_one.add(learning)
        n_networks = len(next(iter(parameters.values())))
        each = [{name: v[j] for name, v in parameters.items()} for j in range(n_networks)]
        return torch.stack([call(own, batch) for own in each]).transpose(1, 2)

    def size(self, n_features: int) -> int:
        """Width of the state."""
        with torch.no_grad():
            states: Tensor = self._build(n_features, 0)(torch.zeros(1, 1, n_features))
        return states.shape[2]

    def shapes(self, n_features: int) -> Shapes:
        """Shape of every parameter, of a module that is built as in `start`."""
        for name, value in self.start(n_features, [0]).items():
            yield name, tuple(value.shape[1:])

    def to_json(self) -> dict[str, object]:
        """Its name alone: code is not stored."""
        return {"name": self.name}

    def _skeleton(self, n_features: int) -> nn.Module:
        """A module without numbers of its own, to be called with any network's parameters."""
        if n_features not in self._skeletons:
            self._skeletons[n_features] = self._build(n_features, 0).to("meta")
        return self._skeletons[n_features]

    @staticmethod
    def _call(skeleton: nn.Module, parameters: dict[str, Tensor], batch: Tensor) -> Tensor:
        states: Tensor = torch.func.functional_call(skeleton, parameters, (batch,))
        return states

    def _build(self, n_features: int, seed: int) -> nn.Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            if not isinstance(self.make, nn.Module):
                return _made(self.make, n_features).eval()
            module = copy.deepcopy(self.make)
            for layer in module.modules():
                reset = getattr(layer, "reset_parameters", None)
                if callable(reset):
                    reset()
            return module.eval()


def _made(make: Callable[[int], nn.Module], n_features: int) -> nn.Module:
    """What somebody's function or class builds, refused unless it is a module."""
    try:
        module = make(n_features)
    except TypeError as error:
        rule = "must be built from the number of features alone"
        raise SettingError("encoder", f"{rule}: {error}") from error
    if not isinstance(module, nn.Module):
        raise SettingError("encoder", "must build a torch module")
    return module


def require_causal(module: nn.Module, n_features: int) -> None:
    """Refuse an encoder whose state after a step changes with later steps or with other stays.

    One look on random input; a state that is wrong only for rare inputs would pass.
    """
    generator = torch.Generator().manual_seed(0)
    steps = torch.randn(3, 6, n_features, generator=generator)
    later, others = steps.clone(), steps.clone()
    later[:, 3:] = torch.randn(3, 3, n_features, generator=generator)
    others[:2] = torch.randn(2, 6, n_features, generator=generator)
    first, second, third = (_asked(module, values) for values in (steps, later, others))
    if not isinstance(first, Tensor) or first.dim() != 3 or first.shape[:2] != steps.shape[:2]:
        raise SettingError("encoder", "must map (batch, steps, features) to (batch, steps, hidden)")
    if not torch.allclose(first[:, :3], second[:, :3], atol=1e-5):
        raise SettingError(
            "encoder", "must be causal: its state at a step changed with later steps"
        )
    if not torch.allclose(first[2], third[2], atol=1e-5):
        raise SettingError(
            "encoder",
            "must read each stay by itself: a state changed with other stays",
            fix="Is its first axis the batch?",
        )


def _asked(module: nn.Module, values: Tensor) -> Tensor:
    """What a module says in `eval()`; it is left in the mode that it was in."""
    was_training = module.training
    module.eval()
    try:
        with torch.no_grad():
            states: Tensor = module(values)
    except RuntimeError as error:
        rule = f"fails on an input of shape {tuple(values.shape)}"
        raise SettingError("encoder", f"{rule}: {error}") from error
    finally:
        module.train(was_training)
    return states
