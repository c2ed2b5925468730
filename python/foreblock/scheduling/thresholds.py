"""Every threshold of scheduling, with its reason: how long, how many, how large.

They bound how long one request holds the loop, so that other clients are not noticeably
delayed. `docs/behaviour.md` has the guarantees that follow; `make check NAME=abuse` measures them.

Limits that operators choose are settings and not here.
"""

from typing import Final

from msgspec import Struct


class Thresholds(Struct, frozen=True):
    """Numbers of bytes end in `_bytes`; plain numbers count what they name."""

    # --- Calls in place, before they go to a thread ---
    # Nearly all calls end within microseconds, and handing one to a thread costs more.
    call_us: int = 200
    # A step that cannot be stopped, such as a precompile, is not begun when it takes longer.
    call_step_us: int = 100
    # The clock also runs while the process is halted: one stop is no proof.
    call_tries: int = 2
    # One that misses state and took this long was perhaps stopped: limits count work before it is
    # done. On a thread it reports all missing keys, which saves rounds of fetching.
    missing_call_seconds: float = 0.000_05
    # A call in place that ended this late was not a short one, though nothing stopped it.
    late_call_seconds: float = 0.001
    # A stopped kind runs on threads for this time; the least recently stopped is dropped first.
    slow_call_seconds: float = 60.0
    slow_call_kinds: int = 4096
    # After 5 stops in 0.1 s every kind goes to threads: at most 2 % of the loop is lost to
    # clients that make up new kinds (5 calls of 2 tries of 200 µs in 100 ms).
    stopped_calls: int = 5
    stopped_calls_seconds: float = 0.1

    # --- Calls, balances and blocks that the engine answers by itself ---
    # Longer texts go through Python, which hands the transport their pieces: copying costs more.
    fast_text_bytes: int = 32 * 1024
    # Larger batches, or those that take longer, run in slices.
    fast_batch_items: int = 256
    fast_batch_us: int = 500
    # Simulations of more blocks or calls, or those that take longer, run in slices. A transfer
    # takes 4 µs, a transfer of a token 5 µs.
    fast_simulated_calls: int = 64
    fast_simulation_us: int = 500

    # --- Slices of the loop: simulations, estimates, batches ---
    # 50 token transfers take 0.24 ms and 20 blocks of ten transfers 1.1 ms: most need one slice.
    slice_seconds: float = 0.002
    # In one round of the loop no simulation is begun in place after this; the others wait for
    # their turn unbegun. With eight clients that ask for 20 blocks of ten calls, cutting first
    # slices short instead cost a tenth more: half-done simulations push each other out of cache.
    first_slices_seconds: float = 0.001
    # Shorter first slices are not counted.
    noted_slice_seconds: float = 0.0002
    # One piece of work in place; it may run twice, when plain calls are followed by a long one.
    work_us: int = 500
    # Half-done simulations; each may hold 16 MB of results.
    begun_simulations: int = 16
    # A simulated block of more calls is sealed on a thread; in place it takes a millisecond.
    sealed_calls: int = 512
    # More changed accounts and slots have their root computed on a thread: 30 µs each at most.
    rooted_entries: int = 16

    # Transactions that are run again in place are decoded first, 100 bytes in 1 µs.
    replayed_bytes: int = 8 * 1024

    # Requests of a batch that are awaited together: 10 µs each until all of them wait.
    awaited_together: int = 64

    # --- Reads that grow with a block or with history ---
    # All reads in place share this in one round of the loop. A receipt takes 60 to 90 µs.
    read_round_seconds: float = 0.001
    read_slice_seconds: float = 0.001
    # Half-made shared texts, each of megabytes; with more none would end before its deadline.
    shared_reads: int = 4
    # A byte of a text is copied several times on its way to a socket.
    write_seconds_per_byte: float = 0.5e-9
    # Steps of reads, each a fraction of a read's slice. Recovering a sender takes 45 µs.
    recovered_senders: int = 16
    rendered_transactions: int = 128
    rendered_simulated: int = 64
    rendered_hashes: int = 512
    rendered_receipts: int = 16
    rendered_waiting: int = 32  # of a pool
    rendered_waiting_bytes: int = 64 * 1024
    woken_requests: int = 8  # that a new commit wakes in one turn of the loop
    joined_transactions: int = 256
    encoded_transactions: int = 512
    encoded_receipts: int = 128
    read_tips: int = 2048  # 0.1 µs each
    read_slots: int = 64  # 3 µs each
    rendered_proofs: int = 16  # of slots, 10 µs each
    # More slots are proven on a thread at once: each takes 10 to 20 µs.
    proven_slots: int = 24
    # Steps of a query of logs: terms looked up in sections (1 µs each), values compared with
    # blooms (a few ns each; reading a header takes 0.5 µs), receipts and logs of a block, and
    # bytes of their text.
    looked_up_terms: int = 256
    compared_blooms: int = 32 * 1024
    scanned_headers: int = 256
    scanned_receipts: int = 1024
    found_logs_bytes: int = 128 * 1024
    # Text of all logs that a query over several blocks may find, and half-done queries.
    logs_bytes: int = 32 * 1024 * 1024
    begun_searches: int = 4
    # Blocks that a search by address runs again because they have no row yet; each is one job of
    # a thread. A block has its row soon after it is sealed.
    searched_traces: int = 8
    # Share of its time after which a query of logs returns its progress.
    logs_time: float = 0.8

    # --- Requests that wait for a later commit ---
    # In a batch, which holds one view for all its requests, the wait ends after this.
    batch_wait_seconds: float = 5.0

    # --- Priorities of API keys ---
    # Parts of all waiting requests that those of high, normal and low priority may reach.
    waits_parts: tuple[float, float, float] = (1.0, 1.0, 0.5)

    # A key without units gets its refusals this late, half of it more or less: an HTTP connection
    # sends ten requests a second instead of thousands, a WebSocket ten times those that may wait.
    refusal_seconds: float = 0.1

    # --- Requests that are long ---
    # Shorter bodies are read at once, in half a millisecond; of longer ones a stretch at a time.
    long_body_bytes: int = 256 * 1024
    stretch_bytes: int = 16 * 1024
    # Parts that end in a stretch are decoded together, unless one is this long by itself.
    long_part_bytes: int = 64 * 1024
    portion_parts: int = 512
    # Shorter params are read when they come, in 0.2 ms; longer ones in a slice of the loop, in
    # 0.8 ms at most, and from the second number on a thread, which costs a request with a
    # thousand overridden slots more than all the rest of it.
    long_params_bytes: int = 64 * 1024
    thread_params_bytes: int = 256 * 1024

    # --- Texts ---
    # Responses from here on are counted in the worker's budget, and so are requests.
    long_bytes: int = 64 * 1024
    # Texts from here on are left in pieces: joining would copy megabytes in one go.
    pieces_bytes: int = 256 * 1024
    piece_bytes: int = 128 * 1024
    # Smaller pieces go out with those before them.
    small_piece_bytes: int = 1024
    # Responses up to here are handed to the transport in one go.
    whole_bytes: int = 256 * 1024

    # --- Subscriptions and filters ---
    # The interval at which a worker polls for a commit while a request waits for one. A poll reads
    # the heads in 2 µs, but the loop wakes up for it: with two networks 2 % of a core.
    commit_poll_seconds: float = 0.004
    # The interval while commits are announced; a missed hint delays an event by this.
    hinted_poll_seconds: float = 0.05
    # Notifications are sent for this long before others have their turn.
    notify_seconds: float = 0.001
    checked_notices: int = 16  # between two reads of the clock
    # To this many subscribers at most: each costs a system call, 8 µs, after the slice.
    notified_subscribers: int = 64
    # A cursor may be this many blocks old: an hour of a chain with a block every two seconds.
    resumed_blocks: int = 1_800
    # Filters that a log is matched with in one step, half a microsecond each, and logs.
    matched_filters: int = 256
    matched_logs: int = 64
    # So few filters are matched with each log; of more, an index finds those that may match.
    unlisted_filters: int = 8
    # Values that are listed in the index in one step, 0.3 µs each, and filters between two looks
    # for a commit.
    listed_values: int = 512
    listed_filters: int = 16
    # Memory of the filters of all log subscriptions of a connection, and of a worker.
    connection_filters_bytes: int = 64 << 20
    worker_filters_bytes: int = 256 << 20
    # Subscriptions of all connections of a worker, some 500 bytes each.
    worker_subscriptions: int = 65_536
    # One poll of a filter returns at most the results of this many events, and about this many
    # results and bytes; the next poll continues.
    polled_events: int = 2_048
    polled_results: int = 10_000
    polled_bytes: int = 16 << 20
    # Entries of the table of filters that are looked at, for old ones, when one is added.
    swept_filters: int = 16
    # Each takes 0.1 ms, most of it asleep; a worker holds the lock of a filter for some 20 µs. A
    # request tries again in its next slice, for this part of its time.
    filter_lock_tries: int = 5
    filter_wait: float = 0.1
    filters_bytes: int = 64 << 20  # of all filters of a network
    filter_bytes: int = 512 * 1024  # of one of them

    # --- Connections: bounds of one turn before the loop serves others ---
    answered_requests: int = 32
    written_pieces: int = 4  # half a megabyte of a long response
    # Of writing notifications to all of them, at 6 µs each, before others have their turn.
    flush_seconds: float = 0.001
    # Short responses gather up to here before they are handed to the transport.
    gathered_bytes: int = 64 * 1024


THRESHOLDS: Final = Thresholds()
