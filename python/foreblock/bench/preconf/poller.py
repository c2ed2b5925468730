"""A client that polls a balance at `pending` on one connection.

Each answer names its flashblock, so the first one that names another shows when that one became
readable.

    python -m foreblock.bench.preconf.poller URL SECONDS
"""

import sys
import time

from foreblock.bench.preconf.part import tell, wait_to_begin
from foreblock.bench.preconf.wire import RawConnection, pending_place, request


def main() -> None:
    """Print time, block and index of each flashblock that was seen."""
    url, seconds = sys.argv[1], float(sys.argv[2])
    connection = RawConnection(url)
    message = request(url, "eth_getBalance", ["0x" + "11" * 20, "pending"])
    seen: list[tuple[int, int, int]] = []
    last = pending_place(connection.ask(message)[1])
    wait_to_begin()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        at_ns, head, _ = connection.ask(message)
        place = pending_place(head)
        if place is not None and place != last:
            seen.append((at_ns, *place))
            last = place
    tell(seen)


if __name__ == "__main__":
    main()
