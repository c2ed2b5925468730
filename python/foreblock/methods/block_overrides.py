"""Block overrides as JSON, under their names in geth and in other servers."""

from collections.abc import Callable
from typing import TypeVar

import msgspec
from msgspec import Struct

from foreblock.errors import RefusedOverride
from foreblock.ledger.calls.block_overrides import BlockOverrides
from foreblock.methods.params import address, hash32, quantity, refuse
from foreblock.types import Withdrawal

T = TypeVar("T")


class WithdrawalObject(Struct, rename="camel", gc=False, frozen=True):
    """A withdrawal from the consensus layer, its amount in gwei."""

    index: str
    validator_index: str
    address: str
    amount: str


class BlockOverridesObject(Struct, rename="camel", gc=False, frozen=True):
    """A block's overrides; the name after another one is an alias of it."""

    number: str | None = None
    block_number: str | None = None
    time: str | None = None
    timestamp: str | None = None
    difficulty: str | None = None
    gas_limit: str | None = None
    fee_recipient: str | None = None
    coinbase: str | None = None
    prev_randao: str | None = None
    random: str | None = None
    base_fee_per_gas: str | None = None
    base_fee: str | None = None
    blob_base_fee: str | None = None
    block_hash: dict[str, str] | None = None
    beacon_root: object = None
    parent_beacon_block_root: object = None
    withdrawals: object = None


def read_block_overrides(given: BlockOverridesObject, argument: int) -> BlockOverrides:
    """The overrides of a call's block. Those that only make sense for whole blocks are refused."""
    if given.beacon_root is not None or given.parent_beacon_block_root is not None:
        raise RefusedOverride('block override "beaconRoot" is not supported for this RPC method')
    if given.withdrawals is not None:
        raise RefusedOverride('block override "withdrawals" is not supported for this RPC method')
    return read_simulated_overrides(given, argument)


def read_simulated_overrides(given: BlockOverridesObject, argument: int) -> BlockOverrides:
    """The overrides of a block that is simulated as a whole."""

    def one(read: Callable[[str, int, str], T], **names: str | None) -> T | None:
        """The value under whichever name it has; two that differ are refused."""
        values = {
            name: read(text, argument, f"$.{name}")
            for name, text in names.items()
            if text is not None
        }
        if len(set(values.values())) > 1:
            refuse(argument, "", f"{' and '.join(values)} are two names of one field and differ")
        return next(iter(values.values()), None)

    return BlockOverrides(
        number=one(_number, number=given.number, blockNumber=given.block_number),
        timestamp=one(_number, time=given.time, timestamp=given.timestamp),
        difficulty=one(_wide_number, difficulty=given.difficulty),
        gas_limit=one(_number, gasLimit=given.gas_limit),
        beneficiary=one(address, feeRecipient=given.fee_recipient, coinbase=given.coinbase),
        mix_hash=one(hash32, prevRandao=given.prev_randao, random=given.random),
        base_fee_per_gas=one(_number, baseFeePerGas=given.base_fee_per_gas, baseFee=given.base_fee),
        blob_base_fee=one(_fee, blobBaseFee=given.blob_base_fee),
        block_hashes=_block_hashes(given.block_hash, argument),
        parent_beacon_block_root=one(
            hash32,
            beaconRoot=_text(given.beacon_root, argument, "$.beaconRoot"),
            parentBeaconBlockRoot=_text(
                given.parent_beacon_block_root, argument, "$.parentBeaconBlockRoot"
            ),
        ),
        withdrawals=_withdrawals(given.withdrawals, argument),
    )


def _text(given: object, argument: int, path: str) -> str | None:
    if given is not None and not isinstance(given, str):
        refuse(argument, path, "expected a string")
    return given


def _withdrawals(given: object, argument: int) -> list[Withdrawal] | None:
    if given is None:
        return None
    try:
        withdrawals = msgspec.convert(given, list[WithdrawalObject])
    except msgspec.ValidationError:
        refuse(argument, "$.withdrawals", "expected index, validatorIndex, address and amount each")
    return [
        Withdrawal(
            _number(each.index, argument, f"$.withdrawals[{place}].index"),
            _number(each.validator_index, argument, f"$.withdrawals[{place}].validatorIndex"),
            address(each.address, argument, f"$.withdrawals[{place}].address"),
            _number(each.amount, argument, f"$.withdrawals[{place}].amount"),
        )
        for place, each in enumerate(withdrawals)
    ]


def _number(text: str, argument: int, path: str) -> int:
    return quantity(text, 64, argument, path)


def _fee(text: str, argument: int, path: str) -> int:
    return quantity(text, 128, argument, path)


def _wide_number(text: str, argument: int, path: str) -> int:
    return quantity(text, 256, argument, path)


def _block_hashes(given: dict[str, str] | None, argument: int) -> dict[int, bytes] | None:
    if given is None:
        return None
    return {
        quantity(number, 64, argument, "$.blockHash"): hash32(
            block_hash, argument, f"$.blockHash.{number[:18]}"
        )
        for number, block_hash in given.items()
    }
