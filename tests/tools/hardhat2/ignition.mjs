// Ignition: a module is deployed, deployed again, and after other transactions of its account.

import { ignitionFlow } from '../ignition.mjs'

await ignitionFlow('Vault.js')
