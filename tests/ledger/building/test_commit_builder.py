"""Steps of one commit that are about what an earlier step of the same commit added."""

from pathlib import Path

from foreblock.ledger.building.commit_builder import CommitBuilder
from foreblock.ledger.storage import partial_rows
from support.chains.writing import Chain


def test_what_a_commit_adds_and_drops_can_be_revived_in_it(tmp_path: Path) -> None:
    chain = Chain(tmp_path / "store")
    block = chain.block
    block.run(chain.deposit())
    with CommitBuilder(chain.store) as builder:
        closed = block.close_index(builder.next)
        number = builder.extend(closed, (), 0)
        builder.drop([number], "another job of its block was sealed")
        builder.revive([number])
        builder.batch.pending(number)
        builder.commit()
    with chain.store.view() as view:
        partial = view.partial(number)
        assert partial is not None
        assert (partial.status, view.heads.pending) == ("live", number)
        by_place = view.row(partial_rows.by_place_key(closed.header.number, closed.index))
        assert by_place == partial_rows.encode_numbers((number,))
        by_hash = view.row(partial_rows.by_hash_key(closed.header.hash))
        assert by_hash == partial_rows.encode_by_hash(closed.header.number, number)
