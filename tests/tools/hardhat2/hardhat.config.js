// A project from `npx hardhat init`, with the plugins of both viem and ethers.
// The compiler is npm's: nothing is downloaded.

const { copyFileSync, mkdirSync } = require('node:fs')
const { join } = require('node:path')
const solc = require('solc')
const { subtask } = require('hardhat/config')
const { TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD } = require('hardhat/builtin-tasks/task-names')
require('@nomicfoundation/hardhat-toolbox-viem')
require('@nomicfoundation/hardhat-ethers')
require('@nomicfoundation/hardhat-chai-matchers')

// Hardhat only compiles files in its own project.
mkdirSync(join(__dirname, 'contracts'), { recursive: true })
for (const source of ['../contracts/Vault.sol', '../../clients/Token.sol']) {
  copyFileSync(join(__dirname, source), join(__dirname, 'contracts', source.split('/').at(-1)))
}

subtask(TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD, async ({ solcVersion }) => ({
  compilerPath: require.resolve('solc/soljson.js'),
  isSolcJs: true,
  version: solcVersion,
  longVersion: solc.version().replace('.Emscripten.clang', ''),
}))

module.exports = {
  solidity: { version: '0.8.30', settings: { optimizer: { enabled: true }, evmVersion: 'cancun' } },
  networks: { target: { url: process.env.RPC_URL ?? 'http://127.0.0.1:8545' } },
  paths: process.env.OUT ? { ignition: join(process.env.OUT, 'ignition') } : {},
  mocha: { reporter: join(__dirname, 'reporter.js'), timeout: 30_000 },
}
