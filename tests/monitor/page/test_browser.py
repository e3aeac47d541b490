"""The page in a real browser: it shows a registered process, follows its trace live, and asks nobody else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_browser import browser, prefer, resize
from page_running import Paged, wait_until
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By

from npuscope.monitor.protocol import fabric
from npuscope.monitor.protocol.fabric import Types

SECONDS = 60
ROWS = "#processes tbody tr"
IDLE, BUSY = Types.EVENTS | Types.ACTIVITIES, Types.EVENTS


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with browser(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


def text(chrome: Chrome, place: str) -> str:
    """The text that is seen there; read in one go, since the page changes while it is looked at."""
    script = "const one = document.querySelector(arguments[0]); return one?.checkVisibility() ? one.innerText : ''"
    return str(chrome.execute_script(script, place))


def count(chrome: Chrome, place: str) -> int:
    return int(chrome.execute_script("return document.querySelectorAll(arguments[0]).length", place))


def wait_for(chrome: Chrome, place: str, words: str) -> None:
    wait_until(lambda: words in text(chrome, place), SECONDS)


def no_complaint(chrome: Chrome) -> None:
    complaints: list[Any] = [entry for entry in chrome.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    assert complaints == []


def test_a_process_registers_is_traced_and_is_idle_again(chrome: Chrome, page: Paged) -> None:
    chrome.get(page.url)
    wait_for(chrome, "#processes", "KINETO_USE_DAEMON=1")  # nobody is there, and the page says how to be
    wait_for(chrome, "#health", "all is well")
    client, pids = page.daemon.client(), (os.getpid(), os.getppid())
    page.daemon.exchange(client, fabric.encode_poll(IDLE, 0, pids))
    wait_for(chrome, ROWS, str(os.getpid()))
    assert "idle" in text(chrome, ROWS) and "python" in text(chrome, ROWS)
    assert text(chrome, "#host") == os.uname().nodename
    assert text(chrome, "#tracing .empty") == "Nobody is being traced."

    file = page.daemon.folder / "x.json"
    assert page.daemon.dyno("gputrace", "--log-file", str(file), "--duration-ms", "60000").returncode == 0
    wait_for(chrome, ROWS, "asked")
    wait_for(chrome, "#tracing", f"{page.daemon.folder}/x_{os.getpid()}.json")
    assert page.daemon.exchange(client, fabric.encode_poll(IDLE, 0, pids))[40:]
    wait_for(chrome, ROWS, "told, warming up")
    page.daemon.exchange(client, fabric.encode_poll(BUSY, 0, pids))
    wait_for(chrome, ROWS, "tracing")
    wait_for(chrome, "#glance", "1 of 1")
    wait_for(chrome, "#tracing .left", "left")
    wait_until(lambda: "1 tracing" in chrome.title, SECONDS)
    value = chrome.execute_script("return document.querySelector('#tracing progress').value")
    assert 0 <= value < 1

    Path(f"{page.daemon.folder}/x_{os.getpid()}.json").write_text('{"traceEvents": []}' * 200)
    page.daemon.exchange(client, fabric.encode_poll(IDLE, 0, pids))
    wait_for(chrome, "#traces tbody", "written")
    assert "3.71 KiB" in text(chrome, "#traces tbody") and "60 s" in text(chrome, "#traces tbody")
    wait_for(chrome, ROWS, "idle")
    wait_for(chrome, "#tracing", "Nobody is being traced.")
    no_complaint(chrome)


def test_charts_have_points_and_words(chrome: Chrome, page: Paged) -> None:
    page.daemon.exchange(page.daemon.client(), fabric.encode_poll(IDLE, 0, (os.getpid(), os.getppid())))
    chrome.get(page.url)
    points = "return [...document.querySelectorAll('figure svg')].map((one) => Number(one.dataset.points))"
    # Sixty points each; a rate needs two to make one, and the network has two lines.
    wait_until(lambda: chrome.execute_script(points) == [60, 60, 118, 60, 60, 60, 59], SECONDS)
    paths = chrome.execute_script(
        "return [...document.querySelectorAll('path.stroke')].map((one) => one.getAttribute('d'))"
    )
    assert all(path.startswith("M") and path.count("L") >= 58 for path in paths) and len(paths) == 8
    labels = [one.get_attribute("aria-label") for one in chrome.find_elements(By.CSS_SELECTOR, "figure svg")]
    assert labels[0].startswith("CPU of the node: CPU now ") and all("between" in label for label in labels)
    wait_for(chrome, "#glance", "of 512 GiB")
    wait_for(chrome, ROWS, "40")  # threads, as foreseen
    no_complaint(chrome)


def test_values_are_read_with_the_keyboard(chrome: Chrome, page: Paged) -> None:
    chrome.get(page.url)
    wait_until(lambda: count(chrome, "#node-charts path.stroke") >= 1, SECONDS)
    chart = chrome.find_element(By.CSS_SELECTOR, "#node-charts svg")
    chart.send_keys(Keys.ARROW_LEFT)
    wait_until(lambda: "%" in text(chrome, "#node-charts .tip"), SECONDS)
    first = text(chrome, "#node-charts .tip")
    for _ in range(3):
        chart.send_keys(Keys.ARROW_LEFT)
    wait_until(lambda: text(chrome, "#node-charts .tip") != first, SECONDS)
    chart.send_keys(Keys.ESCAPE)
    wait_until(lambda: text(chrome, "#node-charts .tip") == "", SECONDS)


def test_the_table_is_a_table_and_sorts(chrome: Chrome, page: Paged) -> None:
    chrome.get(page.url)
    wait_until(lambda: count(chrome, ROWS) >= 1, SECONDS)
    heads = chrome.find_elements(By.CSS_SELECTOR, "#processes th")
    assert [head.get_attribute("scope") for head in heads] == ["col"] * len(heads)
    for order in ("ascending", "descending"):
        heads[1].find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
        assert heads[1].get_attribute("aria-sort") == order
    assert chrome.find_element(By.CSS_SELECTOR, "#problems").get_attribute("aria-live") == "polite"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (400, 800)])
def test_nothing_sticks_out(chrome: Chrome, page: Paged, width: int, height: int, scheme: str) -> None:
    resize(chrome, width, height)
    prefer(chrome, scheme)
    chrome.get(page.url)
    wait_until(lambda: count(chrome, "path.stroke") >= 8 and count(chrome, ROWS) >= 1, SECONDS)
    wide = chrome.execute_script(
        "return [...document.querySelectorAll('body *')].filter((one) => one.checkVisibility()"
        " && !one.closest('.skip, thead, svg') && one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.outerHTML)"
    )
    assert wide == []
    assert chrome.execute_script("return document.documentElement.scrollWidth") <= width
    ground = chrome.execute_script("return getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in ground.removeprefix("rgb(").rstrip(")").split(","))
    assert (brightness > 3 * 128) == (scheme == "light")
    resize(chrome, 1280, 800)
    prefer(chrome, "light")


def test_no_request_leaves_the_page(chrome: Chrome, page: Paged) -> None:
    chrome.get(page.url)
    wait_until(lambda: count(chrome, "path.stroke") >= 1, SECONDS)
    asked = chrome.execute_script(
        "return performance.getEntries().map((one) => one.name).filter((one) => one.includes(':'))"
    )
    assert len(asked) > 8 and all(name.startswith(page.url) for name in asked), asked
    no_complaint(chrome)


def test_hostile_words_stay_words(chrome: Chrome, page: Paged) -> None:
    name = "<img src=x onerror=alert(1)>"
    done = page.daemon.dyno("gputrace", "--log-file", f"{page.daemon.folder}/{name.replace('=', '')}.json")
    assert done.returncode == 0, done.stderr
    chrome.get(page.url)
    wait_for(chrome, "#tracing", "<img srcx onerroralert(1)>")
    assert count(chrome, "#tracing img") == 0
    no_complaint(chrome)


def test_a_daemon_that_is_gone_is_told(chrome: Chrome, page: Paged) -> None:
    chrome.get(page.url)
    wait_until(lambda: count(chrome, ROWS) >= 1, SECONDS)
    page.daemon.process.terminate()
    page.daemon.process.wait(10)
    wait_for(chrome, "#lost", "The daemon does not answer, for ")
    wait_for(chrome, "#health", "no answer")
    assert count(chrome, ROWS) >= 1  # what was known stays, marked as old
