/**
 * What Redis and ioredis can do with our script: reserve.lua, called by nobody but this. A ceiling for every decision.
 *
 * When it is done it prints `{"acceptedPerSecond":…,"soldOutPerSecond":…}` and ends.
 *
 *   REDIS_URL
 *   IN_FLIGHT  calls under way at once, by default 256
 *   DECISIONS  calls of each kind, by default 100000
 */
import { randomUUID } from "node:crypto";
import { newId } from "../../src/domain/ids.js";
import { STAGES } from "../../src/domain/stages.js";
import { DAY } from "../../src/domain/time.js";
import { saleKeys } from "../../src/redis/keys.js";
import { connectRedis, type RedisLink } from "../../src/redis/link.js";
import { beginLoad, finishLoad } from "../../src/redis/load.js";
import { callScript } from "../../src/redis/scripts.js";
import { announceReady, announceReport, endInOrder, setting, wholeNumber } from "../as-program.js";

const CONNECT_MS = 10_000;
const PATIENT_MS = 60_000;

const inFlight = wholeNumber("IN_FLIGHT", 256);
const decisions = wholeNumber("DECISIONS", 100_000);
const onError = (error: Error) => console.error(`Redis: ${error.message}`);
const link = connectRedis({ url: setting("REDIS_URL"), name: "bench", commandTimeoutMs: PATIENT_MS, onError });
endInOrder(() => link.close());
await link.whenUsable(CONNECT_MS);
announceReady();

const [saleId, itemId] = [newId(), newId(8)];
await openSale(link, saleId, itemId, decisions);
const acceptedPerSecond = await measure("ACCEPTED");
// As many as there were units have been sold: from here on there are none.
const soldOutPerSecond = await measure("SOLD_OUT");
announceReport({ acceptedPerSecond, soldOutPerSecond });
await link.close();
// The channel to whoever started us would keep us alive.
process.disconnect?.();

async function openSale(link: RedisLink, saleId: string, itemId: string, units: number): Promise<void> {
  const epoch = 1;
  await beginLoad(link, {
    saleId,
    epoch,
    state: "OPEN",
    stateVersion: 1,
    opensAt: new Date(Date.now() - DAY),
    closesAt: new Date(Date.now() + DAY),
    maxPerBuyer: 1,
    backlogLimit: units,
    remaining: new Map([[itemId, units]]),
  });
  const reply = await finishLoad(link, saleId, epoch);
  if (reply !== "ok") throw new Error(`the sale can't be loaded: ${reply}`);
}

/** Decisions a second, each of which must be of this kind. What is sent is made before the clock starts. */
async function measure(expected: "ACCEPTED" | "SOLD_OUT"): Promise<number> {
  const keys = saleKeys(saleId);
  const runId = link.runId();
  const notAfter = Date.now() + DAY;
  const calls = Array.from({ length: decisions }, (_, at) => {
    const requestId = randomUUID();
    return {
      keys: [keys.sale, keys.stock, keys.holders, keys.pending, keys.request(requestId)],
      args: [runId, requestId, `${expected}-${at}`, itemId, 1, notAfter, "1", "PENDING", STAGES.PENDING.rank],
    };
  });
  let next = 0;
  const lane = async () => {
    for (let call = calls[next++]; call; call = calls[next++]) {
      const [kind] = (await callScript(link.client, "reserve", call.keys, call.args)) as [string];
      if (kind !== expected) throw new Error(`a decision was ${kind} instead of ${expected}`);
    }
  };
  const startedMs = performance.now();
  await Promise.all(Array.from({ length: inFlight }, lane));
  return Math.round((decisions * 1_000) / (performance.now() - startedMs));
}
