"""anvil_setLoggingEnabled and anvil_enableTraces: stored with the chain, through all changes."""

from pathlib import Path

from support.chains.dev_service import dev_service


def test_what_is_printed_is_kept_with_the_chain(tmp_path: Path) -> None:
    with dev_service(tmp_path) as (chain, client):
        assert client.ask("hardhat_setLoggingEnabled", False) is None
        assert client.ask("anvil_enableTraces") is None
        chain.kill()
        chain.open()
        assert (
            chain.sequencer.mining.state.prints,
            chain.sequencer.mining.state.prints_traces,
        ) == (False, True)


def test_each_is_switched_alone(tmp_path: Path) -> None:
    with dev_service(tmp_path) as (chain, client):
        client.ask("anvil_setLoggingEnabled", True)
        assert (
            chain.sequencer.mining.state.prints,
            chain.sequencer.mining.state.prints_traces,
        ) == (True, None)
        client.ask("anvil_enableTraces", False)
        assert (
            chain.sequencer.mining.state.prints,
            chain.sequencer.mining.state.prints_traces,
        ) == (True, False)


def test_a_chain_that_is_taken_back_or_begun_anew_prints_as_before(tmp_path: Path) -> None:
    with dev_service(tmp_path) as (chain, client):
        snapshot = client.ask("evm_snapshot")
        client.ask("anvil_setLoggingEnabled", True)
        assert client.ask("evm_revert", snapshot) is True
        assert chain.sequencer.mining.state.prints is True
        client.ask("anvil_reset")
        assert chain.sequencer.mining.state.prints is True


def test_other_parameters_are_refused(tmp_path: Path) -> None:
    with dev_service(tmp_path) as (_, client):
        for method, params in (
            ("anvil_setLoggingEnabled", ()),
            ("anvil_setLoggingEnabled", ("yes",)),
            ("anvil_enableTraces", (1,)),
        ):
            assert client.ask(method, *params)["code"] == -32602
