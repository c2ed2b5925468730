// `hardhat TASK … --network target`, whose lines for tests become steps.

import { spawnSync } from 'node:child_process'

const words = [...process.argv.slice(2), '--network', 'target']
const { status, stdout } = spawnSync('hardhat', words, {
  encoding: 'utf8',
  env: { ...process.env, NO_COLOR: '1' },
  stdio: ['ignore', 'pipe', 'inherit'],
})
const [tree, details = ''] = stdout.split(/^\s*\d+ passing/m)
for (const line of tree.split('\n')) {
  const [, passed] = line.match(/^\s*✔ (.*?)(?: \(\d+ms\))?$/) ?? []
  const [, failed] = line.match(/^\s*\d+\) (.*?)(?: \(\d+ms\))?$/) ?? []
  if (passed) console.log(`ok ${passed}`)
  if (failed) console.log(`failed ${failed}: ${reason(failed)}`)
}
console.log(details)
process.exit(status)

/** The first line below the name of a test in the list of failures. */
function reason(name) {
  const [, after = ''] = details.split(`${name}:\n`)
  return after.trim().split('\n')[0] || 'no reason was given'
}
