"""Subscriptions: notifications of what happens to the chain."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.blocks.block_texts import BlockTexts
from foreblock.methods.options import Options
from foreblock.methods.subscriptions.delivery import Delivery, FollowCommits, no_hints
from foreblock.methods.subscriptions.flashblock_kinds import NewFlashblocks
from foreblock.methods.subscriptions.subscribing import Subscribers, SubscriptionMethods
from foreblock.methods.table import Family, Method
from foreblock.scheduling.scheduler import Scheduler

KEPT_BYTES: Final = 16 << 20  # of rendered blocks, and as many of rendered flashblocks


def subscription_family(
    options: Options,
    scheduler: Scheduler,
    open_view: Callable[[], LedgerView],
    subscribers: Subscribers,
    follow: FollowCommits = no_hints,
) -> Family:
    """The methods of this folder."""
    small = replace(options, block_text_bytes=KEPT_BYTES, flashblock_text_bytes=KEPT_BYTES)
    blocks = NewFlashblocks(BlockTexts(small, scheduler))
    delivery = Delivery(open_view, scheduler, follow=follow)
    methods = SubscriptionMethods(delivery, subscribers, blocks)
    return Family(
        "Subscriptions",
        (
            Method(
                "eth_subscribe(kind: SubscriptionKind, options?: SubscriptionOptions, "
                "resume?: SubscriptionCursor) -> SubscriptionId",
                methods.subscribe,
            ),
            Method("eth_unsubscribe(id: SubscriptionId) -> Boolean", methods.unsubscribe),
        ),
    )
