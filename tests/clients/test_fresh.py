"""viem requires commits that it has seen, and retries after status 503.

`make clients` installs it in this folder and runs this.
"""

import json

from support.servers.client_libraries import run
from support.servers.dev_processes import dev_chain

EXPECTED = {
    "forward": {"answers": "10", "rising": True},
    "retried": {"chainId": "31337", "refusedFirst": True, "answered": "200", "fresh": True},
    "refused": {"name": "HttpRequestError", "status": "503", "says": True},
}


def test_viem_never_goes_backwards() -> None:
    with dev_chain("--test-listen=", "--workers=2") as dev:
        assert json.loads(run("viem", "fresh_with_viem.mjs", dev.main.url)) == EXPECTED
