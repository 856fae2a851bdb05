import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { beforeAll, describe, expect, it } from "vitest";
import { createSaleEvents, type SaleEvents, type SaleNews } from "../../src/realtime/sale-events.js";
import type { RedisLink } from "../../src/redis/link.js";
import { connect } from "../lua/support.js";
import { startTestRedis, type TestRedis } from "../support/redis.js";
import { startTcpProxy } from "../support/tcp-proxy.js";
import { atEndOfFile } from "../support/test-file.js";
import { waitFor } from "../support/wait.js";

const NEVER = Number.POSITIVE_INFINITY;
const WAIT = { timeoutMs: 30_000 };

let redis: TestRedis;
let link: RedisLink;
let client: Redis;
beforeAll(async () => {
  redis = await startTestRedis();
  link = await connect(redis.url);
  client = new Redis(redis.url);
  atEndOfFile(() => client.disconnect());
});

function eventsOf(url: string, commands: RedisLink, heardWithinMs = 500): SaleEvents {
  const events = createSaleEvents({ url, redis: commands, heardWithinMs, onError: () => {} });
  atEndOfFile(() => events.close());
  return events;
}

/** A sale that is followed, and what was heard of it. */
function follow(events: SaleEvents, saleId: string = randomUUID()) {
  const heard: SaleNews[] = [];
  const following = events.follow(saleId, (news) => heard.push(news));
  return { ...following, heard, publish: (text: string) => client.publish(`sluice:{${saleId}}:events`, text) };
}

const isSound = (following: { heardAllSince(runId: string): number }, runId: string) =>
  waitFor(() => following.heardAllSince(runId) < NEVER, { what: "the proof that events arrive", ...WAIT });

describe("who follows a sale", () => {
  it("hears of items that have units again, of anything else that is no request's, and of what can't be read", async () => {
    const { heard, publish, ...following } = follow(eventsOf(redis.url, link));
    await isSound(following, link.runId());
    // That the connection was made is news too.
    heard.length = 0;
    const texts = [
      '{"kind":"requests","seq":1,"requests":[["a",30]]}',
      '{"kind":"requests","seq":2,"requests":[["a",90]],"restocked":["shirt","mug"]}',
      '{"kind":"state","state":"PAUSED"}',
      '{"kind":"reloaded","epoch":2}',
      "nonsense",
    ];
    for (const text of texts) await publish(text);
    await waitFor(() => heard.length === 4, { what: "the news", ...WAIT });
    const everything = { kind: "everything" };
    expect(heard).toEqual([{ kind: "restocked", itemIds: ["shirt", "mug"] }, everything, everything, everything]);
    following.stop();
    following.stop();
    await waitFor(async () => (await publish("{}")) === 0, { what: "the channel to be left", ...WAIT });
  });

  it("can't say that all was heard before the subscription, or of another server, or when it is over", async () => {
    const events = eventsOf(redis.url, link);
    const first = follow(events);
    await isSound(first, link.runId());
    const begun = performance.now();
    const second = follow(events);
    expect(second.heardAllSince(link.runId())).toBe(NEVER);
    await isSound(second, link.runId());
    expect(second.heardAllSince(link.runId())).toBeGreaterThanOrEqual(begun);
    expect(first.heardAllSince(link.runId())).toBeLessThan(begun);
    // Also where somebody else of this process has listened for long: this one has not.
    const saleId = randomUUID();
    await isSound(follow(events, saleId), link.runId());
    const later = performance.now();
    expect(follow(events, saleId).heardAllSince(link.runId())).toBeGreaterThanOrEqual(later);
    expect(first.heardAllSince("another")).toBe(NEVER);
  });

  it("can't say so while it listens to another server than the one that commands go to", async () => {
    const elsewhere = await startTestRedis();
    const other = await connect(elsewhere.url);
    const following = follow(eventsOf(redis.url, other));
    const published = async () =>
      Number(/cmdstat_publish:calls=(\d+)/.exec(await other.client.info("commandstats"))?.[1]);
    // A few echoes went there, and none came here.
    await waitFor(async () => (await published()) >= 3, { what: "echoes", ...WAIT });
    for (const runId of [link.runId(), other.runId()]) expect(following.heardAllSince(runId)).toBe(NEVER);
  });

  it("can't say so any more when no echo comes, however well the connection of the events looks", async () => {
    const proxy = await startTcpProxy(redis.url);
    const following = follow(eventsOf(redis.url, await connect(proxy.url(redis.url))));
    await isSound(following, link.runId());
    proxy.blackhole();
    await waitFor(() => following.heardAllSince(link.runId()) === NEVER, {
      what: "the silence to be noticed",
      ...WAIT,
    });
    proxy.heal();
    await isSound(following, link.runId());
  });

  it("starts anew with a new connection, and is told that anything may have changed", async () => {
    const proxy = await startTcpProxy(redis.url);
    // The last echo is recent enough for all of this test: it is the cut that counts.
    const following = follow(eventsOf(proxy.url(redis.url), link, 60_000));
    await isSound(following, link.runId());
    proxy.cut();
    await waitFor(() => following.heardAllSince(link.runId()) === NEVER, { what: "the cut to be noticed", ...WAIT });
    const healed = performance.now();
    proxy.heal();
    await isSound(following, link.runId());
    expect(following.heardAllSince(link.runId())).toBeGreaterThanOrEqual(healed);
    expect(following.heard).toContainEqual({ kind: "everything" });
  });

  it("takes no echo of before for one of a connection that leads to another server", async () => {
    const [proxy, elsewhere] = await Promise.all([startTcpProxy(redis.url), startTestRedis()]);
    const there = await connect(elsewhere.url);
    await there.client.acl("SETUSER", "default", `>${new URL(redis.url).password}`);
    const following = follow(eventsOf(proxy.url(redis.url), link, 60_000));
    await isSound(following, link.runId());
    following.heard.length = 0;
    proxy.redirect(elsewhere.url);
    await waitFor(() => following.heard.length > 0, { what: "the new connection", ...WAIT });
    expect(following.heardAllSince(link.runId())).toBe(NEVER);
  });
});
