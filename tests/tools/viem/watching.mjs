// viem's watchers, over HTTP by polling and over WebSocket by subscriptions.

import { createPublicClient, createWalletClient, webSocket } from 'viem'
import { ACCOUNTS, WS_URL, assert, end, step, until } from '../steps.mjs'
import { account, chain, client, deploy, receiptOf, socketClient, wallet } from './clients.mjs'

const contract = await deploy()

const change = async (number) => {
  const asked = { ...contract, functionName: 'setNumber', args: [number] }
  return receiptOf(await wallet.writeContract(asked))
}

/** The arguments of a watcher's callback while `act` is repeated. */
const seen = async (watch, act, enough) => {
  const found = []
  let failure
  const stop = watch({ seen: (each) => found.push(each), onError: (error) => (failure = error) })
  let done = 0n
  await until(async () => {
    if (failure) throw failure
    await act(++done)
    return enough(found)
  })
  stop()
  return found
}

const watchAll = async (transport, watching) => {
  await step(`${transport}, block numbers`, () =>
    seen(
      ({ seen: tell, onError }) => watching.watchBlockNumber({ onBlockNumber: tell, onError }),
      change,
      (found) => found.length >= 3 && found.at(-1) > found[0],
    ))

  await step(`${transport}, blocks`, async () => {
    const blocks = await seen(
      ({ seen: tell, onError }) =>
        watching.watchBlocks({ onBlock: tell, onError, emitMissed: true }),
      change,
      (found) => found.length >= 3,
    )
    for (const [i, block] of blocks.slice(1).entries()) assert.equal(block.parentHash, blocks[i].hash)
  })

  await step(`${transport}, events of a contract`, async () => {
    const logs = await seen(
      ({ seen: tell, onError }) =>
        watching.watchContractEvent({
          ...contract, eventName: 'Changed', args: { by: account.address }, onError,
          onLogs: (each) => each.forEach(tell),
        }),
      change,
      (found) => found.length >= 3,
    )
    const numbers = logs.map(({ args }) => args.number)
    assert.deepEqual(numbers, numbers.map((_, i) => numbers[0] + BigInt(i)))
  })

  await step(`${transport}, logs of an address`, () =>
    seen(
      ({ seen: tell, onError }) =>
        watching.watchEvent({
          address: contract.address, onError, onLogs: (each) => each.forEach(tell),
        }),
      change,
      (found) => found.length >= 2,
    ))

  await step(`${transport}, pending transactions`, () =>
    seen(
      ({ seen: tell, onError }) =>
        watching.watchPendingTransactions({
          onError, onTransactions: (each) => each.forEach(tell),
        }),
      change,
      (found) => found.length >= 2,
    ))
}

await watchAll('HTTP', client)
await watchAll('WebSocket', socketClient())

await step('WebSocket, send and read', async () => {
  const transport = webSocket(WS_URL)
  const reader = createPublicClient({ chain, transport })
  const sender = createWalletClient({ chain, transport, account })
  const hash = await sender.sendTransaction({ to: ACCOUNTS[1], value: 1n })
  const { status } = await reader.waitForTransactionReceipt({ hash })
  assert.equal(status, 'success')
})
end()
