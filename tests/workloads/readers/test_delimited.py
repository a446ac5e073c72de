from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tailrace.errors import UserError
from tailrace.workloads import load

HEADER = "arrival_s,prompt_tokens,output_tokens"
Write = Callable[[str], Path]


@pytest.mark.parametrize(
    "text",
    [
        f"{HEADER}\n1,2,3\n2,3,4",
        f"\ufeff{HEADER}\n1,2,3\n2,3,4\n",
        f"\n  \n{HEADER}\n\n1,2,3\n   \n\t\n2,3,4\n\n",
        f"{HEADER}\r\n1,2,3\r\n2,3,4\r\n",
        f"{HEADER}\r1,2,3\r2,3,4\r",
        f'{HEADER}\n"1","2",3\n2,"3",4\n',
        f"{HEADER},,x,x\n1,2,3,,4,5\n2,3,4,,,\n",
        f'{HEADER},note\n1,2,3,"two\nlines, ""quoted"""\n2,3,4,6" long\n',
    ],
)
def test_what_is_safe_to_read(file: Write, text: str) -> None:
    workload = load(str(file(text)))
    assert workload.arrival_s.tolist() == [1, 2]
    assert workload.prompt_tokens.tolist() == [2, 3]
    assert workload.output_tokens.tolist() == [3, 4]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{HEADER}\n1,2,3\n  \n\n2,x,4\n", "row 5: field prompt_tokens: 'x' is not"),
        (f'{HEADER},note\n1,2,3,a\n2,3,4,"b\n3,4,5,c\n', "row 2: a quote is opened below it and never closed"),
        (f'{HEADER},note\n1,2,3,"a\n', "row 1: a quote is opened below it and never closed"),
        (f"{HEADER}\n1,2,3\n2,3", "row 3: field output_tokens: the row has 2 fields, the header 3"),
        (f"{HEADER}\n1,2,3,\n", "row 2: field output_tokens: the row has 4 fields, the header 3"),
        (f"{HEADER}\n1,1_000,3\n", "'1_000' is not a whole number"),
        (f'{HEADER}\n1,"1,000",3\n', "'1,000' is not a whole number"),
        (f"{HEADER}\n0x1,1,3\n", "'0x1' is not a number"),
        (f"{HEADER}\n1e400,1,3\n", "'1e400' must be finite"),
        (f"# made by hand\n{HEADER}\n1,2,3\n", "row 1: no known header in '# made by hand'"),
        (HEADER.replace(",", ";") + "\n1;2;3\n", "row 1: columns are separated by semicolons"),
        (HEADER.replace(",", "\t") + "\n1\t2\t3\n", "row 1: columns are separated by tabs"),
        (f"{HEADER}\n  \n", "has a header and no rows"),
    ],
)
def test_mistakes(file: Write, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        load(str(file(text)))
    assert "\n" not in str(caught.value)


def test_bytes_that_are_not_utf8_make_no_noise(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(f"{HEADER}\n1,2,3\n   \n".encode() + b"1,\xff\n2,3,4\n")
    with pytest.raises(UserError, match="row 4: holds bytes that are not UTF-8"):
        load(str(path))
    assert capfd.readouterr() == ("", "")
