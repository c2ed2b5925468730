"""A client of the feed: when each flashblock arrived.

python -m foreblock.bench.preconf.listener URL SECONDS
"""

import json
import sys
import time

from websockets.sync.client import connect

from foreblock.bench.preconf.part import tell, wait_to_begin


def main() -> None:
    """Print time, block and index of each flashblock that arrived."""
    url, seconds = sys.argv[1], float(sys.argv[2])
    arrived: list[tuple[int, int, int]] = []
    with connect(url, compression=None, max_size=None) as feed:
        wait_to_begin()
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            try:
                message = feed.recv(timeout=left)
            except TimeoutError:
                break
            at_ns = time.monotonic_ns()
            flashblock = json.loads(message)
            block = flashblock["metadata"]["block_number"]
            arrived.append((at_ns, int(str(block), 0), flashblock["index"]))
    tell(arrived)


if __name__ == "__main__":
    main()
