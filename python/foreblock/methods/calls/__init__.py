"""Calls, estimates and simulations: methods that run something."""

from foreblock.methods.calls.call_methods import AccessListMethods, CallMethods, EstimateMethods
from foreblock.methods.calls.simulate_methods import SimulateMethods
from foreblock.methods.table import Family, Method
from foreblock.scheduling.scheduler import Scheduler
from foreblock.settings import Settings


def call_family(settings: Settings, scheduler: Scheduler) -> Family:
    """The methods of this folder."""
    return Family(
        "Calls and simulations",
        (
            Method(
                "eth_call(transaction: Call, block!: BlockParameter, "
                "stateOverrides?: StateOverrides, blockOverrides?: BlockOverrides) -> Data",
                CallMethods(settings, scheduler).call,
            ),
            Method(
                "eth_simulateV1(simulationPayload: Simulation, "
                "blockParameter!: BlockParameter) -> SimulatedBlock[]",
                SimulateMethods(settings, scheduler).simulate,
            ),
            Method(
                "eth_estimateGas(transaction: Call, block?: BlockParameter, "
                "stateOverrides?: StateOverrides, blockOverrides?: BlockOverrides) -> Quantity",
                EstimateMethods(settings, scheduler).estimate_gas,
            ),
            Method(
                "eth_createAccessList(transaction: Call, block?: BlockParameter, "
                "stateOverrides?: StateOverrides) -> AccessListResult",
                AccessListMethods(settings, scheduler).create_access_list,
            ),
        ),
    )
