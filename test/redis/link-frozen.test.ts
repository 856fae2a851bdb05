import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { MINUTE } from "../../src/domain/time.js";
import { accepted, type Bench, connect, openSale, reserve, startBench, stockOf } from "../lua/support.js";
import { startTcpProxy } from "../support/tcp-proxy.js";
import { waitFor } from "../support/wait.js";
import { durationOf, metAgain, OVER_BY_MS, TIMEOUT_MS, unavailable } from "./support.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench();
});
beforeEach(() => bench.clear());

describe("a server that is frozen", () => {
  it("fails a call in time, and accepts nothing late that was given up", async () => {
    const sale = await openSale(bench);
    const link = await connect(bench.redis.url, TIMEOUT_MS);
    await accepted(link, sale, 1);
    bench.redis.freeze();
    try {
      const [inTime, late] = [link.clock.now() + MINUTE, link.clock.now() + TIMEOUT_MS / 3];
      const calls = [
        unavailable(reserve(link, sale, 2, { notAfterMs: late })),
        unavailable(reserve(link, sale, 3, { notAfterMs: inTime })),
      ];
      expect(await durationOf(Promise.all(calls))).toBeLessThan(OVER_BY_MS);
    } finally {
      bench.redis.thaw();
    }
    // The same connection: what was sent on it before has run by then. The third shows that it did run, late.
    await waitFor(() => link.run((client) => client.ping()), { what: "the thawed server to answer" });
    expect(await reserve(link, sale, 3)).toMatchObject({ kind: "known", seq: 1_000_003 });
    expect(await stockOf(bench, sale)).toBe("8");
    expect(await accepted(link, sale, 2)).toMatchObject({ seq: 1_000_004 });
  });

  it("is hung up on after three calls, fails the next at once, and is met again when it thaws", async () => {
    const sale = await openSale(bench);
    const link = await connect(bench.redis.url, TIMEOUT_MS);
    await accepted(link, sale, 1);
    const again = metAgain(link);
    bench.redis.freeze();
    try {
      const late = link.clock.now() + TIMEOUT_MS / 3;
      for (const number of [2, 3, 4]) await unavailable(reserve(link, sale, number, { notAfterMs: late }));
      expect(link.isUsable()).toBe(false);
      expect(await durationOf(unavailable(reserve(link, sale, 5)))).toBeLessThan(TIMEOUT_MS);
    } finally {
      bench.redis.thaw();
    }
    await again;
    await accepted(link, sale, 5);
    expect(await stockOf(bench, sale)).toBe("8");
  });

  it("does not hold up who wants to be done with it", async () => {
    const link = await connect(bench.redis.url, 20_000);
    bench.redis.freeze();
    try {
      expect(await durationOf(link.close())).toBeLessThan(OVER_BY_MS);
    } finally {
      bench.redis.thaw();
    }
  });
});

it("an answer between two timeouts keeps the connection", async () => {
  const proxy = await startTcpProxy(bench.redis.url);
  const link = await connect(proxy.url(bench.redis.url), TIMEOUT_MS);
  for (let round = 0; round < 3; round += 1) {
    bench.redis.freeze();
    await unavailable(link.run((client) => client.ping())).finally(() => bench.redis.thaw());
    await waitFor(() => link.run((client) => client.ping()), { what: "an answer" });
  }
  expect(proxy.accepted).toBe(1);
});
