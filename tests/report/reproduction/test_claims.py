"""Claims: what became of them, and where those that fail hold."""

from __future__ import annotations

from tailrace.report.reproduction.claims import claims_section, counted
from tailrace.report.reproduction.study import Study

from .documents import document


def test_one_profile_has_one_column_of_results() -> None:
    text = claims_section(Study(document()))
    table, failing = text.split("These do not hold under `paper`:")
    assert "| experiment | claim" in table
    assert "| result " in table
    assert table.count("**does not hold**") == 2
    assert table.count("| not tested  ") == 1
    assert r"QBA keeps 59 % \| of the gain" in table
    assert failing.count("\n- ") == 2
    assert "Holds under" not in failing
    assert "PSF has the lowest mean" not in failing


def test_a_claim_that_fails_names_the_profile_under_which_it_holds() -> None:
    study = Study(document(("paper", "all_history")))
    lines = claims_section(study).splitlines()
    flat = next(line for line in lines if line.startswith("- P99 is flat"))
    assert flat.endswith("(fig3): a factor of 1.3. Holds under `all_history` (a factor of 1.0).")
    assert next(line for line in lines if line.startswith("- AA is stable")).endswith("Nor under `all_history`.")
    row = next(line for line in lines if line.startswith("| fig3"))
    assert [cell.strip() for cell in row.split("|")[3:5]] == ["**does not hold**", "holds"]


def test_the_count_follows_the_records() -> None:
    made = document()
    assert "bears out 1, contradicts 2 and leaves 1 not tested" in counted(Study(made))
    made["claims"] = [{**c, "holds": True} for c in made["claims"]]
    assert "bears out 4 and contradicts 0." in counted(Study(made))
    assert "These do not hold" not in claims_section(Study(made))
    made["claims"] = [{**made["claims"][0], "holds": None, "why": "the intervals hold zero"}]
    assert "bears out 0, contradicts 0 and leaves 1 undecided." in counted(Study(made))
    made["claims"] = []
    assert claims_section(Study(made)) == counted(Study(made)) == ""


def test_a_claim_of_another_profile_alone_says_whose_reason_it_gives() -> None:
    made = document(("paper", "other"))
    made["claims"] = [c for c in made["claims"] if c["profile"] == "other" and c["experiment"] == "fig2"]
    row = claims_section(Study(made)).splitlines()[-1]
    assert row == "| fig2       | PSF has the lowest mean | not tested | holds   | `other`: 0.8 s against 1.4 s |"
