"""Fetched state is kept on disk, for all forks of a block."""

from pathlib import Path

from foreblock.fork.cache import cached_forks
from support.upstreams.forked import BOB, Upstream
from support.upstreams.relay import refusing

OTHER = b"\xcc" * 20


def use(upstream: Upstream, folder: Path, **options: object) -> None:
    """What a test does with a fork."""
    chosen = {"cache": True, "cache_path": str(folder), **options}
    upstream.relay.forget()
    with upstream.fork(options=chosen) as fork:
        token = upstream.on(fork)
        assert token.call("balanceOf", BOB) == 7
        token.send("transfer", OTHER, 1)
        fork.send(OTHER, value=1)
        assert (fork.balance(BOB), fork.balance(OTHER)) == (5, 1)


def test_a_second_run_requests_no_state(upstream: Upstream, tmp_path: Path) -> None:
    use(upstream, tmp_path)
    assert upstream.relay.state_requests
    use(upstream, tmp_path)
    assert upstream.relay.methods == {"eth_chainId": 1, "eth_getBlockByNumber": 1}
    (kept,) = cached_forks(tmp_path)
    latest = upstream.chain.block()
    assert latest.hash is not None
    assert (kept.chain_id, kept.number, kept.proven) == (31337, latest.number, True)
    assert latest.hash.hex().startswith(kept.hash)


def test_another_block_has_a_file_of_its_own(upstream: Upstream, tmp_path: Path) -> None:
    use(upstream, tmp_path)
    upstream.chain.seal()
    use(upstream, tmp_path)
    assert upstream.relay.state_requests
    assert len(cached_forks(tmp_path)) == 2


def test_what_is_only_trusted_is_not_taken_for_proven(upstream: Upstream, tmp_path: Path) -> None:
    upstream.relay.instead = refusing("eth_getProof")
    use(upstream, tmp_path)
    upstream.relay.instead = lambda _: None
    use(upstream, tmp_path)
    assert upstream.relay.state_requests
    assert [each.proven for each in cached_forks(tmp_path)] == [True, False]
    use(upstream, tmp_path, proofs="on")
    assert not upstream.relay.state_requests


def test_a_file_that_was_cut_off_is_continued(upstream: Upstream, tmp_path: Path) -> None:
    use(upstream, tmp_path)
    (kept,) = cached_forks(tmp_path)
    whole = kept.path.read_bytes()
    for length in (0, 5, len(whole) // 2, len(whole) - 1):
        kept.path.write_bytes(whole[:length])
        use(upstream, tmp_path)
        assert upstream.relay.state_requests
        use(upstream, tmp_path)
        assert not upstream.relay.state_requests


def test_without_a_cache_nothing_is_written(upstream: Upstream, tmp_path: Path) -> None:
    use(upstream, tmp_path, cache=False)
    assert not list(tmp_path.iterdir())
