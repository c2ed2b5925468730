// `hardhat TASK … --network target`, whose lines for tests become steps.

import { spawnSync } from 'node:child_process'

const words = [...process.argv.slice(2), '--network', 'target']
const { status, stdout } = spawnSync('hardhat', words, {
  encoding: 'utf8',
  env: { ...process.env, NO_COLOR: '1' },
  stdio: ['ignore', 'pipe', 'inherit'],
})
for (const line of stdout.split('\n')) {
  const [, passed] = line.match(/^\s*✔ (.*?)(?: \(\d+ms\))?$/) ?? []
  const [, failed] = line.match(/^\s*\d+\) (.*?)(?: \(\d+ms\))?$/) ?? []
  if (passed) console.log(`ok ${passed}`)
  else if (failed) console.log(`failed ${failed}: see below`)
  else console.log(line)
}
process.exit(status)
