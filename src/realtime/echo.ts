import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";
import { SECOND } from "../domain/time.js";
import type { RedisLink } from "../redis/link.js";

/**
 * Proves over and over that what is published where the commands go is heard here. An echo is published through the
 * connection of the commands and heard on that of the events, behind everything that was published before it: so a network
 * that swallows, a server that is frozen and a connection that still leads to the old master all show.
 */
export interface Echo {
  readonly channel: string;
  /** When the newest echo was sent (performance.now()) that was heard of the server of that run_id; -Infinity for none. */
  heardSentAt(runId: string): number;
  /** Takes a message of the channel. */
  heard(text: string): void;
  /** Nothing that was heard counts any more. */
  forget(): void;
  stop(): void;
}

const EVERY_MS = SECOND / 10;

/** Publishes while `isWanted`. */
export function createEcho(link: RedisLink, isWanted: () => boolean): Echo {
  const channel = `sluice:echo:${randomUUID()}`;
  const nothing = { runId: "", sentAt: Number.NEGATIVE_INFINITY };
  let newest = nothing;
  let sending = false;

  const send = async (client: Redis, runId: string) => {
    sending = true;
    await client.publish(channel, `${performance.now()} ${runId}`).catch(() => {});
    sending = false;
  };
  const beat = () => {
    const facts = link.facts();
    if (!sending && facts && isWanted()) void send(link.client, facts.runId);
  };
  const beating = setInterval(beat, EVERY_MS);
  beating.unref();

  return {
    channel,
    heardSentAt: (runId) => (newest.runId === runId ? newest.sentAt : nothing.sentAt),
    heard(text) {
      const [sentAt, runId = ""] = text.split(" ");
      newest = { runId, sentAt: Number(sentAt) };
    },
    forget() {
      newest = nothing;
    },
    stop: () => clearInterval(beating),
  };
}
