// viem's logs, filters, watchers, proofs, access lists and traces.
//
//     node api_with_viem.mjs URL PRIVATE_KEY [SCENARIO ...]
//
// A URL of http or of ws; at the path /eth viem has an ordinary chain definition, otherwise that of
// chain.mjs, with which it reads at `pending`. The scenarios and their results are the same in
// every api_with_* program, and test_api.py has the expected ones.

import { readFileSync } from 'node:fs'
import {
  createPublicClient,
  createWalletClient,
  encodeFunctionData,
  getAbiItem,
  http,
  keccak256,
  numberToHex,
  pad,
  webSocket,
} from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { foundry } from 'viem/chains'
import { foreblock } from './chain.mjs'
import { tell } from './telling.mjs'
import { callSeen, chained, stepsSeen, until, watched } from './waiting.mjs'

const { abi, code, initCode } = JSON.parse(
  readFileSync(new URL('token.json', import.meta.url), 'utf8'),
)
const event = getAbiItem({ abi, name: 'Transfer' })

const nobody = () => privateKeyToAccount(generatePrivateKey()).address
const latest = ({ client }) => client.getBlockNumber({ cacheTime: 0 })
const valuesOf = (logs) => logs.map(({ args }) => args.value)
const slotOf = (account) => keccak256(`${pad(account)}${'0'.repeat(64)}`)

/** Deploys a token, whose deployer has a thousand units. */
const deploy = async ({ client, wallet }) => {
  const hash = await wallet.deployContract({ abi, bytecode: initCode })
  return (await client.waitForTransactionReceipt({ hash })).contractAddress
}

/** Transfers units of the token, and returns the receipt. */
const transferring = ({ client, wallet }, address, to) => async (value) => {
  const hash = await wallet.writeContract({
    address, abi, functionName: 'transfer', args: [to, value],
  })
  return client.waitForTransactionReceipt({ hash })
}

/** The receipt of a sealed block. */
const sealed = async (given, { transactionHash: hash, blockNumber }) => {
  await until(async () => (await latest(given)) >= blockNumber)
  return given.client.getTransactionReceipt({ hash })
}

/** The logs of a watcher; `start` takes its callback. */
const watching = async (given, address, start) => {
  const seen = []
  const stop = start((logs) => {
    if (logs.some(({ removed }) => removed)) throw new Error('a log was removed')
    seen.push(...valuesOf(logs))
  })
  const transfer = transferring(given, address, nobody())
  const found = await watched(seen, transfer, (receipt) => sealed(given, receipt))
  stop()
  return found
}

const fail = (error) => {
  throw error
}

const scenarios = {
  async logs(given) {
    const { client } = given
    const fromBlock = await latest(given)
    const address = await deploy(given)
    const to = nobody()
    const receipts = []
    for (const value of [1n, 2n]) receipts.push(await transferring(given, address, to)(value))
    receipts.push(await transferring(given, address, nobody())(3n))
    const range = { fromBlock, toBlock: given.top }
    const all = await client.getLogs({ address, event, ...range })
    const last = await sealed(given, receipts[2])
    const { blockHash } = last
    return {
      all: valuesOf(all),
      places: all.every(({ transactionHash }, i) => transactionHash === receipts[i].transactionHash),
      received: valuesOf(await client.getLogs({ address, event, args: { to }, ...range })),
      events: valuesOf(
        await client.getContractEvents({ address, abi, eventName: 'Transfer', ...range }),
      ),
      nothing: valuesOf(await client.getLogs({ address, event, args: { to: address }, ...range })),
      inBlock: (await client.getLogs({ address, event, blockHash })).some(
        ({ args, logIndex }) => args.value === 3n && logIndex === last.logs[0].logIndex,
      ),
    }
  },

  async filter(given) {
    const { client } = given
    const address = await deploy(given)
    const transfer = transferring(given, address, nobody())
    const filter = await client.createEventFilter({ address, event, fromBlock: await latest(given) })
    await transfer(1n)
    await sealed(given, await transfer(2n))
    const changes = []
    await until(async () => {
      changes.push(...valuesOf(await client.getFilterChanges({ filter })))
      return changes.length >= 2
    })
    const again = valuesOf(await client.getFilterChanges({ filter }))
    const logs = valuesOf(await client.getFilterLogs({ filter }))
    return {
      changes,
      again,
      logs,
      uninstalled: await client.uninstallFilter({ filter }),
      afterwards: await client.getFilterChanges({ filter }).then(
        () => 'found',
        ({ details }) => details,
      ),
    }
  },

  async watchEvent(given) {
    const address = await deploy(given)
    return watching(given, address, (onLogs) =>
      given.client.watchEvent({ address, event, onLogs, onError: fail }),
    )
  },

  async watchContract(given) {
    const address = await deploy(given)
    return watching(given, address, (onLogs) =>
      given.client.watchContractEvent({
        address, abi, eventName: 'Transfer', onLogs, onError: fail,
      }),
    )
  },

  async heads(given) {
    const { client } = given
    const [blocks, numbers] = [[], []]
    const stops = [
      client.watchBlocks({
        blockTag: 'latest', emitMissed: true, onBlock: (block) => blocks.push(block), onError: fail,
      }),
      client.watchBlockNumber({
        emitMissed: true, onBlockNumber: (number) => numbers.push(number), onError: fail,
      }),
    ]
    await until(() => blocks.length >= 3 && numbers.length >= 3)
    for (const stop of stops) stop()
    const { hash } = await client.getBlock({ blockNumber: blocks[0].number })
    return {
      chained: chained(blocks) && hash === blocks[0].hash,
      numbers: numbers.every((number, i) => number === numbers[0] + BigInt(i)),
    }
  },

  async pool(given) {
    const { client, wallet } = given
    const seen = []
    const stop = client.watchPendingTransactions({
      onTransactions: (hashes) => seen.push(...hashes), onError: fail,
    })
    const send = async () => {
      const hash = await wallet.sendTransaction({ to: nobody(), value: 1n })
      return (await client.waitForTransactionReceipt({ hash })).transactionHash
    }
    while (!seen.length) await send() // until the watcher is in place
    const last = await send()
    await until(() => seen.includes(last))
    stop()
    return seen.filter((hash) => hash === last).length
  },

  async proof(given) {
    const { client, account } = given
    const address = await deploy(given)
    const to = nobody()
    const { blockNumber } = await sealed(given, await transferring(given, address, to)(1n))
    const storageKeys = [slotOf(account.address), slotOf(to), slotOf(address)]
    const { stateRoot } = await client.getBlock({ blockNumber })
    const found = await client.getProof({ address, storageKeys, blockNumber })
    return {
      balance: found.balance,
      nonce: found.nonce,
      code: found.codeHash === keccak256(code),
      values: found.storageProof.map(({ value }) => value),
      root: keccak256(found.accountProof[0]) === stateRoot,
      storageRoots: found.storageProof.every(
        ({ proof }) => keccak256(proof[0]) === found.storageHash,
      ),
    }
  },

  async accessList(given) {
    const { client, account } = given
    const address = await deploy(given)
    const to = nobody()
    const data = encodeFunctionData({ abi, functionName: 'transfer', args: [to, 1n] })
    const blockTag = given.top
    const found = await client.createAccessList({ account, to: address, data, blockTag })
    const [{ storageKeys, ...only }, ...others] = found.accessList
    const slots = [slotOf(account.address), slotOf(to)]
    return {
      token: only.address === address.toLowerCase() && others.length === 0,
      slots: slots.map((each) => storageKeys.includes(each)),
      gas: found.gasUsed > 21_000n,
    }
  },

  async sync(given) {
    const { client, wallet } = given
    const to = nobody()
    const request = await wallet.prepareTransactionRequest({ to, value: 7n })
    const serializedTransaction = await wallet.signTransaction(request)
    const receipt = await wallet.sendRawTransactionSync({ serializedTransaction })
    return {
      hash: receipt.transactionHash === keccak256(serializedTransaction),
      status: receipt.status,
      gasUsed: receipt.gasUsed,
      balance: await client.getBalance({ address: to, blockTag: given.top }),
    }
  },

  async trace(given) {
    const { client } = given
    const address = await deploy(given)
    const receipt = await sealed(given, await transferring(given, address, nobody())(1n))
    const ask = (...options) =>
      client.request({
        method: 'debug_traceTransaction', params: [receipt.transactionHash, ...options],
      })
    const call = await ask({ tracer: 'callTracer' })
    const steps = await ask({})
    return {
      call: callSeen(call),
      gas: [BigInt(call.gasUsed), BigInt(steps.gas)].every((gas) => gas === receipt.gasUsed),
      steps: stepsSeen(steps),
    }
  },

  /** An application without pre-confirmations: it reads at `latest`. */
  async ordinary(given) {
    const { client, account } = given
    const { address: us } = account
    const address = await deploy(given)
    const to = nobody()
    const transfer = transferring(given, address, to)
    const first = await client.getTransactionCount({ address: us })
    const found = { code: (await client.getCode({ address })) === code, reads: [], nonces: [], blocks: [] }
    for (const value of [1n, 2n, 3n]) {
      const { blockNumber, blockHash } = await transfer(value)
      const read = { address, abi, functionName: 'balanceOf', args: [to] }
      found.reads.push(await client.readContract(read))
      found.nonces.push((await client.getTransactionCount({ address: us })) - first)
      const { hash } = await client.getBlock({ blockNumber })
      const then = await client.readContract({ ...read, blockNumber })
      found.blocks.push(hash === blockHash && then === found.reads.at(-1))
    }
    return found
  },
}

const [url, key, ...named] = process.argv.slice(2)
const ordinary = new URL(url).pathname === '/eth'
const chain = ordinary ? foundry : foreblock
const account = privateKeyToAccount(key)
const transport = url.startsWith('ws') ? webSocket(url) : http(url, { retryCount: 0 })
const options = { chain, transport, pollingInterval: 100 }
await tell(scenarios, named, {
  account,
  top: ordinary ? 'latest' : 'pending',
  client: createPublicClient(options),
  wallet: createWalletClient({ ...options, account }),
})
process.exit() // otherwise a WebSocket stays open
