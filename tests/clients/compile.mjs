// A contract to its artifact, with the compiler among the packages of the current folder:
//
//     node compile.mjs SOURCE.sol ARTIFACT.json            writes it
//     node compile.mjs SOURCE.sol ARTIFACT.json --check    compares

import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename } from 'node:path'

const [source, artifact, check] = process.argv.slice(2)
const solc = createRequire(`${process.cwd()}/`)('solc')
const file = basename(source)

const input = {
  language: 'Solidity',
  sources: { [file]: { content: readFileSync(source, 'utf8') } },
  settings: {
    optimizer: { enabled: true },
    evmVersion: 'cancun',
    metadata: { appendCBOR: false, bytecodeHash: 'none' },
    outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object', 'evm.deployedBytecode.object'] } },
  },
}

const { contracts, errors = [] } = JSON.parse(solc.compile(JSON.stringify(input)))
if (errors.length) throw new Error(errors.map((each) => each.formattedMessage).join('\n'))
const { abi, evm } = contracts[file][basename(file, '.sol')]
const code = { code: `0x${evm.deployedBytecode.object}`, initCode: `0x${evm.bytecode.object}` }
const made = `${JSON.stringify({ abi, ...code }, null, 1)}\n`

if (check !== '--check') writeFileSync(artifact, made)
else if (made !== readFileSync(artifact, 'utf8')) {
  throw new Error(`${artifact} is not what the compiler makes of ${source}`)
}
