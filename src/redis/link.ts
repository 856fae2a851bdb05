import { Redis, type RedisOptions } from "ioredis";
import { SECOND } from "../domain/time.js";
import { orWhenLate } from "../lifecycle/pause.js";
import { asRedisError, RedisUnavailableError } from "./errors.js";
import { joinWrites, streamOf } from "./join-writes.js";
import { RedisClock } from "./redis-clock.js";
import { defineScripts } from "./scripts.js";

/** Timeouts in a row after which a connection is given up: a server that froze, or a network that swallows. */
const TIMEOUTS_TO_RECONNECT = 3;

export interface LinkOptions {
  readonly url: string;
  readonly name: string;
  /** how long one command may take, in milliseconds */
  readonly commandTimeoutMs: number;
  /** Why such a server must not be used, or null. */
  unfitBecause?(facts: ServerFacts): string | null;
  onError(error: Error): void;
}

/** What a Redis server tells about itself, in the words of INFO. */
export interface ServerFacts {
  readonly runId: string;
  readonly evictionPolicy: string;
  readonly appendOnly: boolean;
}

/**
 * A connection that knows which server it speaks to.
 *
 * It learns the server's run_id before it lets anything through and forgets it when it closes, so a script always tells
 * the server which one it was meant for; another one answers NOT_LOADED instead of selling stock it may not have.
 * It never sends anything twice by itself: ioredis re-sends unanswered commands by default, and one reservation took two
 * units that way. A command that timed out may still be done by the server.
 */
export interface RedisLink {
  /** For commands of our own and for BullMQ; scripts go through `run`. */
  readonly client: Redis;
  readonly clock: RedisClock;
  /** The server's run_id. @throws RedisUnavailableError while there is none. */
  runId(): string;
  isUsable(): boolean;
  facts(): ServerFacts | null;
  /** Why the server that was met must not be used, or null. */
  unfit(): string | null;
  /** Runs commands, with every failure to reach the server thrown as RedisUnavailableError. */
  run<Reply>(command: (client: Redis, runId: string) => Promise<Reply>): Promise<Reply>;
  /** Resolves once a server was met. @throws RedisUnavailableError after `timeoutMs`. */
  whenUsable(timeoutMs: number): Promise<void>;
  /** Calls back whenever a server was met again after the connection was lost. Returns what takes it back. */
  onUsable(listener: () => void): () => void;
  close(): Promise<void>;
}

export function connectRedis(options: LinkOptions): RedisLink {
  const client = new Redis(options.url, {
    ...requestPathOptions(options.commandTimeoutMs),
    connectionName: `sluice:${options.name}`,
  });
  client.setMaxListeners(0);
  defineScripts(client);

  const clock = new RedisClock();
  const listeners = new Set<() => void>();
  let facts: ServerFacts | null = null;
  let unfit: string | null = null;
  const silence = watchSilence(client, options.commandTimeoutMs);
  const sendTogether = joinWrites(client);

  client.on("error", options.onError);
  client.on("close", () => {
    facts = null;
  });
  client.on("ready", async () => {
    try {
      const met = await meetServer(client, clock);
      if (client.status !== "ready") return;
      unfit = options.unfitBecause?.(met) ?? null;
      if (unfit) throw new RedisUnavailableError(unfit);
      facts = met;
      silence.broken();
      for (const listener of listeners) listener();
    } catch (error) {
      options.onError(asRedisError(error));
      client.disconnect(true);
    }
  });

  const runId = () => {
    if (!facts) throw new RedisUnavailableError("not connected to Redis");
    return facts.runId;
  };

  const onUsable = (listener: () => void) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  };

  return {
    client,
    clock,
    runId,
    isUsable: () => facts !== null,
    facts: () => facts,
    unfit: () => unfit,
    async run(command) {
      try {
        const received = silence.received();
        sendTogether();
        const reply = await orWhenLate(command(client, runId()), options.commandTimeoutMs, () => {
          if (silence.lasts(received)) {
            // Not only when it has closed: a peer that is frozen does not close its side, and ioredis waits two seconds.
            facts = null;
            client.disconnect(true);
          }
          throw new RedisUnavailableError(`no reply within ${options.commandTimeoutMs} ms`);
        });
        silence.broken();
        return reply;
      } catch (error) {
        throw asRedisError(error);
      }
    },
    whenUsable(timeoutMs) {
      if (facts) return Promise.resolve();
      let stopListening = () => {};
      const met = new Promise<void>((resolve) => {
        stopListening = onUsable(resolve);
      });
      return orWhenLate(met, timeoutMs, () => {
        throw new RedisUnavailableError(`no Redis server answered within ${timeoutMs} ms`);
      }).finally(stopListening);
    },
    onUsable,
    async close() {
      await closeClient(client);
    },
  };
}

/** Tells a server that is silent from one whose replies are only late, by the bytes that arrive. */
function watchSilence(client: Redis, timeoutMs: number) {
  let timeouts = 0;
  let lastAt = Number.NEGATIVE_INFINITY;
  const received = () => streamOf(client)?.bytesRead ?? 0;
  const broken = () => {
    timeouts = 0;
    lastAt = Number.NEGATIVE_INFINITY;
  };
  return {
    received,
    broken,
    /** Notes a timeout: true where nothing has arrived since `before`, for several timeouts one after the other. */
    lasts(before: number): boolean {
      if (received() !== before) {
        broken();
        return false;
      }
      // Hundreds of calls that time out together are one timeout.
      if (performance.now() - lastAt < timeoutMs / 2) return false;
      timeouts += 1;
      lastAt = performance.now();
      return timeouts === TIMEOUTS_TO_RECONNECT;
    },
  };
}

/** Options of every connection that somebody waits for: fail at once rather than queue, repeat or hang. */
function requestPathOptions(commandTimeoutMs: number): RedisOptions {
  return {
    // The last net, for what ioredis sends by itself; `run` gives up earlier, and only when nothing has arrived.
    commandTimeout: 4 * commandTimeoutMs,
    connectTimeout: 2 * SECOND,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    retryStrategy: reconnectDelay,
    // After a failover the old master is a replica: connect again, and do not re-send.
    reconnectOnError: (error) => (error.message.startsWith("READONLY") ? 1 : false),
  };
}

/** Milliseconds until the next attempt: quick at first, one second at most, apart from each other. */
export function reconnectDelay(attempt: number): number {
  return Math.min(50 * attempt, 1 * SECOND) * (0.75 + Math.random() / 2);
}

/** Says goodbye where the server answers, and hangs up where it does not. */
export async function closeClient(client: Redis): Promise<void> {
  if (client.status === "end") return;
  const goodbye = client.status === "ready" ? client.quit().then(() => {}) : Promise.reject(new Error("not connected"));
  const hangUp = () => client.disconnect();
  await orWhenLate(goodbye.catch(hangUp), 500, hangUp);
}

async function meetServer(client: Redis, clock: RedisClock): Promise<ServerFacts> {
  const [info, time] = await Promise.all([client.info(), client.time()]);
  clock.observe(Number(time[0]) * SECOND + Math.floor(Number(time[1]) / 1_000));
  const field = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1] ?? "";
  const runId = field("run_id");
  if (!runId) throw new RedisUnavailableError("the server does not tell its run_id");
  return { runId, evictionPolicy: field("maxmemory_policy"), appendOnly: field("aof_enabled") === "1" };
}
