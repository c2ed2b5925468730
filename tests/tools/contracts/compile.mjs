// Vault.sol to Vault.json: `node compile.mjs` writes it, `node compile.mjs --check` compares.

import { readFileSync, writeFileSync } from 'node:fs'
import solc from 'solc'

const here = (name) => new URL(name, import.meta.url)

const input = {
  language: 'Solidity',
  sources: { 'Vault.sol': { content: readFileSync(here('Vault.sol'), 'utf8') } },
  settings: {
    optimizer: { enabled: true },
    evmVersion: 'cancun',
    metadata: { appendCBOR: false, bytecodeHash: 'none' },
    outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object', 'evm.deployedBytecode.object'] } },
  },
}

const { contracts, errors = [] } = JSON.parse(solc.compile(JSON.stringify(input)))
if (errors.length) throw new Error(errors.map((each) => each.formattedMessage).join('\n'))
const { abi, evm } = contracts['Vault.sol'].Vault
const code = { code: `0x${evm.deployedBytecode.object}`, initCode: `0x${evm.bytecode.object}` }
const made = `${JSON.stringify({ abi, ...code }, null, 1)}\n`

if (!process.argv.includes('--check')) writeFileSync(here('Vault.json'), made)
else if (made !== readFileSync(here('Vault.json'), 'utf8')) {
  throw new Error('Vault.json is not what the compiler makes of Vault.sol')
}
