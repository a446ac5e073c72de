from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tailrace.errors import UserError
from tailrace.workloads.public import TRACES, Trace, fetch, find

BODY = bytes(range(256)) * 12_000  # over two chunks


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/missing.csv":
            self.send_error(404)
            return
        body = b"version https://git-lfs.github.com/spec/v1\noid x\n" if self.path == "/pointer.csv" else BODY
        self.send_response(200)
        claimed = len(body) + (1000 if self.path == "/cut.csv" else 0)
        if self.path == "/garbled.csv":
            self.send_header("Content-Length", "many")
        elif self.path != "/unsized.csv":
            self.send_header("Content-Length", str(claimed))
        self.end_headers()
        self.wfile.write(b"" if self.path == "/nothing.csv" else body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        pass  # whoever has seen enough hangs up


@pytest.fixture(scope="module")
def trace() -> Iterator[Callable[[str], Trace]]:
    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield lambda file: Trace("x", "a test", f"http://127.0.0.1:{server.server_port}/{file}", "", "", "")
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_download_arrives_whole(trace: Callable[[str], Trace], tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    folder = tmp_path / "new"
    (found,) = fetch([trace("good.csv")], folder, lambda _, done, total: seen.append((done, total)))
    assert (folder / "good.csv").read_bytes() == BODY
    assert [entry.name for entry in folder.iterdir()] == ["good.csv"]
    assert (found.bytes, found.sha256, found.new) == (len(BODY), hashlib.sha256(BODY).hexdigest(), True)
    assert seen[-1] == (len(BODY), len(BODY))
    assert len(seen) >= 3


def test_what_is_there_is_not_fetched_again(trace: Callable[[str], Trace], tmp_path: Path) -> None:
    (tmp_path / "missing.csv").write_bytes(b"mine")
    (found,) = fetch([trace("missing.csv")], tmp_path)
    assert (found.new, found.bytes, (tmp_path / "missing.csv").read_bytes()) == (False, 4, b"mine")


def test_a_size_need_not_be_told(trace: Callable[[str], Trace], tmp_path: Path) -> None:
    fetch([trace("unsized.csv")], tmp_path)
    assert (tmp_path / "unsized.csv").read_bytes() == BODY


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("missing.csv", "answers 404 Not Found; has it moved"),
        ("cut.csv", "broke off after .* bytes; try again|IncompleteRead"),
        ("nothing.csv", "broke off after 0 of|IncompleteRead"),
        ("pointer.csv", "gave a Git LFS pointer"),
        ("garbled.csv", "try again"),
    ],
)
def test_a_failed_download_leaves_nothing(
    trace: Callable[[str], Trace], tmp_path: Path, file: str, message: str
) -> None:
    with pytest.raises(UserError, match=message) as caught:
        fetch([trace(file)], tmp_path / "new")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be reached"):
        fetch([Trace("x", "", "http://127.0.0.1:1/a.csv", "", "", "")], tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="is a file; name a folder"):
        fetch([TRACES["burstgpt"]], tmp_path / "file")


def test_names() -> None:
    assert [t.name for t in find("azure-2023")] == ["azure-2023-conv", "azure-2023-code"]
    assert [t.name for t in find("burstgpt")] == ["burstgpt"]
    assert len(find("")) == len(TRACES)
    with pytest.raises(UserError, match=r"unknown trace 'burstgtp' \(did you mean 'burstgpt'\?\)"):
        find("burstgtp")


def test_every_trace_says_what_its_user_must_know() -> None:
    for name, one in TRACES.items():
        assert one.name == name
        assert all((one.about, one.licence, one.cite))
        assert one.url.startswith("https://")
        assert Path(one.file).suffix in (".csv", ".json", ".jsonl")
    assert len({one.file for one in TRACES.values()}) == len(TRACES)
