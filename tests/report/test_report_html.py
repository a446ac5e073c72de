from __future__ import annotations

import os
import re
import stat
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tailrace.errors import UserError
from tailrace.report import write_html
from tailrace.report.html import page

from .report_documents import document, result, run

EVIL = "<script>alert(1)</script>\"'&"
VOID = {"meta", "br", "hr", "img", "input", "link"}


class Tags(HTMLParser):
    """Checks nesting, and keeps all tags and the text of cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def two() -> tuple[dict[str, Any], list[Any]]:
    return document(result("fcfs", 1.0), result("qba", 2.0)), [("fcfs", run()), ("qba", run(scale=2.0))]


def test_page_begins_with_what_was_run() -> None:
    text = page(*two(), "tailrace compare qba: --report r.html", "9.8.7")
    body = text[text.index("<body>") : text.index("<h2>")]
    for shown in ("qba: 3,000 requests over 92.6 s (32.4 a second)", "128 tokens a step", "oracle", "tailrace 9.8.7"):
        assert shown in body
    assert "<code>tailrace compare qba: --report r.html</code>" in body
    assert body.index("9.8.7") < body.index("<code>")


def test_page_is_well_formed_and_its_ids_unique() -> None:
    tags = Tags(page(*two(), "c", "v")).seen
    ids = [attrs["id"] for _, attrs in tags if "id" in attrs]
    assert len(set(ids)) == len(ids)
    assert sum(tag == "svg" for tag, _ in tags) == 10


def test_page_needs_nothing_from_elsewhere() -> None:
    text = page(*two(), "c", "v")
    for tag, attrs in Tags(text).seen:
        assert tag not in ("link", "img", "iframe", "object")
        assert not {"src", "srcset", "action"} & set(attrs)
        assert all((attrs.get(name) or "#").startswith("#") for name in ("href", "xlink:href"))
    assert not re.findall(r"https?:", re.sub(r'xmlns(:\w+)?="[^"]*"', "", text))
    assert "@import" not in text
    assert "url(" not in re.sub(r"url\(#", "", text)


def test_hostile_names_are_escaped_everywhere() -> None:
    doc = document(
        result(f"x {EVIL}", 1.0, predictions=EVIL, params={EVIL: EVIL}, rules={EVIL: EVIL}, load_state=EVIL),
        result("b", 2.0, by_class={EVIL: result("b", 1.0), "c": result("b", 1.0)}),
    )
    doc["workload"] = {"name": EVIL, EVIL: EVIL, "nested": {EVIL: [EVIL]}}
    doc["engine"] = {**doc["engine"], "name": EVIL, "latency": {"name": EVIL, "summary": EVIL}}
    text = page(doc, [(f"x {EVIL}", run())], EVIL, EVIL)
    tags = Tags(text).seen
    assert sum(tag == "script" for tag, _ in tags) == 1
    assert "<script>alert" not in text


def test_the_same_report_is_the_same_bytes(tmp_path: Path) -> None:
    paths = [write_html(tmp_path / name, *two(), "c", "v") for name in ("a.html", "b.html")]
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_best_cells_and_sort_values_are_marked() -> None:
    text = page(*two(), "c", "v")
    table = text[text.index('<table class="sortable">') :]
    table = table[: table.index("</table>")]
    assert '<td class="best" data-value="5.0">5.00</td>' in table
    assert '<td class="" data-value="10.0">10.0</td>' in table
    assert "<button" not in table
    assert table.index(">fcfs") < table.index(">qba")
    assert "<small title" in table[table.index(">qba") :]
    assert "aria-sort" in text


def test_several_seeds_show_intervals() -> None:
    doc = document(result("fcfs", 1.0, half=0.1), result("qba", 2.0, half=0.1), seeds=3)
    text = page(doc, [("fcfs", run()), ("fcfs", run(seed=2)), ("qba", run())], "c", "v")
    assert "<small>4.50 to 5.50</small>" in text
    assert "0 to 2 (means)" in text
    assert "Curves, their marks and timelines show the first seed alone" in text


def test_load_is_explained() -> None:
    starved = {"requests": 12, "share": 0.1, "longest_wait_s": 90.0, "fcfs_longest_wait_s": 20.0}
    doc = document(result("a", 1.0, load_state="OVERLOADED"), result("b", 1e-5, starvation=starved))
    text = page(doc, [], "c", "v")
    assert "a: OVERLOADED. That means more work arrived than the engine serves" in text
    assert "b: starves 12 requests: they waited over twice as long" in text
    assert "first come, first served (2 × 20.0 s), the longest 90.0 s" in text
    assert "a: starves" not in text
    assert "No queueing" not in text
    assert "No queueing: policy cannot matter" in page(document(result("b", 1e-5)), [], "c", "v")


def test_means_over_seeds_are_not_set_against_each_other() -> None:
    """Twice the mean of one may exceed the mean of the other."""
    starved = {"requests": 2.5, "share": 0.1, "longest_wait_s": 30.0, "fcfs_longest_wait_s": 20.0}
    doc = document(result("a", 1.0, starvation=starved))
    doc["results"][0]["counts"]["by_seed"] = {"completed": [10, 10]}
    text = page(doc, [], "c", "v")
    assert "a: starves 2.50 requests a seed on average" in text
    assert "20.0 s" not in text[: text.index("<main>")]


def test_how_often_a_policy_put_long_requests_first_is_told() -> None:
    tallies = {"predicted_long_started": 200.0, "promoted": 25.0, "by_seed": {"promoted": [20, 30]}}
    text = page(document(result("a", 1.0), result("qba", 2.0, tallies=tallies)), [], "c", "v")
    assert "qba: put 12 % of the predicted-long requests first, as aged." in text
    assert text.count("requests first, as aged") == 1


def test_a_reader_learns_what_policies_do_and_what_they_are_told() -> None:
    doc = document(result("fcfs", 1.0), result("qba", 2.0), result("mine", 2.0))
    doc["results"][1]["predictions"] = "oracle"
    text = page(doc, [], "c", "v")
    assert "<dt>fcfs</dt><dd>First come, first served:" in text
    assert "<dt>mine</dt><dd>a policy of your own</dd>" in text
    assert "qba is told the true output lengths (oracle): an upper bound" in text


def test_an_overload_says_when_it_ended() -> None:
    doc = document(result("a", 1.0, load_state="OVERLOADED", engine={"makespan_s": 1150.0}), result("b", 1.0))
    doc["workload"]["span_s"] = 735.0
    text = page(doc, [], "c", "v")
    assert "Requests arrived over 735 s; the last of them finished after 1,150 s under a." in text


def test_page_of_runs_in_which_nothing_happened() -> None:
    empty = result("a", None, by_true_class={}, by_predicted_class={}, throughput={"output_tokens_per_s": None})
    for doc in (document(empty), document(empty, result("b", 1.0)), document()):
        text = page(doc, [], "c", "v")
        Tags(text)
        assert "nan" not in text.lower().split()
        assert text.rstrip().endswith("</html>")


def test_many_tenants_are_cut_short() -> None:
    one = result("a", 1.0)
    tenants = {f"tenant {i}": {**one, "counts": {"submitted": i, "completed": i}} for i in range(40)}
    text = page(document(result("a", 1.0, by_tenant=tenants)), [], "c", "v")
    assert "The 12 largest; 28 more are in the JSON output." in text
    assert "tenant 39" in text
    assert "tenant 3<" not in text


def test_parent_folders_are_made_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = write_html(tmp_path / "new" / "deep" / "r.html", *two(), "c", "v")
    assert path.read_text("utf-8").startswith("<!doctype html>")
    assert [p.name for p in path.parent.iterdir()] == ["r.html"]
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


def test_unwritable_paths_are_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file" / "r.html", tmp_path, tmp_path / ("x" * 300)):
        with pytest.raises(UserError, match=r"cannot be written|is a folder") as caught:
            write_html(path, document(result("a", 1.0)), [], "c", "v")
        assert "\n" not in str(caught.value)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file"]


def test_an_old_report_survives_a_failed_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.html"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tailrace.files.os.replace", fail)
    with pytest.raises(UserError, match="No space left on device"):
        write_html(path, document(result("a", 1.0)), [], "c", "v")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]


@pytest.mark.parametrize("module", ["jinja2", "matplotlib"])
def test_missing_packages_are_named(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UserError, match=r"pip install 'tailrace\[report\]'"):
        write_html(tmp_path / "r.html", *two(), "c", "v")
    assert list(tmp_path.iterdir()) == []


def test_objectives_and_paired_differences_have_their_columns() -> None:
    plain = page(document(result("a", 1.0), result("b", 2.0)), [], "c", "v")
    assert "SLOs met" not in plain
    assert "Against" not in plain
    pair = {"metrics": {"wait_s": {"p99": {"difference": -1.5, "ci": [-2.0, -1.0]}}}}
    slo, gain = {"attainment": 0.987, "goodput_rps": 3.0}, {"tdg_ratio": 0.654}
    rows = (result("a", 1.0, slo=slo, gain=gain), result("b", 2.0, slo=slo, vs={"policy": "a", "differences": pair}))
    text = page(document(*rows, seeds=2), [], "c", "v")
    assert "Against a" in text
    assert '<td class="best" data-value="-1.5">-1.50<small>-2.00 to -1.00</small></td>' in text
    assert ">98.7</td>" in text
    assert ">65.4</td>" in text
    assert "TDG_Ratio" in text
    assert "token gain" not in plain.lower()


def test_fairness_has_its_table() -> None:
    even = {"jain_requests": 0.75, "slowdown": {"mean": 2.0, "p99": 9.0}}
    rows = [result("a", 1.0, fairness=even, recompute_tax=0.013), result("b", 1.0, fairness=even, recompute_tax=0.5)]
    text = page(document(*rows), [], "c", "v")
    assert "Fairness and waste" in text
    assert '<td class="best" data-value="0.013">1.30</td>' in text
    assert "Jain, tenants" not in text
    assert "Fairness and waste" not in page(document(result("a", 1.0)), [], "c", "v")


def test_one_partition_is_shown_once() -> None:
    text = page(document(result("a", 1.0)), [], "c", "v")
    assert "every prediction is right" in text
    assert "By predicted length class" not in text
    other = {"short": result("a", 1.0), "long": result("a", 3.0)}
    text = page(document(result("a", 1.0, by_predicted_class=other)), [], "c", "v")
    assert "By true length class" in text
    assert "By predicted length class" in text
