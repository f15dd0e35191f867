"""The page of the noise sweep: a table and a figure for every world, from the files it wrote."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

TITLES = {
    "icu": "ICU-Sepsis, lag 0",
    "icu-lag1": "ICU-Sepsis, lag 1",
    "digits": "Digits, row by row",
    "clinic": "Clinic",
}
NEAR = {"icu": 0.002, "icu-lag1": 0.002, "digits": 0.01, "clinic": 0.005}
"""How far from the best objective beta-IPS, which `etips` is, may be."""

SHOWN = ("translated", "beta-IPS", "doubly robust", "log-sum-exp")
COLOURS = ("#111111", "#c44e52", "#4c72b0", "#55a868", "#8172b3")
WIDTH, HEIGHT, LEFT, BOTTOM = 640, 240, 60, 60

Risks = Mapping[str, Mapping[str, float]]
"""Mean true risk by level and objective."""


def write_page(folder: Path, page: Path, levels: Sequence[str]) -> None:
    """Write the page and, beside it, one figure a world.

    Args:
        folder: Where the sweep wrote.
        page: Markdown file.
        levels: In their order.
    """
    records = [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]
    parts = [page.read_text().split(MARK)[0].rstrip() + "\n\n" if page.exists() else "", MARK, "\n"]
    for world, title in TITLES.items():
        own = [record for record in records if record["world"] == world]
        if not own:
            continue
        risks, clinicians = mean_risks(own, levels)
        figure = page.with_name(f"{page.stem}-{world}.svg")
        figure.write_text(draw(risks, title))
        sizes = sorted({record["n"] for record in own})
        seeds = sorted({record["seed"] for record in own})
        learned = f"{' and '.join(f'{n:,}' for n in sizes)} stays, seeds {seeds}"
        parts.append(
            f"\n## {title}\n\nLearned from {learned}; the clinicians have {clinicians:.4f}."
            f" Best in bold.\n\n![True risk by level]({figure.name})\n\n{table(risks)}\n"
            f"\n{finding(risks, NEAR[world])}\n"
        )
    page.write_text("".join(parts))


MARK = "<!-- figures below are written by benchmarks/noise_sweep.py -->\n"


def mean_risks(
    records: Sequence[Mapping[str, object]], levels: Sequence[str]
) -> tuple[Risks, float]:
    """Means over seeds, levels in their order, and the clinicians' risk."""
    by_level: dict[str, dict[str, list[float]]] = {level: defaultdict(list) for level in levels}
    for record in records:
        for name, risk in record["risk"].items():
            by_level[record["level"]][name].append(risk)
    means = {
        level: {name: float(np.mean(own)) for name, own in named.items()}
        for level, named in by_level.items()
        if named
    }
    return means, float(np.mean([record["clinicians"] for record in records]))


def table(risks: Risks) -> str:
    """Levels down, objectives across."""
    names = list(next(iter(risks.values())))
    lines = ["| propensities | " + " | ".join(names) + " |", "| --- |" + " --- |" * len(names)]
    for level, own in risks.items():
        least = min(own.values())
        cells = [
            f"**{own[name]:.4f}**" if own[name] <= least + 5e-5 else f"{own[name]:.4f}"
            for name in names
        ]
        lines.append(f"| {level} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def finding(risks: Risks, near: float) -> str:
    """How far beta-IPS is from the best, in words."""
    behind = {level: own["beta-IPS"] - min(own.values()) for level, own in risks.items()}
    far = [f"{level} ({gap:.4f})" for level, gap in behind.items() if gap > near]
    if not far:
        return f"beta-IPS is within {near:g} of the best objective at every level."
    return f"beta-IPS is more than {near:g} behind the best objective at: {', '.join(far)}."


def draw(risks: Risks, title: str) -> str:
    """A figure: true risk over levels, one line an objective."""
    levels = list(risks)
    values = [own[name] for own in risks.values() for name in SHOWN if name in own]
    low, high = min(values), max(values)
    room = max(high - low, 1e-6)

    def x(place: int) -> float:
        return LEFT + (WIDTH - LEFT - 140) * place / max(len(levels) - 1, 1)

    def y(risk: float) -> float:
        return 30 + (HEIGHT - BOTTOM - 40) * (high - risk) / room

    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
    parts = [head + 'font-family="sans-serif" font-size="10">']
    parts.append(f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>')
    parts.append(f'<text x="{LEFT}" y="16" font-size="12">{title}: true risk</text>')
    for risk in np.linspace(low, high, 4):
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - 140}" y1="{y(risk):.1f}" y2="{y(risk):.1f}" '
            f'stroke="#dddddd"/><text x="8" y="{y(risk) + 3:.1f}">{risk:.4f}</text>'
        )
    for place, level in enumerate(levels):
        spot = f"{x(place):.1f},{HEIGHT - BOTTOM + 8}"
        parts.append(f'<text transform="translate({spot}) rotate(30)">{level}</text>')
    for name, colour, row in zip(SHOWN, COLOURS, range(len(SHOWN)), strict=True):
        points = " ".join(
            f"{x(place):.1f},{y(risks[level][name]):.1f}" for place, level in enumerate(levels)
        )
        width = 2.5 if name == "beta-IPS" else 1.3
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
            f'<text x="{WIDTH - 130}" y="{40 + 14 * row}" fill="{colour}">{name}</text>'
        )
    return "\n".join([*parts, "</svg>\n"])
