"""A dev chain that is held against the plain model of it, by every name that it has.

After each step (`dev_trial`) the chain is as `dev_world` says: people and senders at pending, at
latest and at sealed blocks; flashblocks by place and hash; what was given up, which no name may
find; logs by a filter, and blocks by a cursor, which were followed from the start. At the end the
roots of all states are computed from scratch, blocks pass the rules of the import up to the first
cheat, and a follower that heard the feed has the same blocks.
"""

import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from foreblock.errors import NotHere
from foreblock.ledger.genesis.genesis_file import Genesis, GenesisAccount
from foreblock.ledger.reading.blocks import ByIndex
from foreblock.types import decode_transactions
from support.chains.checking import check_blocks_by_import, check_unknown
from support.chains.dev_chain import ACCOUNTS
from support.chains.dev_life import DevLife
from support.chains.dev_world import DevWorld, Person, Set, World, world_of
from support.chains.ethereum_chain import genesis_of
from support.chains.whole_state import check_roots

SENDERS = ACCOUNTS[:3]
PEOPLE = tuple(bytes([0xD0 + each]) * 20 for each in range(3))
ACTORS = tuple(bytes([0xE0 + each]) * 20 for each in range(2))  # who send without a signature
LOGGER = bytes.fromhex("600160006000a100")  # emits a log with one topic
LOUD = PEOPLE[-1]  # a contract from the start
FIRST = {each: Person() for each in PEOPLE} | {LOUD: Person(nonce=1, code=LOGGER)}


def hexed(value: bytes) -> str:
    return "0x" + value.hex()


def genesis(rules: str) -> Genesis:
    """With actors who can pay for their gas, where that is paid, and people as the model says."""
    found = genesis_of(rules)
    some = {each: GenesisAccount(balance=10**24) for each in ACTORS}
    some[LOUD] = GenesisAccount(nonce=FIRST[LOUD].nonce, code=FIRST[LOUD].code)
    return replace(found, accounts=dict(found.accounts) | some)


class HeldChain:
    """A chain and the model of it."""

    def __init__(self, folder: Path, rules: str) -> None:
        self.folder = folder
        self.rules = rules
        self.life = DevLife(folder, genesis(rules))
        self.model = DevWorld(FIRST)
        self.snapshots: dict[int, DevWorld] = {}
        self.known: set[bytes] = set()  # transactions
        self.highest = 0
        self.commit = 0
        self.used: set[str] = set()  # methods
        self.finish()

    def finish(self) -> None:
        """Take what was sealed into the model, and look at everything."""
        self.life.settle()
        self.take_sealed()
        self.model.run()
        self.life.look()
        self.check()

    def take_sealed(self, most: int | None = None) -> None:
        blocks = self.life.chain.sealed()[self.model.height :]
        for block in blocks[:most]:
            ran = decode_transactions(list(block.transactions), unsigned=True)
            self.model.seal([each.hash for each in ran if each.hash in self.known])

    def ask(self, method: str, *params: object) -> Any:  # noqa: ANN401, it is JSON
        self.used.add(method)
        return self.life.ask(method, *params)

    def done(self, method: str, *params: object) -> Any:  # noqa: ANN401, it is JSON
        """The result of a request that must succeed."""
        found = self.ask(method, *params)
        assert not (isinstance(found, dict) and "code" in found), (method, found)
        return found

    def refused(self, method: str, *params: object) -> str:
        """Why a request was refused."""
        found = self.ask(method, *params)
        assert isinstance(found, dict), (method, found)
        assert found["code"] in {-32602, -32000}, found
        return str(found["message"])

    def timestamps(self) -> list[int]:
        genesis = self.life.chain.genesis.timestamp
        return [genesis, *(each.header.timestamp for each in self.life.chain.sealed())]

    # --- Checks ------------------------------------------------------------------------

    def check(self) -> None:
        model = self.model
        self.highest = max(self.highest, model.height)
        sealed = self.life.chain.sealed()
        assert len(sealed) == model.height
        assert self.life.watchers.sealed == [each.hash for each in sealed]
        times = self.timestamps()
        assert all(one < other for one, other in pairwise(times))
        assert {each.hash for each in self.life.chain.sequencer.pooled()} == {
            each.hash for each in model.waiting.values()
        }
        with self.life.view() as view:
            assert view.commit >= self.commit
            self.commit = view.commit
            assert self.read(view, "latest") == (model.latest(), model.nonces(model.height))
            for height in {0, model.height // 2, model.height}:
                assert self.read(view, height) == (model.world(height), model.nonces(height))
            assert self.read(view, "pending") == (model.world(), model.nonces())
            self.check_places(view)
        self.check_given_up({each.hash for each in sealed})

    def read(self, view: Any, block: Any) -> tuple[World, dict[bytes, int]]:  # noqa: ANN401, any name
        state = view.state(view.resolve(block))
        people = world_of(state, PEOPLE)
        senders = (*(each.address for each in SENDERS), *ACTORS)
        nonces = {each: state.nonce(each) for each in senders}
        return people, {each: nonce for each, nonce in nonces.items() if nonce}

    def check_places(self, view: Any) -> None:  # noqa: ANN401, a view
        places = self.life.names.places
        for (number, index), hashed in places.items():
            assert view.resolve(ByIndex(number, index)).hash == hashed, (number, index)
            if (number, index + 1) not in places:
                with pytest.raises(NotHere):
                    view.resolve(ByIndex(number, index + 1))
        pending = view.resolve("pending")
        assert places[pending.number, pending.index] == pending.hash
        with pytest.raises(NotHere):
            view.resolve(ByIndex(pending.number + 1, 0))

    def check_given_up(self, sealed: set[bytes]) -> None:
        """No name finds what was given up; some of all names, by chance that is always the same."""
        gone = self.life.names.ever - self.life.names.live - sealed
        chance = random.Random(len(gone))
        lost = self.known - self.model.hashes()
        check_unknown(
            self.life.client,
            {hexed(each) for each in chance.sample(sorted(gone), min(len(gone), 3))},
            {hexed(each) for each in chance.sample(sorted(lost), min(len(lost), 3))},
        )

    def end(self) -> None:
        """Let the chain be higher than ever, and hold it against rules it does not use."""
        self.done("anvil_mine", hex(self.highest - self.model.height + 1))
        self.finish()
        check_roots(self.life.chain)
        cheated = [
            number
            for number, block in enumerate(self.model.blocks, 1)
            if any(isinstance(each, Set) for each in block)
        ]
        sealed = self.life.chain.sealed()
        honest = sealed[: cheated[0] - 1] if cheated else sealed
        check_blocks_by_import(self.life.chain, honest, self.folder / "check")
        self.life.check_follower(is_cheated=bool(cheated))
