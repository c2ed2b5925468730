"""A chain in the process, from an installed package: run by its Python, on any system."""

from foreblock import DevChain
from foreblock.errors import Reverted

BOB = "0x00000000000000000000000000000000000000b0"
REVERTS = bytes.fromhex("60006000fd")
ETHER = 10**18


def main() -> None:
    """Pre-confirm, seal, revert and fail; a wrong result raises `AssertionError`."""
    for rules in ("ethereum", "optimism"):
        with DevChain(rules, mode="manual") as chain:
            chain.send(to=BOB, value=ETHER)
            chain.flashblock()
            assert chain.at("pending").balance(BOB) == ETHER
            assert chain.balance(BOB) == 0
            chain.seal()
            with chain.snapshot():
                chain.set_balance(BOB, 1)
                assert chain.balance(BOB) == 1
            assert chain.balance(BOB) == ETHER
            chain.set_code(BOB, REVERTS)
            try:
                chain.call(BOB, "fails()")
            except Reverted:
                continue
            raise AssertionError("the call should revert")


if __name__ == "__main__":
    main()
