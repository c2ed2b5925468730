"""A bot quotes on a pinned block: all its reads are of one state, while the market moves.

The market is an account that sells its tokens for ether, with a constant product of both.

    1 ether buys 99 tokens at the pin, 99 at pending
    10 ether buys 909 tokens at the pin, 593 at pending
    50 ether buys 2286 tokens at the pin, 1667 at pending
    the state of the pin is gone
    1 ether buys 99 tokens at the pin, 99 at pending
"""

from foreblock import Client, DevChain
from foreblock.client import Hex
from foreblock.errors import NoSuchBlock

ETHER = 10**18
TOKEN = "0x7E57000000000000000000000000000000000020"  # an ERC-20 of the genesis


def quote(client: Client, market: Hex, ether: int) -> int:
    """The tokens for an amount of ether, from two reads that must be of one state."""
    held = client.balance(market) / ETHER
    tokens: int = client.call(TOKEN, "balanceOf(address)(uint256)", market)
    return round(tokens * ether / (held + ether))


def show(pinned: Client, market: Hex, ether: int) -> None:
    tokens = [quote(each, market, ether) for each in (pinned, pinned.at("pending"))]
    print(f"{ether} ether buys {tokens[0]} tokens at the pin, {tokens[1]} at pending")


def trade(chain: DevChain, market: Hex, ether: int, tokens: int) -> None:
    """Someone buys tokens, in the next flashblock."""
    chain.send(market, value=ether * ETHER)
    chain.send(TOKEN, "transfer(address,uint256)", chain.accounts[0], tokens, sender=market)
    chain.flashblock()


def main() -> None:
    with DevChain(mode="manual") as chain, chain.serve() as server, Client(server.url) as client:
        market = chain.accounts[9]
        chain.set_balance(market, 100 * ETHER)
        chain.deal_erc20(TOKEN, market, 10_000)
        chain.seal()
        pinned = client.pin()  # the sealed block: it has no flashblock after it
        show(pinned, market, 1)
        trade(chain, market, ether=25, tokens=2_000)
        show(pinned, market, 10)
        pinned = client.pin()  # the flashblock
        trade(chain, market, ether=25, tokens=1_333)
        show(pinned, market, 50)
        chain.restart_block()  # the flashblocks are gone, and the pin with them
        try:
            show(pinned, market, 1)
        except NoSuchBlock:
            print("the state of the pin is gone")
        show(client.pin(), market, 1)


if __name__ == "__main__":
    main()
