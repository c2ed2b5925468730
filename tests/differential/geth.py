"""geth over a chain that it has imported."""

import base64
import hmac
import json
import secrets
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import IO

SERVED = "HTTP server started"


@contextmanager
def geth(
    program: str,
    files: Path,
    folder: Path,
    apis: str = "eth,net,web3,debug",
    *,
    names_heads: bool = False,
) -> Iterator[str]:
    """Yield its URL, while it serves these APIs of the chain with all its states.

    With `names_heads` the safe and the final block are set, as in `headfcu.json`.
    """
    base = [program, "--datadir", str(folder)]
    flags = ["--syncmode", "full", "--gcmode", "archive"]
    for command in (["init", str(files / "genesis.json")], ["import", str(files / "chain.rlp")]):
        subprocess.run([*base, *flags, *command], check=True, capture_output=True)
    quiet = ["--nodiscover", "--maxpeers", "0", "--ipcdisable", "--port", "0"]
    ports = ["--http", "--http.port", "0", "--http.api", apis, "--authrpc.port", "0"]
    secret = secrets.token_bytes(32)
    jwt = folder / "jwt.hex"
    jwt.write_text(secret.hex())
    ports += ["--authrpc.jwtsecret", str(jwt)]
    process = subprocess.Popen(
        [*base, *flags, *quiet, *ports], stderr=subprocess.PIPE, text=True, encoding="utf-8"
    )
    assert process.stderr is not None
    drain = threading.Thread(target=process.stderr.read, daemon=True)
    try:
        addresses = endpoints(process.stderr)
        drain.start()
        if names_heads:
            _name_heads(addresses["auth=true"], secret, (files / "headfcu.json").read_bytes())
        yield f"http://{addresses['auth=false']}"
    finally:
        process.terminate()
        process.wait()
        if drain.ident is not None:
            drain.join()
        process.stderr.close()


def endpoints(log: IO[str]) -> dict[str, str]:
    """The addresses in geth's log once it serves, without and with a token."""
    said: list[str] = []
    found: dict[str, str] = {}
    for line in log:
        said.append(line)
        if SERVED in line:
            kind = "auth=true" if "auth=true" in line else "auth=false"
            words = line.split()
            found[kind] = next(word for word in words if word.startswith("endpoint="))[9:]
        if len(found) == 2:
            return found
    raise SystemExit("geth ended before it served:\n" + "".join(said[-5:]))


def _name_heads(address: str, secret: bytes, request: bytes) -> None:
    """Choose the head, the safe and the final block, as a consensus client does."""
    claims = [{"alg": "HS256", "typ": "JWT"}, {"iat": int(time.time())}]
    text = ".".join(_packed(json.dumps(each).encode()) for each in claims)
    token = f"{text}.{_packed(hmac.digest(secret, text.encode(), 'sha256'))}"
    connection = HTTPConnection(address, timeout=60)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    connection.request("POST", "/", request, headers)
    answer = json.loads(connection.getresponse().read())
    connection.close()
    assert answer["result"]["payloadStatus"]["status"] == "VALID", answer


def _packed(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
