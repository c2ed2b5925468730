// `hardhat TASK … --network target`; the reporter of the configuration prints the steps.

import { spawnSync } from 'node:child_process'

const { status } = spawnSync('hardhat', [...process.argv.slice(2), '--network', 'target'], {
  stdio: 'inherit',
})
process.exit(status)
