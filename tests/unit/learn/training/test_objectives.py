"""Objectives by hand, by gradient check, and at the edge of what floats can hold (goal S8)."""

import math

import pytest
import torch

from etips.learn.training import objectives
from etips.learn.training.objectives import (
    Weighted,
    bernoulli,
    chosen,
    cross_entropy,
    doubly_robust,
    kl_divergence,
    part_of,
    squared,
    translated_ips,
    weigh,
)
from etips.models.network import FORBIDDEN, forbid

SHAPES = 50


def draw(seed, dtype=torch.float64):
    """A random problem: J networks, n decisions, K actions, each shape its own."""
    g = torch.Generator().manual_seed(seed)
    n_networks, n, k = (int(torch.randint(1, most, (), generator=g)) for most in (4, 6, 7))

    def normal(*shape):
        return torch.randn(shape, generator=g, dtype=torch.float64).to(dtype)

    allowed = torch.rand(n, k, generator=g) < 0.7
    action = torch.randint(0, k, (n,), generator=g)
    allowed[torch.arange(n), action] = True
    return {
        "logits": 2 * normal(n_networks, n, k),
        "action": action,
        "loss": torch.rand(n, generator=g, dtype=torch.float64).to(dtype),
        "log_propensity": -3 * normal(n).abs(),
        "translation": normal(n_networks, 1),
        "expected": normal(n, k),
        "log_propensities": normal(n, k).log_softmax(-1),
        "allowed": allowed,
    }


OBJECTIVES = {
    "cross_entropy": lambda x, p: cross_entropy(x, p["action"]),
    "translated_ips": lambda x, p: translated_ips(
        x, p["action"], p["loss"], p["log_propensity"], p["translation"]
    ),
    "doubly_robust": lambda x, p: doubly_robust(
        x, p["action"], p["loss"], p["log_propensity"], p["expected"]
    ),
    "bernoulli": lambda x, p: bernoulli(x, p["action"], p["loss"]),
    "squared": lambda x, p: squared(x, p["action"], p["loss"]),
    "kl_divergence": lambda x, p: kl_divergence(x, p["log_propensities"]),
    "with_support": lambda x, p: translated_ips(
        forbid(x, p["allowed"]), p["action"], p["loss"], p["log_propensity"], p["translation"]
    ),
}


@pytest.fixture(params=sorted(OBJECTIVES))
def objective(request):
    return OBJECTIVES[request.param]


def test_s8_every_gradient_is_the_gradient(objective):
    for seed in range(SHAPES):
        problem = draw(seed)
        logits = problem["logits"].requires_grad_()
        assert torch.autograd.gradcheck(lambda x, p=problem: objective(x, p), (logits,))


def test_s8_float32_is_near_float64(objective):
    for seed in range(SHAPES):
        found = []
        for dtype in (torch.float32, torch.float64):
            problem = draw(seed, dtype)
            logits = problem["logits"].requires_grad_()
            values = objective(logits, problem)
            found.append([values, *torch.autograd.grad(values.sum(), logits)])
        for low, high in zip(*found, strict=True):
            scale = max(float(high.detach().abs().max()), 0.1)
            torch.testing.assert_close(low.double(), high, atol=1e-5 * scale, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("exponent", [1, 20, 37, 38, 39, 60, 80])
@pytest.mark.parametrize(
    "name", ["translated_ips", "doubly_robust", "with_support", "kl_divergence"]
)
def test_s8_a_tiny_propensity_gives_neither_nan_nor_infinity(name, exponent, dtype):
    for seed in range(10):
        problem = draw(seed, dtype)
        problem["log_propensity"].fill_(-exponent * math.log(10))
        problem["log_propensities"][:, 0] = -exponent * math.log(10)
        problem["loss"][0] = problem["translation"][0, 0]  # nothing times a huge weight
        logits = problem["logits"].requires_grad_()
        values = OBJECTIVES[name](logits, problem)
        (gradient,) = torch.autograd.grad(values.sum(), logits)
        assert values.isfinite().all()
        assert gradient.isfinite().all()


def test_s8_a_ratio_of_two_tiny_probabilities_is_exact():
    logits = torch.tensor([[[0.0, -199.0]]], requires_grad=True)  # float32
    log_propensity = torch.tensor([-196.0])
    value = translated_ips(
        logits, torch.tensor([1]), torch.ones(1), log_propensity, torch.zeros(1, 1)
    )
    assert value.item() == pytest.approx(math.exp(-3), rel=1e-4)
    (gradient,) = torch.autograd.grad(value, logits)
    assert gradient[0, 0].tolist() == pytest.approx([-math.exp(-3), math.exp(-3)], rel=1e-4)


def test_ratios_are_exact_up_to_the_limit_and_go_on_along_the_tangent():
    limit = objectives.STEEPEST
    log_ratio = torch.tensor([-50.0, 0.0, limit, limit + 2], dtype=torch.float64)
    log_ratio.requires_grad_()
    ratio = objectives.ratio_of(log_ratio)
    wanted = [math.exp(-50), 1.0, math.exp(limit), 3 * math.exp(limit)]
    assert ratio.tolist() == pytest.approx(wanted, rel=1e-12)
    (slope,) = torch.autograd.grad(ratio.sum(), log_ratio)
    assert slope.tolist() == pytest.approx([math.exp(-50), 1.0, *[math.exp(limit)] * 2], rel=1e-12)


def two_actions():
    """Policy (3/4, 1/4) at both decisions; actions 0 and 1, propensities 1/2 and 1/8."""
    logits = torch.tensor([[[math.log(3.0), 0.0]] * 2], dtype=torch.float64)
    action, loss = torch.tensor([0, 1]), torch.tensor([1.0, 0.5], dtype=torch.float64)
    return logits, action, loss, torch.tensor([0.5, 0.125], dtype=torch.float64).log()


def test_translated_ips_by_hand():
    logits, *log = two_actions()
    found = translated_ips(
        logits.expand(2, -1, -1), *log, torch.tensor([[0.0], [0.75]], dtype=torch.float64)
    )
    # weights 1.5 and 2; losses 1 and 0.5, then 0.25 and -0.25
    torch.testing.assert_close(
        found, torch.tensor([[1.5, 1.0], [0.375, -0.5]], dtype=torch.float64)
    )


def test_doubly_robust_by_hand():
    logits, *log = two_actions()
    expected = torch.tensor([[0.8, 0.4], [0.2, 0.1]], dtype=torch.float64)
    found = doubly_robust(logits, *log, expected)
    # 0.75*0.8 + 0.25*0.4 + 1.5*(1 - 0.8), 0.75*0.2 + 0.25*0.1 + 2*(0.5 - 0.1)
    torch.testing.assert_close(found, torch.tensor([[1.0, 0.975]], dtype=torch.float64))


def test_cross_entropy_squared_and_bernoulli_by_hand():
    logits, action, loss, _ = two_actions()
    wanted = [-math.log(0.75), -math.log(0.25)]
    assert cross_entropy(logits, action)[0].tolist() == pytest.approx(wanted)
    wanted = [(math.log(3) - 1) ** 2, 0.25]
    assert squared(logits, action, loss)[0].tolist() == pytest.approx(wanted)
    # log(3) is a predicted loss of 3/4, 0 one of 1/2
    wanted = [-math.log(0.75), math.log(2)]
    assert bernoulli(logits, action, loss)[0].tolist() == pytest.approx(wanted)


def test_the_kl_divergence_is_kullbacks_and_leiblers_and_zero_at_the_propensities():
    logits, *_ = two_actions()
    even = torch.full((2, 2), 0.5, dtype=torch.float64).log()
    wanted = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
    assert kl_divergence(logits, even)[0].tolist() == pytest.approx([wanted] * 2)
    own = logits[0].log_softmax(-1)
    assert kl_divergence(logits, own).abs().max() < 1e-15


def test_doubly_robust_with_a_zero_model_is_untranslated_ips():
    problem = draw(3)
    problem["expected"].zero_()
    problem["translation"].zero_()
    logits = problem["logits"]
    torch.testing.assert_close(
        OBJECTIVES["doubly_robust"](logits, problem), OBJECTIVES["translated_ips"](logits, problem)
    )


def test_a_logged_action_that_is_forbidden_weighs_nothing():
    logits = forbid(torch.zeros(1, 1, 2), torch.tensor([[False, True]])).requires_grad_()
    value = translated_ips(
        logits, torch.tensor([0]), torch.ones(1), torch.zeros(1), torch.zeros(1, 1)
    )
    (gradient,) = torch.autograd.grad(value, logits)
    assert value.item() == 0
    assert (gradient == 0).all()


def test_a_weight_is_policy_over_propensity():
    logits = torch.tensor([[[0.1, 0.9]], [[0.5, 0.5]]]).log()
    found = weigh(logits, torch.tensor([1]), torch.tensor([0.45]).log())
    assert found.flatten().tolist() == pytest.approx([2.0, 0.5 / 0.45])


def test_an_objective_of_weights_is_asked_for_the_networks_it_is_for():
    shift = torch.arange(5.0)[:, None]
    whole = objectives.Weighted(
        lambda outputs, seen, these: outputs[..., 0] - shift[these],
        lambda outputs, seen, these: outputs[..., 1] + shift[these],
    )
    outputs, seen = torch.zeros(5, 3, 2), torch.arange(3)
    assert whole(outputs, seen)[:, 0].tolist() == [0, -1, -2, -3, -4]
    part = objectives.part_of(whole, slice(2, 4))
    assert part(outputs[2:4], seen)[:, 0].tolist() == [-2, -3]
    assert part.weigh(outputs[2:4], seen)[:, 0].tolist() == [2, 3]
    assert objectives.part_of(squared, slice(0, 1)) is squared


def test_some_of_some_networks_keep_their_places_in_the_whole_bundle():
    places = torch.arange(20)
    whole = Weighted(lambda outputs, seen, these: places[these], None)
    some = part_of(part_of(whole, slice(4, 16)), slice(1, 12, 3))
    assert some(None, None).tolist() == [5, 8, 11, 14]
    assert part_of(whole, slice(2, 4))(None, None).tolist() == [2, 3]


def test_the_probability_of_the_logged_action_is_that_of_the_softmax():
    logits, action = torch.tensor([[[0.0, math.log(3.0)], [FORBIDDEN, 0.0]]]), torch.tensor([1, 0])
    found = chosen(logits, action)
    assert found.dtype == torch.float64
    assert found[0].tolist() == pytest.approx([0.75, 0.0])


def test_the_divergence_is_indifferent_to_what_is_forbidden():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 5, 4, generator=generator).requires_grad_()
    likely = torch.randn(5, 4, generator=generator).log_softmax(-1)
    allowed = torch.tensor([True, True, False, True]).expand(5, -1)
    few = logits[..., allowed[0]]
    found, wanted = (
        kl_divergence(forbid(logits, allowed), likely),
        kl_divergence(few, likely[:, allowed[0]]),
    )
    torch.testing.assert_close(found, wanted)
    first, second = (torch.autograd.grad(value.sum(), logits)[0] for value in (found, wanted))
    torch.testing.assert_close(first, second)
