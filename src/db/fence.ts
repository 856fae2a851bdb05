import type { Tx } from "./client.js";

/**
 * The fence of a sale. Whoever journals or emits an event takes it shared and only then, in a statement of its own,
 * reads the epoch; a load takes it exclusively before it changes the epoch. In one statement the epoch would be read
 * from a snapshot that is older than the fence.
 *
 * The journal does both in one call: `epoch_under_fence` of the migrations takes it and then looks anew.
 *
 * It is a transaction-level advisory lock: FOR SHARE on the sale's row starved the load under steady traffic, while the
 * lock manager lets nobody pass who waits longer.
 */
export async function takeFenceShared(tx: Tx, saleId: string): Promise<void> {
  await tx.$executeRaw`SELECT pg_advisory_xact_lock_shared(hashtextextended('sluice:fence:' || ${saleId}, 0))`;
}

export async function takeFenceExclusive(tx: Tx, saleId: string): Promise<void> {
  await tx.$executeRaw`SELECT pg_advisory_xact_lock(hashtextextended('sluice:fence:' || ${saleId}, 0))`;
}

/** The epoch that a sale is in, or null where there is no such sale. */
export async function readEpoch(tx: Tx, saleId: string): Promise<number | null> {
  const rows = await tx.$queryRaw<{ epoch: number }[]>`SELECT epoch FROM sales WHERE id = ${saleId}`;
  return rows[0]?.epoch ?? null;
}
