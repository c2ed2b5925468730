"""Short ways to ask for a simulation."""

from typing import Any

from support.servers.asking import Asker

A0, A1, A2, A3 = ("0x" + f"c{i}" + "00" * 19 for i in range(4))
ETHER = 10**18


def simulate(client: Asker, *blocks: dict[str, Any], at: str = "latest", **options: bool) -> Any:  # noqa: ANN401, it is JSON
    """The blocks, or the error object."""
    return client.ask("eth_simulateV1", {"blockStateCalls": list(blocks), **options}, at)


def block(
    *calls: dict[str, Any],
    accounts: dict[str, dict[str, Any]] | None = None,
    **overrides: Any,  # noqa: ANN401, fields of any type
) -> dict[str, Any]:
    """A block with these calls and overrides."""
    return {"calls": list(calls), "stateOverrides": accounts or {}, "blockOverrides": overrides}


def funded(*addresses: str) -> dict[str, dict[str, Any]]:
    """State overrides that give each an ether."""
    return {address: {"balance": hex(ETHER)} for address in addresses}


def word(number: int) -> str:
    """A number as 32 bytes."""
    return f"0x{number:064x}"
