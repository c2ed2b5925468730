"""What anvil prints at its start, and the file of --config-out. No I/O.

Programs read keys and the chain id from these lines, so headings and order are anvil's.
"""

import json
from collections.abc import Iterable
from typing import Final

from foreblock.ledger.rules.transaction_rules import checksum_address
from foreblock.primitives import format_data
from foreblock.sequencer.mnemonic import DevAccount, dev_accounts
from foreblock.settings import ChainSettings

LINE: Final = "=================="
GENESIS_NUMBER: Final = 0
GAS_PRICE: Final = "1875000000"  # anvil's first


def banner(chain: ChainSettings, begun: int) -> str:
    """Accounts, keys and facts of the chain, whose block 0 has the time `begun`."""
    accounts = _accounts(chain)
    parts = [
        "foreblock dev, like anvil\n",
        _part("Available Accounts", _numbered(_with_balance(each, chain) for each in accounts)),
        _part("Private Keys", _numbered(format_data(each.secret) for each in accounts)),
        _wallet(chain),
        _part("Chain ID", str(chain.chain_id)),
        _part("Base Fee", str(chain.base_fee)),
        _part("Gas Limit", str(chain.gas_limit)),
        _part("Genesis Timestamp", str(begun)),
        _part("Genesis Number", str(GENESIS_NUMBER)),
    ]
    return "\n".join(parts)


def _wallet(chain: ChainSettings) -> str:
    return (
        f"Wallet\n{LINE}\nMnemonic:          {chain.mnemonic}\nDerivation path:   {_path(chain)}\n"
    )


def config_text(
    chain: ChainSettings,
    begun: int,
    gas_limit: str | None = None,
    gas_price: str = GAS_PRICE,
) -> str:
    """The same as JSON, in anvil's form, with the limit and the price that flags gave."""
    accounts = _accounts(chain)
    return json.dumps(
        {
            "available_accounts": [format_data(each.address) for each in accounts],
            "private_keys": [format_data(each.secret) for each in accounts],
            "wallet": {
                "derivation_path": _path(chain),
                "mnemonic": chain.mnemonic,
            },
            "base_fee": str(chain.base_fee),
            "gas_price": gas_price,
            "gas_limit": gas_limit,
            "genesis_timestamp": str(begun),
        }
    )


def _accounts(chain: ChainSettings) -> tuple[DevAccount, ...]:
    return dev_accounts(chain.mnemonic, chain.accounts, chain.derivation_path)


def _path(chain: ChainSettings) -> str:
    return chain.derivation_path.rstrip("/") + "/"


def _with_balance(account: DevAccount, chain: ChainSettings) -> str:
    return f"{checksum_address(account.address)} ({chain.balance}.{0:018} ETH)"


def _numbered(lines: Iterable[str]) -> str:
    return "\n".join(f"({number}) {line}" for number, line in enumerate(lines))


def _part(heading: str, text: str) -> str:
    return f"{heading}\n{LINE}\n\n{text}\n"
