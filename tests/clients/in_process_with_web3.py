"""web3.py on a chain in its own process, through the providers of foreblock.

    python in_process_with_web3.py

It prints the results of its scenarios as JSON, which test_in_process.py expects.
"""

import asyncio
from typing import Any

from web3 import AsyncWeb3, Web3
from web3.exceptions import ContractCustomError, ContractLogicError, ContractPanicError

from foreblock import DevChain
from foreblock.web3 import AsyncProvider, Provider
from telling import show
from with_web3 import CONTRACT

Json = Any


def failure(call: Json) -> list[str]:
    try:
        call()
    except (ContractCustomError, ContractLogicError, ContractPanicError) as error:
        return [type(error).__name__, str(error.args[0])]
    return []


def synchronous() -> Json:
    with DevChain(mode="manual") as chain:
        w3 = chain.web3()
        alice, bob = w3.eth.accounts[:2]
        before = w3.eth.get_balance(bob)
        sent = w3.eth.send_transaction({"from": alice, "to": bob, "value": 5})
        flashblock = chain.flashblock()
        pending = w3.eth.get_balance(bob, "pending") - before
        preconfirmed = w3.eth.get_transaction_receipt(sent).blockHash == flashblock.hash
        latest = w3.eth.get_balance(bob) - before
        chain.seal()
        with w3.batch_requests() as batch:
            batch.add(w3.eth.get_balance(bob))
            batch.add(w3.eth.block_number)
            balance, height = batch.execute()
        return {
            "connected": w3.is_connected(),
            "balances": [pending, latest, balance - before],
            "preconfirmed": preconfirmed,
            "height": height,
            "bytes": w3.eth.get_balance(chain.accounts[1]) == balance,
        }


def contracts() -> Json:
    with DevChain() as chain:
        w3 = chain.web3()
        alice, bob = w3.eth.accounts[:2]
        factory = w3.eth.contract(abi=CONTRACT["abi"], bytecode=CONTRACT["initCode"])
        made = w3.eth.wait_for_transaction_receipt(factory.constructor().transact({"from": alice}))
        token = w3.eth.contract(made.contractAddress, abi=CONTRACT["abi"])
        token.functions.transfer(bob, 400).transact({"from": alice})
        (event,) = token.events.Transfer().get_logs(from_block=0)
        return {
            "symbol": token.functions.symbol().call(),
            "balance": token.functions.balanceOf(bob).call(),
            "event": event["args"]["value"],
            "failures": [
                failure(token.functions.failWithReason().call),
                failure(token.functions.panic().call),
                failure(token.functions.transfer(bob, 601).call)[:1],
            ],
        }


def served() -> Json:
    with DevChain() as chain, chain.serve() as server:
        w3 = Web3(Provider(server.url))
        chain.seal()
        with w3.batch_requests() as batch:
            batch.add(w3.eth.get_block(0))
            batch.add(w3.eth.get_block(1))
            heights = [each.number for each in batch.execute()]
        connected = w3.is_connected()
    return {"heights": heights, "connected": [connected, w3.is_connected()]}


async def asynchronous() -> Json:
    with DevChain("ethereum") as chain:
        plain = chain.async_web3()
        chain_id = await plain.eth.chain_id
        async with chain.async_web3() as w3:
            alice, bob = (await w3.eth.accounts)[:2]
            subscription = await w3.eth.subscribe("newHeads")
            for _ in range(3):
                await w3.eth.send_transaction({"from": alice, "to": bob, "value": 1})
            heads = []
            async for message in w3.socket.process_subscriptions():
                heads.append(message["result"]["number"])
                if len(heads) == 3:
                    break
            ended = await w3.eth.unsubscribe(subscription)
        return {"chain": chain_id, "heads": heads, "ended": ended}


async def served_asynchronously() -> Json:
    with DevChain(mode="manual") as chain, chain.serve() as server:
        w3 = AsyncWeb3(AsyncProvider(server.url))
        chain.seal()
        async with w3.batch_requests() as batch:
            batch.add(w3.eth.get_block(0))
            batch.add(w3.eth.get_block(1))
            heights = [each.number for each in await batch.async_execute()]
        connected = await w3.is_connected()
        await w3.provider.disconnect()
        url = server.url.replace("http", "ws")
        async with AsyncWeb3(AsyncProvider(url, request_timeout=50)) as socket:
            heads = await socket.eth.subscribe("newHeads")
            flashblocks = await socket.eth.subscribe("newFlashblocks")
            chain.send(chain.accounts[1], value=1)
            wanted: dict[str, object] = {flashblocks: chain.flashblock().hash}
            wanted[heads] = chain.seal().hash
            received = []
            async for message in socket.socket.process_subscriptions():
                subscription, found = message["subscription"], message["result"]
                if found["hash"] == wanted.get(subscription):
                    del wanted[subscription]
                    received.append(found["number"])
                if not wanted:
                    break
        return {
            "heights": heights,
            "connected": connected,
            "received": received,
        }


if __name__ == "__main__":
    show(
        {
            "synchronous": synchronous(),
            "contracts": contracts(),
            "served": served(),
            "asynchronous": asyncio.run(asynchronous()),
            "served asynchronously": asyncio.run(served_asynchronously()),
        }
    )
