"""A wallet shows a payment before its block, and takes it back if the block comes without it.

The balances at `latest` and `pending` are of one snapshot, as they are read in one batch.

    0 ether
    2 ether (+2 pre-confirmed)
    0 ether
    2 ether
"""

from foreblock import Client, DevChain

ETHER = 10**18
BOB = "0x" + "b0" * 20


def shown(client: Client, account: str) -> str:
    """The balance as the wallet shows it, from one snapshot of the endpoint."""
    with client.batch() as batch:
        sealed = batch.balance(account, "latest")
        pending = batch.balance(account, "pending")
    difference = pending.value - sealed.value
    text = f"{pending.value / ETHER:g} ether"
    return f"{text} ({difference / ETHER:+g} pre-confirmed)" if difference else text


def main() -> None:
    with DevChain(mode="manual") as chain, chain.serve() as server, Client(server.url) as client:
        print(shown(client, BOB))
        chain.send(BOB, value=2 * ETHER)
        chain.flashblock()
        print(shown(client, BOB))
        chain.drop_tail()  # the block is sealed without the flashblock
        print(shown(client, BOB))
        chain.seal()  # the payment waited, and is in the next block
        print(shown(client, BOB))


if __name__ == "__main__":
    main()
