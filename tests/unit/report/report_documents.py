"""Results documents for the tests of the report, and a reader of the pages made from them."""

from copy import deepcopy
from dataclasses import dataclass, field
from html.parser import HTMLParser

import numpy as np

from etips.evaluation.log import Log
from etips.learn.fitting.candidates import Candidate
from etips.report import page
from etips.results.assembly import make_exhibits
from etips.results.data_summary import summarize_data
from etips.results.evaluate import assess_policies
from etips.results.parsing import parse_results
from etips.results.results import Results
from etips.worlds import icu_sepsis
from etips.worlds.clinic import Clinic

VOID = {"meta", "br", "hr", "img", "input", "link"}
PATH = (
    Candidate(0.2, 0.41, 0.01, 1.0, 90.0),
    Candidate(0.6, 0.39, 0.02, 0.2, 9.0),
    Candidate(0.8, 0.40, 0.02, 0.9, 80.0, chosen=True),
    Candidate(float("nan"), 0.45, 0.02, 1.1, 70.0, form="beta-IPS"),
)


def render(document):
    """The page of a document."""
    return page.render(parse_results(document))


def document(n_stays=300, *, names=("p", "q"), seed=0, world="clinic", full=True):
    """A whole document: two policies on a small simulated log, exhibits and a path."""
    if world == "clinic":
        data = Clinic(n_actions=3, decisions_per_stay=2).log(n_stays, seed=seed)
    else:
        data = icu_sepsis.simulate(n_stays, seed=seed, lag=0)
    chances = data.true_logging()
    log = Log.of(data, propensities=chances if full else None)
    sharp = chances**2 / (chances**2).sum(axis=1, keepdims=True)
    far = np.full_like(chances, 1e-6)
    far[:, chances.mean(axis=0).argmin()] = 1
    tables = dict(zip(names, (sharp, far / far.sum(axis=1, keepdims=True)), strict=True))
    exhibits = make_exhibits(
        data,
        log,
        tables,
        headline=names[0],
        paths={names[0]: PATH},
        settings={"seed": 1, "folds": [1, 2]},
    )
    methods = assess_policies(tables, log, data, notes={"propensities": "known"})
    return Results(summarize_data(data), methods, 1.5, exhibits).to_json()


@dataclass
class Element:
    """A tag with what is inside it."""

    tag: str
    attributes: dict
    parent: "Element | None" = None
    inside: list = field(default_factory=list)

    @property
    def text(self):
        return " ".join(i if isinstance(i, str) else i.text for i in self.inside)

    def all(self, *tags):
        for part in self.inside:
            if isinstance(part, Element):
                if not tags or part.tag in tags:
                    yield part
                yield from part.all(*tags)


class Page(HTMLParser):
    """A strict reader: every element must be closed in order."""

    def __init__(self, text):
        super().__init__()
        self.root = self.here = Element("root", {})
        self.feed(text)
        self.close()
        assert self.here is self.root, f"{self.here.tag} is not closed"

    def handle_starttag(self, tag, attrs):
        assert len({key for key, _ in attrs}) == len(attrs)
        made = Element(tag, dict(attrs), self.here)
        self.here.inside.append(made)
        if tag not in VOID:
            self.here = made

    def handle_startendtag(self, tag, attrs):
        self.here.inside.append(Element(tag, dict(attrs), self.here))

    def handle_endtag(self, tag):
        assert self.here.tag == tag, f"{tag} closes {self.here.tag}"
        self.here = self.here.parent

    def handle_data(self, data):
        if self.here.tag != "style":
            self.here.inside.append(data)

    def all(self, *tags):
        return list(self.root.all(*tags))


def section_of(page, anchor):
    """The section of a page that has this anchor."""
    (section,) = [s for s in page.all("section") if s.attributes["id"] == anchor]
    return section


def changed(document, **changes):
    """A copy of a document, with the main policy's fields changed; and that policy."""
    made = deepcopy(document)
    made["methods"][0] |= changes
    return made, made["methods"][0]


def words(made, anchor):
    """The text of a section of the page of a document."""
    return " ".join(section_of(Page(render(made)), anchor).text.split())
