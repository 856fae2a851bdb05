import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { SALE_STATES, type SaleState } from "../../src/domain/sale-state.js";
import { DAY } from "../../src/domain/time.js";
import { beginLoad, finishLoad } from "../../src/redis/load.js";
import { callSetState } from "../../src/redis/set-state.js";
import {
  accepted,
  type Bench,
  garble,
  loadAgain,
  NO_COUNTS,
  newSale,
  openSale,
  replace,
  reserve,
  startBench,
  type TestSale,
} from "./support.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench();
});
beforeEach(() => bench.clear());

const setState = ({ header }: TestSale, state: SaleState, stateVersion: number) =>
  callSetState(bench.link, { id: header.saleId, closesAt: header.closesAt, state, stateVersion });
const read = (sale: TestSale, ...fields: string[]) => bench.client.hmget(sale.keys.sale, ...fields);

describe("a state", () => {
  it("decides the next request at once", async () => {
    const sale = await openSale(bench);
    await accepted(bench.link, sale, 1);
    await setState(sale, "PAUSED", 2);
    expect(await reserve(bench.link, sale, 2)).toEqual({ kind: "paused" });
    await setState(sale, "OPEN", 3);
    await accepted(bench.link, sale, 2);
    await setState(sale, "CLOSED", 4);
    expect(await reserve(bench.link, sale, 3)).toEqual({ kind: "ended" });
  });

  it("that is not newer is stale, and changes not one key", async () => {
    const sale = await openSale(bench, { stateVersion: 10 });
    for (const stateVersion of [10, 9, 2, 0]) {
      expect(await bench.untouchedBy(() => setState(sale, "CLOSED", stateVersion)), `${stateVersion}`).toBe("stale");
    }
    expect(await setState(sale, "PAUSED", 11)).toBe("applied");
    expect(await bench.untouchedBy(() => setState(sale, "PAUSED", 11))).toBe("stale");
  });

  it("of those that arrive in any order, the newest stays", async () => {
    const sale = await openSale(bench, { stateVersion: 0 });
    const order = [3, 1, 4, 2];
    const replies = await Promise.all(
      order.map((version) => setState(sale, SALE_STATES[version % 4] ?? "OPEN", version)),
    );
    expect(replies).toEqual(["applied", "stale", "applied", "stale"]);
    expect(await read(sale, "state", "stateVersion")).toEqual([SALE_STATES[0], "4"]);
  });

  it("is published, and counts as a change of the sale", async () => {
    const sale = await openSale(bench);
    await bench.published();
    await setState(sale, "PAUSED", 2);
    expect(await bench.published()).toEqual([
      { channel: sale.keys.events, message: { kind: "state", state: "PAUSED" } },
    ]);
    expect(await read(sale, "seq")).toEqual(["1000002"]);
  });

  it("changes nothing else of a sale, in any phase and on any server", async () => {
    for (const fields of [{ phase: "READY" }, { phase: "LOADING" }, { runId: "f".repeat(40) }]) {
      const sale = newSale();
      await beginLoad(bench.link, sale.header);
      await bench.client.hset(sale.keys.sale, fields);
      const before = { keys: await bench.snapshot(), sale: await bench.client.hgetall(sale.keys.sale) };
      expect(await setState(sale, "PAUSED", 2)).toBe("applied");
      const changed = { state: "PAUSED", stateVersion: "2", seq: "1000001" };
      expect(await bench.client.hgetall(sale.keys.sale)).toEqual({ ...before.sale, ...changed });
      const { [sale.keys.sale]: after, ...others } = await bench.snapshot();
      const { [sale.keys.sale]: was, ...othersBefore } = before.keys;
      expect(others).toEqual(othersBefore);
      expect(after?.expiresAt).toBe(was?.expiresAt);
    }
  });
});

describe("a sale that was never loaded", () => {
  it("remembers its newest state, and is forgotten a week after it closes", async () => {
    const sale = newSale();
    expect(await setState(sale, "PAUSED", 2)).toBe("applied");
    expect(await setState(sale, "OPEN", 1)).toBe("stale");
    expect(await setState(sale, "CLOSED", 3)).toBe("applied");
    expect(await bench.client.hgetall(sale.keys.sale)).toEqual({ state: "CLOSED", stateVersion: "3" });
    expect(await bench.client.pexpiretime(sale.keys.sale)).toBe(sale.header.closesAt.getTime() + 7 * DAY);
  });

  it("takes the first state, also of version 0", async () => {
    const sale = newSale();
    expect(await setState(sale, "DRAFT", 0)).toBe("applied");
  });

  it("closed longer ago than that leaves nothing behind", async () => {
    const sale = newSale({ closesAt: new Date(Date.now() - 8 * DAY) });
    await setState(sale, "CLOSED", 2);
    expect(await bench.client.exists(sale.keys.sale)).toBe(0);
  });
});

describe("a state that was said after the load had read the row", () => {
  const pause = (sale: TestSale) => setState(sale, "PAUSED", 2);
  const stateOf = (sale: TestSale) => read(sale, "state", "stateVersion");

  it("is not undone by it: said before begin, to an old loading", async () => {
    const sale = await openSale(bench);
    expect(await pause(sale)).toBe("applied");
    await loadAgain(bench.link, sale, { epoch: 2 });
    expect(await stateOf(sale)).toEqual(["PAUSED", "2"]);
    expect(await reserve(bench.link, sale, 1)).toEqual({ kind: "paused" });
  });

  it("is not undone by it: said before begin, with nothing loaded", async () => {
    const sale = newSale();
    expect(await pause(sale)).toBe("applied");
    await loadAgain(bench.link, sale, {});
    expect(await stateOf(sale)).toEqual(["PAUSED", "2"]);
    expect(await bench.client.pexpiretime(sale.keys.sale)).toBe(sale.header.closesAt.getTime() + 7 * DAY);
  });

  it("is not undone by it: said between begin and finish", async () => {
    const sale = newSale();
    await beginLoad(bench.link, sale.header);
    expect(await pause(sale)).toBe("applied");
    await finishLoad(bench.link, sale.id, 1);
    expect(await stateOf(sale)).toEqual(["PAUSED", "2"]);
  });

  it("is replaced by a load that knows better", async () => {
    const sale = await openSale(bench);
    await pause(sale);
    await loadAgain(bench.link, sale, { epoch: 2, stateVersion: 3, state: "OPEN" });
    expect(await stateOf(sale)).toEqual(["OPEN", "3"]);
    await accepted(bench.link, sale, 1);
  });
});

describe("a damaged sale is left as it is", () => {
  it.each(["string", "list", "set", "zset"])("a key that is a %s", async (type) => {
    const sale = await openSale(bench);
    await replace(bench, sale.keys.sale, type);
    expect(await bench.untouchedBy(() => setState(sale, "PAUSED", 2))).toBe("damaged");
  });

  it.each(NO_COUNTS)("a stateVersion or seq of %j", async (value) => {
    for (const field of ["stateVersion", "seq"]) {
      const sale = await openSale(bench);
      await garble(bench, sale.keys.sale, field, value);
      expect(await bench.untouchedBy(() => setState(sale, "PAUSED", 2)), field).toBe("damaged");
    }
  });

  it("no seq at all", async () => {
    const sale = await openSale(bench);
    await garble(bench, sale.keys.sale, "seq", null);
    expect(await bench.untouchedBy(() => setState(sale, "PAUSED", 2))).toBe("damaged");
  });
});
