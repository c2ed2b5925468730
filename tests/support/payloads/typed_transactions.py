"""Transactions of the newer types: signed ones as bytes, and a deposit that runs given code."""

from foreblock._engine import Transaction, deposit_transaction

BLOB = bytes.fromhex(
    "03f8fd870c72dd9d5e883e81c701840813f23c830186a0947dcd17433742f4c0ca53122ab541d0ba67fc27df038c29"
    "db68258899c2fe656d6974f85bf859947dcd17433742f4c0ca53122ab541d0ba67fc27dff842a00000000000000000"
    "000000000000000000000000000000000000000000000000a035f96bc70aa62a539fa99d9153b0f8aaa4594abf70cc"
    "8a8d9018e04e39a1798283020000e1a0015a4cab4911426699ed34483de6640cf55a568afc5c5edffdcbd8bcd4452f"
    "6801a0f5b2ecf5fb4a93d85bfa76fab96a57eed00c3e5ed379f0018756e33d3cbb985aa06647a16a0b2aee4772edf9"
    "c03afb679e21d134ce3231f0fce7f6bfa9d1152f03"
)
SET_CODE = bytes.fromhex(
    "04f8d3870c72dd9d5e883e81d30184056a921482b3b09400000000000000000000000000000000000000008080c0f8"
    "63f861870c72dd9d5e883e948c2319620d7c348bb4e2b2a0b230c81f310e95618080a0f17d59102e9ebed035d1bd77"
    "bc668b170eb1d38edef6e7d971857d85781d68fea0193dbdc8dea2fc194da75febbd4de9689b625eecd1e4ca30e27b"
    "45339af2257280a0333946e8b98c5b7eff15da75e7264e9e16728f06436e86611c82fd14eaee2256a03b268e5c9bb2"
    "9a77f6976ae0f580f781ad765de3f9163b528ea9230ac02c996c"
)


def deposit_running(code: bytes, gas: int) -> Transaction:
    """A deposit that runs code as a creation; it needs no signature and no funds."""
    return deposit_transaction(
        source_hash=b"\7" * 32,
        sender=b"\1" * 20,
        to=None,
        mint=0,
        value=0,
        gas_limit=gas,
        input=code,
    )
