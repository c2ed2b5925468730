// The uses of both versions of Ignition, by the command line.

import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { ACCOUNTS, CHAIN_ID, OUT, TARGET, assert, end, rpc, step, until } from './steps.mjs'

const ignition = join(OUT, 'ignition')
const LONG = 90 // seconds: each deployment is a separate process

/** The output of `hardhat ignition deploy`. */
const deploy = (module, ...more) =>
  new Promise((resolve, reject) => {
    const words = ['ignition', 'deploy', join(ignition, 'modules', module), '--network', 'target', ...more]
    const env = { ...process.env, HARDHAT_IGNITION_CONFIRM_DEPLOYMENT: 'true' }
    const running = spawn('hardhat', words, { env, stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    for (const each of [running.stdout, running.stderr]) each.on('data', (text) => (said += text))
    running.on('close', (status) => (status ? reject(new Error(said)) : resolve(said)))
  })

const addresses = (id) =>
  JSON.parse(readFileSync(join(ignition, 'deployments', id, 'deployed_addresses.json'), 'utf8'))

const number = async (address) =>
  BigInt(await rpc('eth_call', { to: address, data: '0x8381f58a' }, 'latest'))

const height = async () => Number(await rpc('eth_blockNumber'))

/** With a clock, Ignition requires 5 confirmations of the account's previous transaction. */
const confirmed = async () => {
  if (TARGET !== 'eth') return
  const enough = (await height()) + 5
  await until(async () => (await height()) >= enough)
}

/** Deploy a module, any number of times. */
export const ignitionFlow = async (module) => {
  mkdirSync(ignition)
  symlinkSync(join(process.cwd(), 'ignition/modules'), join(ignition, 'modules'))
  const chain = `chain-${CHAIN_ID}`
  await step('deploy a module', async () => {
    await deploy(module)
    const found = addresses(chain)
    assert.equal(await number(found['Vaults#Vault']), 7n)
    assert.notEqual(await rpc('eth_getCode', found['Vaults#Token'], 'latest'), '0x')
  }, LONG)
  await step('deploy it again', async () => {
    const before = addresses(chain)
    assert.match(await deploy(module), /Nothing new to deploy|already deployed|Deployed Addresses/i)
    assert.deepEqual(addresses(chain), before)
  }, LONG)
  await step('deploy after other transactions of the account', async () => {
    for (const value of ['0x1', '0x2']) {
      const hash = await rpc('eth_sendTransaction', { from: ACCOUNTS[0], to: ACCOUNTS[1], value })
      await until(() => rpc('eth_getTransactionReceipt', hash))
    }
    await confirmed()
    await deploy(module, '--deployment-id', 'second')
    const [first, second] = [addresses(chain), addresses('second')]
    assert.notEqual(first['Vaults#Vault'], second['Vaults#Vault'])
    assert.equal(await number(second['Vaults#Vault']), 7n)
  }, LONG)
  await step('deploy under another name', async () => {
    await confirmed()
    await deploy(module, '--deployment-id', 'third', '--strategy', 'basic')
    assert(existsSync(join(ignition, 'deployments', 'third')))
  }, LONG)
  end()
}
