"""Colours of the page: letters can be read by day, by night and on paper."""

import re
from importlib import resources

import pytest

CSS = resources.files("etips.report").joinpath("templates/style.css").read_text("utf-8")
TEXT = [
    *(("ink", "paper"), ("ink", "card"), ("ink", "zone"), ("soft", "paper"), ("soft", "card")),
    *(("good", "good-back"), ("warn", "warn-back"), ("bad", "bad-back"), ("link", "paper")),
    *(("part", "part-back"), ("null", "null-back"), ("harm", "harm-back")),
    *(("on", "c0"), ("on", "c1"), ("warn", "paper"), ("truth", "paper"), ("soft", "zone")),
]
GRAPHICS = ("c0", "c1", "c2", "c3", "c4", "c5", "truth")


def palettes():
    light, dark, print_ = (dict(re.findall(r"--([\w-]+): (#\w+)", part)) for part in parts())
    return {"light": light, "dark": dark, "print": print_}


def parts():
    found = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
    assert len(found) == 3
    return found


def luminance(colour):
    digits = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
    channels = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_letters_reach_a_contrast_of_four_and_a_half_and_marks_of_three(scheme):
    found = palettes()[scheme]
    for front, back in TEXT:
        assert contrast(found[front], found[back]) >= 4.5, (front, back)
    for mark in GRAPHICS:
        assert contrast(found[mark], found["card"]) >= 3, mark


def mix(front, back, opacity):
    pairs = zip(*([c[i : i + 2] for i in (1, 3, 5)] for c in (front, back)), strict=True)
    mixed = (round(opacity * int(a, 16) + (1 - opacity) * int(b, 16)) for a, b in pairs)
    return "#" + "".join(f"{value:02x}" for value in mixed)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("colour", ["c0", "c1"])
def test_numbers_in_a_dose_map_can_be_read_on_every_shade(scheme, colour):
    from etips.report.maps import _shade

    found = palettes()[scheme]
    letters = {"cell-text": "ink", "cell-text mid": "mid", "cell-text on": "on"}
    for step in range(101):
        opacity, look = _shade(step / 100)
        back = mix(found[colour], found["zone"], opacity)
        assert contrast(found[letters[look]], back) >= 4.5, (step, look)


def test_paper_gets_tables_and_not_the_cards_of_a_phone():
    """A sheet is as narrow as a phone lying down, so the rule for phones must name screens."""
    rules = re.findall(r"@media ([^{]*max-width[^{]*)\{", CSS)
    assert rules
    assert all(rule.startswith("screen ") for rule in rules)
