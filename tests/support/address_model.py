"""A plain model of searches by address: all transactions of a chain, by the addresses of their
calls.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from foreblock._engine import keccak256
from support.servers.asking import Asker

Json = dict[str, Any]


class Touching(NamedTuple):
    """A transaction, and every sender and recipient of it and of its inner calls."""

    block: int
    hash: str
    addresses: frozenset[str]


def ends(frame: Json) -> Iterator[str]:
    """The addresses of a callTracer frame and of all frames in it.

    A failed creation has no address in it; with CREATE2 and the salt 0 it is known.
    """
    yield frame["from"]
    if "to" in frame:
        yield frame["to"]
    elif frame["type"] == "CREATE2":
        code = keccak256(bytes.fromhex(frame["input"][2:]))
        made = keccak256(b"\xff" + bytes.fromhex(frame["from"][2:]) + bytes(32) + code)
        yield "0x" + made[12:].hex()
    for each in frame.get("calls", []):
        yield from ends(each)


def touching(block: int, traces: list[Json]) -> list[Touching]:
    """The transactions of a block, from their callTracer traces."""
    return [Touching(block, it["txHash"], frozenset(ends(it["result"]))) for it in traces]


def scan(client: Asker, last: str = "pending") -> list[Touching]:
    """All transactions of a chain up to a tag, in order."""
    found: list[Touching] = []
    newest = int(client.ask("eth_getBlockByNumber", last, False)["number"], 16)
    latest = int(client.ask("eth_getBlockByNumber", "latest", False)["number"], 16)
    for number in range(1, newest + 1):
        named = hex(number) if number <= latest else last
        traces = client.ask("debug_traceBlockByNumber", named, {"tracer": "callTracer"})
        found += touching(number, traces)
    return found


class Page(NamedTuple):
    """A page: hashes from the newest to the oldest, and its two flags."""

    hashes: list[str]
    first: bool
    last: bool


def expected(chain: list[Touching], address: str, block: int, size: int, *, before: bool) -> Page:
    """The expected page of a search."""
    of_it = [it for it in chain if address in it.addresses]
    if before:
        newest = max((it.block for it in chain), default=0)
        rest = [it for it in of_it if not block or it.block < block][::-1]
    else:
        rest = [it for it in of_it if it.block > block]
    taken: list[Touching] = []
    for it in rest:
        if len(taken) >= size and it.block != taken[-1].block:
            break
        taken.append(it)
    has_more = len(taken) < len(rest)
    if before:
        return Page([it.hash for it in taken], block == 0 or block > newest, not has_more)
    return Page([it.hash for it in taken[::-1]], not has_more, block == 0)


def asked(client: Asker, address: str, block: int, size: int, *, before: bool) -> Page:
    """The page of a search; its receipts must belong to its transactions."""
    method = "ots_searchTransactionsBefore" if before else "ots_searchTransactionsAfter"
    page = client.ask(method, address, block, size)
    hashes = [it["hash"] for it in page["txs"]]
    assert [it["transactionHash"] for it in page["receipts"]] == hashes
    return Page(hashes, page["firstPage"], page["lastPage"])


def check_pages(
    client: Asker, chain: list[Touching], addresses: list[str], sizes: list[int]
) -> int:
    """Walk all pages of these addresses in both directions; return the number of pages."""
    count = 0
    blocks = {it.hash: it.block for it in chain}
    for address in addresses:
        for size in sizes:
            for before in (True, False):
                block = 0
                while True:
                    page = asked(client, address, block, size, before=before)
                    assert page == expected(chain, address, block, size, before=before)
                    count += 1
                    if page.last if before else page.first:
                        break
                    block = blocks[page.hashes[-1 if before else 0]]
    return count
