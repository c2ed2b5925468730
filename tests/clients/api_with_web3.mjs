// web3.js' logs, filters, subscriptions, proofs, access lists and traces, at the path /eth.
//
//     node api_with_web3.mjs URL PRIVATE_KEY [SCENARIO ...]
//
// The scenarios and their results are those of api_with_viem.mjs, which documents them. web3.js
// reads, estimates and counts nonces at `latest` after a receipt: it needs an ordinary node.

import { readFileSync } from 'node:fs'
import { Web3 } from 'web3'
import { tell } from './telling.mjs'
import { callSeen, chained, stepsSeen, until } from './waiting.mjs'

const { abi, code, initCode } = JSON.parse(
  readFileSync(new URL('token.json', import.meta.url), 'utf8'),
)

const nobody = ({ web3 }) => web3.eth.accounts.create().address
const valuesOf = (events) => events.map(({ returnValues }) => returnValues.value)
const slotOf = ({ web3 }, account) =>
  web3.utils.keccak256(`0x${account.slice(2).toLowerCase().padStart(64, '0')}${'0'.repeat(64)}`)

/** Deploys a token, whose deployer has a thousand units. */
const deploy = ({ web3, from }) =>
  new web3.eth.Contract(abi).deploy({ data: initCode }).send({ from })

/** Transfers units of the token, and returns the receipt. */
const transferring = ({ from }, token, to) => (value) =>
  token.methods.transfer(to, value).send({ from })

/** The events of a subscription to the token. */
const subscribed = async (given, token, subscription) => {
  const seen = []
  subscription.on('data', ({ data, removed }) => seen.push(removed ? 'removed' : BigInt(data)))
  await until(() => subscription.id)
  const transfer = transferring(given, token, nobody(given))
  for (const value of [1n, 2n, 3n, 9n]) await transfer(value)
  await until(() => seen.includes(9n))
  await subscription.unsubscribe()
  return seen
}

const scenarios = {
  async logs(given) {
    const { web3 } = given
    const fromBlock = await web3.eth.getBlockNumber()
    const token = await deploy(given)
    const to = nobody(given)
    const receipts = []
    for (const value of [1n, 2n]) receipts.push(await transferring(given, token, to)(value))
    receipts.push(await transferring(given, token, nobody(given))(3n))
    const ask = (filter) => token.getPastEvents('Transfer', { filter, fromBlock, toBlock: 'latest' })
    const all = await ask({})
    const address = token.options.address
    const last = receipts[2]
    const log = last.events.Transfer
    const inBlock = await web3.eth.getPastLogs({ address, blockHash: last.blockHash })
    const raw = await web3.eth.getPastLogs({ address, fromBlock, toBlock: 'latest' })
    return {
      all: valuesOf(all),
      places: all.every(({ transactionHash }, i) => transactionHash === receipts[i].transactionHash),
      received: valuesOf(await ask({ to })),
      events: raw.map(({ data }) => BigInt(data)),
      nothing: valuesOf(await ask({ to: address })),
      inBlock: inBlock.some(
        ({ data, logIndex }) => BigInt(data) === 3n && logIndex === log.logIndex,
      ),
    }
  },

  async filter(given) {
    const { web3 } = given
    const token = await deploy(given)
    const address = token.options.address
    const transfer = transferring(given, token, nobody(given))
    const filter = await web3.eth.createNewFilter({
      address, fromBlock: await web3.eth.getBlockNumber(),
    })
    const ask = async (action) => (await web3.eth[action](filter)).map(({ data }) => BigInt(data))
    await transfer(1n)
    await transfer(2n)
    return {
      changes: await ask('getFilterChanges'),
      again: await ask('getFilterChanges'),
      logs: await ask('getFilterLogs'),
      uninstalled: await web3.eth.uninstallFilter(filter),
      afterwards: await ask('getFilterChanges').then(
        () => 'found',
        ({ cause, message }) => cause?.message ?? message,
      ),
    }
  },

  async watchEvent(given) {
    const token = await deploy(given)
    const { address } = token.options
    return subscribed(given, token, await given.web3.eth.subscribe('logs', { address }))
  },

  async watchContract(given) {
    const token = await deploy(given)
    return subscribed(given, token, token.events.Transfer())
  },

  async heads({ web3 }) {
    const heads = []
    const subscription = await web3.eth.subscribe('newHeads')
    subscription.on('data', (head) => heads.push(head))
    await until(() => heads.length >= 3)
    await subscription.unsubscribe()
    const blocks = await Promise.all(heads.map(({ number }) => web3.eth.getBlock(number)))
    return {
      chained: chained(blocks),
      numbers: heads.every(({ number }, i) => BigInt(number) === BigInt(heads[0].number) + BigInt(i)),
    }
  },

  async proof(given) {
    const { web3, from } = given
    const token = await deploy(given)
    const { address } = token.options
    const to = nobody(given)
    const { blockNumber } = await transferring(given, token, to)(1n)
    const keys = [from, to, address].map((each) => slotOf(given, each))
    const { stateRoot } = await web3.eth.getBlock(blockNumber)
    const found = await web3.eth.getProof(address, keys, blockNumber)
    const { keccak256 } = web3.utils
    return {
      balance: found.balance,
      nonce: found.nonce,
      code: found.codeHash === keccak256(code),
      values: found.storageProof.map(({ value }) => BigInt(value)),
      root: keccak256(found.accountProof[0]) === stateRoot,
      storageRoots: found.storageProof.every(
        ({ proof }) => keccak256(proof[0]) === found.storageHash,
      ),
    }
  },

  async accessList(given) {
    const { web3, from } = given
    const token = await deploy(given)
    const { address: to } = token.options
    const receiver = nobody(given)
    const data = token.methods.transfer(receiver, 1n).encodeABI()
    const found = await web3.eth.createAccessList({ from, to, data }, 'latest')
    const [{ address, storageKeys }, ...others] = found.accessList
    return {
      token: address.toLowerCase() === to.toLowerCase() && others.length === 0,
      slots: [from, receiver].map((each) => storageKeys.includes(slotOf(given, each))),
      gas: found.gasUsed > 21_000n,
    }
  },

  async trace(given) {
    const token = await deploy(given)
    const receipt = await transferring(given, token, nobody(given))(1n)
    const ask = (options) =>
      given.web3.eth.requestManager.send({
        method: 'debug_traceTransaction', params: [receipt.transactionHash, options],
      })
    const call = await ask({ tracer: 'callTracer' })
    const steps = await ask({})
    return {
      call: callSeen(call),
      gas: [BigInt(call.gasUsed), BigInt(steps.gas)].every((gas) => gas === receipt.gasUsed),
      steps: stepsSeen(steps),
    }
  },

  async ordinary(given) {
    const { web3, from } = given
    const token = await deploy(given)
    const to = nobody(given)
    const first = await web3.eth.getTransactionCount(from)
    const found = {
      code: (await web3.eth.getCode(token.options.address)) === code, reads: [], nonces: [], blocks: [],
    }
    for (const value of [1n, 2n, 3n]) {
      const { blockNumber, blockHash } = await transferring(given, token, to)(value)
      found.reads.push(await token.methods.balanceOf(to).call())
      found.nonces.push((await web3.eth.getTransactionCount(from)) - first)
      const { hash } = await web3.eth.getBlock(blockNumber)
      const then = await token.methods.balanceOf(to).call({}, blockNumber)
      found.blocks.push(hash === blockHash && then === found.reads.at(-1))
    }
    return found
  },

  /** Too low if `latest` is behind the receipt: a plain transfer costs 21,000. */
  async estimate(given) {
    const token = await deploy(given)
    const to = nobody(given)
    await transferring(given, token, to)(1n)
    const gas = await token.methods.transfer(to, 1n).estimateGas({ from: given.from })
    const { gasUsed } = await token.methods.transfer(to, 1n).send({ from: given.from, gas })
    return gas >= gasUsed && gasUsed > 30_000n
  },
}

const [url, key, ...named] = process.argv.slice(2)
const web3 = new Web3(url)
const { address: from } = web3.eth.accounts.wallet.add(key)[0]
await tell(scenarios, named, { web3, from })
process.exit() // otherwise a WebSocket stays open
