// web3.js over HTTP, as in its guides: accounts of the node and of keys, contracts, logs.

import { Web3 } from 'web3'
import { ACCOUNTS, CHAIN_ID, KEYS, RPC_URL, assert, end, step, vault } from '../steps.mjs'

const web3 = new Web3(RPC_URL)
web3.eth.transactionPollingInterval = 50
const [{ address: own }] = web3.eth.accounts.wallet.add(KEYS[1])
const nobody = () => web3.eth.accounts.create().address
const [from] = ACCOUNTS

await step('the chain', async () => {
  assert.equal(await web3.eth.getChainId(), BigInt(CHAIN_ID))
  assert.equal(await web3.eth.net.getId(), BigInt(CHAIN_ID))
  assert.equal(await web3.eth.net.isListening(), true)
  assert.deepEqual((await web3.eth.getAccounts()).slice(0, 3), ACCOUNTS)
  assert((await web3.eth.getBlock()).gasLimit > 0n)
})
await step('send ether', async () => {
  const to = nobody()
  const { status } = await web3.eth.sendTransaction({ from, to, value: 5n })
  assert.equal(status, 1n)
  assert.equal(await web3.eth.getBalance(to), 5n)
})
await step('send ether with a key, three times', async () => {
  const to = nobody()
  for (const _ of [1, 2, 3]) await web3.eth.sendTransaction({ from: own, to, value: 1n })
  assert.equal(await web3.eth.getBalance(to), 3n)
})
await step('sign and send', async () => {
  const to = nobody()
  const signed = await web3.eth.accounts.signTransaction(
    {
      from: own, to, value: 1n, gas: 21_000n, nonce: await web3.eth.getTransactionCount(own),
      maxFeePerGas: 4_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n,
    },
    KEYS[1],
  )
  await web3.eth.sendSignedTransaction(signed.rawTransaction)
  assert.equal(await web3.eth.getBalance(to), 1n)
})
const contract = await step('deploy', async () => {
  const made = await new web3.eth.Contract(vault.abi)
    .deploy({ data: vault.initCode, arguments: [0] })
    .send({ from })
  assert.equal(await web3.eth.getCode(made.options.address), vault.code)
  return made
})
await step('write and read', async () => {
  for (const number of [3n, 4n, 5n]) {
    const { events } = await contract.methods.setNumber(number).send({ from })
    assert.equal(events.Changed.returnValues.number, number)
    assert.equal(await contract.methods.number().call(), number)
  }
})
await step('estimates', async () => {
  const gas = await contract.methods.increment().estimateGas({ from })
  const { gasUsed } = await contract.methods.increment().send({ from, gas: String(gas) })
  assert(gasUsed <= gas && gas > 21_000n)
  assert((await web3.eth.getGasPrice()) > 0n)
  assert((await web3.eth.calculateFeeData()).maxFeePerGas > 0n)
})
await step('reverts', async () => {
  await assert.rejects(
    contract.methods.failWithReason().call({ from }),
    (error) => /not today/.test(`${error.message} ${error.cause?.message} ${error.reason}`),
  )
  await assert.rejects(
    contract.methods.failWithReason().send({ from, gas: '100000' }),
    (error) => error.receipt?.status === 0n,
  )
})
await step('past events and logs', async () => {
  const found = await contract.getPastEvents('Changed', { fromBlock: 0, toBlock: 'latest' })
  assert.deepEqual(found.map(({ returnValues }) => returnValues.number), [3n, 4n, 5n, 6n])
  const address = contract.options.address
  assert.equal((await web3.eth.getPastLogs({ address, fromBlock: 0 })).length, 4)
})
await step('proof, access list and storage', async () => {
  const { address } = contract.options
  const { storageProof } = await web3.eth.getProof(address, [`0x${'0'.repeat(64)}`], 'latest')
  assert.equal(BigInt(storageProof[0].value), 6n)
  const data = contract.methods.increment().encodeABI()
  const { accessList } = await web3.eth.createAccessList({ from, to: address, data }, 'latest')
  assert.equal(accessList.length, 1)
  assert.equal(BigInt(await web3.eth.getStorageAt(address, 0)), 6n)
})
await step('signatures', async () => {
  const signature = await web3.eth.sign(web3.utils.utf8ToHex('hello'), from)
  const signed = typeof signature === 'string' ? signature : signature.signature
  assert.equal(web3.eth.accounts.recover('hello', signed), from)
})
await step('facts about the node', async () => {
  await web3.eth.getNodeInfo()
  await web3.eth.getProtocolVersion().catch(() => null)
  await web3.eth.getCoinbase()
  assert.equal(await web3.eth.isSyncing(), false)
  assert.equal((await web3.eth.getFeeHistory(1, 'latest', [50])).reward.length, 1)
})
await step('uncles and counts', async () => {
  assert.equal(await web3.eth.getBlockUncleCount('latest'), 0n)
  assert((await web3.eth.getBlockTransactionCount('latest')) >= 0n)
})
await step('batch', async () => {
  const batch = new web3.BatchRequest()
  const asked = [1, 2].map((id) =>
    batch.add({ jsonrpc: '2.0', id, method: 'eth_getBalance', params: [from, 'latest'] }))
  await batch.execute()
  assert.equal(new Set(await Promise.all(asked)).size, 1)
})
end()
