"""Methods of development chains: what users may do to a chain of their own."""

from foreblock.methods.dev.branches import BranchMethods, Placing
from foreblock.methods.dev.cheats import CheatMethods, TokenMethods
from foreblock.methods.dev.commanding import Commands
from foreblock.methods.dev.dumping import DumpMethods
from foreblock.methods.dev.fault_methods import FaultMethods
from foreblock.methods.dev.mining import MiningMethods
from foreblock.methods.table import Family, Method, command
from foreblock.scheduling.scheduler import Scheduler
from foreblock.settings import Settings


def dev_families(
    commands: Commands, settings: Settings, scheduler: Scheduler, placing: Placing
) -> tuple[Family, ...]:
    """The methods of this folder."""
    branches = BranchMethods(commands, placing)
    return (
        _mining(MiningMethods(commands)),
        _cheats(
            CheatMethods(commands),
            TokenMethods(commands, settings, scheduler),
            DumpMethods(commands, settings, scheduler),
        ),
        _branches(branches),
        _accidents(FaultMethods(commands), branches),
    )


def _mining(mining: MiningMethods) -> Family:
    return Family(
        "Development chains: blocks and time",
        (
            command("evm_mine(options?: MineOptions) -> Quantity", mining.evm_mine),
            command(
                "anvil_mine(blocks?: Count, interval?: Count) -> Null",
                mining.mine,
                ("hardhat_mine",),
            ),
            command("hardhat_intervalMine() -> Boolean", mining.interval_mine),
            command(
                "evm_setAutomine(enabled: Boolean) -> Null",
                mining.set_automine,
                ("anvil_setAutomine", "hardhat_setAutomine"),
            ),
            Method("anvil_getAutomine() -> Boolean", mining.get_automine, ("hardhat_getAutomine",)),
            command(
                "evm_setIntervalMining(seconds: Count) -> Null",
                mining.set_interval_mining,
                ("anvil_setIntervalMining",),
            ),
            Method("anvil_getIntervalMining() -> Integer?", mining.get_interval_mining),
            command(
                "evm_increaseTime(seconds: Count) -> Integer",
                mining.increase_time,
                ("anvil_increaseTime",),
            ),
            command(
                "evm_setNextBlockTimestamp(timestamp: Count) -> Null",
                mining.set_next_block_timestamp,
                ("anvil_setNextBlockTimestamp",),
            ),
            command(
                "evm_setTime(timestamp: Count) -> Integer", mining.set_time, ("anvil_setTime",)
            ),
            command(
                "anvil_setBlockTimestampInterval(seconds: Count) -> Null",
                mining.set_timestamp_interval,
            ),
            command(
                "hardhat_setBlockTimestampInterval(milliseconds: Count) -> Null",
                mining.set_timestamp_interval_ms,
            ),
            command(
                "anvil_removeBlockTimestampInterval() -> Boolean",
                mining.remove_timestamp_interval,
                ("hardhat_removeBlockTimestampInterval",),
            ),
            command(
                "anvil_setNextBlockBaseFeePerGas(baseFee: Count) -> Null",
                mining.set_next_base_fee,
                ("hardhat_setNextBlockBaseFeePerGas",),
            ),
            command(
                "anvil_setMinGasPrice(gasPrice: Count) -> Boolean",
                mining.set_min_gas_price,
                ("hardhat_setMinGasPrice",),
            ),
            command(
                "evm_setBlockGasLimit(gasLimit: Count) -> Boolean",
                mining.set_gas_limit,
                ("anvil_setBlockGasLimit", "hardhat_setBlockGasLimit"),
            ),
            command(
                "anvil_setCoinbase(address: Address) -> Null",
                mining.set_coinbase,
                ("hardhat_setCoinbase",),
            ),
            command("hardhat_setPrevRandao(value: Hash) -> Null", mining.set_prev_randao),
        ),
    )


def _branches(branches: BranchMethods) -> Family:
    return Family(
        "Development chains: snapshots and branches",
        (
            command("evm_snapshot() -> Quantity", branches.snapshot, ("anvil_snapshot",)),
            command("evm_revert(id: Count) -> Boolean", branches.revert, ("anvil_revert",)),
            command(
                "anvil_reset(options?: ForkingOptions) -> Null",
                branches.reset,
                ("hardhat_reset",),
            ),
            command("anvil_rollback(depth?: Count) -> Null", branches.rollback),
            command("debug_setHead(number: Count) -> Null", branches.set_head),
            Method(
                "anvil_reorg(depth: Count, transactions?: PlacedTransaction[]) -> Null",
                branches.reorg,
            ),
        ),
    )


def _accidents(accidents: FaultMethods, branches: BranchMethods) -> Family:
    return Family(
        "Development chains: flashblocks and accidents",
        (
            command("foreblock_closeFlashblock() -> FlashblockPlace", accidents.close_flashblock),
            command(
                "foreblock_setFlashblockInterval(milliseconds: Count) -> Null",
                accidents.set_interval,
            ),
            command("foreblock_restartBlock() -> Null", accidents.restart_block),
            command("foreblock_dropTail() -> Null", accidents.drop_tail),
            command("foreblock_equivocate() -> FlashblockPlace", accidents.equivocate),
            command(
                "foreblock_reorg(depth?: Count) -> Null",
                branches.reorg_putting_back,
            ),
            command("foreblock_setFaults(rates: FaultRates) -> Null", accidents.set_faults),
        ),
    )


def _cheats(cheats: CheatMethods, tokens: TokenMethods, dumps: DumpMethods) -> Family:
    return Family(
        "Development chains: state",
        (
            command(
                "anvil_setBalance(address: AddressOrAddresses, balance: Count) -> Null",
                cheats.set_balance,
                ("hardhat_setBalance", "tenderly_setBalance", "evm_setAccountBalance"),
            ),
            command(
                "anvil_addBalance(address: AddressOrAddresses, amount: Count) -> Null",
                cheats.add_balance,
                ("hardhat_addBalance", "tenderly_addBalance"),
            ),
            command(
                "anvil_setNonce(address: Address, nonce: Count) -> Null",
                cheats.set_nonce,
                ("hardhat_setNonce", "evm_setAccountNonce"),
            ),
            command(
                "anvil_setCode(address: Address, code: Data) -> Null",
                cheats.set_code,
                ("hardhat_setCode", "evm_setAccountCode", "tenderly_setCode"),
            ),
            command(
                "anvil_setStorageAt(address: Address, slot: Count, value: Word) -> Boolean",
                cheats.set_storage_at,
                ("hardhat_setStorageAt", "evm_setAccountStorageAt", "tenderly_setStorageAt"),
            ),
            Method(
                "anvil_dealERC20(address: Address, token: Address, amount: Count) -> Null",
                tokens.set_balance,
                ("hardhat_dealERC20", "anvil_setERC20Balance"),
            ),
            Method(
                "anvil_setERC20Allowance(owner: Address, spender: Address, token: Address,"
                " amount: Count) -> Null",
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
