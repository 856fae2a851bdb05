import { describe, expect, it } from "vitest";
import type { Ask, PayAt } from "../../web/api.js";
import type { Order } from "../../web/documents.js";
import type { Answer, Purchase } from "../../web/purchase.js";
import { createSettlement } from "../../web/settling.js";
import { waitFor } from "../support/wait.js";

const order = (id: string, status: Order["status"] = "PENDING_PAYMENT"): Order => ({
  id,
  totalMinor: 2_500,
  currency: "EUR",
  status,
  payBy: "2030-01-01T18:15:00Z",
});
const holding = (held: Order): Purchase => ({
  kind: "reserved",
  intention: { requestId: "r1", itemId: "i1", quantity: 1, pressedAtMs: 0, accepted: true },
  reservation: {
    requestId: "r1",
    item: { id: "i1" },
    quantity: 1,
    status: "SUCCESS",
    reasonCode: null,
    reason: null,
    ahead: null,
    order: held,
    version: 30,
  },
  existing: false,
  trouble: null,
});
const failed = (code: string): Answer<never> => ({ kind: "error", code, message: "Because.", retryAfterMs: null });

/** A visitor with an unpaid order, and a shop and a provider that answer what they are told to. */
function world() {
  const answers: Record<string, Answer<unknown>> = {
    RequestPayment: { kind: "data", data: { requestPayment: { url: "/pay" } } },
    CancelOrder: { kind: "data", data: { cancelOrder: { id: "s.r1" } } },
    Pay: { kind: "data", data: { outcome: "PAID" } },
  };
  const asked: string[] = [];
  const pausing: (() => void)[] = [];
  let looks = 0;
  const answer = (what: string) => {
    asked.push(what);
    return Promise.resolve(answers[what]);
  };
  const settlement = createSettlement({
    ask: ((document: string) => answer(/mutation (\w+)/.exec(document)?.[1] ?? "")) as unknown as Ask,
    payAt: (() => answer("Pay")) as PayAt,
    waits: { pause: () => new Promise<void>((resolve) => void pausing.push(resolve)), wake: () => {} },
    look: () => {
      looks += 1;
    },
    onChange: () => {},
  });
  settlement.hear(holding(order("s.r1")));
  return {
    settlement,
    answers,
    asked,
    looks: () => looks,
    looked: () => waitFor(() => looks > 0, { what: "the server to be asked what became of it" }),
    paused: () => waitFor(() => pausing.length > 0, { what: "a pause" }),
    /** Lets the pauses be over. */
    pass: () => {
      for (const end of pausing.splice(0)) end();
    },
    becomes: (kind: string) => waitFor(() => settlement.settling.kind === kind, { what: kind }),
  };
}

describe("paying", () => {
  it("is under way until the order is told to be paid, and is done once however often it is pressed", async () => {
    const { settlement, asked, looked } = world();
    settlement.pay();
    settlement.pay();
    await looked();
    settlement.pay();
    expect(asked).toEqual(["RequestPayment", "Pay"]);
    expect(settlement.settling).toEqual({ kind: "paying", trouble: null });
    settlement.hear(holding(order("s.r1", "PAID")));
    expect(settlement.settling).toEqual({ kind: "nothing" });
  });

  it.each(["RequestPayment", "Pay"])("is tried again while %s has no answer", async (what) => {
    const { settlement, answers, asked, paused, pass, looked } = world();
    const right = answers[what] as Answer<unknown>;
    answers[what] = failed("UNREACHABLE");
    settlement.pay();
    await paused();
    expect(settlement.settling).toEqual({ kind: "paying", trouble: "unreachable" });
    answers[what] = right;
    pass();
    await looked();
    expect(asked.filter((one) => one === what)).toHaveLength(2);
  });

  it("that never succeeds is given up after a while, and may be tried anew", async () => {
    const { settlement, answers, asked, paused, pass, becomes } = world();
    answers.RequestPayment = failed("SERVICE_UNAVAILABLE");
    settlement.pay();
    for (let times = 1; times < 8; times += 1) {
      await paused();
      pass();
    }
    await becomes("failed");
    expect(settlement.settling).toEqual({ kind: "failed", message: "Because." });
    expect(asked).toHaveLength(8);
    settlement.pay();
    expect(settlement.settling.kind).toBe("paying");
  });

  it("of what would fail again is given up at once", async () => {
    const { settlement, answers, becomes } = world();
    answers.RequestPayment = failed("NOT_FOUND");
    settlement.pay();
    await becomes("failed");
  });

  it("that comes too late leaves money to be given back, which the next order knows nothing of", async () => {
    const { settlement, answers, looked } = world();
    answers.Pay = { kind: "data", data: { outcome: "REFUND_DUE" } };
    settlement.pay();
    await looked();
    settlement.hear({ kind: "idle" });
    expect(settlement.moneyBack).toBe(true);
    settlement.hear(holding(order("s.r2")));
    expect(settlement).toMatchObject({ moneyBack: false, settling: { kind: "nothing" } });
  });

  it("ends with the visit, and with the order", async () => {
    for (const leave of ["stop", "expire"] as const) {
      const { settlement, answers, asked, paused, pass } = world();
      answers.RequestPayment = failed("UNREACHABLE");
      settlement.pay();
      await paused();
      if (leave === "stop") settlement.stop();
      else settlement.hear({ kind: "idle" });
      pass();
      await Promise.resolve();
      expect(asked).toHaveLength(1);
    }
  });
});

describe("giving back", () => {
  it("is asked before it is done, and can be left", () => {
    const { settlement, asked } = world();
    settlement.giveBack();
    settlement.askBack();
    expect(settlement.settling).toEqual({ kind: "asking_back" });
    settlement.keep();
    expect(settlement.settling).toEqual({ kind: "nothing" });
    expect(asked).toEqual([]);
  });

  it("cancels the order once; where it was paid or over meanwhile the server says so", async () => {
    for (const answer of [null, failed("CONFLICT")]) {
      const { settlement, answers, asked, looked } = world();
      if (answer) answers.CancelOrder = answer;
      settlement.askBack();
      settlement.giveBack();
      settlement.giveBack();
      settlement.pay();
      await looked();
      expect(asked).toEqual(["CancelOrder"]);
      expect(settlement.settling.kind).toBe("giving_back");
    }
  });

  it("is for unpaid orders", () => {
    const { settlement } = world();
    settlement.hear(holding(order("s.r1", "PAID")));
    settlement.askBack();
    expect(settlement.settling.kind).toBe("nothing");
  });
});
