"""Hashes of empty values: a trie, a list of uncles, a list of requests."""

from typing import Final

# Root of a trie with nothing in it: keccak256 of the RLP of an empty string.
EMPTY_ROOT: Final = bytes.fromhex(
    "56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"
)
# keccak256 of the RLP of an empty list.
EMPTY_OMMERS_HASH: Final = bytes.fromhex(
    "1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347"
)
# EIP-7685: SHA-256 of nothing, the hash of an empty list of requests.
EMPTY_REQUESTS_HASH: Final = bytes.fromhex(
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)
