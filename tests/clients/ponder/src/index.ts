import { ponder } from 'ponder:registry'
import { transfer } from 'ponder:schema'

ponder.on('Token:Transfer', async ({ event, context }) => {
  const { abi, address } = context.contracts.Token
  const balance = await context.client.readContract({
    abi, address, functionName: 'balanceOf', args: [event.args.to],
  })
  await context.db.insert(transfer).values({
    hash: event.transaction.hash,
    block: event.block.number,
    blockHash: event.block.hash,
    value: event.args.value,
    balance,
  })
})
