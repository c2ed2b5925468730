// One contract from its block on; the variables are those of test_ponder.py.
import { readFileSync } from 'node:fs'
import { createConfig } from 'ponder'

const { abi } = JSON.parse(readFileSync('token.json', 'utf8'))

export default createConfig({
  chains: {
    foreblock: { id: 31337, rpc: process.env.URL, pollingInterval: 200 },
  },
  contracts: {
    Token: {
      chain: 'foreblock',
      abi,
      address: process.env.TOKEN as `0x${string}`,
      startBlock: Number(process.env.START),
    },
  },
})
