"""Accounts and contracts in the genesis of a dev chain.

Code of our own comes from `contracts.json`, which `contracts/build.mjs` makes of the
Solidity beside it. Where tools or consensus compare code, it is the published bytes.
Fee vaults have none: they are credited and never called.
"""

import json
from functools import cache
from importlib import resources
from typing import Final

from foreblock.ledger.genesis.genesis_file import GenesisAccount, mapping_slot, short_string
from foreblock.ledger.rules.execution import (
    BEACON_ROOTS,
    CONSOLIDATION_REQUESTS,
    HISTORY_STORAGE,
    WITHDRAWAL_REQUESTS,
)
from foreblock.ledger.rules.forks import EthereumFork, OptimismFork, Rules
from foreblock.ledger.rules.l1 import L1_BLOCK
from foreblock.ledger.rules.verification import MESSAGE_PASSER

WETH: Final = bytes.fromhex("4200000000000000000000000000000000000006")
BASE_TIME: Final = bytes.fromhex("4200000000000000000000000000000000000030")
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
# As printed in EIP-7002.
_WITHDRAWAL_REQUESTS_CODE: Final = bytes.fromhex(
    "3373fffffffffffffffffffffffffffffffffffffffe1460cb5760115f54807fffffffffffffffffffffffffff"
    "ffffffffffffffffffffffffffffffffffffff146101f457600182026001905f5b5f8211156068578101908302"
    "8483029004916001019190604d565b909390049250505036603814608857366101f457346101f4575f5260205f"
    "f35b34106101f457600154600101600155600354806003026004013381556001015f3581556001016020359055"
    "3360601b5f5260385f601437604c5fa0600101600355005b6003546002548082038060101160df575060105b5f"
    "5b8181146101835782810160030260040181604c02815460601b81526014018160010154815260200190600201"
    "54807fffffffffffffffffffffffffffffffff0000000000000000000000000000000016825290601001906040"
    "1c908160381c81600701538160301c81600601538160281c81600501538160201c81600401538160181c816003"
    "01538160101c81600201538160081c81600101535360010160e1565b910180921461019557906002556101a056"
    "5b90505f6002555f6003555b5f54807fffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
    "ffffff14156101cd57505f5b6001546002828201116101e25750505f6101e8565b01600290035b5f555f600155"
    "604c025ff35b5f5ffd"
)
# As printed in EIP-7251.
_CONSOLIDATION_REQUESTS_CODE: Final = bytes.fromhex(
    "3373fffffffffffffffffffffffffffffffffffffffe1460d35760115f54807fffffffffffffffffffffffffff"
    "ffffffffffffffffffffffffffffffffffffff1461019a57600182026001905f5b5f8211156068578101908302"
    "8483029004916001019190604d565b9093900492505050366060146088573661019a573461019a575f5260205f"
    "f35b341061019a57600154600101600155600354806004026004013381556001015f3581556001016020358155"
    "60010160403590553360601b5f5260605f60143760745fa0600101600355005b60035460025480820380600211"
    "60e7575060025b5f5b8181146101295782810160040260040181607402815460601b8152601401816001015481"
    "52602001816002015481526020019060030154905260010160e9565b910180921461013b579060025561014656"
    "5b90505f6002555f6003555b5f54807fffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
    "ffffff141561017357505f5b6001546001828201116101885750505f61018e565b01600190035b5f555f600155"
    "6074025ff35b5f5ffd"
)
# Arachnid's deterministic deployment proxy, as on every chain that has it.
_DETERMINISTIC_DEPLOYER_CODE: Final = bytes.fromhex(
    "7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe03601600081602082378035828234"
    "f58015156039578182fd5b8082525050506014600cf3"
)


def predeploys(rules: Rules, *, base_time: bool = False) -> dict[bytes, GenesisAccount]:
    """Every contract but the token, by address, that a chain with these rules begins with.

    Code of our own needs the instructions of Cancun; where they are missing, it is left out.
    """
    contracts = {DETERMINISTIC_DEPLOYER: _DETERMINISTIC_DEPLOYER_CODE} | _system_contracts(rules)
    if runs_our_code(rules):
        contracts[MULTICALL] = compiled("Multicall3")
    if base_time:
        contracts[BASE_TIME] = compiled("BaseTime")
    accounts = {address: _contract(code) for address, code in contracts.items()}
    return accounts | (_of_optimism(rules) if rules.optimism is not None else {})


def runs_our_code(rules: Rules) -> bool:
    """Return True if the rules have all instructions of our contracts."""
    return rules.ethereum >= EthereumFork.CANCUN


def _system_contracts(rules: Rules) -> dict[bytes, bytes]:
    """The contracts that blocks themselves call, with their code."""
    contracts = {}
    if rules.ethereum >= EthereumFork.CANCUN:
        contracts[BEACON_ROOTS] = _BEACON_ROOTS_CODE
    if rules.ethereum >= EthereumFork.PRAGUE:
        contracts[HISTORY_STORAGE] = _HISTORY_STORAGE_CODE
        if rules.optimism is None:
            contracts[WITHDRAWAL_REQUESTS] = _WITHDRAWAL_REQUESTS_CODE
            contracts[CONSOLIDATION_REQUESTS] = _CONSOLIDATION_REQUESTS_CODE
    return contracts


def _of_optimism(rules: Rules) -> dict[bytes, GenesisAccount]:
    """The predeploys of the OP stack; the oracle of gas prices knows Jovian's formula only."""
    is_jovian = rules.includes(OptimismFork.JOVIAN)
    l1_block = compiled("L1Block" if is_jovian else "L1BlockBeforeJovian")
    accounts = {L1_BLOCK: _contract(l1_block)}
    if runs_our_code(rules):
        passer = compiled("L2ToL1MessagePasser")
        accounts[MESSAGE_PASSER] = _contract(passer, {_ADMIN_SLOT: _PROXY_ADMIN})
        accounts[WETH] = _contract(compiled("WETH9"), _WETH_STORAGE)
    if is_jovian:
        accounts[GAS_PRICE_ORACLE] = _contract(compiled("GasPriceOracle"))
    return accounts


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
