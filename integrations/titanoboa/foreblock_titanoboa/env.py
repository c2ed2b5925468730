"""`Env`: titanoboa's environment over a `foreblock.DevChain`.

titanoboa uses an environment through its `evm`, which is `ChainEVM` here. Each call is traced on
the pending state first. If it succeeds and may change state, it is sent as a transaction and is
pre-confirmed at once, so time and block number stand still until `time_travel`.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Final, Literal

import boa
from boa.util.abi import Address
from boa.util.eip1167 import extract_eip1167_address, is_eip1167_contract
from boa.vm.py_evm import CONSOLE_ADDRESS, console_log
from eth._utils.address import generate_contract_address
from eth.exceptions import InsufficientFunds
from eth.vm.gas_meter import GasMeter

from foreblock import DevChain
from foreblock.dev_chain import Checkpoint
from foreblock.errors import RefusedCall
from foreblock_titanoboa.computation import Computation, Json

CALL_GAS: Final = 50_000_000  # foreblock runs no call with more
BLOCK_GAS: Final = 2**40  # for any number of transactions
CODE_SIZE: Final = 2**24
CALLS: Final = {"tracer": "callTracer", "tracerConfig": {"withLog": True}}


class Env(boa.Env):  # type: ignore[misc] # titanoboa may not be installed
    """An environment on a chain of its own, which is `chain`."""

    def __init__(
        self,
        rules: Literal["ethereum", "optimism"] = "ethereum",
        fork: str = "prague",
        **settings: Any,
    ) -> None:
        """Begin a chain; `settings` are those of `foreblock.DevChain`."""
        super().__init__()
        defaults: dict[str, Any] = {
            "base_fee": 0,
            "gas_limit": BLOCK_GAS,
            "transaction_gas": BLOCK_GAS,
            "code_size": CODE_SIZE,
        }
        self.chain: Final = DevChain(
            rules, fork, mode="manual", auto_impersonate=True, **defaults | settings
        )
        self.nickname = "foreblock"
        self.evm = ChainEVM(self, self.chain)

    def fork_rpc(self, *_: object, **__: object) -> None:
        raise NotImplementedError("a chain of foreblock has no fork; boa.fork uses py-evm")

    def time_travel(
        self, seconds: int | None = None, blocks: int | None = None, block_delta: int = 12
    ) -> None:
        """Seal blocks, at least one, and give the next its time."""
        if seconds is None and blocks is not None:
            self.evm.travel(blocks * block_delta, blocks)
        elif seconds is not None and blocks is None:
            self.evm.travel(seconds, seconds // block_delta)
        else:
            raise ValueError("either seconds or blocks must be given")


class ChainEVM:
    """The parts of titanoboa's `PyEVM` that an environment and its contracts use."""

    is_forked = False
    is_state_dirty = True
    _fast_mode_enabled = False

    def __init__(self, env: Env, chain: DevChain) -> None:
        self.env: Final = env
        self.patch: Final = Patch(self, chain)
        self._chain: Final = chain
        self._pending: Final = chain.at("pending")

    # --- State -----------------------------------------------------------------------------

    def get_balance(self, address: Address) -> int:
        return self._pending.balance(address.canonical_address)

    def set_balance(self, address: Address, value: int) -> None:
        self._chain.set_balance(address.canonical_address, value)

    def get_code(self, address: Address) -> bytes:
        return bytes(self._pending.code(address.canonical_address))

    def set_code(self, address: Address, code: bytes) -> None:
        self._chain.set_code(address.canonical_address, code)

    def get_storage(self, address: Address, slot: int) -> int:
        return self._pending.storage(address.canonical_address, slot)

    def get_storage_slot(self, address: Address, slot: int) -> bytes:
        return self.get_storage(address, slot).to_bytes(32)

    def set_storage(self, address: Address, slot: int, value: int) -> None:
        self._chain.set_storage(address.canonical_address, slot, value)

    def snapshot(self) -> Checkpoint:
        return self._chain.snapshot()

    def revert(self, snapshot: Checkpoint) -> None:
        snapshot.revert()

    def travel(self, seconds: int, blocks: int) -> None:
        """Seal blocks, at least one, and give the next a time that is so much later."""
        then = self.patch.timestamp + seconds
        self._chain.seal(max(blocks, 1))
        self._chain.rpc("evm_setNextBlockTimestamp", then)

    # --- Gas -------------------------------------------------------------------------------

    def get_gas_limit(self) -> int:
        return CALL_GAS

    def get_gas_meter_class(self) -> Json:
        return GasMeter

    def set_gas_meter_class(self, cls: Json) -> None:
        """Refuse gas meters of titanoboa: they count the instructions of py-evm."""
        if cls is not GasMeter:
            raise NotImplementedError(f"a chain of foreblock has no {cls.__name__}")

    def reset_access_counters(self) -> None:
        """Do nothing: each transaction begins with cold accounts and slots."""

    def enable_fast_mode(self, flag: bool = True) -> None:
        """Do nothing: there is one mode."""

    # --- Execution -------------------------------------------------------------------------

    def generate_create_address(self, sender: Address) -> Address:
        nonce = self._pending.nonce(sender.canonical_address)
        return Address(generate_contract_address(sender.canonical_address, nonce))

    def deploy_code(
        self,
        *,
        sender: Address,
        target_address: Address,
        bytecode: bytes,
        **options: Any,
    ) -> Computation:
        """Run a constructor; one for a chosen address runs as the code there."""
        if target_address == self.generate_create_address(sender):
            return self._run(sender, None, bytecode, **options)
        done = self._run(sender, target_address, b"", code=bytecode, **options)
        if not done.is_error:
            self.set_code(target_address, done.output)
        return done

    def execute_code(
        self,
        *,
        sender: Address,
        to: Address,
        bytecode: bytes,
        data: bytes,
        is_static: bool,
        fake_codesize: object,
        start_pc: object,
        ir_executor: object,
        contract: object,
        **options: Any,
    ) -> Computation:
        """Call a contract; `bytecode` is its code, or runs instead of it."""
        code = None if bytecode == self.get_code(to) else bytecode
        return self._run(sender, to, data, code=code, is_kept=not is_static, **options)

    def _run(
        self,
        sender: Address,
        to: Address | None,
        data: bytes,
        *,
        gas: int | None,
        gas_price: int,
        value: int,
        code: bytes | None = None,
        is_kept: bool = True,
        origin: object = None,
    ) -> Computation:
        fields = {"from": str(sender), "data": f"0x{data.hex()}", "gas": hex(gas or CALL_GAS)}
        fields |= {"gasPrice": hex(gas_price), "value": hex(value)}
        override: dict[str, Json] = {}
        if to is not None:
            fields["to"] = str(to)
        if code is not None:
            override = {"stateOverrides": {str(to): {"code": f"0x{code.hex()}"}}}

        def trace(options: Json) -> Json:
            return self._chain.rpc("debug_traceCall", fields, "pending", options | override)

        try:
            done = Computation(trace(CALLS), self.env)
        except RefusedCall as refusal:
            raise InsufficientFunds(str(refusal)) from refusal
        for call in done.below():
            if call.msg.code_address == CONSOLE_ADDRESS:
                console_log(call)
        done.retrace = trace
        if is_kept and not done.is_error:
            sent = self._with_code(to, code, partial(self._send, fields))
            done.retrace = partial(self._chain.rpc, "debug_traceTransaction", sent)
            self._register_created(done)
        return done

    def _with_code(self, to: Address | None, code: bytes | None, send: Callable[[], str]) -> str:
        """Send a transaction, during which its receiver has another code."""
        if to is None or code is None:
            return send()
        before = self.get_code(to)
        self.set_code(to, code)
        sent = send()
        self.set_code(to, before)
        return sent

    def _send(self, fields: Json) -> str:
        sent: str = self._chain.rpc("eth_sendTransaction", fields)
        self._chain.flashblock()
        receipt = self._chain.receipt(sent)
        if receipt is None or not receipt.status:
            raise RuntimeError(f"{sent} ran otherwise than its trace")
        return sent

    def _register_created(self, computation: Computation) -> None:
        """Register contracts that a call made of blueprints and as proxies (EIP-1167)."""
        for each in filter(lambda call: call.msg.is_create, computation.below()):
            if is_eip1167_contract(each.output):
                template = self.env.lookup_contract(extract_eip1167_address(each.output))
            else:
                template = self.env._code_registry.get(each.msg.initcode)
            if template is not None and hasattr(template, "deployer"):
                contract = template.deployer.at(each.msg.storage_address)
                contract.created_from = Address(each.msg.sender)


class Patch:
    """The block in progress, as `boa.env.evm.patch` shows and changes it."""

    def __init__(self, evm: ChainEVM, chain: DevChain) -> None:
        self._evm: Final = evm
        self._chain: Final = chain

    @property
    def timestamp(self) -> int:
        return self._chain.at("pending").block().timestamp

    @timestamp.setter
    def timestamp(self, timestamp: int) -> None:
        self._evm.travel(timestamp - self.timestamp, 1)

    @property
    def block_number(self) -> int:
        return self._chain.at("pending").block().number or 0

    @block_number.setter
    def block_number(self, number: int) -> None:
        self._chain.seal(number - self.block_number)

    @property
    def chain_id(self) -> int:
        return int(self._chain.rpc("eth_chainId"), 16)

    def anchor(self) -> AbstractContextManager[None]:
        """Do nothing: a snapshot of the chain has its time."""
        return nullcontext()
