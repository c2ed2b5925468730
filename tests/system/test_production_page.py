"""docs/production.md: its commands and its proxy work, and its runbook has every alert."""

import json
import re
import shlex
import shutil
import socket
import ssl
import subprocess
from http.client import HTTPResponse
from pathlib import Path

import click
import pytest
from websockets.sync.client import connect

from conftest import CHECKOUT, ChainFiles
from foreblock.cli import main
from foreblock.ledger.importing.importer import import_files
from foreblock.service.running import serving
from support.servers.command import run_apart
from support.servers.dev_processes import exchange
from support.servers.nats_servers import free_port
from support.servers.waiting import PATIENCE, until

PAGE = (CHECKOUT / "docs" / "production.md").read_text("utf-8")
ASKED = '{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}'
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def configuration(folder: Path, server: str) -> str:
    """A whole file for nginx, which writes to this directory only."""
    places = "\n".join(f"{each}_temp_path {folder}/{each};" for each in TEMPORARY)
    top = f"events {{}}\npid {folder}/pid;\nerror_log stderr;\n"
    return f"{top}http {{\naccess_log off;\n{places}\n{server}\n}}\n"


@pytest.fixture
def folder(example: ChainFiles, tmp_path: Path) -> Path:
    """A directory with the store that the examples name."""
    store = tmp_path / "build" / "store"
    import_files(example.genesis, example.chain, store, example.fork_choice, lambda _: None)
    return tmp_path


def test_every_alert_has_its_section_in_the_runbook() -> None:
    alerts = re.findall(r"- alert: (\w+)", (CHECKOUT / "deploy" / "alerts.yml").read_text("utf-8"))
    sections = re.findall(r"^### (.+)$", PAGE.partition("## Runbook")[2], re.MULTILINE)
    words = [re.sub(r"(?<=.)([A-Z])", r" \1", alert).capitalize() for alert in alerts]
    assert sections == words


def test_the_options_of_the_follower_exist() -> None:
    (line,) = re.findall(r"^\$ foreblock follow (.*)$", PAGE, re.MULTILINE)
    follow = main.get_command(click.Context(main), "follow")
    assert follow is not None
    known = {option for each in follow.params for option in each.opts}
    assert {word for word in shlex.split(line) if word.startswith("--")} <= known


def test_a_backup_is_whole_and_can_be_served(folder: Path) -> None:
    (block,) = re.findall(r"<!-- run -->\n```console\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines():
        program, *words = shlex.split(line.removeprefix("$ "))
        assert program == "foreblock"
        done = run_apart(*words, cwd=folder)
        assert done.returncode == 0, done.stderr
    with serving(folder / "build" / "backup", ["--workers=1"]) as service:
        assert "0x539" in exchange(service.url, "/", ASKED).text


def certify(folder: Path, openssl: str) -> ssl.SSLContext:
    """Make the files that the example names, and what a client needs to trust them."""
    key, certificate = folder / "rpc.example.key", folder / "rpc.example.pem"
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", "-noenc", "-days", "1",
         "-subj", "/CN=rpc.example", "-addext", "subjectAltName=DNS:rpc.example",
         "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    return ssl.create_default_context(cafile=str(certificate))


def ask_over_tls(port: int, trusted: ssl.SSLContext, path: str = "/") -> tuple[int, str]:
    """Status and body of a request by the public name, over TLS."""
    body = ASKED.encode()
    with (
        socket.create_connection(("127.0.0.1", port), PATIENCE) as plain,
        trusted.wrap_socket(plain, server_hostname="rpc.example") as secure,
    ):
        head = f"POST {path} HTTP/1.1\r\nHost: rpc.example\r\nConnection: close\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        secure.sendall(head.encode() + body)
        response = HTTPResponse(secure)
        response.begin()
        return response.status, response.read().decode()


def test_the_proxy_passes_requests_and_websockets_over_tls(folder: Path) -> None:
    nginx = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/bin")
    if nginx is None:
        pytest.skip("nginx is missing")
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is missing")
    trusted = certify(folder, openssl)
    (server,) = re.findall(r"<!-- nginx -->\n```nginx\n(.*?)```", PAGE, re.DOTALL)
    port = free_port()
    with serving(folder / "build" / "store", ["--workers=1"]) as service:
        assert server.count("/etc/ssl/") == 2
        server = server.replace("/etc/ssl/", f"{folder}/")
        server = server.replace("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;")
        server = server.replace("127.0.0.1:8545", service.url.removeprefix("http://"))
        file = folder / "nginx.conf"
        file.write_text(configuration(folder, server), "utf-8")
        command = [nginx, "-p", str(folder), "-c", str(file), "-g", "daemon off;"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as proxy:
            try:
                until((folder / "pid").exists, "nginx runs")
                status, text = ask_over_tls(port, trusted)
                assert (status, json.loads(text)["result"]) == (200, "0x539")
                plain = socket.create_connection(("127.0.0.1", port), PATIENCE)
                with connect("wss://rpc.example/eth", sock=plain, ssl=trusted) as opened:
                    opened.send(ASKED)
                    assert "0x539" in str(opened.recv())
                assert ask_over_tls(port, trusted, "/metrics")[0] == 403
            finally:
                proxy.terminate()
