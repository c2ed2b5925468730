"""Secrets in URLs are removed at every position, in URLs and in texts."""

from urllib.parse import quote, urlsplit

from hypothesis import given
from hypothesis import strategies as st

from foreblock.secret_urls import redact, redact_urls, secrets_of
from support.each_case import each_case

KNOWN = [
    ("wss://mainnet.example/ws", "wss://mainnet.example/ws"),
    ("http://127.0.0.1:8545", "http://127.0.0.1:8545"),
    ("http://[::1]:8545/eth", "http://[::1]:8545/eth"),
    ("https://user:pw@host.example/", "https://…@host.example/"),
    ("https://a@b@host.example:443/v2/Abc0123456789", "https://…@host.example:443/v2/…"),
    ("https://x.quiknode.pro/0123abcd/", "https://x.quiknode.pro/…/"),
    ("wss://h/ws?compression=brotli&token=abc", "wss://h/ws?compression=…&token=…"),
    ("https://h/?abcdef", "https://h/?…"),
    ("https://h/?0123=x", "https://h/?…"),
    ("https://h/#key", "https://h/#…"),
    ("wss://h?key=x", "wss://h?key=…"),
    ("https://user:pw/d@host.example/ws", "https://…"),
]


@each_case(("url", "safe"), KNOWN)
def test_known_forms(url: str, safe: str) -> None:
    assert redact_urls(url) == safe
    assert redact_urls(f"no response from {url}: lost") == f"no response from {safe}: lost"
    assert redact_urls(f"'{url}' and {url}") == f"'{safe}' and {safe}"


@each_case("text", ["", "no url", "a://", "12:30", "block 0x12//34", "x:/y"])
def test_texts_without_urls_stay(text: str) -> None:
    assert redact_urls(text) == text


letters = "abcdefghijklmnopqrstuvwxyzABCDEF0123456789-_~!$*+%"
secrets = st.text(st.sampled_from(letters), min_size=8, max_size=40).filter(
    lambda text: "secret" not in text
)


@given(secrets, st.sampled_from(["user", "password", "path", "query", "bare", "fragment"]))
def test_a_secret_in_any_part_is_gone(token: str, part: str) -> None:
    token = quote(token, safe="-_~") + "secret"
    url = {
        "user": f"wss://{token}@host.example:1/ws",
        "password": f"wss://me:{token}@host.example:1/ws",
        "path": f"wss://host.example:1/{token}/ws",
        "query": f"wss://host.example:1/ws?key={token}",
        "bare": f"wss://host.example:1/ws?{token}",
        "fragment": f"wss://host.example:1/ws#{token}",
    }[part]
    found = redact_urls(f"lost ({url}), and again {url}.")
    assert "secret" not in found
    assert token not in found
    parts = urlsplit(redact_urls(url))
    assert (parts.scheme, parts.hostname, parts.port) == ("wss", "host.example", 1)


@given(st.text())
def test_any_text_is_taken_and_nothing_changes_twice(text: str) -> None:
    once = redact_urls(text)
    assert redact_urls(once) == once


@given(secrets, st.sampled_from(["https://h/v2/%s", "https://u:%s@h/ws", "wss://h/?key=%s#x"]))
def test_a_secret_is_gone_from_what_an_endpoint_repeats(token: str, form: str) -> None:
    token = quote(token, safe="-_~") + "secret"
    text = redact(f"no such key: {token} (of {token})", secrets_of(form % token))
    assert token not in text
    assert text.startswith("no such key: ")


@given(secrets, st.integers(4, 12))
def test_a_secret_that_was_cut_off_is_gone_too(token: str, length: int) -> None:
    found = secrets_of(f"https://h/v2/{quote(token, safe='-_~')}x")
    (secret,) = found
    assert redact(f"no such key: {secret[:length]}", found) == "no such key: …"


def test_ordinary_words_are_no_secrets() -> None:
    assert secrets_of("http://127.0.0.1:8545/eth") == frozenset()
    assert secrets_of("https://h/v2/mainnet?a=b") == frozenset()
    assert secrets_of("no url") == frozenset()
