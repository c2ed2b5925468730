// The module of Ignition's quick start: a contract, a call to it, and another that needs both.

import { buildModule } from '@nomicfoundation/hardhat-ignition/modules'

export default buildModule('Vaults', (m) => {
  const vault = m.contract('Vault', [m.getParameter('unlockTime', 0)], { value: 5n })
  const set = m.call(vault, 'setNumber', [7n])
  const token = m.contract('Token', [], { after: [set] })
  m.call(token, 'transfer', [vault, 10n])
  return { vault, token }
})
