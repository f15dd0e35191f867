"""Names that are imported on first use."""

import pydoc
import re
import subprocess
import sys

import pytest

import etips
import etips.learn
from etips.lazy_names import load_lazily
from etips.learn.learners.weighted import EtIPS
from etips.learn.training.settings import Settings

HOMES = {"Settings": "etips.learn.training.settings"}


def test_a_late_name_and_a_learner_are_found():
    assert load_lazily("p", "Settings", HOMES) is Settings
    assert load_lazily("p", "EtIPS", HOMES) is EtIPS


@pytest.mark.parametrize("name", ["settings", "Nobody", "_private", "METHODS"])
def test_any_other_is_no_attribute(name):
    with pytest.raises(AttributeError, match=rf"^module 'p' has no attribute '{name}'$"):
        load_lazily("p", name, HOMES)


@pytest.mark.parametrize(
    ("package", "some", "count"),
    [
        ("etips", {"EtIPS", "TIPS", "Trajectories", "evaluate", "load", "read_table"}, 50),
        ("etips.learn", {"EtIPS", "MostFrequent", "Settings", "SklearnModel", "Training"}, 30),
    ],
)
def test_a_star_brings_late_names_and_learners_and_nothing_else(package, some, count):
    names: dict[str, object] = {}
    exec(f"from {package} import *", names)
    public = {name for name in names if not name.startswith("_")}
    assert some <= public
    assert len(public) == count


def test_asking_for_a_module_brings_no_torch():
    code = "import sys\nfrom etips import worlds\nprint('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_dir_shows_what_there_is_and_nothing_of_how_it_is_made():
    shown = dir(etips)
    assert {"EtIPS", "evaluate", "compare", "Rule", "read_table", "Results"} <= set(shown)
    assert set(etips.__all__) <= set(shown)
    assert not {"load_lazily", "list_lazily", "TYPE_CHECKING", "_LATER"} & set(shown)
    assert {"Settings", "Training", "EtIPS"} <= set(dir(etips.learn))


def test_help_begins_with_a_map_of_the_package_that_names_everything():
    words = set(re.findall(r"\w+", etips.__doc__))
    assert set(etips.__all__) <= words
    text = pydoc.render_doc(etips, renderer=pydoc.plaintext)
    assert "Policies that are written down" in text
    for name in ("EtIPS", "evaluate", "Results"):
        assert name in text.partition("CLASSES")[2]
