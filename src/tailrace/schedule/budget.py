"""How much KV comes back from host memory in a step (``copy_budget=adaptive``), and whose.

Source: ProServe (arXiv 2512.12928), Adaptive Copy-Budget Control and Put it Together; the three cases as in
xLLM, whose scheduler its first author wrote. Over the live requests:

    t_budget   the seconds of the step: those that the policy gives it, and the constant
    T_fwd      the constant, and the predicted work of all, with what is in host memory counted as present
    T_trans    the time to copy back all that is in host memory

    T_fwd ≥ t_budget     there is work enough for the step: as many blocks as can be copied in t_budget
    T_trans > T_fwd      copies would be waited for: from the lowest rank up blocks are recomputed instead, until
                         T_trans ≤ T_fwd; in the request where it crosses the fewest that do are searched for
    else                 all

The budget, in blocks, is used up in queue order. A request of which the rest of it does not cover all is copied in
part, as far as the rest goes, if that lets it compute enough in this step: all that a step may compute of it, or
β times the tokens that are not copied. Else it is skipped in this step. The first in order that starts may copy all,
whatever the budget: else one that has more in host memory than the budget of any step would be skipped for as long
as others run.

Where the policy limits no seconds there is no budget.
"""

from __future__ import annotations

from typing import Any

from .. import hooks
from .._jit import kernel, routine, where
from ..rules import COPY_ADAPTIVE
from ..table import DECODE
from .fit import fit, wanted
from .host import decoding
from .kv import blocks_for
from .offload import kept_tokens
from .parked import is_parked
from .rank import before, refresh
from .transfer import IN
from .waiting import has_lanes

__all__ = ["allow_copies", "budget_copies", "spend_copies"]


@kernel
def _missing(e: Any, row: int) -> int:
    """Blocks of a waiting row that are in host memory and not on the device."""
    return 0 if is_parked(e.blocks, row) else int(e.blocks.stored.blocks[row])


@kernel
def _prefill_s(e: Any, tokens: int, kv_tokens: int) -> float:
    return hooks.chunk_s(tokens, kv_tokens, e.cost) if tokens > 0 else 0.0


@kernel
def _known(e: Any, row: int) -> int:
    return int(e.table.prompt_tokens[row] + e.table.generated_tokens[row])


@kernel
def _work_s(e: Any, row: int, decodes: bool, known: int) -> float:
    """Predicted seconds of a row's work with all that is in host memory there: its prefill's, or a decode's."""
    computed = e.table.computed_tokens[row]
    if decodes:
        tokens = wanted(e, row)
        return hooks.decode_s(tokens, computed, e.cost) if tokens > 0 else 0.0
    return _prefill_s(e, known - computed, computed)


@routine
def _survey(e: Any) -> tuple[int, float]:
    """``(rows, seconds)``: the waiting that have something in host memory, listed in ``picks.rows``, and T_fwd
    without the constant. O(live rows), and nothing but a look at the waiting where nobody has anything there."""
    picks, count, work_s = e.blocks.picks, 0, 0.0
    for lane in range(e.core.lanes[0]):
        for i in range(e.lanes.count[lane]):
            row = e.heap[lane, i]
            picks.kept_tokens[row] = e.table.computed_tokens[row]
            if _missing(e, row) > 0:
                picks.rows[count] = row
                count += 1
    if count == 0:
        return 0, 0.0
    for lane in range(e.core.lanes[0]):
        for i in range(e.lanes.count[lane]):
            row = e.heap[lane, i]
            work_s += _work_s(e, row, decoding(e, row), _known(e, row))
    for i in range(e.core.running[0]):
        row = e.seats.run[i]
        work_s += _work_s(e, row, e.table.phase[row] == DECODE, e.rows.target_tokens[row])
    return count, work_s


@kernel
def _more_s(e: Any, row: int, blocks: int) -> float:
    """Predicted seconds of a waiting row's work beyond `_work_s` if its last ``blocks`` blocks are computed again."""
    known, kept = _known(e, row), (_missing(e, row) - blocks) * e.core.block_tokens[0]
    return _prefill_s(e, known - kept, kept) - _work_s(e, row, decoding(e, row), known)


@routine
def _uncopy(e: Any, count: int, total: int, fwd_s: float, now: float) -> int:
    """Of ``total`` blocks of ``count`` rows, those that are copied back if the copies may not outlast the work."""
    rows, each_s = e.blocks.picks.rows, e.blocks.lanes.block_s[IN]
    if has_lanes(e):
        for i in range(count):
            refresh(e, rows[i], now)
    while count > 0 and total * each_s > fwd_s:
        at = 0
        for i in range(1, count):
            if before(e, rows[at], rows[i]):
                at = i
        row = rows[at]
        count -= 1
        rows[at] = rows[count]
        all_of_it, low = _missing(e, row), 0
        high = all_of_it
        if (total - high) * each_s <= fwd_s + _more_s(e, row, high):
            while high - low > 1:  # high blocks are enough, low are not
                middle = (low + high) // 2
                if (total - middle) * each_s <= fwd_s + _more_s(e, row, middle):
                    high = middle
                else:
                    low = middle
            return total - high
        total -= all_of_it
        fwd_s += _more_s(e, row, all_of_it)
    return total


def _no_budget(e: Any, now: float) -> None:
    return


@where("managed", otherwise=_no_budget, of="blocks")
def budget_copies(e: Any, now: float) -> None:
    """The plan begins, its limits are set and keys are fresh: how many blocks may be copied back in it."""
    choice = e.blocks.choice
    choice.left_blocks[0], choice.taken_blocks[0], choice.skipped[0] = -1, 0, 0
    choice.most_tokens[0] = e.plan.budget[0]
    if e.core.copy_budget[0] != COPY_ADAPTIVE or not e.plan.timed[0]:
        return
    count, work_s = _survey(e)
    if count == 0:
        return
    total, each_s, constant_s = 0, e.blocks.lanes.block_s[IN], hooks.constant_s(e.cost)
    for i in range(count):
        total += _missing(e, e.blocks.picks.rows[i])
    budget_s, fwd_s = e.plan.seconds[0] + constant_s, constant_s + work_s
    if fwd_s >= budget_s:
        room = int(budget_s / each_s) if 0 < budget_s < total * each_s else 0 if budget_s <= 0 else total
        choice.left_blocks[0] = room
    elif total * each_s > fwd_s:
        choice.left_blocks[0] = _uncopy(e, count, total, fwd_s, now)


def _allowed(e: Any, row: int, known: int) -> bool:
    return True


@where("managed", otherwise=_allowed, of="blocks")
def allow_copies(e: Any, row: int, known: int) -> bool:
    """Say how much of waiting row ``row`` comes back if it starts now; False: it is skipped in this step."""
    choice, kept = e.blocks.choice, e.blocks.picks.kept_tokens
    kept[row] = e.table.computed_tokens[row]
    left, lacks = choice.left_blocks[0], _missing(e, row)
    if left < 0 or lacks <= left or choice.taken_blocks[0] == 0:
        return True
    kept[row] = left * e.core.block_tokens[0]
    if e.blocks.offload.beta[0] > 0 and _gets_on(e, row, known - kept[row], lacks - left):
        return True
    kept[row] = e.table.computed_tokens[row]
    choice.skipped[0] += 1
    return False


@routine
def _gets_on(e: Any, row: int, want: int, dropped: int) -> bool:
    """Whether a row that lacks ``want`` tokens, those of ``dropped`` blocks among them, can compute enough of them."""
    most = want if want < e.blocks.choice.most_tokens[0] else e.blocks.choice.most_tokens[0]
    if 0 < e.plan.chunk_cap[0] < most:
        most = e.plan.chunk_cap[0]
    tokens = fit(e, row, want, want)
    return bool(
        tokens > 0 and (tokens >= most or tokens > e.blocks.offload.beta[0] * (dropped * e.core.block_tokens[0]))
    )


def _nothing(e: Any, row: int) -> None:
    return


@where("managed", otherwise=_nothing, of="blocks")
def spend_copies(e: Any, row: int) -> None:
    """The plan starts waiting row ``row``: what comes back of it is off the budget."""
    if _missing(e, row) == 0:
        return
    choice, blocks = e.blocks.choice, blocks_for(e, kept_tokens(e.blocks, row, e.table.computed_tokens[row]))
    choice.taken_blocks[0] += blocks
    if choice.left_blocks[0] >= 0:
        choice.left_blocks[0] = choice.left_blocks[0] - blocks if choice.left_blocks[0] > blocks else 0
