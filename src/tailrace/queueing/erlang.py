"""Erlang's formulas: the probability that an arrival finds every server busy.

Source: A. K. Erlang (1917); R. B. Cooper, Introduction to Queueing Theory (1981), §3.2-3.3. The
load is the offered one, a = λ·E[S] in servers (erlangs); the utilisation is a/n.
"""

from __future__ import annotations

from .checks import number, whole

__all__ = ["erlang_b", "erlang_c"]


def erlang_b(servers: int, offered: float) -> float:
    """Probability that an arrival is lost in M/M/n/n; exact for any service-time distribution.

    By the recursion B(k) = a·B(k−1) / (k + a·B(k−1)), B(0) = 1: only positive terms, so no
    digits are lost where factorials would overflow. Raises UserError for less than one
    server or an offered load that is negative or not finite.
    """
    n, a = whole("servers", servers), number("offered", offered)
    blocked = 1.0
    for k in range(1, n + 1):
        blocked = a * blocked / (k + a * blocked)
    return blocked


def erlang_c(servers: int, offered: float) -> float:
    """Probability that an arrival waits in M/M/n: C = n·B / (n − a·(1 − B)).

    P_wait of the paper's eq. 8. It rises to 1 as a → n and is 1 for a >= n, where the queue
    grows without bound and everybody waits. Raises UserError as `erlang_b` does.
    """
    blocked = erlang_b(servers, offered)
    if offered >= servers:
        return 1.0
    return min(1.0, servers * blocked / (servers - offered * (1.0 - blocked)))
