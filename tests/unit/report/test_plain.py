"""The plain results page."""

from html.parser import HTMLParser

from etips.report.plain import results_page

HOSTILE = "<script>alert(1)</script>\" onload='x' &amp; =1+1"


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)


def page(name: str) -> Reader:
    reader = Reader()
    rows = [{"policy": name, "true risk": 0.5}, {"policy": "b", "true risk": 2.0}]
    reader.feed(results_page(name, name, rows, chart="true risk", footer=name))
    return reader


def test_hostile_names_are_text_and_nothing_else():
    reader = page(HOSTILE)
    assert not [tag for tag, _ in reader.tags if tag == "script"]
    assert not [attrs for _, attrs in reader.tags if any(key.startswith("on") for key in attrs)]
    assert "".join(reader.text).count(HOSTILE) == 5  # title, heading, lead, row, footer


def test_the_page_loads_nothing_from_elsewhere():
    reader = page("a")
    assert not [attrs for _, attrs in reader.tags if {"src", "href"} & set(attrs)]
    policy = [a["content"] for t, a in reader.tags if t == "meta" and "http-equiv" in a]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'"]


def test_a_bar_stays_inside_its_cell():
    widths = [attrs["style"] for tag, attrs in page("a").tags if tag == "div"]
    assert widths == ["width:50.0%", "width:100.0%"]
