// viem's test client on a fork of another chain, which it restarts at other blocks.

import { createPublicClient, createTestClient, createWalletClient, getContract, http } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { foundry } from 'viem/chains'
import { ACCOUNTS, KEYS, RPC_URL, assert, end, step, vault } from '../steps.mjs'

const { UPSTREAM_URL } = process.env
const chain = foundry
const upstream = createPublicClient({ chain, transport: http(UPSTREAM_URL), pollingInterval: 50 })
const owner = createWalletClient({ account: privateKeyToAccount(KEYS[0]), chain, transport: http(UPSTREAM_URL) })
const client = createPublicClient({ chain, transport: http(RPC_URL), pollingInterval: 50, cacheTime: 0 })
const other = createWalletClient({ account: privateKeyToAccount(KEYS[1]), chain, transport: http(RPC_URL) })
const fork = createTestClient({ chain, mode: 'anvil', transport: http(RPC_URL) })

const mined = (hash) => upstream.waitForTransactionReceipt({ hash })
const { contractAddress: address } = await mined(
  await owner.deployContract({ abi: vault.abi, bytecode: vault.initCode, args: [0n], value: 9n }),
)
const there = getContract({ address, abi: vault.abi, client: owner })
const first = await mined(await there.write.setNumber([7n]))
const second = await mined(await there.write.setNumber([8n]))
const number = (blockNumber) =>
  client.readContract({ address, abi: vault.abi, functionName: 'number', blockNumber })
const reset = (blockNumber) => fork.reset({ jsonRpcUrl: UPSTREAM_URL, blockNumber })

await step('anvil_reset at a block', async () => {
  await reset(first.blockNumber)
  assert.equal((await client.getBlock({ blockNumber: first.blockNumber })).hash, first.blockHash)
  assert.equal(await number(), 7n)
  assert.equal(await client.getBalance({ address }), 9n)
})
await step('a receipt below the fork', async () => {
  const receipt = await client.getTransactionReceipt({ hash: first.transactionHash })
  assert.equal(receipt.blockHash, first.blockHash)
  assert.deepEqual(receipt.logs.map((log) => log.data), first.logs.map((log) => log.data))
})
await step('a transaction on the fork', async () => {
  const hash = await other.writeContract({ address, abi: vault.abi, functionName: 'setNumber', args: [20n] })
  const { status } = await client.waitForTransactionReceipt({ hash })
  assert.equal(status, 'success')
  assert.equal(await number(), 20n)
  assert.equal(await number(first.blockNumber), 7n)
  assert.equal(await there.read.number(), 8n)
})
await step('anvil_reset at a later block', async () => {
  await reset(second.blockNumber)
  assert.equal(await number(), 8n)
  assert.equal(await client.getTransactionCount({ address: ACCOUNTS[1] }), 0)
})
end()
