// ethers' WebSocketProvider: transactions, and events by subscription.

import { ContractFactory, Wallet, WebSocketProvider } from 'ethers'
import { ACCOUNTS, CHAIN_ID, KEYS, WS_URL, assert, end, step, until, vault } from '../steps.mjs'

const provider = new WebSocketProvider(WS_URL, undefined, { cacheTimeout: -1 })
const wallet = new Wallet(KEYS[0], provider)
const nobody = () => Wallet.createRandom().address

await step('the chain', async () => {
  assert.equal((await provider.getNetwork()).chainId, BigInt(CHAIN_ID))
  assert.equal(await (await provider.getSigner(1)).getAddress(), ACCOUNTS[1])
})
const contract = await step('deploy', async () => {
  const made = await new ContractFactory(vault.abi, vault.initCode, wallet).deploy(0)
  await made.waitForDeployment()
  return made
})
await step('write and read', async () => {
  for (const number of [3n, 4n]) {
    await (await contract.setNumber(number)).wait()
    assert.equal(await contract.number(), number)
  }
})
await step('contract.on', async () => {
  const seen = []
  await contract.on(contract.filters.Changed(ACCOUNTS[0]), ({ args }) => seen.push(args.number))
  let next = 10n
  await until(async () => {
    await (await contract.setNumber(next++)).wait()
    return seen.length >= 3
  })
  assert.deepEqual(seen, seen.map((_, i) => seen[0] + BigInt(i)))
  await contract.removeAllListeners()
})
await step('blocks', async () => {
  const blocks = []
  await provider.on('block', (number) => blocks.push(number))
  await until(async () => {
    await (await wallet.sendTransaction({ to: nobody() })).wait()
    return blocks.length >= 2
  })
  await provider.off('block')
})
await step('pending transactions', async () => {
  const hashes = []
  await provider.on('pending', (hash) => hashes.push(hash))
  let sent
  await until(async () => {
    sent = await wallet.sendTransaction({ to: nobody() })
    await sent.wait()
    return hashes.length
  })
  await provider.off('pending')
})
await step('once', async () => {
  const waiting = new Promise((resolve) => contract.once('Changed', resolve))
  let done = false
  waiting.then(() => (done = true))
  await until(async () => {
    await (await contract.increment()).wait()
    return done
  })
})
end()
