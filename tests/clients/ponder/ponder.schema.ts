import { onchainTable } from 'ponder'

/** A transfer, and its receiver's balance at the end of its block. */
export const transfer = onchainTable('transfer', (t) => ({
  hash: t.hex().primaryKey(),
  block: t.bigint().notNull(),
  blockHash: t.hex().notNull(),
  value: t.bigint().notNull(),
  balance: t.bigint().notNull(),
}))
