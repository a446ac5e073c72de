"""The report of a comparison: one HTML page that needs nothing else."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from ..files import write_atomically
from ..registry import POLICIES
from . import facts, sections
from .lines import engine_line, note, predictions_line, seeds_line
from .style import is_oracle
from .values import comparison, grid

if TYPE_CHECKING:
    from ..sim.run import Result

__all__ = ["page", "write_html"]


def write_html(
    path: str | os.PathLike[str],
    document: Mapping[str, Any],
    runs: Sequence[tuple[str, Result]],
    command: str,
    version: str,
) -> Path:
    """Write the report to ``path`` and return it; the same arguments give the same bytes.

    ``document`` is what ``tailrace compare --json`` prints, ``runs`` are ``(label, result)``
    of its first seed for the figures, ``command`` makes the report again. The page appears
    whole or not at all. Raises UserError if it cannot be written, or if matplotlib or
    jinja2 is not installed.
    """
    data = page(document, runs, command, version).encode("utf-8", "backslashreplace")
    return write_atomically(Path(path), lambda name: _fill(name, data))


def _fill(name: str, data: bytes) -> None:
    Path(name).write_bytes(data)


def page(document: Mapping[str, Any], runs: Sequence[tuple[str, Result]], command: str, version: str) -> str:
    """The text of the page."""
    try:
        import jinja2
    except ImportError:
        raise UserError("the report needs extra packages: pip install 'tailrace[report]'") from None
    from .figures import figures

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(resources.files(__package__).joinpath("page.html").read_text("utf-8"))
    results = document["results"]
    drawn = figures(document, runs)
    return template.render(
        title=f"tailrace: {(document.get('workload') or {}).get('name', 'report')}",
        ran=_what_ran(document, version),
        command=command,
        notes=facts.load_notes(document),
        comparison=grid(results, comparison(results)),
        labels=[sections.label_of(r) for r in results],
        oracles=[is_oracle(r["policy"], r.get("predictions"), r.get("params")) for r in results],
        note=note(document),
        figures=drawn,
        several_seeds=len(document.get("seeds") or []) > 1,
        fairness=sections.fairness(document),
        differences=sections.differences(document),
        classes=sections.by_class(document),
        slo=any(r.get("slo") for r in results),
        gain=any(r.get("gain") for r in results),
        percentiles=sections.percentiles(document),
        rules=sections.rules(document),
        settings=sections.settings(document),
    )


def _what_it_does(policy: str) -> str:
    """The first paragraph of the policy's own text; nothing of one that is not registered here."""
    if policy not in POLICIES.names():
        return "a policy of your own"
    text = inspect.cleandoc(POLICIES.get(policy).__doc__ or "")
    return " ".join(text.partition("\n\n")[0].split())


def _what_ran(document: Mapping[str, Any], version: str) -> list[tuple[str, str]]:
    latency = (document.get("engine") or {}).get("latency") or {}
    return [
        ("Workload", facts.workload_line(document)),
        ("Engine", engine_line(document)),
        ("Latency model", ": ".join(str(latency[key]) for key in ("name", "summary") if latency.get(key))),
        ("Predictions", predictions_line(document)),
        *((sections.label_of(r), _what_it_does(r["policy"])) for r in document["results"]),
        ("Seeds", seeds_line(document).removeprefix("seeds ").removeprefix("seed ")),
        ("Version", f"tailrace {version}"),
    ]
