// wagmi core with the mock connector, as in tests of dapps.

import {
  connect,
  createConfig,
  deployContract,
  disconnect,
  estimateFeesPerGas,
  getAccount,
  getBalance,
  getBlockNumber,
  getTransactionReceipt,
  http,
  mock,
  readContract,
  readContracts,
  sendTransaction,
  sendTransactionSync,
  signMessage,
  signTypedData,
  simulateContract,
  verifyMessage,
  waitForTransactionReceipt,
  watchBlockNumber,
  watchContractEvent,
  writeContract,
} from '@wagmi/core'
import { parseEther } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { foundry } from 'viem/chains'
import { ACCOUNTS, RPC_URL, assert, end, step, until, vault } from '../steps.mjs'

const config = createConfig({
  chains: [{ ...foundry, rpcUrls: { default: { http: [RPC_URL] } } }],
  connectors: [mock({ accounts: ACCOUNTS })],
  transports: { [foundry.id]: http(RPC_URL) },
  pollingInterval: 50,
})
const nobody = () => privateKeyToAccount(generatePrivateKey()).address
const { abi } = vault
const receiptOf = (hash) => waitForTransactionReceipt(config, { hash })

await step('connect', async () => {
  const { accounts } = await connect(config, { connector: config.connectors[0] })
  assert.deepEqual([...accounts], ACCOUNTS)
  assert.equal(getAccount(config).status, 'connected')
})
await step('balances and blocks', async () => {
  assert((await getBalance(config, { address: ACCOUNTS[0] })).value > 0n)
  assert((await getBlockNumber(config)) >= 0n)
  assert((await estimateFeesPerGas(config)).maxFeePerGas > 0n)
})
await step('send a transaction', async () => {
  const to = nobody()
  const hash = await sendTransaction(config, { to, value: parseEther('0.01') })
  assert.equal((await receiptOf(hash)).status, 'success')
  assert.equal((await getBalance(config, { address: to })).value, parseEther('0.01'))
  assert.equal((await getTransactionReceipt(config, { hash })).status, 'success')
})
await step('send and wait in one request', async () => {
  const { status } = await sendTransactionSync(config, { to: nobody(), value: 1n })
  assert.equal(status, 'success')
})
const address = await step('deploy a contract', async () => {
  const hash = await deployContract(config, { abi, bytecode: vault.initCode, args: [0n] })
  return (await receiptOf(hash)).contractAddress
})
await step('simulate, write and read', async () => {
  const { request } = await simulateContract(config, { abi, address, functionName: 'increment' })
  const hash = await writeContract(config, request)
  assert.equal((await receiptOf(hash)).status, 'success')
  assert.equal(await readContract(config, { abi, address, functionName: 'number' }), 1n)
})
await step('read several', async () => {
  const asked = ['number', 'owner', 'unlockTime'].map((functionName) => ({ abi, address, functionName }))
  const found = await readContracts(config, { contracts: asked })
  assert.deepEqual(found.map(({ result }) => result), [1n, ACCOUNTS[0], 0n])
})
await step('a revert', () =>
  assert.rejects(
    simulateContract(config, { abi, address, functionName: 'failWithReason' }),
    /not today/,
  ))
await step('signatures', async () => {
  const message = 'hello wagmi'
  const signature = await signMessage(config, { message })
  assert(await verifyMessage(config, { address: ACCOUNTS[0], message, signature }))
  await signTypedData(config, {
    domain: { name: 'Mail', chainId: foundry.id },
    types: { Mail: [{ name: 'contents', type: 'string' }] },
    primaryType: 'Mail',
    message: { contents: 'hello' },
  })
})
await step('watch blocks and events', async () => {
  const numbers = []
  const blocks = []
  const failures = []
  const onError = (error) => failures.push(error)
  const stops = [
    watchContractEvent(config, {
      abi, address, eventName: 'Changed', onError, pollingInterval: 50,
      onLogs: (logs) => numbers.push(...logs.map(({ args }) => args.number)),
    }),
    watchBlockNumber(config, { onError, pollingInterval: 50, onBlockNumber: (each) => blocks.push(each) }),
  ]
  let next = 100n
  await until(async () => {
    if (failures.length) throw failures[0]
    const asked = { abi, address, functionName: 'setNumber', args: [next++] }
    await receiptOf(await writeContract(config, asked))
    return numbers.length >= 2 && blocks.length >= 2
  })
  stops.forEach((stop) => stop())
})
await step('disconnect', async () => {
  if (getAccount(config).connector) await disconnect(config)
  assert.equal(getAccount(config).status, 'disconnected')
})
end()
