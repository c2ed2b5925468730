"""Hide the secrets in URLs, for logs and public facts. No I/O.

Providers put keys into any part of a URL but the host: before it, into the path, into the query.
So of a path only well-known words are kept, of a query only the names.
"""

import re
from typing import Final

HIDDEN: Final = "\N{HORIZONTAL ELLIPSIS}"

# Words of paths that are no keys.
_WORDS: Final = frozenset(
    {
        "", "api", "eth", "ethereum", "base", "optimism", "op", "unichain", "mainnet", "sepolia",
        "testnet", "main", "test", "flashblocks", "http", "https", "json-rpc", "jsonrpc", "rpc",
        "stream", "ws", "wss", "v1", "v2", "v3", "v4", "healthz", "readyz", "metrics",
    }
)  # fmt: skip
_URL: Final = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)"
    r"(?P<place>[^\s/?#\"'<>`|]*)(?P<path>[^\s?#\"'<>`|]*)"
    r"(?P<query>\?[^\s#\"'<>`|]*)?(?P<fragment>#[^\s\"'<>`|]*)?"
)
_NAME: Final = re.compile(r"[A-Za-z_]{1,16}")
_SHORTEST: Final = 6  # characters of a secret; shorter ones are parts of ordinary words
_PART: Final = 4  # characters of one that was cut off
# Marks that end a sentence or a clause after a URL.
_ENDS: Final = ".,:;!)]}"


def redact_urls(text: str) -> str:
    """Hide everything in URLs but scheme, host, port, well-known words and names of the query."""
    return _URL.sub(_safe, text) if "://" in text else text


def secrets_of(url: str) -> frozenset[str]:
    """Return the hidden parts of a URL that are long enough to be hidden elsewhere too."""
    found = _URL.fullmatch(url)
    if found is None:
        return frozenset()
    before, at, _ = found["place"].rpartition("@")
    values = (each.partition("=") for each in (found["query"] or "?")[1:].split("&"))
    parts = {
        *(re.split("[:/]", before) if at else ()),
        *(each for each in found["path"].split("/") if each.lower() not in _WORDS),
        *(value or name for name, _, value in values),
        (found["fragment"] or "#")[1:],
    }
    return frozenset(each for each in parts if len(each) >= _SHORTEST)


def redact(text: str, secrets: frozenset[str]) -> str:
    """Hide secrets in a text of an endpoint; its end may be the start of a truncated one."""
    for each in sorted(secrets, key=len, reverse=True):
        text = text.replace(each, HIDDEN)
        lengths = range(len(each) - 1, _PART - 1, -1)
        cut = next((length for length in lengths if text.endswith(each[:length])), 0)
        text = text[: len(text) - cut] + HIDDEN if cut else text
    return text


def _safe(found: re.Match[str]) -> str:
    whole = found[0]
    ends = whole[len(whole.rstrip(_ENDS)) :]
    found = _URL.fullmatch(whole.rstrip(_ENDS)) or found
    if "@" in found["path"]:  # a password with a slash, or nothing that is known
        return f"{found['scheme']}{HIDDEN}{ends}"
    _, at, host = found["place"].rpartition("@")
    return "".join(
        (
            found["scheme"],
            f"{HIDDEN}@" if at else "",
            host,
            "/".join(
                each if each.lower() in _WORDS else HIDDEN for each in found["path"].split("/")
            ),
            _query(found["query"]),
            f"#{HIDDEN}" if found["fragment"] else "",
            ends,
        )
    )


def _query(query: str | None) -> str:
    if not query:
        return ""
    return "?" + "&".join(map(_parameter, query[1:].split("&")))


def _parameter(parameter: str) -> str:
    name, equals, _ = parameter.partition("=")
    return f"{name}={HIDDEN}" if equals and _NAME.fullmatch(name) else HIDDEN
