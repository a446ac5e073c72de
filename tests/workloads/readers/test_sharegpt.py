from __future__ import annotations

import itertools
import json
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tailrace.errors import UserError
from tailrace.workloads import load

Write = Callable[[str], Path]


def talk(*turns: tuple[str, str]) -> dict[str, Any]:
    return {"id": "x", "conversations": [{"from": who, "value": text} for who, text in turns]}


TWO = talk(("human", "a" * 9), ("gpt", "b" * 4), ("human", "c" * 8), ("gpt", "d" * 5))
ONE = talk(("system", "s" * 4), ("human", "a" * 4), ("gpt", "b"))


def test_each_answer_is_a_request_and_its_prompt_all_before(file: Write) -> None:
    w = load(str(file(json.dumps([TWO, ONE]))))
    assert w.prompt_tokens.tolist() == [3, 3 + 1 + 2, 1 + 1]
    assert w.output_tokens.tolist() == [1, 2, 1]
    assert w.session.tolist() == [0, 0, 1]
    assert w.arrival_s.tolist() == [0, 0, 0]
    about = w.description
    assert about["format"] == "sharegpt"
    assert about["estimates"] == ["tokens are characters / 4, rounded up; give tokenizer=FILE to count them"]
    assert any("the file has no arrival times: every conversation begins at 0 s" in note for note in about["notes"])


def test_lines_and_openais_names_are_read_alike(file: Write) -> None:
    digest = load(str(file(json.dumps([TWO, ONE])))).digest()
    names = {"human": "user", "gpt": "assistant", "system": "system"}
    chats = [
        {"messages": [{"role": names[turn["from"]], "content": turn["value"]} for turn in one["conversations"]]}
        for one in (TWO, ONE)
    ]
    assert load(str(file("\n".join(map(json.dumps, (TWO, ONE)))))).digest() == digest
    assert load(str(file(json.dumps(chats))), format="sharegpt").digest() == digest
    assert load(str(file(json.dumps([TWO, chats[1]])))).digest() == digest


def test_what_is_no_request_is_counted(file: Write) -> None:
    odd = [
        talk(("gpt", "hello"), ("human", "abcd"), ("gpt", "x")),
        talk(("human", "abcd"), ("gpt", "one"), ("gpt", "more"), ("human", "e"), ("gpt", "two")),
        talk(("human", ""), ("gpt", "x")),
        talk(("human", "x"), ("gpt", "")),
        talk(("human", "x")),
        talk(),
    ]
    w = load(str(file(json.dumps(odd))))
    assert w.prompt_tokens.tolist() == [2 + 1, 1, 1 + 1 + 1 + 1]
    assert w.session.tolist() == [0, 1, 1]
    assert w.description["dropped_rows"] == 4
    assert w.description["dropped_by_reason"] == {"empty prompt or answer": 2, "conversation without an answer": 2}


def test_arrivals_by_a_process_of_ones_own(file: Write) -> None:
    path = str(file(json.dumps([TWO] * 2000)))
    w = load(path, format="sharegpt:session_rps=4,turn_gap_s=30")
    start = w.arrival_s[np.unique(w.session, return_index=True)[1]]
    assert np.diff(start).mean() == pytest.approx(0.25, rel=0.05)
    assert [np.ptp(w.arrival_s[w.session == session]) for session in range(20)] == pytest.approx([30] * 20)
    assert any("begin as a Poisson process of 4/s, each next turn arrives 30 s" in x for x in w.description["notes"])
    assert load(path, format="sharegpt:session_rps=4,turn_gap_s=30").digest() == w.digest()
    other = load(path, format="sharegpt:session_rps=4,turn_gap_s=30", seed=1)
    assert other.digest() != w.digest()
    assert other.description["seed"] == 1
    slow = load(path, format="sharegpt:session_rps=2,turn_gap_s=60")
    assert slow.arrival_s.tolist() == pytest.approx((2 * w.arrival_s).tolist())


def test_prompts_of_a_conversation_share_their_blocks(file: Write) -> None:
    path = str(file(json.dumps([TWO, ONE, TWO])))
    assert load(path).prefix is None
    w = load(path, format="sharegpt:block_tokens=2,chars_per_token=1")
    assert w.prompt_tokens.tolist() == [9, 21, 8, 9, 21]
    assert w.prefix is not None
    a, b, c, d, e = (w.prefix.ids[x:y].tolist() for x, y in itertools.pairwise(w.prefix.offsets))
    assert [len(row) for row in (a, b, c, d, e)] == [4, 10, 4, 4, 10]
    assert b[:4] == a
    assert e[:4] == d
    assert len({*b, *c, *e}) == 24


def test_tokens_by_characters(file: Write) -> None:
    w = load(str(file(json.dumps([ONE]))), format="sharegpt:chars_per_token=2")
    assert w.prompt_tokens.tolist() == [4]
    assert w.description["parameters"]["chars_per_token"] == 2


def test_a_tokenizer_counts(file: Write, tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    model = tokenizers.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]")
    made = tokenizers.Tokenizer(model)
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    text = json.dumps([talk(("human", "one two three"), ("gpt", "four five"))])
    for given in (tmp_path, tmp_path / "tokenizer.json"):
        w = load(str(file(text)), format=f"sharegpt:tokenizer={given}")
        assert (w.prompt_tokens.tolist(), w.output_tokens.tolist()) == ([3], [2])
        assert "counted by the tokenizer" in w.description["estimates"][0]


def test_a_tokenizer_that_is_not_there(file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(file(json.dumps([ONE])))
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(UserError, match=r"tokenizer=x: needs an extra package: pip install 'tailrace\[tokenizers\]'"):
        load(path, format="sharegpt:tokenizer=x")

    class Tokenizer:
        @staticmethod
        def from_pretrained(name: str) -> None:
            raise RuntimeError(f"no such\nname {name}")

    fake = types.ModuleType("tokenizers")
    monkeypatch.setattr(fake, "Tokenizer", Tokenizer, raising=False)
    monkeypatch.setitem(sys.modules, "tokenizers", fake)
    with pytest.raises(UserError, match=r"tokenizer=x: cannot be read \(no such name x\); give a tokenizer\.json"):
        load(path, format="sharegpt:tokenizer=x")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([TWO, {"id": 1}], "conversation 2: has no list of turns under conversations or messages"),
        ([TWO, {"conversations": "hi"}], "conversation 2: has no list of turns"),
        ([TWO, 5], "item 2: 5 is not an object|conversation 2: has no list"),
        ([TWO, {"conversations": [{"from": "human"}]}], "conversation 2: field conversations: turn 1 has no text"),
        ([{"conversations": [{"from": "human", "value": "x"}, "y"]}], "conversation 1: .* turn 2 has no text"),
        ([{"messages": [{"role": "user", "content": [1]}]}], "turn 1 has no text under role and content"),
        ([talk(("gpt", "x"))], "no conversation has an answer after somebody else's turn; there is nothing to run"),
    ],
)
def test_mistakes(file: Write, value: Any, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        load(str(file(json.dumps(value))), format="sharegpt")
    assert "\n" not in str(caught.value)
