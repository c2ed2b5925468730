"""A backend of eth-tester over a chain in the process.

    ETHEREUM_TESTER_CHAIN_BACKEND=foreblock.eth_tester.Backend
    EthereumTester(Backend(fork="prague"))

This needs eth-tester: `pip install 'foreblock[eth-tester]'`.
"""

from foreblock.eth_tester.backend import Backend

__all__ = ["Backend"]
