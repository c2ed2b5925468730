import { Hono } from 'hono'
import { asc } from 'ponder'
import { db } from 'ponder:api'
import { transfer } from 'ponder:schema'

const app = new Hono()

/** All transfers by their value; numbers as decimal texts. */
app.get('/transfers', async (context) => {
  const found = await db.select().from(transfer).orderBy(asc(transfer.value))
  return context.json(
    found.map(({ block, value, balance, ...hashes }) => ({
      ...hashes, block: `${block}`, value: `${value}`, balance: `${balance}`,
    })),
  )
})

export default app
