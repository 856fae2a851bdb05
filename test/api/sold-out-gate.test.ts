import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { scrapeApi } from "../support/metrics.js";
import {
  type Api,
  prepareSluice,
  reserve,
  type TestSale,
  type TestSluice,
  waitUntilDecided,
} from "../support/sluice.js";
import { waitFor } from "../support/wait.js";

let sluice: TestSluice;
let apis: Api[];
beforeAll(async () => {
  sluice = await prepareSluice();
  const [first, second] = await Promise.all([sluice.startApi(), sluice.startApi(), sluice.startWorker()]);
  apis = [first, second];
});

const answered = async (api: Api) =>
  (await scrapeApi(sluice, api)).value("sluice_sold_out_gate_requests_total", { outcome: "answer" }) ?? 0;

/** Has strangers come until the process has answered one of them by itself. */
async function shut(api: Api, sale: TestSale): Promise<void> {
  const before = await answered(api);
  await waitFor(
    async () => {
      const token = await sluice.token("buyer", `stranger-${randomUUID()}`);
      expect((await reserve(api, token, sale)).data?.reserve.status).toBe("SOLD_OUT");
      return (await answered(api)) > before;
    },
    { what: "the gate to be shut", timeoutMs: 30_000 },
  );
}

describe("two processes that have sold out", () => {
  it("answer strangers themselves, the buyer as before, and sell what comes back", async () => {
    const [first, second] = apis as [Api, Api];
    const sale = await sluice.createSale(first, { initial: [1] });
    const [anna, ben] = await Promise.all([sluice.token("buyer", "anna"), sluice.token("buyer", "ben")]);
    const requestId = randomUUID();
    expect((await reserve(first, anna, sale, { requestId })).data?.reserve.status).toBe("QUEUED");
    for (const api of apis) await shut(api, sale);
    await waitUntilDecided(second, anna, sale.id, requestId);
    for (const api of apis) {
      const { data } = await reserve(api, anna, sale, { requestId });
      expect(data?.reserve).toMatchObject({ status: "DECIDED", reservation: { requestId, status: "SUCCESS" } });
    }

    const cancelled = await first.call(anna, "mutation ($id: ID!) { cancelOrder(orderId: $id) { status } }", {
      id: `${sale.id}.${requestId}`,
    });
    expect(cancelled.errors).toBeUndefined();
    const wish = { requestId: randomUUID() };
    await waitFor(async () => (await reserve(second, ben, sale, wish)).data?.reserve.status === "QUEUED", {
      what: "the unit to be sold",
      timeoutMs: 30_000,
    });
    for (const api of apis) {
      await shut(api, sale);
      expect((await reserve(api, anna, sale, { requestId })).data?.reserve.status).toBe("DECIDED");
      expect(["QUEUED", "DECIDED"]).toContain((await reserve(api, ben, sale, wish)).data?.reserve.status);
    }
  });
});
