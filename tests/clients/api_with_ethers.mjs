// ethers' logs, filters, listeners, proofs, access lists and traces.
//
//     node api_with_ethers.mjs URL PRIVATE_KEY [SCENARIO ...]
//
// The scenarios and their results are those of api_with_viem.mjs, which documents them. ethers has
// no actions for filters, proofs, access lists and traces: applications use `send`.

import { readFileSync } from 'node:fs'
import {
  Contract,
  ContractFactory,
  JsonRpcProvider,
  Network,
  Wallet,
  WebSocketProvider,
  keccak256,
  toBeHex,
  zeroPadValue,
} from 'ethers'
import { tell } from './telling.mjs'
import { callSeen, chained, stepsSeen, until, watched } from './waiting.mjs'

const { abi, code, initCode } = JSON.parse(
  readFileSync(new URL('token.json', import.meta.url), 'utf8'),
)

const nobody = () => Wallet.createRandom().address
const valuesOf = (events) => events.map(({ args }) => args.value)
const slotOf = (account) => keccak256(`${zeroPadValue(account, 32)}${'0'.repeat(64)}`)

/** The receipt as soon as it is available: at `/` before the seal, for which `wait` waits. */
const receiptOf = ({ provider }, { hash }) => until(() => provider.getTransactionReceipt(hash))

/** Deploys a token, whose deployer has a thousand units. */
const deploy = async (given) => {
  const token = await new ContractFactory(abi, initCode, given.wallet).deploy()
  await receiptOf(given, token.deploymentTransaction())
  return token
}

/** Transfers units of the token, and returns the receipt. */
const transferring = (given, token, to) => async (value) =>
  receiptOf(given, await token.transfer(to, value, { gasLimit: 100_000 }))

/** The receipt of a sealed block. */
const sealed = async ({ provider }, { hash, blockNumber }) => {
  await until(async () => (await provider.getBlockNumber()) >= blockNumber)
  return provider.getTransactionReceipt(hash)
}

const scenarios = {
  async logs(given) {
    const { provider } = given
    const from = await provider.getBlockNumber()
    const token = await deploy(given)
    const to = nobody()
    const receipts = []
    for (const value of [1n, 2n]) receipts.push(await transferring(given, token, to)(value))
    receipts.push(await transferring(given, token, nobody())(3n))
    const all = await token.queryFilter('Transfer', from, given.top)
    const ask = (...args) => token.queryFilter(token.filters.Transfer(...args), from, given.top)
    const { address, topics } = receipts[2].logs[0]
    const filter = { address, topics: [topics[0]] }
    const logs = await provider.getLogs({ ...filter, fromBlock: from, toBlock: given.top })
    const last = await sealed(given, receipts[2])
    const inBlock = await provider.getLogs({ ...filter, blockHash: last.blockHash })
    return {
      all: valuesOf(all),
      places: all.every(({ transactionHash }, i) => transactionHash === receipts[i].hash),
      received: valuesOf(await ask(null, to)),
      events: logs.map((log) => token.interface.parseLog(log).args.value),
      nothing: valuesOf(await ask(null, await token.getAddress())),
      inBlock: inBlock.some(
        ({ data, index }) => BigInt(data) === 3n && index === last.logs[0].index,
      ),
    }
  },

  async filter(given) {
    const { provider } = given
    const token = await deploy(given)
    const transfer = transferring(given, token, nobody())
    const fromBlock = toBeHex(await provider.getBlockNumber()).replace(/^0x0+(?=.)/, '0x')
    const address = await token.getAddress()
    const filter = await provider.send('eth_newFilter', [{ address, fromBlock }])
    const ask = async (method) => (await provider.send(method, [filter])).map(({ data }) => BigInt(data))
    await transfer(1n)
    await sealed(given, await transfer(2n))
    const changes = []
    await until(async () => {
      changes.push(...(await ask('eth_getFilterChanges')))
      return changes.length >= 2
    })
    return {
      changes,
      again: await ask('eth_getFilterChanges'),
      logs: await ask('eth_getFilterLogs'),
      uninstalled: await provider.send('eth_uninstallFilter', [filter]),
      afterwards: await ask('eth_getFilterChanges').then(
        () => 'found',
        ({ error }) => error.message,
      ),
    }
  },

  async watchEvent(given) {
    const token = await deploy(given)
    const seen = []
    const filter = { address: await token.getAddress() }
    await given.provider.on(filter, ({ data }) => seen.push(BigInt(data)))
    const transfer = transferring(given, token, nobody())
    const found = await watched(seen, transfer, (receipt) => sealed(given, receipt))
    await given.provider.off(filter)
    return found
  },

  async watchContract(given) {
    const token = await deploy(given)
    const seen = []
    await token.on('Transfer', (from, to, value) => seen.push(value))
    const transfer = transferring(given, token, nobody())
    const found = await watched(seen, transfer, (receipt) => sealed(given, receipt))
    await token.off('Transfer')
    return found
  },

  async heads({ provider }) {
    const numbers = []
    await provider.on('block', (number) => numbers.push(number))
    await until(() => numbers.length >= 3)
    await provider.off('block')
    const blocks = await Promise.all(numbers.map((number) => provider.getBlock(number)))
    return {
      chained: chained(blocks),
      numbers: numbers.every((number, i) => number === numbers[0] + i),
    }
  },

  async pool(given) {
    const { provider, wallet } = given
    const seen = []
    await provider.on('pending', (hash) => seen.push(hash))
    const send = async () =>
      receiptOf(given, await wallet.sendTransaction({ to: nobody(), value: 1n }))
    while (!seen.length) await send() // until the listener is in place
    const { hash: last } = await send()
    await until(() => seen.includes(last))
    await provider.off('pending')
    return seen.filter((hash) => hash === last).length
  },

  async proof(given) {
    const { provider, wallet } = given
    const token = await deploy(given)
    const address = await token.getAddress()
    const to = nobody()
    const { blockNumber } = await sealed(given, await transferring(given, token, to)(1n))
    const keys = [slotOf(wallet.address), slotOf(to), slotOf(address)]
    const { stateRoot } = await provider.getBlock(blockNumber)
    const at = `0x${blockNumber.toString(16)}`
    const found = await provider.send('eth_getProof', [address, keys, at])
    return {
      balance: BigInt(found.balance),
      nonce: BigInt(found.nonce),
      code: found.codeHash === keccak256(code),
      values: found.storageProof.map(({ value }) => BigInt(value)),
      root: keccak256(found.accountProof[0]) === stateRoot,
      storageRoots: found.storageProof.every(
        ({ proof }) => keccak256(proof[0]) === found.storageHash,
      ),
    }
  },

  async accessList(given) {
    const { provider, wallet } = given
    const token = await deploy(given)
    const to = nobody()
    const request = await token.transfer.populateTransaction(to, 1n)
    const call = { from: wallet.address, to: request.to, data: request.data }
    const found = await provider.send('eth_createAccessList', [call, given.top])
    const [{ address, storageKeys }, ...others] = found.accessList
    return {
      token: address.toLowerCase() === request.to.toLowerCase() && others.length === 0,
      slots: [wallet.address, to].map((each) => storageKeys.includes(slotOf(each))),
      gas: BigInt(found.gasUsed) > 21_000n,
    }
  },

  async sync({ provider, wallet, top }) {
    const to = nobody()
    const request = await wallet.populateTransaction({ to, value: 7n })
    const signed = await wallet.signTransaction(request)
    const receipt = await provider.send('eth_sendRawTransactionSync', [signed])
    return {
      hash: receipt.transactionHash === keccak256(signed),
      status: BigInt(receipt.status) === 1n ? 'success' : 'reverted',
      gasUsed: BigInt(receipt.gasUsed),
      balance: await provider.getBalance(to, top),
    }
  },

  async trace(given) {
    const token = await deploy(given)
    const receipt = await sealed(given, await transferring(given, token, nobody())(1n))
    const ask = (options) =>
      given.provider.send('debug_traceTransaction', [receipt.hash, options])
    const call = await ask({ tracer: 'callTracer' })
    const steps = await ask({})
    return {
      call: callSeen(call),
      gas: [BigInt(call.gasUsed), BigInt(steps.gas)].every((gas) => gas === receipt.gasUsed),
      steps: stepsSeen(steps),
    }
  },

  async ordinary({ provider, wallet }) {
    const token = await new ContractFactory(abi, initCode, wallet).deploy()
    await token.waitForDeployment()
    const to = nobody()
    const first = await wallet.getNonce('latest')
    const found = {
      code: (await provider.getCode(await token.getAddress())) === code, reads: [], nonces: [], blocks: [],
    }
    for (const value of [1n, 2n, 3n]) {
      const { blockNumber, blockHash } = await (await token.transfer(to, value)).wait()
      found.reads.push(await token.balanceOf(to))
      found.nonces.push((await wallet.getNonce('latest')) - first)
      const { hash } = await provider.getBlock(blockNumber)
      const then = await token.balanceOf(to, { blockTag: blockNumber })
      found.blocks.push(hash === blockHash && then === found.reads.at(-1))
    }
    return found
  },
}

const [url, key, ...named] = process.argv.slice(2)
const network = Network.from(31337)
const options = { staticNetwork: network, cacheTimeout: -1, pollingInterval: 100 }
const provider = url.startsWith('ws')
  ? new WebSocketProvider(url, network, options)
  : new JsonRpcProvider(url, network, options)
await tell(scenarios, named, {
  provider,
  wallet: new Wallet(key, provider),
  top: new URL(url).pathname === '/eth' ? 'latest' : 'pending',
})
process.exit() // not `destroy`, which fails for pending requests
