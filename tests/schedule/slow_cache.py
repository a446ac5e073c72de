"""A prefix cache in plain Python, written from vLLM's prose: what the kernels and the engine are held against."""

from __future__ import annotations

from typing import Any


class SlowCache:
    """Lists and dictionaries, nothing clever. Blocks are numbered from 1, rows name theirs as ``names`` says."""

    def __init__(self, usable: int, names: list[list[int]], block_tokens: int) -> None:
        self.names, self.block_tokens = names, block_tokens
        self.queue = list(range(1, usable + 1))
        self.users = dict.fromkeys(self.queue, 0)
        self.found: dict[Any, list[int]] = {}
        self.named: dict[int, Any] = {}
        self.held: dict[int, list[int]] = {}
        self.sealed: dict[int, int] = {}

    def copy(self) -> SlowCache:
        """One that can be changed and thrown away."""
        other = SlowCache(0, self.names, self.block_tokens)
        other.queue, other.users, other.named = list(self.queue), dict(self.users), dict(self.named)
        other.found = {name: list(blocks) for name, blocks in self.found.items()}
        other.held = {row: list(blocks) for row, blocks in self.held.items()}
        other.sealed = dict(self.sealed)
        return other

    def name(self, row: int, i: int) -> Any:
        return self.names[row][i] if i < len(self.names[row]) else (row, i)

    def hits(self, row: int, known: int) -> int:
        count = 0
        while (count + 1) * self.block_tokens < known and self.name(row, count) in self.found:
            count += 1
        return count

    def idle_among(self, row: int, count: int) -> int:
        return sum(self.found[self.name(row, i)][0] in self.queue for i in range(count))

    def start(self, row: int, hit: int, fresh: int) -> None:
        self.held[row] = [self.found[self.name(row, i)][0] for i in range(hit)]
        self.sealed[row] = hit
        for block in self.held[row]:
            if self.users[block] == 0:
                self.queue.remove(block)
            self.users[block] += 1
        self.grow(row, fresh)

    def grow(self, row: int, fresh: int) -> None:
        for _ in range(fresh):
            block = self.queue.pop(0)
            if block in self.named:
                name = self.named.pop(block)
                self.found[name].remove(block)
                if not self.found[name]:
                    del self.found[name]
            self.users[block] = 1
            self.held[row].append(block)

    def seal(self, row: int, tokens: int) -> None:
        for i in range(self.sealed[row], tokens // self.block_tokens):
            block, name = self.held[row][i], self.name(row, i)
            self.named[block] = name
            self.found.setdefault(name, []).append(block)
            self.sealed[row] = i + 1

    def release(self, row: int) -> None:
        gone = []
        for block in reversed(self.held.pop(row, [])):
            self.users[block] -= 1
            if self.users[block] == 0:
                gone.append(block)
        self.queue = [b for b in gone if b not in self.named] + self.queue + [b for b in gone if b in self.named]

    def releasable(self, row: int) -> int:
        return sum(self.users[block] == 1 for block in self.held.get(row, []))


def queue(b: Any) -> list[int]:
    """The free queue of an engine's named blocks, from its head."""
    following, blocks, at = b.nodes.next.tolist(), [], int(b.nodes.next[0])
    while at != 0:
        blocks.append(at)
        at = following[at]
    return blocks
