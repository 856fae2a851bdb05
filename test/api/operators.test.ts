import { beforeAll, describe, expect, it } from "vitest";
import { type Answer, type Api, prepareSluice, saleInput, type TestSale, type TestSluice } from "../support/sluice.js";
import { query } from "../support/sql.js";

const STATES = ["DRAFT", "OPEN", "PAUSED", "CLOSED"] as const;
type State = (typeof STATES)[number];

const ACTIONS = ["openSale", "pauseSale", "resumeSale", "closeSale"] as const;
type Action = (typeof ACTIONS)[number];

/** Where an action leads from a state: itself where it has been done already, null where it can't be done. */
const LEADS_TO: Record<State, Record<Action, State | null>> = {
  DRAFT: { openSale: "OPEN", pauseSale: null, resumeSale: null, closeSale: null },
  OPEN: { openSale: "OPEN", pauseSale: "PAUSED", resumeSale: "OPEN", closeSale: "CLOSED" },
  PAUSED: { openSale: null, pauseSale: "PAUSED", resumeSale: "OPEN", closeSale: "CLOSED" },
  CLOSED: { openSale: null, pauseSale: null, resumeSale: null, closeSale: "CLOSED" },
};

const WAY_TO: Record<State, readonly Action[]> = {
  DRAFT: [],
  OPEN: ["openSale"],
  PAUSED: ["openSale", "pauseSale"],
  CLOSED: ["openSale", "closeSale"],
};

let sluice: TestSluice;
let api: Api;
let operator: string;

beforeAll(async () => {
  sluice = await prepareSluice();
  api = await sluice.startApi();
  operator = await sluice.token("operator", "olga");
});

describe("an operator's mutation", () => {
  for (const state of STATES) {
    for (const action of ACTIONS) {
      const target = LEADS_TO[state][action];
      const outcome = target === null ? "CONFLICT" : target === state ? "nothing new" : target;
      it(`${action} of a sale that is ${state} is ${outcome}`, async () => {
        const sale = await saleThatIs(state);
        const audited = await auditOf(sale);

        const answer = await act(action, sale);

        if (target === null) {
          expect(answer.errors?.map(({ extensions }) => extensions.code)).toEqual(["CONFLICT"]);
          expect(answer.errors?.[0]?.message).toContain(state);
        } else {
          expect(answer.errors).toBeUndefined();
          expect(Object.values(answer.data ?? {})).toEqual([{ state: target, pauseReason: pauseReasonOf(target) }]);
        }
        expect(await stateOf(sale)).toEqual({ state: target ?? state, pauseReason: pauseReasonOf(target ?? state) });
        const changed = target !== null && target !== state;
        expect(await auditOf(sale)).toEqual(changed ? [...audited, `${action} by olga`] : audited);
      });
    }
  }

  it("that ten operators send at once is done once, and answered to all as done", async () => {
    const sale = await saleThatIs("OPEN");
    const answers = await Promise.all(Array.from({ length: 10 }, () => act("pauseSale", sale)));
    for (const { data, errors } of answers) {
      expect(errors).toBeUndefined();
      expect(data).toMatchObject({ pauseSale: { state: "PAUSED" } });
    }
    expect(await auditOf(sale)).toEqual(["createSale by olga", "openSale by olga", "pauseSale by olga"]);
  });

  it("openSale of a draft whose window has passed is CONFLICT", async () => {
    const closesAt = new Date(Date.now() - 60_000);
    const sale = await sluice.createSale(api, { closesAt, open: false });
    const { errors } = await act("openSale", sale);
    expect(errors?.[0]?.extensions.code).toBe("CONFLICT");
    expect(await stateOf(sale)).toMatchObject({ state: "DRAFT" });
  });

  it("createSale gives the sale as it was asked for, its items in their order, with ids of our alphabet", async () => {
    const input = saleInput({ initial: [5, 0, 7], maxPerBuyer: 3, paymentWindowSeconds: 60 });
    const { data, errors } = await api.call<{ createSale: Record<string, unknown> }>(
      operator,
      `mutation ($input: CreateSaleInput!) { createSale(input: $input) {
        title state pauseReason opensAt closesAt maxPerBuyer paymentWindowSeconds version
        items { sku title priceMinor currency initial remaining soldOut }
      } }`,
      { input },
    );
    expect(errors).toBeUndefined();
    const items = (input.items as { initial: number }[]).map((item) => ({
      ...item,
      remaining: item.initial,
      soldOut: item.initial === 0,
    }));
    expect(data?.createSale).toEqual({ ...input, items, state: "DRAFT", pauseReason: null, version: 0 });

    const { id, items: made } = await sluice.createSale(api, { initial: [1, 1] });
    for (const made_ of [id, ...made.map((item) => item.id)]) expect(made_).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
  });

  it("createSale fills in the limit and the payment window of the contract", async () => {
    const { maxPerBuyer: _limit, paymentWindowSeconds: _window, ...input } = saleInput();
    const { data } = await api.call(
      operator,
      "mutation ($input: CreateSaleInput!) { createSale(input: $input) { maxPerBuyer paymentWindowSeconds } }",
      { input },
    );
    expect(data).toEqual({ createSale: { maxPerBuyer: 1, paymentWindowSeconds: 900 } });
  });
});

function pauseReasonOf(state: State): string | null {
  return state === "PAUSED" ? "a test" : null;
}

function act(action: Action, sale: TestSale): Promise<Answer<Record<string, unknown>>> {
  const reason = action === "pauseSale" ? ', reason: "a test"' : "";
  return api.call(operator, `mutation ($id: ID!) { ${action}(saleId: $id${reason}) { state pauseReason } }`, {
    id: sale.id,
  });
}

async function saleThatIs(state: State): Promise<TestSale> {
  const sale = await sluice.createSale(api, { open: false });
  for (const action of WAY_TO[state]) expect((await act(action, sale)).errors).toBeUndefined();
  return sale;
}

async function stateOf(sale: TestSale): Promise<unknown> {
  const { data } = await api.call<{ sale: unknown }>(
    operator,
    "query ($id: ID!) { sale(id: $id) { state pauseReason } }",
    { id: sale.id },
  );
  return data?.sale;
}

async function auditOf(sale: TestSale): Promise<string[]> {
  const rows = await query<{ line: string }>(
    sluice.databaseUrl,
    `SELECT action || ' by ' || actor AS line FROM audit_entries WHERE "saleId" = $1 ORDER BY id`,
    [sale.id],
  );
  return rows.map(({ line }) => line);
}
