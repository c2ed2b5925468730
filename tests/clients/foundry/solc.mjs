#!/usr/bin/env node
// The compiler with the command line that forge uses: npm's solc, which is in JavaScript.

import { readFileSync } from 'node:fs'
import solc from 'solc'

if (process.argv.includes('--standard-json')) {
  process.stdout.write(solc.compile(readFileSync(0, 'utf8')))
} else {
  const version = solc.version().replace('.Emscripten.clang', '.Linux.g++')
  process.stdout.write(`solc, the solidity compiler commandline interface\nVersion: ${version}\n`)
}
