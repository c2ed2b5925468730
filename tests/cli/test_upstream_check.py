"""`foreblock upstream check`: its exit codes, its table, its JSON, and no secret in any output."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from structlog.testing import capture_logs

from foreblock.chains.chain_file import preset
from foreblock.cli import main
from support.servers.toy_endpoint import ToyResponse
from support.upstreams.plain_state import header
from support.upstreams.toy_node import ToyNode, toy_node

SECRET = "kEy0123456789"  # noqa: S105, of nothing


@pytest.fixture(autouse=True)
def logs_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command runs in the process of the tests, with unrelated logs."""
    monkeypatch.setattr("foreblock.cli.upstream.configure", lambda _: None)


def check(node: ToyNode, *options: str) -> Result:
    with toy_node(node, f"/v2/{SECRET}?token={SECRET}&units=1000000"), capture_logs() as logs:
        done = CliRunner().invoke(main, ["upstream", "check", node.url, *options])
    assert SECRET not in done.output + done.stderr + str(logs)
    return done


def test_an_endpoint_that_proves() -> None:
    done = check(ToyNode())
    assert done.exit_code == 0
    rows = dict(line.split("  ", 1) for line in done.output.splitlines() if "  " in line.strip())
    shown = {name.strip(): value.strip() for name, value in rows.items()}
    assert shown["client"] == "ToyNode/v1"
    assert shown["proofs"] == "16 blocks back at least"
    assert shown["trust"] == "proven"
    assert shown["blocks by hash"] == "canonical hash, hash, bare hash"
    assert shown["endpoint"].endswith("/v2/…?token=…")
    assert shown["batches"] == "up to 100"


def test_as_json() -> None:
    found = json.loads(check(ToyNode(overrides=False, proofs=0), "--json").output)
    assert found["chain_id"] == 8453
    assert found["chain"] is None
    assert found["block_forms"] == ["canonical hash", "hash", "bare hash", "number"]
    assert found["proof_depth"] == 0
    assert found["overrides"] is False
    assert "expected 32 bytes, found 0" in found["reasons"]["overrides"]
    assert found["trust"] == "proven"
    assert found["latest"]["number"] == 102
    assert found["latency_seconds"] > 0


@pytest.mark.parametrize(
    ("node", "trust"),
    [(ToyNode(proofs=None), "trusted"), (ToyNode(forms=frozenset()), "none:")],
)
def test_an_endpoint_that_cannot_prove(node: ToyNode, trust: str) -> None:
    done = check(node)
    assert done.exit_code == 1
    assert f"{trust}" in done.output


def test_an_endpoint_of_another_chain(tmp_path: Path) -> None:
    done = check(ToyNode(), "--chain", "op-mainnet")
    assert done.exit_code == 1
    assert "its chain id is 8453; op-mainnet has 10" in " ".join(done.output.split())
    base = Path("python/foreblock/chains/presets/ink.toml")
    text = (Path(__file__).resolve().parents[2] / base).read_text("utf-8")
    mine = tmp_path / "mine.toml"
    mine.write_text(text.replace(f"chain_id = {preset('ink').chain_id}", "chain_id = 8453", 1))
    done = check(ToyNode(), "--chain", str(mine))
    assert done.exit_code == 1
    assert "its block 0 is" in done.output
    mine.write_text(
        mine.read_text("utf-8").replace(preset("ink").genesis.hash, "0x" + header(0).hash.hex())
    )
    assert check(ToyNode(), "--chain", str(mine)).exit_code == 0


@pytest.mark.parametrize(
    "said",
    [
        ToyResponse(500),
        ToyResponse(body=b"<html>" + SECRET.encode()),
        ToyResponse(401, SECRET.encode()),
        ToyResponse(cut=3),
        ToyResponse(
            body=b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"%b"}}' % SECRET.encode()
        ),
    ],
    ids=str,
)
def test_what_is_not_reachable(said: ToyResponse) -> None:
    done = check(ToyNode(weather=lambda *_: said))
    assert done.exit_code == 2
    assert done.stderr.startswith("foreblock: http://127.0.0.1:")


def test_a_bad_command_line() -> None:
    run = CliRunner().invoke
    assert run(main, ["upstream", "check", "ftp://x"]).exit_code == 1
    assert run(main, ["upstream", "check", "http://x?units=no"]).exit_code == 1
    assert run(main, ["upstream", "check", "http://x", "--chain", "nowhere"]).exit_code == 2
    assert run(main, ["upstream", "check"]).exit_code == 2
