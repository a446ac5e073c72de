"""The page in a real browser, offline: no errors, nothing fetched, and a table that sorts."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tailrace.report.html import page

from .report_documents import document, result, run

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-extensions"),
    *("--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--v=0", "--virtual-time-budget=4000"),
)
PROBE = """<script>
window.addEventListener("load", function () {
  function order() {
    return Array.from(document.querySelectorAll("table.sortable tbody th")).map(function (c) { return c.textContent.split(" ")[0]; });
  }
  var seen = { before: order(), after: [] };
  CLICKS.forEach(function (title) {
    var heads = Array.from(document.querySelectorAll("table.sortable thead th"));
    var head = heads.find(function (h) { return h.textContent.indexOf(title) === 0; });
    head.querySelector("button").click();
    seen.after.push([order(), head.getAttribute("aria-sort")]);
  });
  seen.fetched = performance.getEntriesByType("resource").map(function (e) { return e.name; });
  seen.ground = getComputedStyle(document.body).backgroundColor;
  seen.figures = Array.from(document.querySelectorAll("figure svg")).map(function (s) { return s.getBoundingClientRect().width; });
  seen.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  var out = document.createElement("pre");
  out.id = "probe";
  out.textContent = JSON.stringify(seen);
  document.body.appendChild(out);
});
</script>"""  # noqa: E501


@pytest.fixture(scope="session")
def browser() -> str:
    """A Chromium, from $CHROMIUM or the path."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if not found:
        pytest.skip("no Chromium here; install one or set CHROMIUM to its path")
    return found


def opened(browser: str, folder: Path, text: str, *clicks: str, flags: tuple[str, ...] = ()) -> tuple[Any, list[str]]:
    """What the probe saw in the page ``text`` after ``clicks`` on headings, and the console's lines."""
    path = folder / "page.html"
    path.write_text(text.replace("</body>", PROBE.replace("CLICKS", json.dumps(clicks)) + "</body>"))
    call = [browser, *FLAGS, *flags, f"--user-data-dir={folder / 'profile'}", "--dump-dom", path.as_uri()]
    done = subprocess.run(call, capture_output=True, text=True, timeout=120)
    found = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr[-2000:]
    return json.loads(unescape(found[1])), [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def three() -> str:
    runs = [("fcfs", run()), ("psf", run(scale=0.5)), ("qba", run(scale=2.0))]
    rows = [result("fcfs", 2.0), result("psf", 1.0), result("qba", None)]
    return page(document(*rows), runs, "tailrace compare", "9.8.7")


def test_a_page_that_needs_the_network_is_noticed(browser: str, tmp_path: Path) -> None:
    text = three().replace("<main>", '<main><img src="https://example.invalid/x.png"><script>undefinedName()</script>')
    seen, console = opened(browser, tmp_path, text)
    assert seen["fetched"] == ["https://example.invalid/x.png"]
    assert any("undefinedName" in line for line in console)


def test_the_report_opens_offline_without_a_word(browser: str, tmp_path: Path) -> None:
    seen, console = opened(browser, tmp_path, three(), flags=("--window-size=1000,900",))
    assert console == []
    assert seen["fetched"] == []
    assert len(seen["figures"]) == 10
    assert min(seen["figures"]) > 250
    assert seen["overflow"] <= 0
    assert seen["ground"] == "rgb(255, 255, 255)"


def test_a_click_sorts_and_a_second_turns_it_round(browser: str, tmp_path: Path) -> None:
    seen, console = opened(browser, tmp_path, three(), "wait P99", "wait P99", "policy")
    assert console == []
    assert seen["before"] == ["fcfs", "psf", "qba"]
    assert seen["after"] == [
        [["psf", "fcfs", "qba"], "ascending"],
        [["fcfs", "psf", "qba"], "descending"],  # what has no value stays last
        [["fcfs", "psf", "qba"], "ascending"],
    ]


def test_dark_is_dark(browser: str, tmp_path: Path) -> None:
    seen, _ = opened(browser, tmp_path, three(), flags=("--blink-settings=preferredColorScheme=0",))
    red, green, blue = map(int, re.findall(r"\d+", seen["ground"]))
    assert max(red, green, blue) < 60
