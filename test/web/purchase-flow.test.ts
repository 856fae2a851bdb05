import { describe, expect, it } from "vitest";
import type { Ask } from "../../web/api.js";
import type { Reservation } from "../../web/documents.js";
import { createIntentions, type Intention } from "../../web/intention.js";
import type { Live } from "../../web/live.js";
import type { Purchase } from "../../web/purchase.js";
import { createPurchaseFlow } from "../../web/purchase-flow.js";
import { createStorage } from "../../web/storage.js";
import { waitFor } from "../support/wait.js";

const NOW = Date.parse("2030-01-01T18:00:00Z");

/** A flow whose server says what it is told to, and whose pauses end when the test says so. */
function world(options: { first?: Purchase; stored?: Intention } = {}) {
  const kept = new Map<string, string>();
  const storage = createStorage(() => ({
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, text) => void kept.set(key, text),
    removeItem: (key) => void kept.delete(key),
  }));
  const intentions = createIntentions(storage, "intention");
  if (options.stored) intentions.save(options.stored);

  const asked: { what: string; variables: { input?: { requestId: string } }; stored: Intention | null }[] = [];
  const answers: Record<string, unknown> = {};
  const ask = (async (document: string, variables: { input?: { requestId: string } }) => {
    const what = /(?:query|mutation) (\w+)/.exec(document)?.[1] ?? "";
    asked.push({ what, variables, stored: intentions.load() });
    const answer = answers[what];
    if (!answer) return { kind: "error", code: "UNREACHABLE", message: "", retryAfterMs: null };
    return { kind: "data", data: typeof answer === "function" ? answer(variables) : answer };
  }) as unknown as Ask;

  const followed = new Map<string, (data: unknown) => void>();
  const live = {
    follow: (_document: string, { requestId }: { requestId: string }, next: (data: unknown) => void) => {
      followed.set(requestId, next);
      return () => void followed.delete(requestId);
    },
  } as unknown as Live;

  const pausing: (() => void)[] = [];
  const waits = {
    pause: () => new Promise<void>((resolve) => void pausing.push(resolve)),
    wake: () => {
      for (const end of pausing.splice(0)) end();
    },
  };
  const flow = createPurchaseFlow(
    { ask, live, waits, intentions, saleId: "s", now: () => NOW, onChange: () => {} },
    options.first ?? { kind: "idle" },
  );
  const count = (what: string) => asked.filter((one) => one.what === what).length;
  return {
    flow,
    asked,
    answers,
    intentions,
    followed,
    count,
    /** Lets all present pauses be over. */
    pass: () => waits.wake(),
    pauses: () => pausing.length,
    become: (what: string) => waitFor(() => flow.purchase.kind === what, { what }),
  };
}

const reservation = (
  status: Reservation["status"],
  requestId: string,
  version: number,
  ahead: number | null = null,
) => ({
  requestId,
  item: { id: "i1" },
  quantity: 1,
  status,
  reasonCode: null,
  reason: null,
  ahead,
  order: null,
  version,
});
const queued = ({ input }: { input: { requestId: string } }) => ({
  reserve: {
    status: "QUEUED",
    reservation: reservation("QUEUED", input.requestId, 20, 7),
    message: "",
    retryAfterMs: null,
  },
});

describe("a purchase", () => {
  it("is stored before it is first sent, and is listened for before that too", async () => {
    const { flow, asked, followed, become, answers } = world();
    answers.Reserve = queued;
    flow.buy("i1");
    const requestId = asked[0]?.variables.input?.requestId ?? "";
    expect(requestId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(asked[0]).toMatchObject({ what: "Reserve", stored: { requestId, accepted: false } });
    expect([...followed.keys()]).toEqual([requestId]);
    await become("reserved");
  });

  it("is one, however often the button is pressed", async () => {
    const { flow, count, become, answers } = world();
    answers.Reserve = queued;
    for (let times = 0; times < 3; times += 1) flow.buy("i1");
    await become("reserved");
    flow.buy("i1");
    expect(count("Reserve")).toBe(1);
  });

  it("without an answer is sent with the same id until there is one", async () => {
    const { flow, asked, answers, count, pass, pauses, become, intentions } = world();
    flow.buy("i1");
    for (let times = 1; times < 4; times += 1) {
      await waitFor(() => count("Reserve") === times && pauses() === 1, { what: "another pause" });
      pass();
    }
    answers.Reserve = queued;
    await waitFor(() => pauses() === 1, { what: "a pause" });
    pass();
    await become("reserved");
    expect(new Set(asked.map(({ variables }) => variables.input?.requestId).filter(Boolean)).size).toBe(1);
    expect(intentions.load()).toMatchObject({ accepted: true });
  });

  it("that the subscription tells of first is not sent again", async () => {
    const { flow, asked, followed, count, pass, pauses, become } = world();
    flow.buy("i1");
    await waitFor(() => pauses() === 1, { what: "a pause" });
    const requestId = asked[0]?.variables.input?.requestId ?? "";
    followed.get(requestId)?.({ reservationUpdates: reservation("QUEUED", requestId, 20) });
    await become("reserved");
    pass();
    await waitFor(() => count("ReservationById") === 1, { what: "the place in line to be asked for" });
    expect(count("Reserve")).toBe(1);
  });

  it("is no longer listened for when it is over, and forgotten when it was refused", async () => {
    const { flow, followed, answers, become, intentions } = world();
    answers.Reserve = { reserve: { status: "SOLD_OUT", reservation: null, message: "", retryAfterMs: null } };
    flow.buy("i1");
    await become("refused");
    expect(followed.size).toBe(0);
    expect(intentions.load()).toBeNull();
  });

  it("of one who has left is neither sent nor told any more", async () => {
    const { flow, count, pass, pauses, followed } = world();
    flow.buy("i1");
    await waitFor(() => pauses() === 1, { what: "a pause" });
    flow.stop();
    pass();
    await Promise.resolve();
    expect(count("Reserve")).toBe(1);
    expect(followed.size).toBe(0);
  });
});

describe("the place in line", () => {
  it("is asked for while the page is seen, and not while it is hidden", async () => {
    const { flow, answers, count, pass, pauses, become } = world();
    answers.Reserve = queued;
    answers.ReservationById = ({ requestId }: { requestId: string }) => ({
      reservation: reservation("QUEUED", requestId, 20, 3),
    });
    flow.buy("i1");
    await become("reserved");
    pass();
    await waitFor(() => count("ReservationById") === 1 && pauses() === 1, { what: "the first question" });
    expect(flow.purchase).toMatchObject({ reservation: { ahead: 3 } });
    flow.setVisible(false);
    pass();
    await waitFor(() => pauses() === 0, { what: "the pauses to end" });
    expect(count("ReservationById")).toBe(1);
    flow.setVisible(true);
    await waitFor(() => pauses() === 1, { what: "asking to begin again" });
    pass();
    await waitFor(() => count("ReservationById") === 2, { what: "the next question" });
  });
});

describe("after a reload", () => {
  const stored: Intention = { requestId: "r1", itemId: "i1", quantity: 1, pressedAtMs: NOW, accepted: false };
  const looking: Purchase = { kind: "looking", trouble: null };

  it("the stored request is looked up until the server answers, and then followed", async () => {
    const { flow, answers, pass, pauses, become, followed } = world({ first: looking, stored });
    flow.look();
    await waitFor(() => pauses() === 1, { what: "a pause" });
    expect(flow.purchase).toEqual({ kind: "looking", trouble: "unreachable" });
    answers.RememberedAndLatest = { remembered: reservation("QUEUED", "r1", 20), latest: null };
    pass();
    await become("reserved");
    expect([...followed.keys()]).toEqual(["r1"]);
  });

  it("a request that never arrived is sent with the stored id", async () => {
    const { flow, asked, answers, become } = world({ first: looking, stored });
    answers.RememberedAndLatest = { remembered: null, latest: null };
    answers.Reserve = queued;
    flow.look();
    await become("reserved");
    expect(asked.map(({ what, variables }) => [what, variables.input?.requestId])).toContainEqual(["Reserve", "r1"]);
  });

  it("with nothing stored the buyer's latest one is looked up", async () => {
    const { flow, answers, become, intentions } = world({ first: looking });
    answers.Latest = { latest: reservation("QUEUED", "r7", 20) };
    flow.look();
    await become("reserved");
    expect(intentions.load()).toMatchObject({ requestId: "r7", accepted: true });
  });

  it("what happens while it is looked up is looked up too", async () => {
    const { flow, answers, count, become } = world();
    answers.Latest = { latest: null };
    flow.look();
    answers.Latest = { latest: reservation("QUEUED", "r8", 20) };
    flow.look();
    await become("reserved");
    expect(count("Latest")).toBe(2);
  });

  it("nobody can buy before it is known what he has", () => {
    const { flow, count } = world({ first: looking });
    flow.buy("i1");
    expect(count("Reserve")).toBe(0);
  });
});
