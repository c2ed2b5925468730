// viem behind a load balancer: it requires the highest commit that it has seen, and more.
//
//     node fresh_with_viem.mjs URL [SCENARIO ...]
//
// viem retries by itself after status 503; test_fresh.py has the expected results.

import { createPublicClient, http } from 'viem'
import { tell } from './telling.mjs'

const FAR = 1_000_000_000n
const commitOf = ({ headers }) =>
  BigInt(headers.get('Foreblock-Snapshot')?.match(/commit=(\d+)/)?.[1] ?? 0)

/** A client that sends the result of `demand`, and the status and commit of all its responses. */
const watched = (url, demand, options = {}) => {
  const seen = []
  const transport = http(url, {
    ...options,
    onFetchRequest: (_, init) => ({
      ...init,
      headers: { ...init.headers, 'Foreblock-Min-Commit': demand(seen) },
    }),
    onFetchResponse: (response) => {
      seen.push({ status: response.status, commit: commitOf(response) })
    },
  })
  return { client: createPublicClient({ transport }), seen }
}

const highest = (seen) => seen.reduce((most, { commit }) => (commit > most ? commit : most), 0n)

const scenarios = {
  /** Each request requires one commit more than the highest seen. */
  async forward(url) {
    const { client, seen } = watched(url, (seen) => `${highest(seen) + 1n}`, { retryCount: 60 })
    for (let i = 0; i < 10; i++) await client.getChainId()
    const commits = seen.filter(({ status }) => status === 200).map(({ commit }) => commit)
    return {
      answers: commits.length,
      rising: commits.every((commit, i) => i === 0 || commit > commits[i - 1]),
    }
  },

  /** A commit that comes in a second or two is rejected at first, and returned after retries. */
  async retried(url) {
    let wanted = 0n
    const demand = (seen) => {
      wanted ||= seen.length ? highest(seen) + 8n : 0n
      return `${wanted}; wait=0`
    }
    const { client, seen } = watched(url, demand, { retryCount: 60 })
    await client.getChainId()
    const chainId = await client.getChainId()
    const [, ...later] = seen
    return {
      chainId,
      refusedFirst: later[0].status === 503,
      answered: later.at(-1).status,
      fresh: later.at(-1).commit >= wanted,
    }
  },

  /** Without retries the caller gets the reason. */
  async refused(url) {
    const { client } = watched(url, () => `${FAR}; wait=0`, { retryCount: 0 })
    try {
      await client.getChainId()
    } catch (error) {
      return {
        name: error.name,
        status: error.status,
        says: /commit 1000000000 is not here yet, this instance is at \d+/.test(error.details),
      }
    }
    return null
  },
}

const [url, ...named] = process.argv.slice(2)
await tell(scenarios, named, url)
