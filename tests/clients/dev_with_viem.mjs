// viem in an application, against a network of `foreblock dev`.
//
//     node dev_with_viem.mjs URL PRIVATE_KEY [SCENARIO ...]
//
// The scenarios and their results are those of dev_with_ethers.mjs and dev_with_web3.py too,
// and a test compares them with the expected ones. The account is a funded one without other
// users. Concurrent requests are sent as one batch, and a batch is answered from one
// snapshot: so `pending` and `latest` are compared without a block sealing in between.

import { readFileSync } from 'node:fs'
import {
  ContractFunctionRevertedError,
  concat,
  createPublicClient,
  createWalletClient,
  erc20Abi,
  getContractAddress,
  http,
  isAddressEqual,
  parseEther,
  parseEventLogs,
  serializeErc6492Signature,
  zeroHash,
} from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { publicActionsL2 } from 'viem/op-stack'
import { foreblock } from './chain.mjs'
import { tell } from './telling.mjs'

const { abi, code, initCode } = JSON.parse(readFileSync(new URL('token.json', import.meta.url), 'utf8'))

const TEST_TOKEN = '0x7E57000000000000000000000000000000000020'
const DEPLOYER = '0x4e59b44847b379578588920cA78FbF26c0B4956C' // of CREATE2, the same on all chains
// Code that accepts every signature (ERC-1271), and code that deploys it.
const AGREEABLE = '0x631626ba7e60e01b5f5260205ff3'
const AGREEABLE_INIT = concat(['0x6d', AGREEABLE, '0x5f52600e6012f3'])
const ETHER = parseEther('1')
const BOB = '0x0000000000000000000000000000000000000B0b'
const FAILING = [['transfer', [BOB, 5000n]], ['failWithReason'], ['panic']]

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const nonceOf = ({ client, account }, blockTag = 'pending') =>
  client.getTransactionCount({ address: account.address, blockTag })
const nobody = () => privateKeyToAccount(generatePrivateKey()).address

/** The result of the condition once it is truthy. */
const until = async (condition) => {
  for (;;) {
    const found = await condition()
    if (found) return found
    await sleep(10)
  }
}

/** The decoded revert reason. */
const refusal = (error) => {
  const { errorName, args = [] } = error.walk(
    (each) => each instanceof ContractFunctionRevertedError,
  ).data
  return { error: errorName, args }
}
const refused = async (asked) => asked.then(() => null, refusal)

/** Wait until a block begins, so that the next steps have its two seconds. */
const blockBegins = async ({ client }) => {
  const { number } = await client.getBlock({ blockTag: 'pending' })
  await until(async () => (await client.getBlock({ blockTag: 'pending' })).number > number)
}

/** The receipt, as soon as it is available. */
const receiptOf = ({ client }, hash) =>
  until(() => client.getTransactionReceipt({ hash }).catch(() => null))

/** Deploys a token, whose deployer has a thousand units. */
const deploy = async (given) => {
  const hash = await given.wallet.deployContract({ abi, bytecode: initCode })
  return { hash, address: (await receiptOf(given, hash)).contractAddress }
}

const scenarios = {
  async connect({ client }) {
    const [pending, latest] = await Promise.all([
      client.getBlock({ blockTag: 'pending' }),
      client.getBlock({ blockTag: 'latest' }),
    ])
    return {
      chainId: await client.getChainId(),
      pending: pending.number - latest.number,
      follows: pending.parentHash === latest.hash,
    }
  },

  async transfer(given) {
    const { client, wallet } = given
    const to = nobody()
    await blockBegins(given)
    const before = await nonceOf(given, 'latest')
    const hash = await wallet.sendTransaction({ to, value: ETHER })
    const seen = async () => {
      const [receipt, latest, ...found] = await Promise.all([
        client.getTransactionReceipt({ hash }).catch(() => null),
        client.getBlock({ blockTag: 'latest' }),
        client.getBalance({ address: to, blockTag: 'pending' }),
        client.getBalance({ address: to, blockTag: 'latest' }),
        nonceOf(given, 'pending'),
        nonceOf(given, 'latest'),
      ])
      if (!receipt) return null
      return {
        status: receipt.status,
        gasUsed: receipt.gasUsed,
        ahead: receipt.blockNumber - latest.number,
        balances: found.slice(0, 2),
        nonces: found.slice(2).map((nonce) => nonce - before),
      }
    }
    const preconfirmed = await until(seen)
    const { blockNumber } = await client.getTransactionReceipt({ hash })
    await until(async () => (await client.getBlock({ blockTag: 'latest' })).number >= blockNumber)
    const { blockHash } = await client.getTransactionReceipt({ hash })
    const sealed = await client.getBlock({ blockNumber })
    return {
      preconfirmed,
      sealed: await client.getBalance({ address: to, blockTag: 'latest' }),
      inBlock: sealed.transactions.includes(hash) && sealed.hash === blockHash,
    }
  },

  async wait(given) {
    const { client, wallet } = given
    await blockBegins(given)
    const hash = await wallet.sendTransaction({ to: nobody(), value: 1n })
    const { status, blockNumber } = await client.waitForTransactionReceipt({ hash })
    return { status, beforeSeal: blockNumber > (await client.getBlockNumber({ cacheTime: 0 })) }
  },

  async row(given) {
    const { client, wallet } = given
    const to = nobody()
    const first = await nonceOf(given)
    const hashes = []
    for (let sent = 0; sent < 5; sent++) {
      hashes.push(await wallet.sendTransaction({ to, value: 1n }))
    }
    const receipts = await Promise.all(hashes.map((hash) => receiptOf(given, hash)))
    const sent = await Promise.all(hashes.map((hash) => client.getTransaction({ hash })))
    return {
      nonces: sent.map(({ nonce }) => nonce - first),
      statuses: receipts.map(({ status }) => status),
      received: await client.getBalance({ address: to }),
    }
  },

  async contract(given) {
    const { client, wallet, account } = given
    const nonce = await nonceOf(given)
    const { address } = await deploy(given)
    const to = nobody()
    const { request, result } = await client.simulateContract({
      account, address, abi, functionName: 'transfer', args: [to, 400n],
    })
    const { logs } = await receiptOf(given, await wallet.writeContract(request))
    const read = (functionName, args) => client.readContract({ address, abi, functionName, args })
    const [{ args }] = parseEventLogs({ abi, eventName: 'Transfer', logs })
    const { from, to: receiver, value } = args
    const expected = getContractAddress({ from: account.address, nonce: BigInt(nonce) })
    return {
      address: isAddressEqual(address, expected),
      code: (await client.getCode({ address, blockTag: 'pending' })) === code,
      simulated: result,
      symbol: await read('symbol'),
      balances: [await read('balanceOf', [account.address]), await read('balanceOf', [to])],
      event: [from === account.address && 'us', receiver === to && 'them', value],
    }
  },

  async reverts(given) {
    const { client, account } = given
    const { address } = await deploy(given)
    const asked = FAILING.map(([functionName, args]) => ({
      account, address, abi, functionName, args,
    }))
    const blank = ({ error, args }) => ({
      error,
      args: args.map((each) => (each === account.address ? 'us' : each)),
    })
    const calls = asked.map((each) => refused(client.readContract(each)))
    const estimates = asked.map((each) => refused(client.estimateContractGas(each)))
    return {
      calls: (await Promise.all(calls)).map(blank),
      estimates: (await Promise.all(estimates)).map(blank),
    }
  },

  async multicall({ client, account }) {
    const token = { address: TEST_TOKEN, abi: erc20Abi }
    const results = await client.multicall({
      contracts: [
        { ...token, functionName: 'symbol' },
        { ...token, functionName: 'balanceOf', args: [account.address] },
        { ...token, functionName: 'transfer', args: [nobody(), 1n] },
      ],
    })
    return results.map(({ status, result }) => (status === 'success' ? result : status))
  },

  async fees({ client, account }) {
    const gas = await client.estimateGas({ account, to: nobody(), value: 1n })
    const { maxFeePerGas, maxPriorityFeePerGas } = await client.estimateFeesPerGas()
    const [history, pending] = await Promise.all([
      client.getFeeHistory({ blockCount: 2, blockTag: 'pending', rewardPercentiles: [10, 90] }),
      client.getBlock({ blockTag: 'pending' }),
    ])
    return {
      gas,
      enough: maxFeePerGas >= pending.baseFeePerGas + maxPriorityFeePerGas,
      tip: (await client.estimateMaxPriorityFeePerGas()) > 0n,
      price: (await client.getGasPrice()) > pending.baseFeePerGas,
      newest: history.oldestBlock + 1n === pending.number,
      lengths: [history.baseFeePerGas, history.gasUsedRatio, history.reward].map((x) => x.length),
    }
  },

  async pendingBlock(given) {
    const { client, wallet, account } = given
    const to = nobody()
    await blockBegins(given)
    const hash = await wallet.sendTransaction({ to, value: 7n })
    const seen = async () => {
      const [block, receipt] = await Promise.all([
        client.getBlock({ blockTag: 'pending', includeTransactions: true }),
        client.getTransactionReceipt({ hash }).catch(() => null),
      ])
      return receipt && { block, receipt }
    }
    const { block, receipt } = await until(seen)
    const [first] = block.transactions
    const ours = block.transactions.find((each) => each.hash === hash)
    return {
      first: { type: first.typeHex, from: first.from },
      ours: { fromUs: isAddressEqual(ours.from, account.address), value: ours.value },
      sameBlock: receipt.blockHash === block.hash && ours.blockHash === block.hash,
    }
  },

  async oracle(given) {
    const { account, wallet } = given
    const client = given.client.extend(publicActionsL2())
    const request = { account, to: nobody(), value: 1n }
    const [baseFee, fee, gas, operator] = await Promise.all([
      client.getL1BaseFee(),
      client.estimateL1Fee(request),
      client.estimateL1Gas(request),
      client.estimateOperatorFee(request),
    ])
    const receipt = await receiptOf(given, await wallet.sendTransaction(request))
    return {
      baseFee: baseFee === receipt.l1GasPrice,
      fee: fee === receipt.l1Fee && fee > 0n,
      gas: gas === receipt.l1GasUsed,
      operator,
    }
  },

  async totalFee(given) {
    const { account } = given
    const client = given.client.extend(publicActionsL2())
    const request = { account, to: nobody(), value: 1n }
    const [total, fee] = await Promise.all([
      client.estimateTotalFee(request),
      client.estimateL1Fee(request),
    ])
    return total > fee
  },

  async deployless(given) {
    const { client, account } = given
    const message = 'ahead of the block'
    const address = getContractAddress({
      opcode: 'CREATE2', from: DEPLOYER, salt: zeroHash, bytecode: AGREEABLE_INIT,
    })
    const signature = serializeErc6492Signature({
      address: DEPLOYER, data: concat([zeroHash, AGREEABLE_INIT]), signature: '0x1234',
    })
    return {
      symbol: await client.readContract({ code: initCode, abi, functionName: 'symbol' }),
      own: await client.verifyMessage({
        address: account.address, message, signature: await account.signMessage({ message }),
      }),
      counterfactual: await client.verifyMessage({ address, message, signature }),
      elsewhere: await client.verifyMessage({ address: nobody(), message, signature }),
    }
  },

  /** Milliseconds from a send to its balance at `pending`; sends are spread over the interval. */
  async latency(given) {
    const { client, wallet } = given
    let nonce = await nonceOf(given)
    const took = []
    for (let sent = 0; sent < 30; sent++) {
      const to = nobody()
      const request = await wallet.prepareTransactionRequest({ to, value: 1n, nonce: nonce++ })
      const serializedTransaction = await wallet.signTransaction(request)
      await sleep((sent * 67) % 200)
      const begun = performance.now()
      await wallet.sendRawTransaction({ serializedTransaction })
      await until(() => client.getBalance({ address: to }))
      took.push(performance.now() - begun)
    }
    return Math.round(took.sort((a, b) => a - b)[15])
  },
}

const [url, key, ...named] = process.argv.slice(2)
const account = privateKeyToAccount(key)
const transport = http(url, { batch: true, retryCount: 0 })
await tell(scenarios, named, {
  account,
  client: createPublicClient({ chain: foreblock, transport }),
  wallet: createWalletClient({ chain: foreblock, transport, account }),
})
