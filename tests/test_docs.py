"""The example in the documentation is run as a reader would run it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def test_the_example_policy_runs_and_keeps_its_promise(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "policies.md").read_text(), re.S)
    assert len(code.splitlines()) <= 35
    (tmp_path / "patience.py").write_text(code)
    call = [sys.executable, "-c", "import sys; sys.argv[0] = 'tailrace'; from tailrace.cli import main; main()"]
    call += ["simulate", "qba:requests=400,rate_rps=40", "--engine", "qba", "--json"]
    call += ["--policy", "patience:Patience:patience_s=0.5"]
    shown = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    result = json.loads(shown.stdout)["results"][0]
    assert result["policy"] == "patience"
    assert result["params"] == {"patience_s": 0.5}
    assert result["counts"]["completed"] == 400
