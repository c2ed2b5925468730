"""The options of debug_trace*: which tracer, what it shows, and for how long it may run.

Names and defaults are geth's. Options that change nothing here (`reexec`) are read and left
alone; those that would change the answer and are not known are refused.
"""

import re
from typing import Final

import msgspec
from msgspec import Raw, Struct, field

from foreblock.errors import RefusedTrace
from foreblock.ledger.tracing.traces import TraceBounds, Tracer
from foreblock.methods.params import refuse

US: Final = {
    "ns": 0.001, "us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6, "m": 60e6, "h": 3600e6,
}  # fmt: skip
NATIVE: Final = (
    "callTracer", "prestateTracer", "4byteTracer", "noopTracer", "flatCallTracer",
)  # fmt: skip


class TracerConfig(Struct, rename="camel", frozen=True):
    """What is particular to one tracer."""

    only_top_call: bool | None = None
    with_log: bool | None = None
    diff_mode: bool | None = None
    disable_code: bool | None = None
    disable_storage: bool | None = None
    include_empty: bool | None = None
    convert_parity_errors: bool | None = None
    include_precompiles: bool | None = None


class TraceConfig(Struct, rename="camel", frozen=True):
    """The options of a trace."""

    tracer: str | None = None
    tracer_config: TracerConfig | None = None
    timeout: str | None = None
    reexec: int | None = None
    enable_memory: bool | None = None
    disable_stack: bool | None = None
    disable_storage: bool | None = None
    enable_return_data: bool | None = None
    limit: int | None = None
    overrides: Raw | None = None
    # Of calls only.
    state_overrides: Raw = field(default_factory=lambda: Raw(b"null"))
    block_overrides: Raw = field(default_factory=lambda: Raw(b"null"))
    tx_index: str | None = None


def read_tracer(config: TraceConfig | None, argument: int) -> Tracer:
    """The tracer that the options name; raises `RefusedTrace` for one that is not known."""
    if config is None:
        return Tracer.struct_logs()
    if config.overrides is not None and config.overrides != b"null":
        raise RefusedTrace("overrides of the chain's forks are not supported in traces")
    if config.tracer is None:
        if config.limit is not None and config.limit < 0:
            refuse(argument, "$.limit", "below 0")
        return Tracer.struct_logs(
            memory=bool(config.enable_memory),
            stack=not config.disable_stack,
            storage=not config.disable_storage,
            return_data=bool(config.enable_return_data),
            limit=config.limit or 0,
        )
    return _named(config.tracer, config.tracer_config or TracerConfig())


def _named(name: str, given: TracerConfig) -> Tracer:
    match name:
        case "callTracer":
            return Tracer.calls(only_top=bool(given.only_top_call), with_logs=bool(given.with_log))
        case "flatCallTracer":
            return Tracer.flat_calls(
                parity_errors=bool(given.convert_parity_errors),
                precompiles=bool(given.include_precompiles),
            )
        case "prestateTracer":
            if given.diff_mode and given.include_empty:
                raise RefusedTrace("cannot use diffMode with includeEmpty")
            return Tracer.prestate(
                diff=bool(given.diff_mode),
                code=not given.disable_code,
                storage=not given.disable_storage,
                empty=bool(given.include_empty),
            )
        case "4byteTracer":
            return Tracer.selectors()
        case "noopTracer":
            return Tracer.nothing()
        case _:
            raise _unknown(name)


def _unknown(name: str) -> RefusedTrace:
    """Geth takes another name for code in JavaScript."""
    if re.fullmatch(r"[A-Za-z_$][A-Za-z0-9_$]{0,63}", name):
        return RefusedTrace(f"ReferenceError: {name} is not defined at <eval>:1:2(0)")
    known = ", ".join(NATIVE)
    return RefusedTrace(f"tracers in JavaScript are not supported; there are {known}")


def read_bounds(config: TraceConfig | None, output: int) -> TraceBounds:
    """The bounds of a trace: an operator's, and a shorter time where one is asked for."""
    if config is None or config.timeout is None:
        return TraceBounds(output)
    return TraceBounds(output, _duration(config.timeout))


def _duration(text: str) -> int:
    """Microseconds of a duration as Go writes it: 5s, 1m30s, 300ms."""
    parts = re.findall(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)", text[:64])
    if not parts or "".join(map("".join, parts)) != text:
        raise RefusedTrace(f"time: invalid duration {msgspec.json.encode(text[:64]).decode()}")
    return int(sum(float(number) * US[unit] for number, unit in parts))
