"""Methods of development chains: what users may do to a chain of their own."""

from foreblock.methods.dev.accidents import AccidentMethods
from foreblock.methods.dev.branches import BranchMethods
from foreblock.methods.dev.cheats import CheatMethods
from foreblock.methods.dev.commanding import Commands
from foreblock.methods.dev.dumping import DumpMethods
from foreblock.methods.dev.mining import MiningMethods
from foreblock.methods.dev.tokens import TokenMethods
from foreblock.methods.options import Options
from foreblock.methods.table import Family, Method
from foreblock.scheduling.scheduler import Scheduler


def dev_families(commands: Commands, options: Options, scheduler: Scheduler) -> tuple[Family, ...]:
    """The methods of this folder."""
    return (
        _mining(MiningMethods(commands)),
        _cheats(
            CheatMethods(commands),
            TokenMethods(commands, options, scheduler),
            DumpMethods(commands, options, scheduler),
        ),
        _branches(BranchMethods(commands)),
        _accidents(AccidentMethods(commands), BranchMethods(commands)),
    )


def _mining(mining: MiningMethods) -> Family:
    return Family(
        "Development chains: blocks and time",
        (
            Method("evm_mine(options?: MineOptions) -> Quantity", mining.evm_mine),
            Method(
                "anvil_mine(blocks?: Number, interval?: Number) -> Null",
                mining.mine,
                ("hardhat_mine",),
            ),
            Method(
                "evm_setAutomine(enabled: Boolean) -> Boolean",
                mining.set_automine,
                ("anvil_setAutomine", "hardhat_setAutomine"),
            ),
            Method("anvil_getAutomine() -> Boolean", mining.get_automine, ("hardhat_getAutomine",)),
            Method(
                "evm_setIntervalMining(seconds: Number) -> Boolean",
                mining.set_interval_mining,
                ("anvil_setIntervalMining",),
            ),
            Method("anvil_getIntervalMining() -> Integer?", mining.get_interval_mining),
            Method(
                "evm_increaseTime(seconds: Number) -> Integer",
                mining.increase_time,
                ("anvil_increaseTime",),
            ),
            Method(
                "evm_setNextBlockTimestamp(timestamp: Number) -> Null",
                mining.set_next_block_timestamp,
                ("anvil_setNextBlockTimestamp",),
            ),
            Method(
                "evm_setTime(timestamp: Number) -> Integer", mining.set_time, ("anvil_setTime",)
            ),
            Method(
                "anvil_setBlockTimestampInterval(seconds: Number) -> Null",
                mining.set_timestamp_interval,
            ),
            Method(
                "hardhat_setBlockTimestampInterval(milliseconds: Number) -> Null",
                mining.set_timestamp_interval_ms,
            ),
            Method(
                "anvil_removeBlockTimestampInterval() -> Boolean",
                mining.remove_timestamp_interval,
                ("hardhat_removeBlockTimestampInterval",),
            ),
            Method(
                "anvil_setNextBlockBaseFeePerGas(baseFee: Number) -> Null",
                mining.set_next_base_fee,
                ("hardhat_setNextBlockBaseFeePerGas",),
            ),
            Method(
                "anvil_setMinGasPrice(gasPrice: Number) -> Boolean",
                mining.set_min_gas_price,
                ("hardhat_setMinGasPrice",),
            ),
            Method(
                "evm_setBlockGasLimit(gasLimit: Number) -> Boolean",
                mining.set_gas_limit,
                ("anvil_setBlockGasLimit", "hardhat_setBlockGasLimit"),
            ),
            Method(
                "anvil_setCoinbase(address: Address) -> Null",
                mining.set_coinbase,
                ("hardhat_setCoinbase",),
            ),
            Method("hardhat_setPrevRandao(value: Hash) -> Null", mining.set_prev_randao),
        ),
    )


def _branches(branches: BranchMethods) -> Family:
    return Family(
        "Development chains: snapshots and branches",
        (
            Method("evm_snapshot() -> Quantity", branches.snapshot, ("anvil_snapshot",)),
            Method("evm_revert(id: Number) -> Boolean", branches.revert, ("anvil_revert",)),
            Method(
                "anvil_reset(options?: ForkingOptions) -> Null",
                branches.reset,
                ("hardhat_reset",),
            ),
            Method("anvil_rollback(depth?: Number) -> Null", branches.rollback),
            Method(
                "anvil_reorg(depth: Number, transactions?: PlacedTransaction[]) -> Null",
                branches.reorg,
            ),
        ),
    )


def _accidents(accidents: AccidentMethods, branches: BranchMethods) -> Family:
    return Family(
        "Development chains: flashblocks and accidents",
        (
            Method("foreblock_closeFlashblock() -> FlashblockPlace", accidents.close_flashblock),
            Method(
                "foreblock_setFlashblockInterval(milliseconds: Number) -> Null",
                accidents.set_interval,
            ),
            Method("foreblock_restartBlock() -> Null", accidents.restart_block),
            Method("foreblock_dropTail() -> Null", accidents.drop_tail),
            Method("foreblock_equivocate() -> FlashblockPlace", accidents.equivocate),
            Method(
                "foreblock_reorg(depth?: Number) -> Null",
                branches.reorg_putting_back,
            ),
            Method("foreblock_setFaults(rates: FaultRates) -> Null", accidents.set_faults),
        ),
    )


def _cheats(cheats: CheatMethods, tokens: TokenMethods, dumps: DumpMethods) -> Family:
    return Family(
        "Development chains: state",
        (
            Method(
                "anvil_setBalance(address: AddressOrAddresses, balance: Number) -> Null",
                cheats.set_balance,
                ("hardhat_setBalance", "tenderly_setBalance", "evm_setAccountBalance"),
            ),
            Method(
                "anvil_addBalance(address: AddressOrAddresses, amount: Number) -> Null",
                cheats.add_balance,
                ("hardhat_addBalance", "tenderly_addBalance"),
            ),
            Method(
                "anvil_setNonce(address: Address, nonce: Number) -> Null",
                cheats.set_nonce,
                ("hardhat_setNonce", "evm_setAccountNonce"),
            ),
            Method(
                "anvil_setCode(address: Address, code: Data) -> Null",
                cheats.set_code,
                ("hardhat_setCode", "evm_setAccountCode", "tenderly_setCode"),
            ),
            Method(
                "anvil_setStorageAt(address: Address, slot: Number, value: Word) -> Boolean",
                cheats.set_storage_at,
                ("hardhat_setStorageAt", "evm_setAccountStorageAt", "tenderly_setStorageAt"),
            ),
            Method(
                "anvil_dealERC20(address: Address, token: Address, amount: Number) -> Null",
                tokens.set_balance,
                ("hardhat_dealERC20", "anvil_setERC20Balance"),
            ),
            Method(
                "anvil_setERC20Allowance(owner: Address, spender: Address, token: Address,"
                " amount: Number) -> Null",
                tokens.set_allowance,
            ),
            Method(
                "anvil_dumpState(withHistory?: Boolean) -> Data",
                dumps.dump,
                ("hardhat_dumpState",),
            ),
            Method("anvil_loadState(state: Data) -> Boolean", dumps.load, ("hardhat_loadState",)),
        ),
    )
