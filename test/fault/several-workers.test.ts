/** Several workers at one sale's queue, one of which dies in the middle. */

import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { reserve } from "../../src/operations/reserve.js";
import { openProcess } from "../operations/support.js";
import { settleAndCheck } from "../support/invariants.js";
import { prepareSluice } from "../support/sluice.js";
import { query } from "../support/sql.js";
import { waitFor } from "../support/wait.js";
import { QUICK, recordsOf, tuned } from "./drills.js";

const REQUESTS = 3_000;

test("three workers share 3,000 requests of one sale, one is killed inside a batch, and each request is decided once", async () => {
  const sluice = await prepareSluice({ env: tuned({ ...QUICK, writer: { maxJobs: 64 } }) });
  const [api, inside, ...healthy] = await Promise.all([
    sluice.startApi(),
    openProcess(sluice),
    sluice.startWorker(),
    sluice.startWorker(),
  ]);
  for (const worker of healthy) worker.kill("SIGSTOP");
  const sale = await sluice.createSale(api, { initial: [REQUESTS] });
  const itemId = sale.items[0]?.id ?? "";
  let next = 0;
  const buyOn = async () => {
    while (next < REQUESTS) {
      const buyerId = `buyer-${next++}`;
      const input = { saleId: sale.id, itemId, buyerId, requestId: randomUUID(), quantity: 1 };
      expect((await reserve(inside, input)).kind).toBe("queued");
    }
  };
  await Promise.all(Array.from({ length: 32 }, buyOn));
  await inside.journal.drained();

  const count = async (what: string) => (await query(sluice.databaseUrl, what, [sale.id])).length;
  const doomed = await sluice.startWorker({ SLUICE_FAILPOINTS: "write.after_stock=kill@6" });
  // It has its hands full of jobs by now, and dies with them while the others are at the rest.
  await waitFor(async () => (await count('SELECT 1 FROM orders WHERE "saleId" = $1')) > 0, {
    what: "its first orders",
    timeoutMs: 30_000,
  });
  for (const worker of healthy) worker.kill("SIGCONT");
  expect((await doomed.exited).signal).toBe("SIGKILL");
  await waitFor(async () => (await count('SELECT 1 FROM requests WHERE "saleId" = $1 AND outcome IS NULL')) === 0, {
    what: "all to be decided",
    timeoutMs: 60_000,
  });
  await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
  expect(await recordsOf(sluice, sale)).toEqual({ orders: REQUESTS, events: 0, LOCK: REQUESTS });
  // Nobody was refused for want of anything, and nobody's attempts were used up by the others.
  const [{ epoch } = { epoch: 0 }] = await query<{ epoch: number }>(
    sluice.databaseUrl,
    "SELECT epoch FROM sales WHERE id = $1",
    [sale.id],
  );
  expect(epoch).toBe(1);
  expect(await query(sluice.databaseUrl, "SELECT 1 FROM dead_letters")).toEqual([]);
}, 180_000);
