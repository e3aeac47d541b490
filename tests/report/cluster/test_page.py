"""The page of `npuscope cluster` in a real browser."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from opened_page import Opened
from page_browser import browser, prefer
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By

from npuscope.monitor.analysis.cluster import Cluster, analyse
from npuscope.monitor.analysis.reduction import reduced
from npuscope.report.cluster.page import page
from npuscope.report.cluster.words import duration, share, sureness

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with browser(tmp_path_factory.mktemp("profile"), 1440, 900) as driver:
        yield driver


def judged(**about: object) -> Cluster:
    spec = spec_from_file_location("simulated_cluster", ROOT / "benchmarks" / "simulated_cluster.py")
    assert spec and spec.loader
    made = sys.modules["simulated_cluster"] = module_from_spec(spec)
    spec.loader.exec_module(made)
    return analyse([reduced(one) for one in made.all_records(made.simulate(made.Job(**about)))], ["rank 99: </script>"])


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return judged(ranks=16, tensor=4, steps=80, slow={5: 1.12}, links={2: 1.6})


@pytest.fixture(scope="module")
def opened(cluster: Cluster, chrome: Chrome, tmp_path_factory: pytest.TempPathFactory) -> Opened:
    file = tmp_path_factory.mktemp("page") / "cluster.html"
    file.write_bytes(page(cluster))
    return Opened(chrome, file)


def test_the_verdict_and_the_evidence(opened: Opened) -> None:
    assert opened.text("#verdict") == "rank 5 is slow; the link of dp (dp_2) is slow"
    assert "rank 5 on node0 is slow steadily" in opened.text("#findings")
    assert "dyno --hostname node0 nputrace --rank-list 5" in opened.text("#findings")
    assert "rank 99: </script>" in opened.text("#problems")
    assert opened.complaints() == []


def test_the_file_needs_nothing_else(cluster: Cluster) -> None:
    text = page(cluster).decode()
    for word in ("src=", "@import", "url(", "fetch(", "http://", "https://"):
        assert word not in text.replace("http://www.w3.org/2000/svg", ""), word


def test_the_map_shows_who_waits_least(opened: Opened) -> None:
    """Sixteen ranks by eighty steps; the slow rank's line is the palest: it waits for nobody."""
    size = opened.run("[document.querySelector('canvas').width, document.querySelector('canvas').height]")
    assert size == [80, 16]
    # How far each line's colour is from that of no waiting, on average.
    reds = opened.run(
        "(() => { const c = document.querySelector('canvas'); const d = c.getContext('2d').getImageData(0, 0, 80, 16).data;"
        "const s = []; for (let r = 0; r < 16; r++) { let t = 0; for (let x = 0; x < 80; x++) t += d[4 * (r * 80 + x) + 1];"
        "s.push(t); } return s; })()"
    )
    assert isinstance(reds, list) and max(range(16), key=lambda row: reds[row]) == 5


def test_the_map_tells_of_a_cell_and_changes(opened: Opened, chrome: Chrome) -> None:
    canvas = chrome.find_element(By.CSS_SELECTOR, "canvas")
    opened.run("document.querySelector('#maps').scrollIntoView()")
    size = canvas.size
    across, down = -size["width"] // 2 + 3, -size["height"] // 2 + int(size["height"] * 5.5 / 16)
    ActionChains(chrome).move_to_element_with_offset(canvas, across, down).perform()
    opened.wait("!document.getElementById('tip').hidden")
    assert "rank 5, step 1" in opened.text("#tip")
    assert "waiting in collectives: " in opened.text("#tip")
    buttons = chrome.find_elements(By.CSS_SELECTOR, "#maps [role=radio]")
    assert [button.text for button in buttons] == ["Waiting in collectives", "Own time", "Compute"]
    buttons[1].click()
    opened.wait("document.querySelector('canvas').getAttribute('aria-label').startsWith('Own time')")


def test_tables_sort(opened: Opened, chrome: Chrome) -> None:
    rows = "#ranks tbody tr"
    assert opened.count(rows) == 16 and opened.count("#communicators tbody tr") == 8
    first = f"document.querySelector('{rows} td').innerText"
    assert opened.run(first) == "5 slow"
    chrome.find_element(By.XPATH, "//section[@id='ranks']//th/button[text()='waiting']").click()
    assert opened.run(first) != "5 slow"


@pytest.mark.parametrize(("scheme", "width"), [("dark", 1440), ("light", 420)])
def test_nothing_sticks_out(scheme: str, width: int, opened: Opened, chrome: Chrome) -> None:
    from page_browser import resize

    prefer(chrome, scheme)
    resize(chrome, width, 900)
    try:
        assert opened.run("document.documentElement.scrollWidth <= innerWidth")
    finally:
        resize(chrome, 1440, 900)
    assert opened.complaints() == []


def test_many_ranks_and_steps_are_averaged(monkeypatch: pytest.MonkeyPatch, chrome: Chrome, tmp_path: Path) -> None:
    monkeypatch.setattr("npuscope.report.cluster.page.MOST_ROWS", 6)
    monkeypatch.setattr("npuscope.report.cluster.page.MOST_COLUMNS", 20)
    (tmp_path / "cluster.html").write_bytes(page(judged(ranks=16, steps=50)))
    opened = Opened(chrome, tmp_path / "cluster.html")
    assert opened.run("[document.querySelector('canvas').width, document.querySelector('canvas').height]") == [17, 6]
    assert "a cell is the mean of 3 ranks and 3 steps" in opened.text("#maps")
    assert opened.text("#verdict").startswith("no rank is slow beyond noise")


def test_figures_in_words() -> None:
    assert [duration(value) for value in (0, 950, 1_234, 250_000, 1.5e9)] == [
        "0 ns",
        "950 ns",
        "1.23 us",
        "250 us",
        "1.5 s",
    ]
    assert [share(value) for value in (0.0123, 0.456, -0.02)] == ["1.2 %", "46 %", "-2.0 %"]
    assert [sureness(value) for value in (1.0, 0.9995, 0.5)] == ["above 99.99 %", "99.95 %", "50 %"]
