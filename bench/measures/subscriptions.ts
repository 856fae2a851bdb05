import { residentBytesOf } from "../process-usage.js";
import { fillSale, type Reservation, readReservations } from "../sluice/fill-sale.js";
import { AUTH } from "../sluice/operate.js";
import { openSubscriptions } from "../subscribers/crowd.js";
import { type Bench, makeSale, type Target, type Trial, withTrial } from "../trial.js";
import { sleep } from "../wait.js";
import { type Measure, roundOf } from "./measure.js";

const EARLY = 500;
const SAMPLES = 6;
const SAMPLE_EVERY_MS = 500;

const KINDS = {
  reservationUpdates: `subscription ($saleId: ID!, $requestId: UUID!) {
    reservationUpdates(saleId: $saleId, requestId: $requestId) { status version order { id status } }
  }`,
  saleUpdates: `subscription ($saleId: ID!) {
    saleUpdates(saleId: $saleId) { version items { id remaining } }
  }`,
} as const;

/**
 * How much more memory the API has for each subscription that is open, each over a socket of its own and with its first value
 * heard: the larger one of the two kinds, in KB.
 */
export const subscriptions: Measure = {
  name: "subscriptions",
  contenders: ["sluice"],
  async round(bench, contender) {
    const details: Record<string, number> = {};
    const breaches: string[] = [];
    for (const kind of Object.keys(KINDS) as (keyof typeof KINDS)[]) {
      // A new API for each kind: one that had many open before has room for them already.
      await withTrial(bench, contender, { workers: true }, async (trial) => {
        const { target, reservations } = await saleWithBuyers(bench, trial);
        details[`${kind}, KB each`] = await kilobytesEach(bench, trial, kind, target, reservations);
        breaches.push(...(await trial.findBreaches(target)));
      });
    }
    return roundOf(Math.max(...Object.values(details)), breaches, details);
  },
};

/** A sale with decided reservations that the API had nothing to do with, and so no memory of. */
async function saleWithBuyers(bench: Bench, trial: Trial) {
  const count = bench.quick ? 2_000 : 10_000;
  const target = await makeSale(trial.stores.databaseUrl, count);
  await fillSale(trial.stores.databaseUrl, target, count);
  await trial.running.openSale(target.saleId);
  return { target, reservations: await readReservations(trial.stores.databaseUrl, target.saleId) };
}

async function kilobytesEach(
  bench: Bench,
  trial: Trial,
  kind: keyof typeof KINDS,
  { saleId }: Target,
  reservations: readonly Reservation[],
): Promise<number> {
  const open = (some: readonly Reservation[]) =>
    openSubscriptions(bench.runDir, {
      url: trial.running.url,
      auth: AUTH,
      query: KINDS[kind],
      subscribers: some.map(({ requestId, buyerId }) => ({
        subject: buyerId,
        variables: kind === "saleUpdates" ? { saleId } : { saleId, requestId },
      })),
    });
  // So that what is there once is there already.
  const early = await open(reservations.slice(0, EARLY));
  await early.close();
  const before = await settledBytes(bench, trial);
  const crowd = await open(reservations);
  try {
    return ((await settledBytes(bench, trial)) - before) / reservations.length / 1_000;
  } finally {
    await crowd.close();
  }
}

/** After a pause in which garbage is collected, the lowest of some readings. */
async function settledBytes(bench: Bench, { running }: Trial): Promise<number> {
  await sleep(bench.quick ? 5_000 : 12_000);
  const samples: number[] = [];
  for (let at = 0; at < SAMPLES; at += 1) {
    samples.push(residentBytesOf(running.apiPids()));
    await sleep(SAMPLE_EVERY_MS);
  }
  return Math.min(...samples);
}
