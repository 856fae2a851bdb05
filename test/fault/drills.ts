/** What the drills share: buyers who listen, requests that are given up, and what is done with them. */
import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import type { DeadLetterStage } from "../../src/db/dead-letters.js";
import { reserveInTheEnd } from "../support/orders.js";
import type { Api, TestSale, TestSluice } from "../support/sluice.js";
import { query } from "../support/sql.js";
import { type Subscription, subscribe } from "../support/subscriptions.js";
import { waitFor } from "../support/wait.js";

/** Loops and locks that are quick enough for a test: what is stuck for a second is looked at. */
export const QUICK = {
  repairAfterMs: 1_000,
  jobs: { lockMs: 1_000, stalledMs: 500 },
  loops: { forwarderMs: 200, relayMs: 100, queuesMs: 200 },
};

/** The environment of processes with this tuning. */
export function tuned(tuning: Record<string, unknown>): Record<string, string> {
  return { SLUICE_TUNING: JSON.stringify(tuning) };
}

interface Heard {
  readonly status: string;
  readonly reasonCode: string | null;
}

export interface Buyer {
  readonly token: string;
  readonly requestId: string;
}

/** A buyer whose request is QUEUED. */
export async function queue(
  sluice: TestSluice,
  api: Api,
  sale: TestSale,
  { name = randomUUID(), quantity = 1 }: { name?: string; quantity?: number } = {},
): Promise<Buyer> {
  const token = await sluice.token("buyer", name);
  const requestId = randomUUID();
  expect((await reserveInTheEnd(api, token, sale, { requestId, quantity })).status).toBe("QUEUED");
  return { token, requestId };
}

/** What a buyer hears of his request, from the state that it is in on. */
export function listen(api: Api, sale: TestSale, { token, requestId }: Buyer): Subscription<Heard> {
  return subscribe<Heard>("WebSocket", api, token, {
    query: `subscription ($s: ID!, $r: UUID!) {
      reservationUpdates(saleId: $s, requestId: $r) { status reasonCode }
    }`,
    variables: { s: sale.id, r: requestId },
  });
}

/** Waits until the buyer is told SUCCESS, and then listens no more. */
export async function hearsSuccess(heard: Subscription<Heard>): Promise<void> {
  await heard.until(({ status }) => status === "SUCCESS", "SUCCESS", 40_000);
  heard.close();
}

export interface Letter {
  readonly id: string;
  readonly stage: DeadLetterStage;
  readonly lastError: string;
  readonly attempts: number;
  readonly status: string;
}

/** The dead letter of a request, as soon as there is one. */
export function letterOf(sluice: TestSluice, { requestId }: Buyer, timeoutMs = 40_000): Promise<Letter> {
  const text = `SELECT id::text AS id, stage, "lastError", attempts, status::text AS status FROM dead_letters WHERE "requestId" = $1`;
  return waitFor(
    async () => (await query<Letter & Record<string, unknown>>(sluice.databaseUrl, text, [requestId]))[0],
    {
      what: "its dead letter",
      timeoutMs,
    },
  );
}

/**
 * Ends a dead letter as an operator does, who tries again where that can't be done just now. Answers with what it came to: its
 * status, or the code of the error. Rejects where the API dies of it.
 */
export async function endLetter(
  sluice: TestSluice,
  api: Api,
  how: "replayDeadLetter" | "compensateDeadLetter",
  sale: TestSale,
  { id }: Letter,
): Promise<string> {
  const operator = await sluice.token("operator", "olga");
  const text = `mutation ($s: ID!, $id: ID!) { ${how}(saleId: $s, id: $id, reason: "a drill") { status } }`;
  for (;;) {
    const { data, errors } = await api.call<Record<string, { status: string }>>(operator, text, { s: sale.id, id });
    const outcome = data?.[how]?.status ?? `${errors?.[0]?.extensions.code}`;
    if (outcome !== "SERVICE_UNAVAILABLE") return outcome;
  }
}

/** What the database has of a sale: how many orders, movements of stock by kind, and events. */
export async function recordsOf(sluice: TestSluice, { id }: TestSale): Promise<Record<string, number>> {
  const rows = await query<{ what: string; count: number }>(
    sluice.databaseUrl,
    `SELECT 'orders' AS what, count(*)::int AS count FROM orders WHERE "saleId" = $1
     UNION ALL SELECT 'events', count(*)::int FROM request_events WHERE "saleId" = $1
     UNION ALL SELECT kind::text, count(*)::int FROM stock_movements
               WHERE "saleId" = $1 AND "requestId" IS NOT NULL GROUP BY kind`,
    [id],
  );
  return Object.fromEntries(rows.map(({ what, count }) => [what, count]));
}
