#!/usr/bin/env node
// The compiler with the command line that forge and wake use: npm's solc, which is in JavaScript.

import { readFileSync } from 'node:fs'
import solc from 'solc'

// Its numbers have 32 bits and no sign: those of built-in declarations are below zero elsewhere.
const signed = (text) => text.replaceAll(/\b42949\d{5}\b/g, (number) => Number(number) | 0)

if (process.argv.includes('--standard-json')) {
  process.stdout.write(signed(solc.compile(readFileSync(0, 'utf8'))))
} else {
  const version = solc.version().replace('.Emscripten.clang', '.Linux.g++')
  process.stdout.write(`solc, the solidity compiler commandline interface\nVersion: ${version}\n`)
}
