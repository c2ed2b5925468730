// ethers in an application, against a network of `foreblock dev`.
//
//     node dev_with_ethers.mjs URL PRIVATE_KEY [SCENARIO ...]
//
// The URL begins with http or ws.
//
// The scenarios and their results are those of dev_with_viem.mjs, which documents them. ethers
// reads at `latest` by default, and its `wait` waits for a sealed block.

import { readFileSync } from 'node:fs'
import {
  Contract,
  ContractFactory,
  JsonRpcProvider,
  Network,
  Transaction,
  Wallet,
  WebSocketProvider,
  getCreateAddress,
  parseEther,
} from 'ethers'
import { tell } from './telling.mjs'

const { abi, code, initCode } = JSON.parse(
  readFileSync(new URL('token.json', import.meta.url), 'utf8'),
)

const MULTICALL3 = '0xcA11bde05977b3631167028862bE2a173976CA11'
const GAS_PRICE_ORACLE = '0x420000000000000000000000000000000000000F'
const TEST_TOKEN = '0x7E57000000000000000000000000000000000020'
const BOB = '0x0000000000000000000000000000000000000B0b'
const ETHER = parseEther('1')
const FAILING = [['transfer', [BOB, 5000n]], ['failWithReason', []], ['panic', []]]
const PENDING = { blockTag: 'pending' }

const multicallAbi = [
  `function aggregate3((address target, bool allowFailure, bytes callData)[] calls)
     payable returns ((bool success, bytes returnData)[])`,
]
const oracleAbi = [
  'function l1BaseFee() view returns (uint256)',
  'function getL1Fee(bytes) view returns (uint256)',
  'function getL1GasUsed(bytes) view returns (uint256)',
  'function getOperatorFee(uint256) view returns (uint256)',
]

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const nobody = () => Wallet.createRandom().address
const statusOf = ({ status }) => (status === 1 ? 'success' : 'reverted')

/** The result of the condition once it is truthy. */
const until = async (condition) => {
  for (;;) {
    const found = await condition()
    if (found) return found
    await sleep(10)
  }
}

/** Wait until a block begins, so that the next steps have its two seconds. */
const blockBegins = async ({ provider }) => {
  const { number } = await provider.getBlock('pending')
  await until(async () => (await provider.getBlock('pending')).number > number)
}

/** The receipt, as soon as it is available. */
const receiptOf = ({ provider }, { hash }) => until(() => provider.getTransactionReceipt(hash))

/** Deploys a token, whose deployer has a thousand units. */
const deploy = async (given) => {
  const contract = await new ContractFactory(abi, initCode, given.wallet).deploy()
  await receiptOf(given, contract.deploymentTransaction())
  return contract
}

/** The decoded revert reason; of an estimate, ethers leaves custom errors undecoded. */
const refused = async (asked, contract, own) => {
  try {
    await asked
    return null
  } catch (error) {
    const { name, args } = error.revert ?? contract.interface.parseError(error.data)
    return { error: name, args: [...args].map((each) => (each === own ? 'us' : each)) }
  }
}

const scenarios = {
  async connect({ provider }) {
    const [pending, latest] = await Promise.all([
      provider.getBlock('pending'),
      provider.getBlock('latest'),
    ])
    const { chainId } = await provider.getNetwork()
    return {
      chainId,
      pending: pending.number - latest.number,
      follows: pending.parentHash === latest.hash,
    }
  },

  async transfer(given) {
    const { provider, wallet } = given
    const to = nobody()
    await blockBegins(given)
    const before = await wallet.getNonce('latest')
    const { hash } = await wallet.sendTransaction({ to, value: ETHER })
    const seen = async () => {
      const [receipt, latest, ...found] = await Promise.all([
        provider.getTransactionReceipt(hash),
        provider.getBlock('latest'),
        provider.getBalance(to, 'pending'),
        provider.getBalance(to, 'latest'),
        wallet.getNonce('pending'),
        wallet.getNonce('latest'),
      ])
      if (!receipt) return null
      return {
        status: statusOf(receipt),
        gasUsed: receipt.gasUsed,
        ahead: receipt.blockNumber - latest.number,
        balances: found.slice(0, 2),
        nonces: found.slice(2).map((nonce) => nonce - before),
      }
    }
    const preconfirmed = await until(seen)
    const { blockNumber } = await provider.getTransactionReceipt(hash)
    await until(async () => (await provider.getBlock('latest')).number >= blockNumber)
    const { blockHash } = await provider.getTransactionReceipt(hash)
    const sealed = await provider.getBlock(blockNumber)
    return {
      preconfirmed,
      sealed: await provider.getBalance(to, 'latest'),
      inBlock: sealed.transactions.includes(hash) && sealed.hash === blockHash,
    }
  },

  async wait(given) {
    const { provider, wallet } = given
    await blockBegins(given)
    const sent = await wallet.sendTransaction({ to: nobody(), value: 1n })
    const receipt = await receiptOf(given, sent)
    const latest = await provider.getBlockNumber()
    return { status: statusOf(receipt), beforeSeal: receipt.blockNumber > latest }
  },

  async row(given) {
    const { provider, wallet } = given
    const to = nobody()
    const first = await wallet.getNonce('pending')
    const sent = []
    for (let number = 0; number < 5; number++) {
      sent.push(await wallet.sendTransaction({ to, value: 1n }))
    }
    const receipts = await Promise.all(sent.map((each) => receiptOf(given, each)))
    return {
      nonces: sent.map(({ nonce }) => nonce - first),
      statuses: receipts.map(statusOf),
      received: await provider.getBalance(to, 'pending'),
    }
  },

  async contract(given) {
    const { provider, wallet } = given
    const from = wallet.address
    const nonce = await wallet.getNonce('pending')
    const contract = await deploy(given)
    const to = nobody()
    const address = await contract.getAddress()
    const simulated = await contract.transfer.staticCall(to, 400n, PENDING)
    const { logs } = await receiptOf(given, await contract.transfer(to, 400n))
    const { args } = contract.interface.parseLog(logs[0])
    return {
      address: address === getCreateAddress({ from, nonce }),
      code: (await provider.getCode(address, 'pending')) === code,
      simulated,
      symbol: await contract.symbol(PENDING),
      balances: [await contract.balanceOf(from, PENDING), await contract.balanceOf(to, PENDING)],
      event: [args.from === from && 'us', args.to === to && 'them', args.value],
    }
  },

  async reverts(given) {
    const own = given.wallet.address
    const contract = await deploy(given)
    const ask = (how, [name, args]) =>
      refused(contract[name][how](...args, PENDING), contract, own)
    return {
      calls: await Promise.all(FAILING.map((each) => ask('staticCall', each))),
      estimates: await Promise.all(FAILING.map((each) => ask('estimateGas', each))),
    }
  },

  async multicall({ provider, wallet }) {
    const token = new Contract(TEST_TOKEN, [
      'function symbol() view returns (string)',
      'function balanceOf(address) view returns (uint256)',
      'function transfer(address, uint256) returns (bool)',
    ])
    const asked = [['symbol', []], ['balanceOf', [wallet.address]], ['transfer', [nobody(), 1n]]]
    const calls = asked.map(([name, args]) => ({
      target: TEST_TOKEN,
      allowFailure: true,
      callData: token.interface.encodeFunctionData(name, args),
    }))
    const multicall = new Contract(MULTICALL3, multicallAbi, provider)
    const results = await multicall.aggregate3.staticCall(calls, PENDING)
    return results.map(({ success, returnData }, index) =>
      success ? token.interface.decodeFunctionResult(asked[index][0], returnData)[0] : 'failure',
    )
  },

  async fees({ provider, wallet }) {
    const gas = await wallet.estimateGas({ to: nobody(), value: 1n, ...PENDING })
    const { gasPrice, maxFeePerGas, maxPriorityFeePerGas } = await provider.getFeeData()
    const [history, pending] = await Promise.all([
      provider.send('eth_feeHistory', ['0x2', 'pending', [10, 90]]),
      provider.getBlock('pending'),
    ])
    return {
      gas,
      enough: maxFeePerGas >= pending.baseFeePerGas + maxPriorityFeePerGas,
      tip: maxPriorityFeePerGas > 0n,
      price: gasPrice > pending.baseFeePerGas,
      newest: Number(history.oldestBlock) + 1 === pending.number,
      lengths: [history.baseFeePerGas, history.gasUsedRatio, history.reward].map((x) => x.length),
    }
  },

  async pendingBlock(given) {
    const { provider, wallet } = given
    await blockBegins(given)
    const { hash } = await wallet.sendTransaction({ to: nobody(), value: 7n })
    const seen = async () => {
      const [block, receipt] = await Promise.all([
        provider.getBlock('pending', true),
        provider.getTransactionReceipt(hash),
      ])
      return receipt && { block, receipt }
    }
    const { block, receipt } = await until(seen)
    const [first] = block.prefetchedTransactions
    const ours = block.getPrefetchedTransaction(hash)
    return {
      first: { type: `0x${first.type.toString(16)}`, from: first.from },
      ours: { fromUs: ours.from === wallet.address, value: ours.value },
      sameBlock: receipt.blockHash === block.hash && ours.blockHash === block.hash,
    }
  },

  async oracle(given) {
    const { provider, wallet } = given
    const oracle = new Contract(GAS_PRICE_ORACLE, oracleAbi, provider)
    const request = await wallet.populateTransaction({ to: nobody(), value: 1n })
    const { from, ...unsigned } = request
    const bytes = Transaction.from(unsigned).unsignedSerialized
    const [baseFee, fee, gas, operator] = await Promise.all([
      oracle.l1BaseFee(),
      oracle.getL1Fee(bytes),
      oracle.getL1GasUsed(bytes),
      oracle.getOperatorFee(21_000n),
    ])
    const { hash } = await wallet.sendTransaction(request)
    const ask = () => provider.send('eth_getTransactionReceipt', [hash])
    const receipt = await until(ask) // ethers drops the fields of OP chains
    return {
      baseFee: baseFee === BigInt(receipt.l1GasPrice),
      fee: fee === BigInt(receipt.l1Fee) && fee > 0n,
      gas: gas === BigInt(receipt.l1GasUsed),
      operator,
    }
  },

  /** Milliseconds from a send to its balance at `pending`; sends are spread over the interval. */
  async latency({ provider, wallet }) {
    let nonce = await wallet.getNonce('pending')
    const took = []
    for (let sent = 0; sent < 30; sent++) {
      const to = nobody()
      const request = await wallet.populateTransaction({ to, value: 1n, nonce: nonce++ })
      const signed = await wallet.signTransaction(request)
      await sleep((sent * 67) % 200)
      const begun = performance.now()
      await provider.broadcastTransaction(signed)
      await until(() => provider.getBalance(to, 'pending'))
      took.push(performance.now() - begun)
    }
    return Math.round(took.sort((a, b) => a - b)[15])
  },
}

const [url, key, ...named] = process.argv.slice(2)
const network = Network.from(31337)
const options = { staticNetwork: network, cacheTimeout: -1, pollingInterval: 200 }
const Provider = url.startsWith('ws') ? WebSocketProvider : JsonRpcProvider
const provider = new Provider(url, network, options)
await tell(scenarios, named, { provider, wallet: new Wallet(key, provider) })
provider.destroy()
