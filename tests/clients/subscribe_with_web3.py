"""web3.py's subscriptions: `AsyncWeb3` over a WebSocket.

    python subscribe_with_web3.py URL PRIVATE_KEY [SCENARIO ...]

The scenarios and their results are those of api_with_viem.mjs, which documents them. web3.py passes
each notification to a handler, here until it has enough.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from eth_account import Account
from web3 import AsyncWeb3, WebSocketProvider
from web3.middleware import SignAndSendRawMiddlewareBuilder
from web3.utils.subscriptions import (
    LogsSubscription,
    NewHeadsSubscription,
    PendingTxSubscription,
)

from api_with_web3 import POLL, chained, nobody
from telling import show
from with_web3 import CONTRACT

Json = Any


async def receipt_of(w3: AsyncWeb3, sent: Json) -> Json:
    return await w3.eth.wait_for_transaction_receipt(sent, poll_latency=POLL)


async def deploy(w3: AsyncWeb3) -> Json:
    """Deploy a token, whose deployer has a thousand units."""
    factory = w3.eth.contract(abi=CONTRACT["abi"], bytecode=CONTRACT["initCode"])
    receipt = await receipt_of(w3, await factory.constructor().transact())
    return w3.eth.contract(receipt["contractAddress"], abi=CONTRACT["abi"])


async def transfer(w3: AsyncWeb3, token: Json, value: int) -> Json:
    """Transfer units of the token, and return the receipt."""
    return await receipt_of(w3, await token.functions.transfer(nobody(), value).transact())


async def sealed(w3: AsyncWeb3, receipt: Json) -> None:
    """Wait until the block of a receipt is sealed."""
    while await w3.eth.block_number < receipt["blockNumber"]:  # noqa: ASYNC110, it is elsewhere
        await asyncio.sleep(POLL)


async def collected(
    w3: AsyncWeb3,
    make: Callable[..., Json],
    enough: Callable[[list[Json]], bool],
    meanwhile: Awaitable[object] | None = None,
) -> list[Json]:
    """Collect the notifications of a subscription during an action, until they are enough."""
    seen: list[Json] = []

    async def handle(context: Json) -> None:
        seen.append(context.result)
        if enough(seen):
            await context.subscription.unsubscribe()

    await w3.subscription_manager.subscribe(make(handler=handle))
    handling = asyncio.create_task(w3.subscription_manager.handle_subscriptions())
    if meanwhile is not None:
        await meanwhile
    await handling
    return seen


async def watch_event(w3: AsyncWeb3) -> Json:
    token = await deploy(w3)

    def values(seen: list[Json]) -> list[int]:
        return [-1 if log.get("removed") else int.from_bytes(log["data"]) for log in seen]

    async def send() -> None:
        for value in (1, 2):
            await transfer(w3, token, value)
        await sealed(w3, await transfer(w3, token, 3))
        await transfer(w3, token, 9)

    wanted = partial(LogsSubscription, token.address)
    return values(await collected(w3, wanted, lambda seen: 9 in values(seen), send()))


async def heads(w3: AsyncWeb3) -> Json:
    seen = await collected(w3, NewHeadsSubscription, lambda seen: len(seen) == 3)
    blocks = [await w3.eth.get_block(each["number"]) for each in seen]
    agree = [each["hash"] for each in seen] == [each["hash"] for each in blocks]
    return {**chained(seen), "chained": agree and chained(seen)["chained"]}


async def pool(w3: AsyncWeb3) -> Json:
    sent: list[Json] = []

    async def send() -> None:
        for _ in range(2):  # at the second one, the first is known here
            sent.append(await w3.eth.send_transaction({"to": nobody(), "value": 1}))
            await receipt_of(w3, sent[-1])

    def enough(seen: list[Json]) -> bool:
        return len(seen) > 1 and bool(sent) and sent[0] in seen

    return (await collected(w3, PendingTxSubscription, enough, send())).count(sent[0])


SCENARIOS: dict[str, Callable[[AsyncWeb3], Awaitable[Json]]] = {
    "watchEvent": watch_event,
    "heads": heads,
    "pool": pool,
}


async def main() -> None:
    url, key, *named = sys.argv[1:]
    account = Account.from_key(key)
    async with AsyncWeb3(WebSocketProvider(url)) as w3:
        w3.eth.default_block = "latest" if urlsplit(url).path == "/eth" else "pending"
        w3.eth.default_account = account.address
        w3.middleware_onion.inject(SignAndSendRawMiddlewareBuilder.build(account), layer=0)
        found = {name: await SCENARIOS[name](w3) for name in named or SCENARIOS}
    show(found)


if __name__ == "__main__":
    asyncio.run(main())
