from __future__ import annotations

import json
import math

import numpy as np
import pytest

from tailrace.cli.console import print_json


def test_json_has_null_for_what_is_no_number_and_numpys_numbers_are_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": math.nan, "b": [math.inf, -math.inf, 1.5], "c": np.int64(3), "d": np.float64(0.25), "e": "NaN é"})
    out = capsys.readouterr().out
    assert json.loads(out) == {"a": None, "b": [None, None, 1.5], "c": 3, "d": 0.25, "e": "NaN é"}
    assert out.endswith("}\n")
