// viem in an application, against an endpoint.
//
//     node with_viem.mjs URL [SCENARIO ...]
//
// The URL begins with http or ws.
//
// Each scenario sends requests through the library and returns the decoded
// results; telling.mjs prints them. with_web3.py has the same scenarios by the same
// names, and a test compares both with the expected results. A feature of only one of the
// libraries has a separate name.

import { readFileSync } from 'node:fs'
import {
  BaseError,
  ContractFunctionRevertedError,
  createPublicClient,
  encodeAbiParameters,
  encodeFunctionData,
  erc20Abi,
  http,
  webSocket,
  keccak256,
  numberToHex,
  parseEther,
  parseEventLogs,
} from 'viem'
import { tell } from './telling.mjs'

const { abi, code } = JSON.parse(readFileSync(new URL('token.json', import.meta.url), 'utf8'))

const ALICE = '0x00000000000000000000000000000000000A11cE'
const BOB = '0x0000000000000000000000000000000000000B0b'
const TOKEN = '0x000000000000000000000000000000000070cE11'
const ZERO = '0x0000000000000000000000000000000000000000'

const token = (functionName, args = []) => ({ to: TOKEN, abi, functionName, args })

/** The slot of an account in a mapping in slot 0. */
const slotOf = (account) =>
  keccak256(encodeAbiParameters([{ type: 'address' }, { type: 'uint256' }], [account, 0n]))

/** The token, with a thousand units for Alice. */
const tokenState = {
  address: TOKEN,
  code,
  stateDiff: [{ slot: slotOf(ALICE), value: numberToHex(1000n, { size: 32 }) }],
}

/** Transfers among logs, of a token or of ether. */
const transfers = (logs) =>
  parseEventLogs({ abi: erc20Abi, eventName: 'Transfer', logs }).map(({ address, args }) => ({
    token: address,
    ...args,
  }))

/** The name and text of a failure; null without data. */
const failure = (error) => {
  const reverted = error.walk((each) => each instanceof ContractFunctionRevertedError)
  const { errorName, args = [] } = reverted?.data ?? {}
  return errorName ? { error: errorName, args } : null
}

const FAILING = [
  token('transfer', [BOB, 5000n]),
  token('failWithReason'),
  token('panic'),
  token('failWithoutReason'),
  token('runIntoInvalid'),
]

const scenarios = {
  async transfer(client) {
    const [block] = await client.simulateBlocks({
      blocks: [
        {
          stateOverrides: [{ address: ALICE, balance: parseEther('2') }],
          calls: [{ account: ALICE, to: BOB, value: parseEther('1') }],
        },
      ],
      traceTransfers: true,
    })
    const [call] = block.calls
    return {
      number: block.number,
      gasUsed: block.gasUsed,
      status: call.status,
      transfers: transfers(call.logs),
    }
  },

  async token(client) {
    const [first, second] = await client.simulateBlocks({
      blocks: [
        {
          stateOverrides: [tokenState],
          calls: [{ account: ALICE, ...token('transfer', [BOB, 400n]) }],
        },
        { calls: [token('balanceOf', [ALICE]), token('balanceOf', [BOB]), token('symbol')] },
      ],
    })
    return {
      transferred: first.calls[0].result,
      transfers: transfers(first.calls[0].logs),
      then: second.calls.map((call) => call.result),
    }
  },

  async failures(client) {
    const [block] = await client.simulateBlocks({
      blocks: [
        {
          stateOverrides: [tokenState],
          calls: FAILING.map((call) => ({ account: ALICE, ...call })),
        },
      ],
    })
    return block.calls.map((call) => ({ status: call.status, told: failure(call.error) }))
  },

  async blocks(client) {
    const [first, second] = await client.simulateBlocks({
      blocks: [
        {
          blockOverrides: {
            number: 13n,
            time: 5000n,
            gasLimit: 20_000_000n,
            feeRecipient: BOB,
            baseFeePerGas: 9n,
          },
          stateOverrides: [{ address: ALICE, balance: parseEther('1'), nonce: 7 }],
          calls: [{ account: ALICE, to: BOB, maxFeePerGas: 20n, maxPriorityFeePerGas: 2n }],
        },
        { calls: [] },
      ],
      returnFullTransactions: true,
      validation: true,
    })
    const [transaction] = first.transactions
    return {
      number: first.number,
      timestamp: first.timestamp,
      gasLimit: first.gasLimit,
      miner: first.miner,
      baseFeePerGas: first.baseFeePerGas,
      transaction: {
        from: transaction.from,
        to: transaction.to,
        nonce: transaction.nonce,
        gasPrice: transaction.gasPrice,
        maxFeePerGas: transaction.maxFeePerGas,
      },
      follows: second.parentHash === first.hash && second.number === first.number + 1n,
    }
  },

  // viem expects one result per requested block.
  async gap(client) {
    const blocks = await client.simulateBlocks({
      blocks: [{ blockOverrides: { number: 20n }, calls: [{ to: BOB }] }, { calls: [] }],
    })
    return blocks.map(({ number, calls }) => ({ number, calls: calls.length }))
  },

  async refused(client) {
    try {
      await client.simulateBlocks({
        blocks: [{ calls: [{ account: ALICE, to: BOB, value: parseEther('1') }] }],
      })
    } catch (error) {
      if (!(error instanceof BaseError)) throw error
      const { code } = error.walk((each) => each.code !== undefined)
      return { code }
    }
    return null
  },

  async call(client) {
    const stateOverride = [tokenState]
    const ask = (functionName, args) =>
      client.readContract({
        account: ALICE, address: TOKEN, abi, functionName, args, stateOverride,
      })
    const failures = FAILING.slice(0, 4).map(async ({ functionName, args }) => {
      try {
        return await ask(functionName, args)
      } catch (error) {
        return failure(error)
      }
    })
    return { balance: await ask('balanceOf', [ALICE]), failures: await Promise.all(failures) }
  },

  async simulateCalls(client) {
    const { results, block } = await client.simulateCalls({
      account: ALICE,
      stateOverrides: [tokenState],
      calls: [
        { ...token('transfer', [BOB, 400n]) },
        { ...token('balanceOf', [BOB]) },
        { ...token('transfer', [BOB, 4000n]) },
        { to: TOKEN, data: encodeFunctionData(token('symbol')) },
      ],
    })
    return {
      number: block.number,
      results: results.map(({ status, result = null, error }) => ({
        status,
        result,
        told: error ? failure(error) : null,
      })),
    }
  },

  async assetChanges(client) {
    const { assetChanges } = await client.simulateCalls({
      account: ALICE,
      stateOverrides: [tokenState, { address: ALICE, balance: parseEther('2') }],
      calls: [
        { to: BOB, value: parseEther('0.5') },
        { ...token('transfer', [BOB, 400n]) },
      ],
      traceAssetChanges: true,
    })
    return assetChanges.map(({ token: { address, symbol, decimals }, value }) => ({
      token: address,
      symbol,
      decimals,
      ...value,
    }))
  },

  async reads(client) {
    const head = await client.getBlock({ blockTag: 'latest' })
    return {
      chainId: await client.getChainId(),
      latest: await client.getBlockNumber(),
      hash: head.hash,
      nobody: await client.getBalance({ address: ZERO }),
    }
  },
}

const [url, ...named] = process.argv.slice(2)
const transport = (url.startsWith('ws') ? webSocket : http)(url, { retryCount: 0 })
await tell(scenarios, named, createPublicClient({ transport }))
process.exit() // an open WebSocket would keep it running
