"""What of the past a network is told to keep, and how large it may be, as its store takes it."""

from foreblock.ledger.storage.open_store import Retention, StoreLimits
from foreblock.settings.network import Network


def kept(network: Network) -> Retention:
    """How much its store keeps; 0 states are all."""
    return Retention(
        states=network.keep_states or None,
        partials=network.keep_partials,
        nodes=network.keep_nodes,
    )


def room(network: Network) -> StoreLimits:
    """What its store takes of the system."""
    return StoreLimits(network.map_size, network.max_readers)
