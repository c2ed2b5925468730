"""What stands at which address before the first transaction of a dev chain.

Code of our own comes from `contracts.json`, which `contracts/build.mjs` makes of the
Solidity beside it. Where tools or consensus compare code, it is the published bytes.
Fee vaults have none: they are credited and never called.
"""

import json
from functools import cache
from importlib import resources
from typing import Final

from foreblock.ledger.genesis.genesis_file import GenesisAccount
from foreblock.ledger.genesis.genesis_writer import mapping_slot, short_string
from foreblock.ledger.rules.block_start import BEACON_ROOTS, HISTORY_STORAGE
from foreblock.ledger.rules.l1 import L1_BLOCK
from foreblock.ledger.rules.verification import MESSAGE_PASSER

WETH: Final = bytes.fromhex("4200000000000000000000000000000000000006")
GAS_PRICE_ORACLE: Final = bytes.fromhex("420000000000000000000000000000000000000f")
SEQUENCER_FEE_VAULT: Final = bytes.fromhex("4200000000000000000000000000000000000011")
MULTICALL: Final = bytes.fromhex("ca11bde05977b3631167028862be2a173976ca11")
DETERMINISTIC_DEPLOYER: Final = bytes.fromhex("4e59b44847b379578588920ca78fbf26c0b4956c")
TOKEN: Final = bytes.fromhex("7e57000000000000000000000000000000000020")

# Slots that the genesis fills, as the sources declare them.
TOKEN_BALANCES_SLOT: Final = 0
TOKEN_SUPPLY_SLOT: Final = 2
_WETH_STORAGE: Final = {0: short_string("Wrapped Ether"), 1: short_string("WETH"), 2: 18}

# ERC-1967: the slot that names a proxy's admin; public chains have their ProxyAdmin there. The
# passer here is no proxy and never reads it, but its storage root, which every header carries,
# is then never that of an empty trie.
_ADMIN_SLOT: Final = 0xB53127684A568B3173AE13B9F8A6016E243E63B6E8EE1178D6A717850B5D6103
_PROXY_ADMIN: Final = 0x4200000000000000000000000000000000000018

# As printed in EIP-4788.
_BEACON_ROOTS_CODE: Final = bytes.fromhex(
    "3373fffffffffffffffffffffffffffffffffffffffe14604d57602036146024575f5ffd5b5f35801560495762"
    "001fff810690815414603c575f5ffd5b62001fff01545f5260205ff35b5f5ffd5b62001fff42064281555f3590"
    "62001fff015500"
)
# As printed in EIP-2935.
_HISTORY_STORAGE_CODE: Final = bytes.fromhex(
    "3373fffffffffffffffffffffffffffffffffffffffe14604657602036036042575f35600143038111604257611f"
    "ff81430311604257611fff9006545f5260205ff35b5f5ffd5b5f35611fff60014303065500"
)
# Arachnid's deterministic deployment proxy, as on every chain that has it.
_DETERMINISTIC_DEPLOYER_CODE: Final = bytes.fromhex(
    "7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe03601600081602082378035828234"
    "f58015156039578182fd5b8082525050506014600cf3"
)


def predeploys() -> dict[bytes, GenesisAccount]:
    """Every contract but the token, by address."""
    return {
        WETH: _contract(compiled("WETH9"), _WETH_STORAGE),
        GAS_PRICE_ORACLE: _contract(compiled("GasPriceOracle")),
        L1_BLOCK: _contract(compiled("L1Block")),
        MESSAGE_PASSER: _contract(compiled("L2ToL1MessagePasser"), {_ADMIN_SLOT: _PROXY_ADMIN}),
        MULTICALL: _contract(compiled("Multicall3")),
        DETERMINISTIC_DEPLOYER: _contract(_DETERMINISTIC_DEPLOYER_CODE),
        BEACON_ROOTS: _contract(_BEACON_ROOTS_CODE),
        HISTORY_STORAGE: _contract(_HISTORY_STORAGE_CODE),
    }


def token(owners: tuple[bytes, ...], amount: int) -> GenesisAccount:
    """The token's contract, with `amount` for each of these owners."""
    storage = {mapping_slot(TOKEN_BALANCES_SLOT, owner): amount for owner in owners}
    storage[TOKEN_SUPPLY_SLOT] = amount * len(owners)
    return _contract(compiled("Token"), storage)


def compiled(name: str) -> bytes:
    """The runtime code of one of our contracts."""
    return bytes.fromhex(_contracts()[name].removeprefix("0x"))


@cache
def _contracts() -> dict[str, str]:
    file = resources.files("foreblock.sequencer") / "contracts.json"
    contracts: dict[str, str] = json.loads(file.read_text("utf-8"))
    return contracts


def _contract(code: bytes, storage: dict[int, int] | None = None) -> GenesisAccount:
    """A contract as if it had been deployed: with the nonce that EIP-161 gives it."""
    return GenesisAccount(nonce=1, code=code, storage=storage or {})
