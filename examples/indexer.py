"""An indexer of token transfers survives a reorganisation.

It keeps the hash of each block that it has read. If the chain has another block of that number,
it takes its own back.

    read 1, read 2, read 3: bob has received 6
    took back 3, took back 2, read 2, read 3: bob has received 1
    read 4: bob has received 6
"""

from foreblock import Client, DevChain
from foreblock.errors import NoSuchBlock

TOKEN = "0x7E57000000000000000000000000000000000020"  # an ERC-20 of the genesis
BOB = "0x" + "b0" * 20
TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
TO_BOB = (TRANSFER, None, "0x" + "00" * 12 + "b0" * 20)


class Indexer:
    """The tokens that Bob has received, by block."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.hashes = [client.block(0).hash]
        self.received = [0]

    def step(self) -> str | None:
        """Read a block, or take one back; None if the indexer is where the chain is."""
        last = len(self.hashes) - 1
        try:
            block = self.client.block(last)
        except NoSuchBlock:  # the chain has become shorter
            block = None
        if block is None or block.hash != self.hashes[last]:
            self.hashes.pop()
            self.received.pop()
            return f"took back {last}"
        try:
            block = self.client.block(last + 1)
            logs = self.client.logs(block=block.hash, address=TOKEN, topics=TO_BOB)
        except NoSuchBlock:
            return None
        if block.parent_hash != self.hashes[last]:  # the chain has changed meanwhile
            return self.step()
        self.hashes.append(block.hash)
        self.received.append(sum(int.from_bytes(log.data) for log in logs))
        return f"read {last + 1}"

    def follow(self) -> None:
        done = ", ".join(iter(self.step, None))
        print(f"{done}: bob has received {sum(self.received)}")


def main() -> None:
    with DevChain(mode="manual") as chain, chain.serve() as server, Client(server.url) as client:
        indexer = Indexer(client)
        for amount in (1, 2, 3):
            chain.send(TOKEN, "transfer(address,uint256)", BOB, amount)
            chain.seal()
        indexer.follow()
        chain.reorg(2)  # the last two blocks are replaced; their transactions wait
        indexer.follow()
        chain.seal()
        indexer.follow()


if __name__ == "__main__":
    main()
