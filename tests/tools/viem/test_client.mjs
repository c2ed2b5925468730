// viem's test client in one of its modes, with every action that it has.
//
//     node test_client.mjs anvil|hardhat|ganache
//
// In the mode of Ganache only the actions with its own or `evm` method names.

import { createTestClient, http, numberToHex, pad, parseEther, publicActions, walletActions } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { foundry } from 'viem/chains'
import { ACCOUNTS, RPC_URL, assert, end, step as anyStep, until, vault } from '../steps.mjs'

const [mode] = process.argv.slice(2)
const OF_GANACHE = new Set([
  'mine', 'increaseTime', 'setNextBlockTimestamp', 'setBlockGasLimit', 'setBalance', 'setCode',
  'snapshot, revert',
])
const step = async (name, run, seconds) => {
  if (mode !== 'ganache' || OF_GANACHE.has(name)) await anyStep(name, run, seconds)
}
const client = createTestClient({ chain: foundry, mode, transport: http(RPC_URL), pollingInterval: 50 })
  .extend(publicActions)
  .extend(walletActions)
const nobody = () => privateKeyToAccount(generatePrivateKey()).address
const ETHER = parseEther('1')
const latest = () => client.getBlock()
const height = async () => (await latest()).number
const [ALICE, BOB] = ACCOUNTS
const send = (from, to, more = {}) => client.sendTransaction({ account: from, to, value: 1n, ...more })
const sent = async (...given) =>
  client.waitForTransactionReceipt({ hash: await send(...given) })
const found = (hash) => client.getTransaction({ hash }).catch(() => null)

await step('mine', async () => {
  const before = await height()
  await client.mine({ blocks: 3 })
  assert((await height()) >= before + 3n)
})
await step('mine with an interval', async () => {
  const before = await latest()
  await client.mine({ blocks: 4, interval: 60 })
  const { timestamp } = await latest()
  assert(timestamp >= before.timestamp + 180n, `${timestamp - before.timestamp}`)
})
await step('setAutomine, getAutomine', async () => {
  await client.setAutomine(false)
  assert.equal(await client.getAutomine(), false)
  const to = nobody()
  const hash = await send(ALICE, to)
  assert.equal(await client.getBalance({ address: to }), 0n)
  await until(async () => (await client.getBalance({ address: to, blockTag: 'pending' })) === 1n)
  assert.equal((await client.getTransaction({ hash })).blockNumber, null)
  await client.mine({ blocks: 1 })
  assert.equal(await client.getBalance({ address: to }), 1n)
  await client.setAutomine(true)
  assert.equal(await client.getAutomine(), true)
})
await step('setIntervalMining', async () => {
  await client.setIntervalMining({ interval: 1 })
  const { status } = await sent(ALICE, nobody())
  assert.equal(status, 'success')
}, 10) // in the mode of Hardhat viem sends milliseconds, which anvil and others read as seconds
await client.setIntervalMining({ interval: 0 })
await client.request({ method: 'evm_setAutomine', params: [true] })
await step('increaseTime', async () => {
  const before = await latest()
  await client.increaseTime({ seconds: 3600 })
  await client.mine({ blocks: 1 })
  const { timestamp } = await latest()
  const passed = timestamp - before.timestamp
  assert(passed >= 3600n && passed < 3660n, `${passed}`)
})
await step('setNextBlockTimestamp', async () => {
  const { timestamp } = await latest()
  await client.setNextBlockTimestamp({ timestamp: timestamp + 500n })
  await client.mine({ blocks: 1 })
  assert.equal((await latest()).timestamp, timestamp + 500n)
})
await step('setBlockTimestampInterval, removeBlockTimestampInterval', async () => {
  await client.setBlockTimestampInterval({ interval: 5 })
  const { timestamp } = await latest()
  await client.mine({ blocks: 1 })
  assert.equal((await latest()).timestamp, timestamp + 5n)
  await client.removeBlockTimestampInterval()
})
await step('setBlockGasLimit', async () => {
  await client.setBlockGasLimit({ gasLimit: 20_000_000n })
  await client.mine({ blocks: 1 })
  assert.equal((await latest()).gasLimit, 20_000_000n)
})
await step('setNextBlockBaseFeePerGas', async () => {
  await client.setNextBlockBaseFeePerGas({ baseFeePerGas: 2_000_000_000n })
  await client.mine({ blocks: 1 })
  assert.equal((await latest()).baseFeePerGas, 2_000_000_000n)
})
await step('setMinGasPrice', () => client.setMinGasPrice({ gasPrice: 0n }))
await step('setCoinbase', async () => {
  const address = nobody()
  await client.setCoinbase({ address })
  await client.mine({ blocks: 1 })
  assert.equal((await latest()).miner.toLowerCase(), address.toLowerCase())
})
await step('setBalance', async () => {
  const address = nobody()
  await client.setBalance({ address, value: ETHER })
  assert.equal(await client.getBalance({ address }), ETHER)
  assert.equal(await client.getBalance({ address, blockTag: 'pending' }), ETHER)
  await client.mine({ blocks: 1 })
  assert.equal(await client.getBalance({ address }), ETHER)
})
await step('setCode', async () => {
  const address = nobody()
  await client.setCode({ address, bytecode: vault.code })
  assert.equal(await client.getCode({ address }), vault.code)
  const asked = { address, abi: vault.abi }
  const hash = await client.writeContract({
    ...asked, account: ALICE, functionName: 'setNumber', args: [8n],
  })
  await client.waitForTransactionReceipt({ hash })
  assert.equal(await client.readContract({ ...asked, functionName: 'number' }), 8n)
})
await step('setStorageAt', async () => {
  const address = nobody()
  await client.setCode({ address, bytecode: vault.code })
  await client.setStorageAt({ address, index: 0, value: pad(numberToHex(69), { size: 32 }) })
  assert.equal(BigInt(await client.getStorageAt({ address, slot: '0x0' })), 69n)
  assert.equal(await client.readContract({ address, abi: vault.abi, functionName: 'number' }), 69n)
})
await step('setNonce', async () => {
  const address = nobody()
  await client.setNonce({ address, nonce: 420 })
  assert.equal(await client.getTransactionCount({ address }), 420)
})
await step('impersonateAccount, stopImpersonatingAccount', async () => {
  const address = nobody()
  await client.setBalance({ address, value: ETHER })
  await client.impersonateAccount({ address })
  const to = nobody()
  const { status } = await sent(address, to)
  assert.equal(status, 'success')
  assert.equal(await client.getBalance({ address: to }), 1n)
  await client.stopImpersonatingAccount({ address })
  await assert.rejects(send(address, to))
})
await step('autoImpersonate', async () => {
  await client.request({ method: `${mode}_autoImpersonateAccount`, params: [true] })
  const address = nobody()
  await client.setBalance({ address, value: ETHER })
  await sent(address, nobody())
  await client.request({ method: `${mode}_autoImpersonateAccount`, params: [false] })
})
await step('sendUnsignedTransaction', async () => {
  const from = nobody()
  await client.setBalance({ address: from, value: ETHER })
  await client.impersonateAccount({ address: from })
  const to = nobody()
  const hash = await client.sendUnsignedTransaction({ from, to, value: 1n })
  await client.waitForTransactionReceipt({ hash })
  assert.equal(await client.getBalance({ address: to }), 1n)
})
await step('snapshot, revert', async () => {
  const before = await height()
  const to = nobody()
  const id = await client.snapshot()
  const { transactionHash } = await sent(ALICE, to)
  assert.equal(await client.getBalance({ address: to }), 1n)
  await client.revert({ id })
  assert.equal(await client.getBalance({ address: to }), 0n)
  assert.equal(await height(), before)
  assert.equal(await found(transactionHash), null)
})
await step('dropTransaction', async () => {
  await client.setAutomine(false)
  const to = nobody()
  const hash = await send(BOB, to)
  await client.dropTransaction({ hash })
  assert.equal(await found(hash), null)
  await client.mine({ blocks: 1 })
  assert.equal(await client.getBalance({ address: to }), 0n)
  await client.setAutomine(true)
})
await step('getTxpoolStatus, getTxpoolContent, inspectTxpool', async () => {
  await client.setAutomine(false)
  try {
    const hash = await send(BOB, nobody())
    const { pending } = await client.getTxpoolStatus()
    assert.equal(pending, 1)
    const content = await client.getTxpoolContent()
    const [mine] = Object.values(Object.values(content.pending)[0])
    assert.equal(mine.hash, hash)
    assert.equal(Object.keys((await client.inspectTxpool()).pending).length, 1)
  } finally {
    await client.mine({ blocks: 1 })
    await client.setAutomine(true)
  }
})
await step('dumpState, loadState', async () => {
  const address = nobody()
  await client.setBalance({ address, value: ETHER })
  const state = await client.dumpState()
  await client.setBalance({ address, value: 0n })
  await client.loadState({ state })
  assert.equal(await client.getBalance({ address }), ETHER)
})
await step('setLoggingEnabled', async () => {
  await client.setLoggingEnabled(false)
  await client.setLoggingEnabled(true)
})
await step('setRpcUrl', () => client.setRpcUrl(RPC_URL))
await step('reset', async () => {
  await client.reset()
  assert.equal(await height(), 0n)
})
await step('the chain after a reset', async () => {
  const to = nobody()
  await sent(ALICE, to)
  assert.equal(await client.getBalance({ address: to }), 1n)
})
end()
