import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { operate } from "../support/operate.js";
import type { NodeProcess } from "../support/processes.js";
import {
  type Answer,
  type Api,
  prepareSluice,
  type ReserveAnswer,
  reserve,
  type TestSluice,
  waitUntilDecided,
} from "../support/sluice.js";
import { waitFor } from "../support/wait.js";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

let sluice: TestSluice;
let api: Api;
let other: Api;

beforeAll(async () => {
  sluice = await prepareSluice();
  const env = { BACKLOG_LIMIT: "3" };
  [api, other] = await Promise.all([sluice.startApi(env), sluice.startApi(env)]);
});

describe("without a worker", () => {
  it("a request is QUEUED, told how many are ahead, and QUEUED again when it is repeated", async () => {
    const sale = await sluice.createSale(api);
    const requests = [randomUUID(), randomUUID(), randomUUID()];
    const tokens = await Promise.all(requests.map(() => buyer()));

    for (const [at, requestId] of requests.entries()) {
      const answer = await reserve(api, tokens[at] ?? "", sale, { requestId, quantity: 2 });
      expect(payloadOf(answer)).toMatchObject({
        status: "QUEUED",
        retryAfterMs: null,
        reservation: { requestId, status: "QUEUED", quantity: 2, ahead: at, order: null },
      });
    }
    for (const [at, requestId] of requests.entries()) {
      const repeat = await reserve(other, tokens[at] ?? "", sale, { requestId, quantity: 2 });
      expect(payloadOf(repeat)).toMatchObject({ status: "QUEUED", reservation: { requestId, ahead: at } });
    }
  });

  it("one more than the backlog takes is BUSY, and takes no stock; repeats are answered all the same", async () => {
    const sale = await sluice.createSale(api);
    const first = { token: await buyer(), requestId: randomUUID() };
    await expectStatus("QUEUED", reserve(api, first.token, sale, { requestId: first.requestId }));
    await expectStatus("QUEUED", reserve(api, await buyer(), sale));
    await expectStatus("QUEUED", reserve(api, await buyer(), sale));

    const busy = await expectStatus("BUSY", reserve(api, await buyer(), sale));
    expect(busy.retryAfterMs).toBeGreaterThanOrEqual(1 * SECOND);
    expect(busy.retryAfterMs).toBeLessThanOrEqual(3 * SECOND);
    await expectStatus("QUEUED", reserve(api, first.token, sale, { requestId: first.requestId }));
    const { data } = await api.call(null, "query ($id: ID!) { sale(id: $id) { items { remaining } } }", {
      id: sale.id,
    });
    expect(data).toEqual({ sale: { items: [{ remaining: 97 }] } });
  });

  it("more than the limit is LIMIT_EXCEEDED, more than is left INSUFFICIENT, and of nothing SOLD_OUT", async () => {
    const sale = await sluice.createSale(api, { initial: [1, 0], maxPerBuyer: 2 });
    const token = await buyer();

    const limit = await expectStatus("LIMIT_EXCEEDED", reserve(api, token, sale, { quantity: 3 }));
    expect(limit.message).toContain("2");
    const insufficient = await expectStatus("INSUFFICIENT", reserve(api, token, sale, { quantity: 2 }));
    expect(insufficient.message).toContain("1");
    await expectStatus("SOLD_OUT", reserve(api, token, sale, { itemId: sale.items[1]?.id ?? "" }));
  });

  it("a requestId that is used again for anything else is REQUEST_CONFLICT, whoever sends it", async () => {
    const sale = await sluice.createSale(api, { initial: [10, 10] });
    const token = await buyer();
    const requestId = randomUUID();
    await expectStatus("QUEUED", reserve(api, token, sale, { requestId }));

    await expectStatus("REQUEST_CONFLICT", reserve(api, await buyer(), sale, { requestId }));
    await expectStatus("REQUEST_CONFLICT", reserve(api, token, sale, { requestId, quantity: 2 }));
    await expectStatus("REQUEST_CONFLICT", reserve(api, token, sale, { requestId, itemId: sale.items[1]?.id ?? "" }));
    await expectStatus("QUEUED", reserve(api, token, sale, { requestId: requestId.toUpperCase() }));
  });

  it("a second request of a buyer is ALREADY_RESERVED, with the first one", async () => {
    const sale = await sluice.createSale(api, { initial: [10, 10] });
    const token = await buyer();
    const requestId = randomUUID();
    await expectStatus("QUEUED", reserve(api, token, sale, { requestId }));

    const again = await expectStatus(
      "ALREADY_RESERVED",
      reserve(other, token, sale, { itemId: sale.items[1]?.id ?? "" }),
    );
    expect(again.reservation).toMatchObject({ requestId, status: "QUEUED" });
  });
});

describe("the window of a sale", () => {
  it("is NOT_STARTED before opensAt, with the time until then; of a draft too", async () => {
    const opensAt = new Date(Date.now() + 10 * MINUTE);
    const closesAt = new Date(Date.now() + 20 * MINUTE);
    for (const open of [true, false]) {
      const sale = await sluice.createSale(api, { opensAt, closesAt, open });
      const { retryAfterMs } = await expectStatus("NOT_STARTED", reserve(api, await buyer(), sale));
      const untilOpen = opensAt.getTime() - Date.now();
      expect(Math.abs((retryAfterMs ?? 0) - untilOpen)).toBeLessThan(5 * SECOND);
    }
  });

  it("opens by itself at opensAt", async () => {
    const sale = await sluice.createSale(api, { opensAt: new Date(Date.now() + 2 * SECOND) });
    const token = await buyer();
    const statuses: string[] = [];
    await waitFor(
      async () => {
        const { status } = payloadOf(await reserve(api, token, sale));
        if (statuses.at(-1) !== status) statuses.push(status);
        return status === "QUEUED";
      },
      { what: "the sale to start" },
    );
    expect(statuses).toEqual(["NOT_STARTED", "QUEUED"]);
  });

  it("is NOT_STARTED with a short wait for a draft whose time has come", async () => {
    const sale = await sluice.createSale(api, { open: false });
    const { retryAfterMs } = await expectStatus("NOT_STARTED", reserve(api, await buyer(), sale));
    expect(retryAfterMs).toBeGreaterThan(0);
    expect(retryAfterMs).toBeLessThanOrEqual(3 * SECOND);
  });

  it("is PAUSED on every instance when pauseSale returns, and goes on when resumeSale returns", async () => {
    const sale = await sluice.createSale(api);
    for (const process of [api, other]) await expectStatus("QUEUED", reserve(process, await buyer(), sale));

    await operate(sluice, api, "pauseSale", sale);
    const paused = await Promise.all(
      [other, api].map(async (process) => expectStatus("PAUSED", reserve(process, await buyer(), sale))),
    );
    for (const { retryAfterMs } of paused) expect(retryAfterMs).toBeGreaterThan(0);

    await operate(sluice, other, "resumeSale", sale);
    await expectStatus("QUEUED", reserve(api, await buyer(), sale));
  });

  it("is ENDED on every instance when closeSale returns", async () => {
    const sale = await sluice.createSale(api);
    await operate(sluice, api, "closeSale", sale);
    for (const process of [other, api]) await expectStatus("ENDED", reserve(process, await buyer(), sale));
  });
});

describe("with a worker", () => {
  let worker: NodeProcess;

  beforeAll(async () => {
    worker = await sluice.startWorker({ SLUICE_TUNING: JSON.stringify({ loops: { closerMs: 200 } }) });
  });

  it("a sale is ENDED from closesAt on, and becomes CLOSED by itself", async () => {
    const sale = await sluice.createSale(api, { closesAt: new Date(Date.now() + 2 * SECOND) });
    await waitFor(async () => payloadOf(await reserve(api, await buyer(), sale)).status === "ENDED", {
      what: "the window to pass",
    });
    await waitFor(
      async () => {
        const { data } = await api.call<{ sale: { state: string } }>(
          null,
          "query ($id: ID!) { sale(id: $id) { state } }",
          {
            id: sale.id,
          },
        );
        return data?.sale.state === "CLOSED";
      },
      { what: "the sale to become CLOSED" },
    );
    await expectStatus("ENDED", reserve(other, await buyer(), sale));
    expect(worker.lines.join("\n")).not.toContain("a turn failed");
  });

  it("a repeat of what was decided is DECIDED with its order, another request ALREADY_RESERVED; a pause and the end change neither", async () => {
    const sale = await sluice.createSale(api);
    const token = await buyer();
    const requestId = randomUUID();
    await expectStatus("QUEUED", reserve(api, token, sale, { requestId }));
    expect(await waitUntilDecided(api, token, sale.id, requestId)).toMatchObject({
      status: "SUCCESS",
      reasonCode: null,
    });
    const order = { id: `${sale.id}.${requestId}`, status: "PENDING_PAYMENT" };

    const check = async (forOthers: string) => {
      const decided = await expectStatus("DECIDED", reserve(other, token, sale, { requestId }));
      expect(decided.reservation).toMatchObject({ requestId, status: "SUCCESS", ahead: null, order });
      await expectStatus("REQUEST_CONFLICT", reserve(api, token, sale, { requestId, quantity: 2 }));
      await expectStatus(forOthers, reserve(api, await buyer(), sale));
    };
    await check("QUEUED");
    const already = await expectStatus("ALREADY_RESERVED", reserve(api, token, sale));
    expect(already.reservation).toMatchObject({ requestId, status: "SUCCESS", order });
    await operate(sluice, api, "pauseSale", sale);
    await check("PAUSED");
    await operate(sluice, api, "closeSale", sale);
    await check("ENDED");
  });

  it("what was QUEUED before a pause and before the end is still decided", async () => {
    const sale = await sluice.createSale(api);
    const token = await buyer();
    const requestId = randomUUID();
    await expectStatus("QUEUED", reserve(api, token, sale, { requestId }));
    await operate(sluice, api, "pauseSale", sale);
    await operate(sluice, api, "closeSale", sale);
    expect(await waitUntilDecided(api, token, sale.id, requestId)).toMatchObject({ status: "SUCCESS" });
  });
});

let buyers = 0;

function buyer(): Promise<string> {
  buyers += 1;
  return sluice.token("buyer", `buyer-${buyers}`);
}

function payloadOf({ data, errors }: Answer<ReserveAnswer>): ReserveAnswer["reserve"] {
  if (!data || errors) throw new Error(`reserve failed: ${JSON.stringify(errors)}`);
  return data.reserve;
}

async function expectStatus(
  status: string,
  answering: Promise<Answer<ReserveAnswer>>,
): Promise<ReserveAnswer["reserve"]> {
  const payload = payloadOf(await answering);
  expect(payload.status, payload.message).toBe(status);
  expect(payload.message).not.toBe("");
  return payload;
}
