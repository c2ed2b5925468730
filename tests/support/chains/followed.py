"""What networks answer for whole blocks, so that one that follows is held against another."""

from typing import Any

from support.servers.dev_processes import Network, RpcError
from support.servers.waiting import until

CANDIDATES = 20  # indices of a block that are asked for; a block of a second has six


def pins(network: Network, block: int) -> list[Any]:
    """What a network answers for every flashblock of a block, up to the first it lacks."""
    found = []
    for index in range(CANDIDATES):
        place = {"blockNumber": hex(block), "flashblockIndex": hex(index)}
        try:
            answers = network.batch(
                ("debug_getRawBlock", (place,)),
                ("eth_getBlockByNumber", (place, True)),
                ("eth_getBalance", ("0x" + "00" * 20, place)),
            )
        except RpcError:
            break
        found.append(answers)
    return found


def sealed(network: Network, block: int) -> Any:  # noqa: ANN401, JSON
    return network.batch(
        ("eth_getBlockByNumber", (hex(block), True)), ("debug_getRawBlock", (hex(block),))
    )


def until_latest(network: Network, block: int) -> None:
    until(lambda: network.latest() >= block, f"block {block} is sealed")
