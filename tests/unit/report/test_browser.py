"""The page in a real browser: nothing runs, nothing sticks out, on any screen (P5)."""

import html
import re
import shutil
import subprocess

import pytest
from report_documents import document, render
from test_page import HOSTILE, swapped

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
WIDTHS = (320, 360, 390, 600, 768, 1000, 1280)
MEASURE = """
window.onload = () => {
  const frames = [...document.querySelectorAll("iframe")];
  const roots = frames.map(frame => frame.contentDocument.documentElement);
  document.title = roots.map(root => root.scrollWidth - root.clientWidth).join(" ");
}
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="looked for chromium on the path"),
]


def dump(text, folder):
    (folder / "page.html").write_text(text)
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={folder}/u",
    ]
    command += ["--virtual-time-budget=4000", "--window-size=1200,900", "--dump-dom"]
    done = subprocess.run(
        [*command, (folder / "page.html").as_uri()], capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize("word", ["plain", *HOSTILE[:3], "x" * 10_000])
def test_p5_no_part_of_the_page_sticks_out_on_any_screen(word, tmp_path):
    """P5: a phone of 320 pixels and up; each width is a frame of its own."""
    page = render(swapped(document(world="icu-sepsis", full=True), word))
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)  # lets us measure
    frames = "".join(
        f'<iframe style="width:{width}px;height:900px" srcdoc="{html.escape(page)}"></iframe>'
        for width in WIDTHS
    )
    found = dump(f"<html><body>{frames}<script>{MEASURE}</script></body></html>", tmp_path)
    assert re.search("<title>(.*?)</title>", found).group(1) == " ".join("0" for _ in WIDTHS)


def test_p5_no_name_becomes_an_element_in_the_browser(tmp_path):
    """P5: the browser sees the same elements as with plain names."""
    made = document()
    plain, hostile = (
        re.findall(r"<(\w+)", dump(render(swapped(made, word)), tmp_path))
        for word in ("plain", " ".join(HOSTILE[:4]))
    )
    assert hostile == plain
    assert "script" not in plain
