"""The call object: what a caller sends, read into a call with its defaults filled in."""

from typing import Final

from msgspec import Struct, field

from foreblock.ledger.calls.call import Authorization, Call
from foreblock.methods.params import address, data, hash32, quantity, refuse
from foreblock.primitives import ZERO_ADDRESS

UNCAPPED: Final = (1 << 63) - 1  # the gas of a call where nobody says how much


class AccessObject(Struct, rename="camel", gc=False, frozen=True):
    """An entry of an access list."""

    address: str
    storage_keys: list[str] | None = None


class AuthorizationObject(Struct, rename="camel", gc=False, frozen=True):
    """An entry of an authorization list."""

    chain_id: str
    address: str
    nonce: str
    y_parity: str
    r: str
    s: str


class CallObject(Struct, rename="camel", gc=False, frozen=True):
    """A call as JSON: hex texts, none of them read yet. Unknown keys are ignored."""

    sender: str | None = field(default=None, name="from")
    to: str | None = None
    gas: str | None = None
    value: str | None = None
    data: str | None = None
    input: str | None = None
    gas_price: str | None = None
    max_fee_per_gas: str | None = None
    max_priority_fee_per_gas: str | None = None
    max_fee_per_blob_gas: str | None = None
    nonce: str | None = None
    chain_id: str | None = None
    access_list: list[AccessObject] | None = None
    blob_versioned_hashes: list[str] | None = None
    authorization_list: list[AuthorizationObject] | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it says no more than who calls whom with what."""
        return (
            self.gas_price is None
            and self.max_fee_per_gas is None
            and self.max_priority_fee_per_gas is None
            and self.max_fee_per_blob_gas is None
            and self.nonce is None
            and self.chain_id is None
            and self.access_list is None
            and self.blob_versioned_hashes is None
            and self.authorization_list is None
        )


class CallReader:
    """Reads call objects by an operator's choices."""

    def __init__(self, gas_cap: int, *, creates: bool) -> None:
        self.gas_cap: Final = gas_cap or UNCAPPED
        self._creates: Final = creates

    def read(self, given: CallObject, argument: int) -> Call:
        """The call; raises `InvalidParams`."""
        if given.to is None and not self._creates:
            refuse(argument, "$.to", "is required: a call goes to an address")
        to = None if given.to is None else address(given.to, argument, "$.to")
        sender = ZERO_ADDRESS if given.sender is None else address(given.sender, argument, "$.from")
        value = 0 if given.value is None else quantity(given.value, 256, argument, "$.value")
        gas = self.gas_cap
        if given.gas is not None:
            gas = min(gas, quantity(given.gas, 64, argument, "$.gas"))
        called = _data(given, argument)
        if given.is_plain:
            return Call(to, gas, sender, called, value)
        return _read_rest(given, argument, Call(to, gas, sender, called, value))


def _read_rest(given: CallObject, argument: int, plain: Call) -> Call:
    if given.nonce is not None:
        quantity(given.nonce, 64, argument, "$.nonce")  # read, and of no effect
    return Call(
        to=plain.to,
        gas=plain.gas,
        sender=plain.sender,
        data=plain.data,
        value=plain.value,
        is_plain=False,
        chain_id=_optional(given.chain_id, argument, "$.chainId"),
        gas_price=_optional(given.gas_price, argument, "$.gasPrice"),
        max_fee_per_gas=_optional(given.max_fee_per_gas, argument, "$.maxFeePerGas"),
        max_priority_fee_per_gas=_optional(
            given.max_priority_fee_per_gas, argument, "$.maxPriorityFeePerGas"
        ),
        access_list=_access_list(given, argument),
        blob_hashes=_blob_hashes(given, argument),
        max_fee_per_blob_gas=_optional(given.max_fee_per_blob_gas, argument, "$.maxFeePerBlobGas"),
        authorizations=_authorizations(given, argument),
    )


def _data(given: CallObject, argument: int) -> bytes:
    """`data` and `input` are two names of one field."""
    if given.input is None:
        return b"" if given.data is None else data(given.data, argument, "$.data")
    called = data(given.input, argument, "$.input")
    if given.data is not None and data(given.data, argument, "$.data") != called:
        refuse(
            argument,
            "$.data",
            'both "data" and "input" are set and not equal. '
            'Please use "input" to pass transaction call data',
        )
    return called


def _optional(text: str | None, argument: int, path: str) -> int | None:
    return None if text is None else quantity(text, 256, argument, path)


def _access_list(given: CallObject, argument: int) -> list[tuple[bytes, list[bytes]]]:
    entries = []
    for index, entry in enumerate(given.access_list or ()):
        path = f"$.accessList[{index}]"
        keys = [
            hash32(key, argument, f"{path}.storageKeys[{place}]")
            for place, key in enumerate(entry.storage_keys or ())
        ]
        entries.append((address(entry.address, argument, f"{path}.address"), keys))
    return entries


def _blob_hashes(given: CallObject, argument: int) -> list[bytes] | None:
    if given.blob_versioned_hashes is None:
        return None
    return [
        hash32(text, argument, f"$.blobVersionedHashes[{index}]")
        for index, text in enumerate(given.blob_versioned_hashes)
    ]


def _authorizations(given: CallObject, argument: int) -> list[Authorization] | None:
    if given.authorization_list is None:
        return None
    return [
        _authorization(entry, argument, f"$.authorizationList[{index}]")
        for index, entry in enumerate(given.authorization_list)
    ]


def _authorization(given: AuthorizationObject, argument: int, path: str) -> Authorization:
    return Authorization(
        chain_id=quantity(given.chain_id, 256, argument, f"{path}.chainId"),
        address=address(given.address, argument, f"{path}.address"),
        nonce=quantity(given.nonce, 64, argument, f"{path}.nonce"),
        y_parity=quantity(given.y_parity, 8, argument, f"{path}.yParity"),
        r=quantity(given.r, 256, argument, f"{path}.r"),
        s=quantity(given.s, 256, argument, f"{path}.s"),
    )
