// ethers over HTTP, as in its guide: a signer of the node, contracts, events, errors.

import {
  Contract,
  ContractFactory,
  JsonRpcProvider,
  NonceManager,
  Wallet,
  isError,
  parseEther,
  verifyMessage,
  verifyTypedData,
} from 'ethers'
import { ACCOUNTS, CHAIN_ID, KEYS, RPC_URL, assert, end, step, until, vault } from '../steps.mjs'

const provider = new JsonRpcProvider(RPC_URL, undefined, { cacheTimeout: -1, pollingInterval: 50 })
const wallet = new Wallet(KEYS[1], provider)
const nobody = () => Wallet.createRandom().address
const domain = { name: 'Ether Mail', version: '1', chainId: CHAIN_ID }
const types = { Mail: [{ name: 'contents', type: 'string' }] }

await step('the chain', async () => {
  assert.equal((await provider.getNetwork()).chainId, BigInt(CHAIN_ID))
  assert((await provider.getBlock('latest')).number >= 0)
  assert((await provider.getFeeData()).maxFeePerGas > 0n)
})
const signer = await step('a signer of the node', async () => {
  const found = await provider.getSigner()
  assert.equal(await found.getAddress(), ACCOUNTS[0])
  assert.equal((await provider.listAccounts()).length, 10)
  return found
})
await step('send ether', async () => {
  const to = nobody()
  const sent = await signer.sendTransaction({ to, value: parseEther('1') })
  const { status, blockNumber } = await sent.wait()
  assert.equal(status, 1)
  assert.equal(await provider.getBalance(to), parseEther('1'))
  assert.equal(await provider.getBalance(to, blockNumber - 1), 0n)
})
await step('send ether with a key', async () => {
  const to = nobody()
  for (const _ of [1, 2, 3]) await (await wallet.sendTransaction({ to, value: 1n })).wait()
  assert.equal(await provider.getBalance(to), 3n)
})
await step('many at once', async () => {
  const to = nobody()
  const managed = new NonceManager(wallet)
  const sent = await Promise.all([1, 2, 3, 4, 5].map(() => managed.sendTransaction({ to, value: 1n })))
  await Promise.all(sent.map((each) => each.wait()))
  assert.equal(await provider.getBalance(to), 5n)
})
const contract = await step('deploy', async () => {
  const factory = new ContractFactory(vault.abi, vault.initCode, signer)
  const made = await factory.deploy(0, { value: 7n })
  await made.waitForDeployment()
  assert.equal(await provider.getCode(await made.getAddress()), vault.code)
  return made
})
await step('write and read', async () => {
  for (const number of [3n, 4n, 5n]) {
    await (await contract.setNumber(number)).wait()
    assert.equal(await contract.number(), number)
  }
  assert.equal(await contract.increment.staticCall(), 6n)
  assert((await contract.increment.estimateGas()) > 21_000n)
})
await step('confirmations', async () => {
  const sent = await contract.increment()
  const receipt = await sent.wait(1)
  assert((await receipt.confirmations()) >= 1)
})
await step('custom errors and reasons', async () => {
  const other = contract.connect(await provider.getSigner(1))
  await assert.rejects(other.onlyOwner(), (error) => error.revert?.name === 'Forbidden')
  await assert.rejects(contract.failWithReason(), (error) => error.reason === 'not today')
  await assert.rejects(contract.panic.staticCall(), (error) => isError(error, 'CALL_EXCEPTION'))
})
await step('a transaction that fails', async () => {
  const sent = await contract.failWithReason({ gasLimit: 100_000 })
  await assert.rejects(sent.wait(), (error) => error.receipt?.status === 0)
})
await step('past events', async () => {
  const found = await contract.queryFilter(contract.filters.Changed(ACCOUNTS[0]), 0)
  assert.deepEqual(found.map(({ args }) => args.number), [3n, 4n, 5n, 6n])
  assert.equal((await provider.getLogs({ address: contract, fromBlock: 0 })).length, 4)
})
await step('contract.on', async () => {
  const seen = []
  await contract.on('Changed', (_, number) => seen.push(number))
  let next = 10n
  await until(async () => {
    await (await contract.setNumber(next++)).wait()
    return seen.length >= 2
  })
  await contract.removeAllListeners()
})
await step('provider.on', async () => {
  const blocks = []
  await provider.on('block', (number) => blocks.push(number))
  await until(async () => {
    await (await signer.sendTransaction({ to: nobody() })).wait()
    return blocks.length >= 2
  })
  await provider.off('block')
})
await step('signatures', async () => {
  assert.equal(verifyMessage('hello', await signer.signMessage('hello')), ACCOUNTS[0])
  const message = { contents: 'hello' }
  const signed = await signer.signTypedData(domain, types, message)
  assert.equal(verifyTypedData(domain, types, message, signed), ACCOUNTS[0])
})
await step('transactions and receipts', async () => {
  const { hash, blockNumber } = await (await signer.sendTransaction({ to: nobody() })).wait()
  assert.equal((await provider.getTransaction(hash)).blockNumber, blockNumber)
  const block = await provider.getBlock(blockNumber, true)
  assert(block.prefetchedTransactions.some((each) => each.hash === hash))
})
await step('dev methods by send', async () => {
  const to = nobody()
  const id = await provider.send('evm_snapshot', [])
  await (await signer.sendTransaction({ to, value: 1n })).wait()
  assert.equal(await provider.send('evm_revert', [id]), true)
  assert.equal(await provider.getBalance(to), 0n)
  await provider.send('evm_increaseTime', [3600])
  await provider.send('evm_mine', [])
  const { timestamp } = await provider.getBlock('latest')
  assert(timestamp >= Date.now() / 1000 + 3000)
})
await step('an impersonated signer', async () => {
  const address = nobody()
  await provider.send('anvil_impersonateAccount', [address])
  await provider.send('anvil_setBalance', [address, '0xde0b6b3a7640000'])
  const to = nobody()
  const impersonated = await provider.getSigner(address)
  await (await impersonated.sendTransaction({ to, value: 2n })).wait()
  assert.equal(await provider.getBalance(to), 2n)
})
await step('a call as the owner', async () => {
  const read = new Contract(await contract.getAddress(), vault.abi, provider)
  assert.equal(await read.owner(), ACCOUNTS[0])
  await read.onlyOwner({ from: ACCOUNTS[0] })
})
end()
