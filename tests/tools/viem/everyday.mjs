// viem's public and wallet actions over HTTP, as in its documentation.

import {
  BaseError,
  ContractFunctionRevertedError,
  createNonceManager,
  createPublicClient,
  createWalletClient,
  encodeFunctionData,
  http,
  keccak256,
  parseEther,
  parseEventLogs,
  verifyMessage,
  verifyTypedData,
} from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { jsonRpc } from 'viem/nonce'
import { ACCOUNTS, CHAIN_ID, KEYS, RPC_URL, assert, end, step, vault } from '../steps.mjs'
import { abi, account, chain, client, deploy, receiptOf, unlocked, wallet } from './clients.mjs'

const nobody = () => privateKeyToAccount(generatePrivateKey()).address
const ETHER = parseEther('1')
const typedData = {
  domain: { name: 'Ether Mail', version: '1', chainId: CHAIN_ID, verifyingContract: ACCOUNTS[2] },
  types: {
    Person: [{ name: 'name', type: 'string' }, { name: 'wallet', type: 'address' }],
    Mail: [{ name: 'from', type: 'Person' }, { name: 'contents', type: 'string' }],
  },
  primaryType: 'Mail',
  message: { from: { name: 'Cow', wallet: ACCOUNTS[0] }, contents: 'Hello, Bob!' },
}
/** The decoded revert reason. */
const refusal = (asked) =>
  asked.then(
    () => assert.fail('it did not revert'),
    (error) => {
      assert(error instanceof BaseError, error)
      const reverted = error.walk((each) => each instanceof ContractFunctionRevertedError)
      return reverted.data?.errorName === 'Error' ? reverted.reason : reverted.data?.errorName
    },
  )

await step('the chain', async () => {
  assert.equal(await client.getChainId(), CHAIN_ID)
  const block = await client.getBlock()
  assert((await client.getBlockNumber({ cacheTime: 0 })) >= block.number)
  assert.equal((await client.getBlock({ blockTag: 'pending' })).number >= block.number, true)
})

await step('send ether', async () => {
  const to = nobody()
  const { status, blockNumber } = await receiptOf(await wallet.sendTransaction({ to, value: ETHER }))
  assert.equal(status, 'success')
  assert.equal(await client.getBalance({ address: to }), ETHER)
  assert.equal(await client.getBalance({ address: to, blockNumber }), ETHER)
  assert.equal(await client.getBalance({ address: to, blockNumber: blockNumber - 1n }), 0n)
})

const contract = await step('deploy', () => deploy([7n], 5n))

await step('read and write', async () => {
  assert.equal(await client.readContract({ ...contract, functionName: 'unlockTime' }), 7n)
  const { request, result } = await client.simulateContract({
    ...contract, account, functionName: 'increment',
  })
  assert.equal(result, 1n)
  const { logs, blockHash } = await receiptOf(await wallet.writeContract(request))
  const [{ args }] = parseEventLogs({ abi, eventName: 'Changed', logs })
  assert.deepEqual(args, { by: account.address, number: 1n })
  assert.equal(await client.readContract({ ...contract, functionName: 'number' }), 1n)
  assert.equal((await client.getBlock({ blockHash })).hash, blockHash)
})

await step('twenty writes, each read after its receipt', async () => {
  for (let number = 1n; number <= 20n; number++) {
    const hash = await wallet.writeContract({
      ...contract, functionName: 'setNumber', args: [number],
    })
    await receiptOf(hash)
    assert.equal(await client.readContract({ ...contract, functionName: 'number' }), number)
  }
})

await step('custom errors and reasons', async () => {
  const as = (functionName, from = account) =>
    refusal(client.simulateContract({ ...contract, account: from, functionName }))
  assert.equal(await as('onlyOwner', ACCOUNTS[1]), 'Forbidden')
  assert.equal(await as('failWithReason'), 'not today')
  assert.equal(await as('panic'), 'Panic')
  assert.equal(await as('failWithoutReason'), undefined)
})

await step('a transaction that fails', async () => {
  const { status } = await receiptOf(
    await wallet.writeContract({ ...contract, functionName: 'panic', gas: 100_000n }),
  )
  assert.equal(status, 'reverted')
})

await step('events', async () => {
  const asked = { ...contract, eventName: 'Changed', fromBlock: 0n }
  const all = await client.getContractEvents(asked)
  assert.deepEqual(all.slice(-3).map(({ args }) => args.number), [18n, 19n, 20n])
  const mine = await client.getContractEvents({ ...asked, args: { by: account.address } })
  assert.equal(mine.length, all.length)
  assert.deepEqual(await client.getContractEvents({ ...asked, args: { by: ACCOUNTS[1] } }), [])
  const { blockHash } = all.at(-1)
  assert.equal((await client.getLogs({ address: contract.address, blockHash })).length, 1)
})

await step('filters', async () => {
  const filter = await client.createContractEventFilter({ ...contract, eventName: 'Changed' })
  const blocks = await client.createBlockFilter()
  await receiptOf(
    await wallet.writeContract({ ...contract, functionName: 'setNumber', args: [33n] }),
  )
  const [{ args }] = await client.getFilterChanges({ filter })
  assert.equal(args.number, 33n)
  assert((await client.getFilterChanges({ filter: blocks })).length >= 1)
  assert.equal(await client.uninstallFilter({ filter }), true)
})

await step('fees and estimates', async () => {
  assert.equal(await client.estimateGas({ account, to: nobody(), value: 1n }), 21_000n)
  const { maxFeePerGas, maxPriorityFeePerGas } = await client.estimateFeesPerGas()
  const { baseFeePerGas } = await client.getBlock()
  assert(maxFeePerGas >= baseFeePerGas && maxPriorityFeePerGas >= 0n)
  const history = await client.getFeeHistory({ blockCount: 2, rewardPercentiles: [10, 90] })
  assert.equal(history.reward.length, 2)
  assert((await client.getGasPrice()) > 0n)
  assert((await client.estimateContractGas({ ...contract, account, functionName: 'increment' })) > 0n)
})

await step('many transactions at once, with a nonce manager', async () => {
  const local = privateKeyToAccount(KEYS[1], { nonceManager: createNonceManager({ source: jsonRpc() }) })
  const sender = createWalletClient({ account: local, chain, transport: http(RPC_URL) })
  const to = nobody()
  const hashes = await Promise.all(
    Array.from({ length: 10 }, () => sender.sendTransaction({ to, value: 1n })),
  )
  const receipts = await Promise.all(hashes.map(receiptOf))
  assert(receipts.every(({ status }) => status === 'success'))
  assert.equal(await client.getBalance({ address: to }), 10n)
})

await step('confirmations', async () => {
  const hash = await wallet.sendTransaction({ to: nobody(), value: 1n })
  await receiptOf(hash)
  assert((await client.getTransactionConfirmations({ hash })) >= 1n)
})

await step('accounts of the node', async () => {
  const addresses = await unlocked.getAddresses()
  assert.deepEqual(addresses.slice(0, 3), ACCOUNTS)
  const to = nobody()
  await receiptOf(await unlocked.sendTransaction({ account: addresses[2], to, value: 3n }))
  assert.equal(await client.getBalance({ address: to }), 3n)
})

await step('signatures', async () => {
  const message = 'hello'
  for (const each of [wallet.account, ACCOUNTS[1]]) {
    const address = each.address ?? each
    const signature = await unlocked.signMessage({ account: each, message })
    assert(await verifyMessage({ address, message, signature }))
    assert(await client.verifyMessage({ address, message, signature }))
    const typed = await unlocked.signTypedData({ account: each, ...typedData })
    assert(await verifyTypedData({ address, signature: typed, ...typedData }))
  }
})

await step('send and wait in one request', async () => {
  const to = nobody()
  const { status } = await wallet.sendTransactionSync({ to, value: 2n })
  assert.equal(status, 'success')
  assert.equal(await client.getBalance({ address: to }), 2n)
})

await step('proof and access list', async () => {
  const { storageProof, codeHash } = await client.getProof({
    address: contract.address, storageKeys: [`0x${'0'.repeat(64)}`],
  })
  assert.equal(storageProof[0].value, 33n)
  assert.equal(codeHash, keccak256(vault.code))
  const { accessList } = await client.createAccessList({
    account, to: contract.address, data: encodeFunctionData({ abi, functionName: 'increment' }),
  })
  assert.equal(accessList[0].address.toLowerCase(), contract.address.toLowerCase())
})

await step('code, storage, transactions', async () => {
  assert.equal(await client.getCode({ address: contract.address }), vault.code)
  const slot = await client.getStorageAt({ address: contract.address, slot: '0x0' })
  assert.equal(BigInt(slot), 33n)
  const hash = await wallet.sendTransaction({ to: nobody(), value: 1n })
  const { blockHash } = await receiptOf(hash)
  const found = await client.getTransaction({ hash })
  assert.equal(found.blockHash, blockHash)
  const { transactions } = await client.getBlock({ blockHash, includeTransactions: true })
  assert(transactions.some((each) => each.hash === hash))
})

await step('simulated calls and blocks', async () => {
  const { results } = await client.simulateCalls({
    account,
    calls: [
      { to: contract.address, abi, functionName: 'increment' },
      { to: contract.address, abi, functionName: 'number' },
    ],
  })
  assert.deepEqual(results.map(({ result }) => result), [34n, 34n])
  const [{ calls }] = await client.simulateBlocks({
    blocks: [
      {
        stateOverrides: [{ address: ACCOUNTS[2], balance: ETHER }],
        calls: [{ account: ACCOUNTS[2], to: nobody(), value: 1n }],
      },
    ],
  })
  assert.equal(calls[0].status, 'success')
})

await step('overrides', async () => {
  const found = await client.readContract({
    ...contract,
    functionName: 'number',
    stateOverride: [
      { address: contract.address, stateDiff: [{ slot: `0x${'0'.repeat(64)}`, value: `0x${'0'.repeat(62)}63` }] },
    ],
  })
  assert.equal(found, 99n)
})

await step('deployless calls', async () => {
  const results = await client.multicall({
    deployless: true,
    contracts: [
      { ...contract, functionName: 'number' },
      { ...contract, functionName: 'failWithReason' },
    ],
  })
  assert.deepEqual(results.map(({ status }) => status), ['success', 'failure'])
  assert.equal(results[0].result, 33n)
})

await step('a batch of requests', async () => {
  const batching = createPublicClient({ chain, transport: http(RPC_URL, { batch: true }) })
  const [number, balance, code] = await Promise.all([
    batching.getBlockNumber(),
    batching.getBalance({ address: ACCOUNTS[0] }),
    batching.getCode({ address: contract.address }),
  ])
  assert(number > 0n && balance > 0n && code === vault.code)
})

await step('an account with code of its own (EIP-7702)', async () => {
  const authorization = await wallet.signAuthorization({
    account, contractAddress: contract.address, executor: 'self',
  })
  const { status } = await receiptOf(
    await wallet.sendTransaction({
      authorizationList: [authorization], to: account.address,
      data: encodeFunctionData({ abi, functionName: 'setNumber', args: [5n] }),
    }),
  )
  assert.equal(status, 'success')
  const number = await client.readContract({ address: account.address, abi, functionName: 'number' })
  assert.equal(number, 5n)
})
end()
