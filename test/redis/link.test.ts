import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { SECOND } from "../../src/domain/time.js";
import { callAdvance, toStage } from "../../src/redis/advance.js";
import { RedisUnavailableError } from "../../src/redis/errors.js";
import { connectRedis, type RedisLink } from "../../src/redis/link.js";
import { beginLoad, finishLoad } from "../../src/redis/load.js";
import {
  accepted,
  type Bench,
  connect,
  loadAgain,
  openSale,
  requestId,
  reserve,
  startBench,
  stockOf,
} from "../lua/support.js";
import { startTcpProxy } from "../support/tcp-proxy.js";
import { atEndOfFile } from "../support/test-file.js";
import { waitFor } from "../support/wait.js";
import { durationOf, metAgain, OVER_BY_MS, TIMEOUT_MS, unavailable } from "./support.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench();
});
beforeEach(() => bench.clear());

const usableAgain = (link: RedisLink) => link.whenUsable(20 * SECOND);

describe("a connection", () => {
  it("sends nothing before it knows which server it speaks to", async () => {
    const sale = await openSale(bench);
    const proxy = await startTcpProxy(bench.redis.url);
    proxy.delay(20);
    const link = connectRedis({ url: proxy.url(bench.redis.url), name: "t", commandTimeoutMs: 5_000, onError() {} });
    atEndOfFile(() => link.close());
    const met = usableAgain(link).then(() => "met");
    let refused = 0;
    // Again and again while it connects, shakes hands and asks.
    for (let turn: unknown; turn !== "met"; turn = await Promise.race([met, new Promise(setImmediate)])) {
      if (link.isUsable()) break;
      await unavailable(reserve(link, sale, refused));
      refused += 1;
    }
    await met;
    expect(refused).toBeGreaterThan(1);
    expect(await stockOf(bench, sale)).toBe("10");

    const info = await bench.client.info("server");
    expect(info).toContain(`run_id:${link.runId()}`);
    expect(link.facts()).toEqual({ runId: link.runId(), evictionPolicy: "noeviction", appendOnly: true });
    await accepted(link, sale, 1);
  });

  it("that finds no server says so in time, and fails every call at once", async () => {
    const link = connectRedis({ url: "redis://127.0.0.1:1", name: "t", commandTimeoutMs: TIMEOUT_MS, onError() {} });
    atEndOfFile(() => link.close());
    await unavailable(link.whenUsable(100));
    expect(await durationOf(unavailable(link.run((client) => client.get("key"))))).toBeLessThan(TIMEOUT_MS);
    expect(() => link.runId()).toThrow(RedisUnavailableError);
    expect(link.facts()).toBeNull();
  });

  it("tells a command that is wrong from a server that can't, and has changed nothing", async () => {
    const wrong = bench.link.run((client) => client.call("NONSENSE"));
    await expect(wrong).rejects.toThrow(expect.objectContaining({ name: "ReplyError" }));

    const sale = await openSale(bench);
    await accepted(bench.link, sale, 1);
    await bench.client.config("SET", "maxmemory", "1");
    try {
      await bench.untouchedBy(() => unavailable(reserve(bench.link, sale, 2)));
      await bench.untouchedBy(() => unavailable(callAdvance(bench.link, sale.id, [toStage(requestId(1), "PAID")])));
    } finally {
      await bench.client.config("SET", "maxmemory", "0");
    }
    await accepted(bench.link, sale, 2);
  });

  it("to a master that was made a replica takes nothing there, and looks for another", async () => {
    const sale = await openSale(bench);
    const link = await connect(bench.redis.url);
    await accepted(link, sale, 1);
    const again = metAgain(link);
    await bench.client.replicaof("127.0.0.1", "1");
    try {
      await bench.untouchedBy(() => unavailable(reserve(link, sale, 2)));
      await again;
    } finally {
      await bench.client.replicaof("NO", "ONE");
    }
    await accepted(link, sale, 2);
  });
});

describe("a server that was restarted", () => {
  it("is another one: its calls fail meanwhile, and what it has kept is not sold from before it is loaded again", async () => {
    const sale = await openSale(bench);
    const link = await connect(bench.redis.url, TIMEOUT_MS);
    await accepted(link, sale, 1);
    const before = link.runId();
    const again = metAgain(link);
    await bench.redis.kill();
    for (const number of [2, 3, 4]) {
      expect(await durationOf(unavailable(reserve(link, sale, number)))).toBeLessThan(OVER_BY_MS);
    }
    await waitFor(() => !link.isUsable(), { what: "the connection to be closed" });
    expect(() => link.runId()).toThrow(RedisUnavailableError);
    await bench.redis.restart();
    await again;

    expect(link.runId()).not.toBe(before);
    expect(await stockOf(bench, sale)).toBe("9");
    await bench.untouchedBy(async () => {
      expect(await reserve(link, sale, 1)).toEqual({ kind: "not_loaded" });
      expect(await reserve(link, sale, 2)).toEqual({ kind: "not_loaded" });
      const decided = [toStage(requestId(1), "ORDERED")];
      expect(await callAdvance(link, sale.id, decided)).toEqual({ kind: "not_loaded" });
    });
    await loadAgain(link, sale, { epoch: 2 });
    await accepted(link, sale, 2);
  });

  it("does not let a load go on that the one before it began", async () => {
    const sale = await openSale(bench);
    const link = await connect(bench.redis.url);
    await beginLoad(link, { ...sale.header, epoch: 2 });
    const again = metAgain(link);
    await bench.redis.restart();
    await again;
    expect(await bench.untouchedBy(() => finishLoad(link, sale.id, 2))).toBe("superseded");
  });

  it("killed between deciding and answering has taken one unit, and hears of it no second time", async () => {
    const sale = await openSale(bench);
    const proxy = await startTcpProxy(bench.redis.url);
    const link = await connect(proxy.url(bench.redis.url));
    await accepted(link, sale, 1);
    const again = metAgain(link);

    proxy.swallowReplies();
    const lost = unavailable(reserve(link, sale, 2));
    await waitFor(() => proxy.swallowedBytes > 0, { what: "the reply to be lost" });
    await bench.redis.kill();
    await lost;
    proxy.heal();
    await bench.redis.restart();
    await again;
    expect(await reserve(link, sale, 2)).toEqual({ kind: "not_loaded" });
    expect(await stockOf(bench, sale)).toBe("8");
    expect(await bench.client.hget(sale.keys.sale, "seq")).toBe("1000003");
  });
});

it("what was sent into a connection that then breaks is not sent again by itself", async () => {
  const sale = await openSale(bench);
  const proxy = await startTcpProxy(bench.redis.url);
  const link = await connect(proxy.url(bench.redis.url));
  await accepted(link, sale, 1);
  const again = metAgain(link);
  proxy.blackhole();
  const lost = [2, 3, 4].map((number) => unavailable(reserve(link, sale, number)));
  proxy.cut({ once: true });
  await Promise.all(lost);
  proxy.heal();
  await again;
  // Behind whatever this connection might have repeated.
  await link.run((client) => client.ping());
  expect(await stockOf(bench, sale)).toBe("9");
  expect(await accepted(link, sale, 2)).toMatchObject({ ahead: 1, seq: 1_000_003 });
});

describe("scripts that the server forgets", () => {
  it("under way are taught again, and each runs once", async () => {
    const sale = await openSale(bench, { stock: { shirt: 1_000 } });
    for (let round = 0; round < 400; round += 10) {
      // Taught by the first of them; the server forgets somewhere among the others.
      await accepted(bench.link, sale, round);
      const calls = Array.from({ length: 9 }, (_, call) => accepted(bench.link, sale, round + call + 1));
      await Promise.all([...calls, bench.client.script("FLUSH")]);
    }
    expect(await stockOf(bench, sale)).toBe("600");
    expect(await bench.client.zcard(sale.keys.pending)).toBe(400 + 1);
  });

  it("faster than they are taught make it a server that can't serve", async () => {
    await unavailable(bench.link.run((client) => client.evalsha("0".repeat(40), 0)));
  });
});
