import { Redis } from "ioredis";
import { queuePrefix } from "../../src/redis/keys.js";
import { type Trial, withTrial } from "../trial.js";
import { acceptedOf, type Measure, roundOf, unexpected } from "./measure.js";

const CONNECTIONS = 64;
const EARLY = 200;

/**
 * What Redis holds more for each reservation that was decided, without what BullMQ keeps of its queue: it is of a bounded size,
 * however many jobs there were.
 */
export const redisMemory: Measure = {
  name: "redis-memory",
  contenders: ["sluice"],
  round: (bench, contender) =>
    withTrial(bench, contender, { workers: true }, async (trial) => {
      const buyers = bench.quick ? 5_000 : 20_000;
      const target = await trial.openSale(buyers + EARLY);
      const storm = (prefix: string, count: number) =>
        trial.load({
          pace: { kind: "closed", connections: CONNECTIONS },
          buyers: { prefix, count, behaviour: "once" },
          target,
          until: { seconds: 300 },
        });

      // So that what is there once, scripts and connections, is there already.
      await storm("early-", EARLY);
      await trial.whenOrdered(target, EARLY);
      const before = await readMemory(trial, target.saleId);
      const { answers } = await storm("buyer-", buyers);
      await trial.whenOrdered(target, buyers + EARLY);
      const breaches = [
        ...(acceptedOf(answers) === buyers ? [] : unexpected("of buyers with one each", answers, ["QUEUED"])),
        ...(await trial.findBreaches(target)),
      ];
      const after = await readMemory(trial, target.saleId);
      const details = { "the queue, KB": after.queue / 1e3, "decided reservations": buyers };
      return roundOf((after.rest - before.rest) / buyers, breaches, details, answers);
    }),
};

/** In bytes; what clients wait for to be sent to them, and the append-only file's buffer, come and go. */
async function readMemory({ stores }: Trial, saleId: string): Promise<{ queue: number; rest: number }> {
  const redis = new Redis(stores.redisUrl);
  try {
    const queueKeys = await redis.keys(`${queuePrefix(saleId).replace(/[[\]{}?*\\]/g, "\\$&")}:*`);
    const queueBytes = await Promise.all(queueKeys.map((key) => redis.memory("USAGE", key, "SAMPLES", 0)));
    const info = await redis.info("memory");
    const bytes = (field: string) => Number(new RegExp(`^${field}:(\\d+)`, "m").exec(info)?.[1] ?? 0);
    const queue = queueBytes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
    return { queue, rest: bytes("used_memory") - bytes("mem_clients_normal") - bytes("mem_aof_buffer") - queue };
  } finally {
    redis.disconnect();
  }
}
