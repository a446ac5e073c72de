"""Our named blocks against vLLM's own KV cache manager, block number by block number.

Needs vLLM: ``scripts/vllm`` makes an environment that has it and runs this folder.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

pytest.importorskip("vllm", reason="vLLM is not installed here; run scripts/vllm")

from tailrace.schedule import prefix
from tailrace.schedule.prefix import build_blocks

pytestmark = pytest.mark.plain

OPERATIONS = 6000
BLOCK = 4
"""Tokens."""
SEATS, LONGEST, ROWS = 8, 14, 3000
OWN = 1_000_000
"""Token ids from here on are a row's own; below, a prompt block is its name, repeated."""


def manager(blocks: int) -> Any:
    """vLLM's manager of ``blocks`` blocks, the null block among them."""
    import torch
    from vllm.v1.core.kv_cache_manager import KVCacheManager
    from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec

    spec = FullAttentionSpec(block_size=BLOCK, num_kv_heads=1, head_size=1, dtype=torch.float32)
    config = KVCacheConfig(num_blocks=blocks, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["layer"], spec)])
    return KVCacheManager(config, max_model_len=1 << 14, scheduler_block_size=BLOCK, hash_block_size=BLOCK)


def hasher() -> Any:
    from vllm.utils.hashing import sha256
    from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash

    init_none_hash(sha256)
    return get_request_block_hasher(BLOCK, sha256)


class Both:
    """Random requests on vLLM's manager and on our blocks, compared after every operation."""

    def __init__(self, seed: int, usable: int) -> None:
        self.rng, self.hasher = random.Random(seed), hasher()
        self.theirs = manager(usable + 1)
        tree: dict[tuple[int, int], int] = {}
        self.prompts: list[list[int]] = []
        lists = []
        for row in range(ROWS):
            at, names = 0, []
            for _ in range(self.rng.randint(0, 5)):
                at = tree.setdefault((at, self.rng.choice([0, 0, 0, 1, 2])), len(tree) + 1)
                names.append(at)
            lists.append(names)
            rest = self.rng.choice([0, 0, 1, 3, 5]) if names else self.rng.randint(1, 6)
            self.prompts.append([name for name in names for _ in range(BLOCK)] + [OWN + row] * rest)
        ids = np.array([name for names in lists for name in names], dtype=np.int64)
        offsets = np.cumsum([0, *map(len, lists)])
        self.ours = build_blocks(ROWS, SEATS, LONGEST, usable, BLOCK, ids, offsets)
        self.requests: dict[int, Any] = {}
        self.running: list[int] = []
        self.next_row = 0
        self.seen = dict.fromkeys(("hit", "refused", "resumed", "twins", "ahead"), 0)

    def step(self) -> None:
        kind = self.rng.random()
        if kind < 0.3 and len(self.running) < SEATS:
            self.start()
        elif kind < 0.85 and self.running:
            self.compute(self.rng.choice(self.running))
        elif self.running:
            self.stop(self.rng.choice(self.running), forget=kind < 0.93)
        self.compare()

    def start(self) -> None:
        """A new request, or one that was preempted, with a first chunk of any size."""
        away = [row for row in self.requests if row not in self.running]
        row = self.rng.choice(away) if away and self.rng.random() < 0.5 else self.add()
        request, b = self.requests[row], self.ours
        cached, tokens, _ = self.theirs.get_computed_blocks(request)
        hit = prefix.hits(b, row, request.num_tokens)
        assert hit * BLOCK == tokens
        chunk = self.rng.randint(1, request.num_tokens - tokens)
        total = tokens + chunk
        fresh = -(-total // BLOCK) - hit
        whole = -(-request.num_tokens // BLOCK) - hit
        gate = self.rng.random() < 0.5
        need = (whole if gate else fresh) + prefix.idle_among(b, row, hit)
        got = self.theirs.allocate_slots(request, chunk, tokens, cached, full_sequence_must_fit=gate)
        assert (got is not None) == (need <= prefix.free_count(b))
        if got is None:
            self.seen["refused"] += 1
            return
        prefix.start(b, row, hit, fresh)
        prefix.seal(b, row, min(total, request.num_tokens))
        request.num_computed_tokens = total
        self.running.append(row)
        self.seen["hit"] += hit
        self.seen["resumed"] += row in away

    def add(self) -> int:
        from vllm.sampling_params import SamplingParams
        from vllm.v1.request import Request

        row, self.next_row = self.next_row, self.next_row + 1
        self.requests[row] = Request(
            request_id=str(row),
            prompt_token_ids=self.prompts[row],
            sampling_params=SamplingParams(max_tokens=1000, ignore_eos=True),
            pooling_params=None,
            block_hasher=self.hasher,
        )
        return row

    def compute(self, row: int) -> None:
        """More of its known tokens; if there are none, an output token, known at once or a step late."""
        request, b = self.requests[row], self.ours
        left = request.num_tokens - request.num_computed_tokens
        ahead = left <= 0 and self.rng.random() < 0.5
        if left < 0 or (left == 0 and not ahead):
            request.append_output_token_ids([OWN + row] * (1 - left))
            if self.rng.random() < 0.5:  # what asynchronous scheduling does when a token is delivered
                self.theirs.cache_blocks(request, request.num_tokens - 1)
                prefix.seal(b, row, request.num_tokens - 1)
        chunk = max(self.rng.randint(1, max(left, 1)), 1)
        total = request.num_computed_tokens + chunk
        spare = self.rng.choice([0, 0, 0, 9])  # slots for drafts: several blocks that stay without a name
        if total + spare > LONGEST * BLOCK:
            self.stop(row, forget=True)
            return
        fresh = max(-(-(total + spare) // BLOCK) - prefix.held_count(b, row), 0)
        got = self.theirs.allocate_slots(request, chunk, num_lookahead_tokens=spare)
        assert (got is not None) == (fresh <= prefix.free_count(b))
        if got is None:
            self.seen["refused"] += 1
            self.stop(row, forget=False)
            return
        prefix.grow(b, row, fresh)
        prefix.seal(b, row, min(total, request.num_tokens))
        request.num_computed_tokens = total
        self.seen["ahead"] += total > request.num_tokens

    def stop(self, row: int, forget: bool) -> None:
        """Finished, or preempted: then it comes back with its output so far."""
        free, most = prefix.free_count(self.ours), prefix.releasable(self.ours, row)
        self.theirs.free(self.requests[row])
        prefix.release(self.ours, row)
        assert prefix.free_count(self.ours) == free + most
        self.running.remove(row)
        if forget:
            del self.requests[row]
        else:
            self.requests[row].num_computed_tokens = 0

    def compare(self) -> None:
        pool, b = self.theirs.block_pool, self.ours
        assert pool.get_num_free_blocks() == prefix.free_count(b)
        queue, at = [], int(b.nodes.next[0])
        while at:
            queue.append(at)
            at = int(b.nodes.next[at])
        assert [block.block_id for block in pool.free_block_queue.get_all_free_blocks()] == queue
        for row in self.running:
            seat = int(b.owners.seat[row]) - 1
            (held,) = self.theirs.get_block_ids(str(row))
            assert held == b.held[seat, : b.holds.count[seat]].tolist()
        users, younger = b.nodes.users.tolist(), b.nodes.younger.tolist()
        assert [block.ref_cnt for block in pool.blocks[1:]] == users[1:]
        assert [block.block_hash is not None for block in pool.blocks[1:]] == [mate != 0 for mate in younger[1:]]
        self.seen["twins"] += any(mate not in (0, block) for block, mate in enumerate(younger))
        assert len(pool.cached_block_hash_to_block) == np.count_nonzero(b.table)


@pytest.mark.parametrize("usable", [16, 24, 32])
def test_every_block_is_the_same(usable: int) -> None:
    both = Both(usable, usable)
    for _ in range(OPERATIONS):
        both.step()
    assert min(both.seen.values()) > 50, both.seen
