"""Calls of a trace, with the attributes of py-evm's computations that titanoboa reads."""

from collections.abc import Callable, Iterator
from functools import cached_property
from types import SimpleNamespace
from typing import Any, Final

from boa.contracts.call_trace import TraceFrame
from eth.exceptions import OutOfGas, Revert, VMError
from eth.vm.gas_meter import GasMeter
from eth.vm.memory import Memory

from foreblock.errors import TraceTooLong

Json = Any
NOWHERE: Final = bytes(20)
REVERTED: Final = "execution reverted"
CALLING: Final = {"CALL", "CALLCODE", "DELEGATECALL", "STATICCALL", "CREATE", "CREATE2"}
STEPS: Final = {"disableStack": True, "disableStorage": True}


class Computation:
    """A call with those that it made, of geth's callTracer."""

    _gas_meter_class = GasMeter
    beneficiaries: tuple[bytes, ...] = ()
    # Traces the run again, with the options of a tracer.
    retrace: Callable[[Json], Json]

    def __init__(self, call: Json, env: Any, parent: "Computation | None" = None) -> None:
        self.env: Final = env
        self._parent: Final = parent
        self._steps: Final[list[Json]] = []
        self._is_traced = False
        self.msg: Final[SimpleNamespace] = _message(
            call, 0 if parent is None else parent.msg.depth + 1
        )
        # Of a contract that is being made; otherwise titanoboa shows the contract as it is.
        self._contract_repr_before_revert: Final = "None" if self.msg.is_create else None
        self.output: Final = _data(call, "output")
        self.error: Final = _error(call, self.output)
        self.children: Final = [Computation(each, env, self) for each in call.get("calls", ())]
        self._gas_used: Final = int(call["gasUsed"], 16)
        self._log_entries: Final = [] if self.is_error else list(map(_log, call.get("logs", ())))

    # --- Result ----------------------------------------------------------------------------

    @property
    def is_error(self) -> bool:
        return self.error is not None

    @property
    def is_success(self) -> bool:
        return self.error is None

    def get_gas_used(self) -> int:
        return self._gas_used

    @property
    def net_gas_used(self) -> int:
        return self._gas_used

    def below(self) -> Iterator["Computation"]:
        """All calls within this, in the order of their begin."""
        for each in self.children:
            yield each
            yield from each.below()

    def get_raw_log_entries(self) -> tuple[Json, ...]:
        """The logs of this call and of those within it; a failed call has none."""
        return tuple(self._all_logs())

    def _all_logs(self) -> Iterator[Json]:
        if not self.is_error:
            yield from self._log_entries
            for each in self.children:
                yield from each._all_logs()

    @cached_property
    def call_trace(self) -> TraceFrame:
        """The tree of calls with their sources."""
        contract = self.env.lookup_contract(self.msg.code_address)
        source = None if contract is None else contract.trace_source(self)
        children = [each.call_trace for each in self.children]
        return TraceFrame(self, source, self.msg.depth, children)

    # --- Instructions, which are traced when they are read -------------------------------

    @cached_property
    def code(self) -> SimpleNamespace:
        """The positions of the instructions that ran."""
        return SimpleNamespace(_trace=[each["pc"] for each in self._own_steps()])

    @cached_property
    def _memory(self) -> Memory:
        """The memory at the last instruction; empty after very many of them."""
        memory, steps = Memory(), self._own_steps()
        words = steps[-1].get("memory", ()) if steps else ()
        content = b"".join(_bytes(each) for each in words)
        memory.extend(0, len(content))
        memory.write(0, len(content), content)
        return memory

    def _own_steps(self) -> list[Json]:
        root = self
        while root._parent is not None:
            root = root._parent
        if not root._is_traced:
            root._is_traced = True
            root._distribute()
        return self._steps

    def _distribute(self) -> None:
        """Give the instructions of the whole run to its calls."""
        steps = self._trace(STEPS) or []
        if self.is_error:  # titanoboa shows local variables
            steps = self._trace(STEPS | {"enableMemory": True}) or steps
        calls, made = [self], [0]
        for step in steps:
            if step["depth"] > len(calls):
                calls.append(calls[-1].children[made[-1] - 1])
                made.append(0)
            while step["depth"] < len(calls):
                calls.pop()
                made.pop()
            calls[-1]._steps.append(step)
            made[-1] += step["op"] in CALLING

    def _trace(self, options: Json) -> list[Json] | None:
        """The instructions of the run; None if there are too many."""
        try:
            found: list[Json] = self.retrace(options)["structLogs"]
        except TraceTooLong:
            return None
        return found


def _message(call: Json, depth: int) -> SimpleNamespace:
    kind, sender = call["type"], _data(call, "from")
    to = _data(call, "to") or NOWHERE  # as of a creation that failed
    is_create = kind.startswith("CREATE")
    data = b"" if is_create else _data(call, "input")
    holds_storage = sender if kind in {"DELEGATECALL", "CALLCODE"} else to
    return SimpleNamespace(
        data=data,
        data_as_bytes=data,
        initcode=_data(call, "input") if is_create else b"",
        sender=sender,
        to=b"" if is_create else to,
        code_address=b"" if is_create else to,
        storage_address=holds_storage,
        is_create=is_create,
        is_static=kind == "STATICCALL",
        value=int(call.get("value", "0x0"), 16),
        gas=int(call["gas"], 16),
        depth=depth,
    )


def _error(call: Json, output: bytes) -> VMError | None:
    words = call.get("error")
    if not words:
        return None
    if words == REVERTED:
        return Revert(output)
    return (OutOfGas if "out of gas" in words else VMError)(words)


def _log(log: Json) -> Json:
    """A log as py-evm has it: its number in the run, which is its order, the address and so on."""
    topics = tuple(int(each, 16) for each in log["topics"])
    return int(log["index"], 16), _data(log, "address"), topics, _data(log, "data")


def _data(fields: Json, name: str) -> bytes:
    return _bytes(fields.get(name) or "0x")


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))
