"""The types of transactions: the first byte of all but legacy ones (EIP-2718)."""

from typing import Final

LEGACY: Final = 0  # written without a type, as an RLP list
ACCESS_LIST: Final = 1  # EIP-2930
DYNAMIC_FEE: Final = 2  # EIP-1559
BLOB: Final = 3  # EIP-4844
SET_CODE: Final = 4  # EIP-7702
DEPOSIT: Final = 0x7E  # OP: made of an L1 event, without a signature
POST_EXEC: Final = 0x7D  # OP: settles a block after its transactions; its rules are not known here
