// A project from `npx hardhat --init`, with viem and node:test, and with ethers and mocha.
// The compiler is npm's: nothing is downloaded.

import { copyFileSync, mkdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import hardhatEthersChaiMatchers from '@nomicfoundation/hardhat-ethers-chai-matchers'
import hardhatEthers from '@nomicfoundation/hardhat-ethers'
import hardhatMocha from '@nomicfoundation/hardhat-mocha'
import hardhatToolboxViem from '@nomicfoundation/hardhat-toolbox-viem'
import { defineConfig } from 'hardhat/config'

const here = import.meta.dirname
mkdirSync(join(here, 'contracts'), { recursive: true })
for (const source of ['../contracts/Vault.sol', '../../clients/Token.sol']) {
  copyFileSync(join(here, source), join(here, 'contracts', source.split('/').at(-1)))
}

export default defineConfig({
  plugins: [hardhatToolboxViem, hardhatEthers, hardhatEthersChaiMatchers, hardhatMocha],
  solidity: {
    version: '0.8.30',
    path: createRequire(import.meta.url).resolve('solc/soljson.js'),
    settings: { optimizer: { enabled: true }, evmVersion: 'cancun' },
  },
  networks: {
    target: { type: 'http', chainType: 'l1', url: process.env.RPC_URL ?? 'http://127.0.0.1:8545' },
  },
  paths: {
    tests: { nodejs: 'test/node', mocha: 'test/mocha' },
    ...(process.env.OUT ? { ignition: join(process.env.OUT, 'ignition') } : {}),
  },
  test: { mocha: { timeout: 30_000 } },
})
