// web3.js over WebSocket: subscriptions to blocks, logs and events of a contract.

import { Web3 } from 'web3'
import { ACCOUNTS, WS_URL, assert, end, step, until, vault } from '../steps.mjs'

const web3 = new Web3(WS_URL)
const [from] = ACCOUNTS

const contract = await step('deploy', () =>
  new web3.eth.Contract(vault.abi).deploy({ data: vault.initCode, arguments: [0] }).send({ from }))
let next = 1n
const change = () => contract.methods.setNumber(next++).send({ from })

/** The messages of a subscription while the contract changes. */
const heard = async (subscription, enough) => {
  const found = []
  subscription.on('data', (each) => found.push(each))
  await until(async () => {
    await change()
    return found.length >= enough
  })
  await subscription.unsubscribe()
  return found
}

await step('newHeads', async () => {
  const heads = await heard(await web3.eth.subscribe('newHeads'), 3)
  const numbers = heads.map(({ number }) => BigInt(number))
  assert.deepEqual(numbers, numbers.map((_, i) => numbers[0] + BigInt(i)))
})
await step('logs', () => web3.eth.subscribe('logs', { address: contract.options.address }).then((each) => heard(each, 2)))
await step('events of a contract', async () => {
  const found = await heard(contract.events.Changed(), 2)
  assert(found.every(({ returnValues }) => returnValues.by === from))
})
await step('pending transactions', () =>
  web3.eth.subscribe('pendingTransactions').then((each) => heard(each, 1)))
end()
