"""The pages in a real browser: they work, look for nothing elsewhere, and complain of nothing."""

import os
import shutil
from pathlib import Path

import pytest
from running_service import running
from served_runs import TOKEN, desk

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SHOTS = os.environ.get("ETIPS_SCREENSHOTS")
"""Folder for pictures of the pages, for somebody to look at."""

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (apt-get install chromium)"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        own = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield own
        own.close()


@pytest.fixture(scope="module")
def port():
    with running() as own:
        yield own


@pytest.fixture
def page(browser, port):
    """A visit by the address that was printed; at its end nothing may have gone wrong."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    own, told, away = context.new_page(), [], []
    own.on("console", lambda message: told.append(message.text))
    own.on("pageerror", lambda error: told.append(str(error)))
    home = f"http://127.0.0.1:{port}/"
    own.on("request", lambda asked: asked.url.startswith(home) or away.append(asked.url))
    own.goto(f"{home}?token={TOKEN}")
    yield own
    assert (told, away) == ([], [])
    local, session, cookie = own.evaluate(
        "[{...localStorage}, Object.keys(sessionStorage), document.cookie]"
    )
    assert (local, cookie) == ({}, "")
    assert set(session) <= {"htmx-current-path-for-history"}  # where it is, not what it shows
    context.close()


def code():
    return desk().stays.select("disagreement", "all")[0].code


def wait_for_advice(page, words):
    page.wait_for_selector(f"#advice h2:has-text('{words}')")


def test_the_overview_opens_without_the_token_in_its_address(page, port):
    assert page.url == f"http://127.0.0.1:{port}/"
    assert "not evaluated" in page.inner_text("main")


def test_from_the_list_to_a_stay_and_along_it_by_keyboard(page):
    page.click("text=Stays")
    page.click("table.stays a >> nth=0")
    page.wait_for_selector("#around section")
    assert "decision 1 of" in page.inner_text(".where")
    for key, number in (("ArrowRight", 2), ("ArrowRight", 3), ("ArrowLeft", 2)):
        page.keyboard.press(key)
        page.wait_for_selector(f"text=decision {number} of")
    page.wait_for_selector("#around section")
    page.go_back()
    page.wait_for_selector("text=decision 3 of")


def test_the_list_is_filtered_at_once(page, port):
    page.goto(f"http://127.0.0.1:{port}/stays")
    page.fill("#code", code()[:6])
    playwright.expect(page.locator("table.stays tbody tr")).to_have_count(1)
    assert page.inner_text("table.stays tbody a") == code()


def test_a_slider_changes_the_advice_and_its_reasons(page, port):
    page.goto(f"http://127.0.0.1:{port}/stays/{code()}")
    page.wait_for_selector("#bars svg, #bars .quiet")
    page.evaluate(SLIDE, 40)
    wait_for_advice(page, "vasopressor 2")
    assert page.input_value("#s0") == "40"
    page.evaluate(SLIDE, 110)
    wait_for_advice(page, "vasopressor 0")
    assert "it was" in page.inner_text("#tried") or "same" in page.inner_text("#tried")
    page.fill("#s0", "38")
    wait_for_advice(page, "vasopressor 2")
    page.click("#as-it-was")
    playwright.expect(page.locator("#tried")).to_have_text("")
    assert page.inner_text("#advice .over") == "The policy advises"


SLIDE = """value => {
  const own = document.getElementById('s0-slider');
  own.value = value;
  own.dispatchEvent(new Event('input', {bubbles: true}));
}"""


def test_one_part_is_followed_and_the_other_waits(page, port):
    page.goto(f"http://127.0.0.1:{port}/stays/{code()}")
    page.check("input[name=part-1][value=wait]")
    page.wait_for_selector("#combined >> text=You wait with vasopressor")


def test_features_are_chosen(page, port):
    page.goto(f"http://127.0.0.1:{port}/stays/{code()}")
    page.click("text=Choose features")
    page.uncheck("#fields input[value='0']")
    page.wait_for_url("**f=1**")
    assert page.locator("figure", has_text="MeanBP").count() == 0


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_the_screen(browser, port, width, scheme):
    view = {"width": width, "height": 900}
    context = browser.new_context(viewport=view, color_scheme=scheme)
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{port}/?token={TOKEN}")
    for name, path in (("overview", ""), ("stays", "stays"), ("stay", f"stays/{code()}?at=1")):
        page.goto(f"http://127.0.0.1:{port}/{path}")
        if name == "stay":
            page.wait_for_selector("#around section")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        if SHOTS:
            page.screenshot(path=Path(SHOTS) / f"{name}-{width}-{scheme}.png", full_page=True)
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (dark == "rgb(20, 24, 28)") == (scheme == "dark")
    context.close()
