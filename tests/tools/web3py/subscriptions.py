"""web3.py's AsyncWeb3 over WebSocket: subscriptions to heads, logs and waiting transactions."""

import asyncio

from web3 import AsyncWeb3, Web3, WebSocketProvider

from given import NOBODY, TOKEN, WS_URL, Json, end, same, step

to = Web3.to_checksum_address(NOBODY)
PATIENCE = 30


async def notes_of(w3: Json, subscription: str, count: int) -> list[Json]:
    """The next notifications of a subscription; others in between are skipped."""
    found: list[Json] = []
    async for message in w3.socket.process_subscriptions():
        if message["subscription"] == subscription:
            found.append(message["result"])
        if len(found) == count:
            break
    return found


async def deploy(w3: Json) -> Json:
    made = w3.eth.contract(abi=TOKEN["abi"], bytecode=TOKEN["initCode"])
    hash_ = await made.constructor().transact()
    receipt = await w3.eth.wait_for_transaction_receipt(hash_, timeout=PATIENCE)
    return w3.eth.contract(receipt["contractAddress"], abi=TOKEN["abi"])


async def follow_logs(w3: Json, token: Json) -> None:
    logs = await w3.eth.subscribe("logs", {"address": token.address})
    sent = [await token.functions.transfer(to, value).transact() for value in (1, 2)]
    found = await notes_of(w3, logs, 2)
    same([each["transactionHash"] for each in found], sent)
    same([int.from_bytes(each["data"]) for each in found], [1, 2])
    same(await w3.eth.unsubscribe(logs), True)


async def follow_heads(w3: Json, token: Json) -> None:
    heads = await w3.eth.subscribe("newHeads")
    hash_ = await token.functions.transfer(to, 3).transact()
    receipt = await w3.eth.wait_for_transaction_receipt(hash_, timeout=PATIENCE)
    seen: list[Json] = []
    while not seen or seen[-1]["number"] < receipt["blockNumber"]:
        seen += await notes_of(w3, heads, 1)
    same(receipt["blockHash"] in [each["hash"] for each in seen], True)
    await w3.eth.unsubscribe(heads)


async def follow_the_pool(w3: Json, token: Json) -> None:
    waiting = await w3.eth.subscribe("newPendingTransactions")
    hash_ = await token.functions.transfer(to, 4).transact()
    same(await notes_of(w3, waiting, 1), [hash_])


async def main() -> None:
    async with AsyncWeb3(WebSocketProvider(WS_URL)) as w3:
        w3.eth.default_account = (await w3.eth.accounts)[0]
        token = await deploy(w3)
        for name, follow in (
            ("logs", follow_logs),
            ("newHeads", follow_heads),
            ("newPendingTransactions", follow_the_pool),
        ):
            with step(name):
                await asyncio.wait_for(follow(w3, token), PATIENCE)


asyncio.run(main())
end()
