import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { bury } from "../../src/operations/bury.js";
import { writeOrders } from "../../src/operations/write-orders.js";
import type { Resources } from "../../src/resources.js";
import { openProcess } from "../operations/support.js";
import { type Answer, type Api, prepareSluice, reserve, type TestSale, type TestSluice } from "../support/sluice.js";
import { snapshotOf } from "../support/snapshot.js";
import { query } from "../support/sql.js";
import { subscribe } from "../support/subscriptions.js";

interface Letter {
  readonly id: string;
  readonly saleId: string;
  readonly requestId: string;
  readonly status: string;
  readonly reservation: { readonly status: string; readonly reasonCode: string | null } | null;
}

interface Page {
  readonly deadLetters: {
    readonly edges: readonly { readonly cursor: string; readonly node: Letter }[];
    readonly pageInfo: { readonly hasNextPage: boolean; readonly hasPreviousPage: boolean };
  };
}

const FIELDS =
  "id saleId requestId stage lastError attempts status createdAt resolvedAt reservation { status reasonCode }";
const LIST = `query ($saleId: ID, $status: DeadLetterStatus, $first: Int! = 20, $after: String) {
  deadLetters(saleId: $saleId, status: $status, first: $first, after: $after) {
    edges { cursor node { ${FIELDS} } } pageInfo { hasNextPage hasPreviousPage }
  }
}`;
const COMMANDS = ["replayDeadLetter", "compensateDeadLetter", "discardDeadLetter"] as const;
type Command = (typeof COMMANDS)[number];
const mutation = (command: Command) =>
  `mutation ($saleId: ID!, $id: ID!, $reason: String!) { ${command}(saleId: $saleId, id: $id, reason: $reason) { ${FIELDS} } }`;

let sluice: TestSluice;
let api: Api;
/** What a worker would have: nothing works here by itself. */
let inside: Resources;
let operator: string;
let sale: TestSale;

beforeAll(async () => {
  sluice = await prepareSluice();
  [api, inside] = await Promise.all([sluice.startApi(), openProcess(sluice)]);
  operator = await sluice.token("operator", "olga");
  sale = await sluice.createSale(api, { initial: [10] });
});

const list = async (variables: Record<string, unknown>) =>
  (await api.call<Page>(operator, LIST, variables)).data?.deadLetters as Page["deadLetters"];

/** A buyer whose request was given up. */
async function givenUp(name: string, of = sale): Promise<{ token: string; requestId: string; letter: Letter }> {
  const token = await sluice.token("buyer", name);
  const requestId = randomUUID();
  expect((await reserve(api, token, of, { requestId })).data?.reserve.status).toBe("QUEUED");
  await bury(inside, of.id, [{ requestId, stage: "write", lastError: "no such luck", attempts: 5 }]);
  const [edge] = (await list({ saleId: of.id, first: 1 })).edges;
  return { token, requestId, letter: edge?.node as Letter };
}

async function run(command: Command, letter: Pick<Letter, "id" | "saleId">, reason = "seen to") {
  const { saleId, id } = letter;
  return api.call<Record<Command, Letter>>(operator, mutation(command), { saleId, id, reason });
}

const codes = ({ errors }: Answer<unknown>) => errors?.map(({ extensions }) => extensions.code);

describe("dead letters", () => {
  it("are listed the newest first, by page, by sale and by status, with their requests as they stand", async () => {
    const own = await sluice.createSale(api);
    const others = await givenUp("elsewhere");
    const made: string[] = [];
    for (const name of ["a", "b", "c"]) made.unshift((await givenUp(`lister-${name}`, own)).requestId);
    const all = await list({ saleId: own.id });
    expect(all.edges.map(({ node }) => node.requestId)).toEqual(made);
    expect(all.edges[0]?.node).toMatchObject({
      saleId: own.id,
      stage: "write",
      lastError: "no such luck",
      attempts: 5,
      status: "OPEN",
      createdAt: expect.any(String),
      resolvedAt: null,
      reservation: { status: "QUEUED", reasonCode: null },
    });

    const paged: string[] = [];
    let after: string | undefined;
    do {
      const page = await list({ saleId: own.id, first: 1, after });
      expect(page.pageInfo.hasPreviousPage).toBe(after !== undefined);
      paged.push(...page.edges.map(({ node }) => node.requestId));
      after = page.pageInfo.hasNextPage ? page.edges.at(-1)?.cursor : undefined;
    } while (after);
    expect(paged).toEqual(made);

    await run("compensateDeadLetter", all.edges[1]?.node as Letter);
    const ids = async (more: object) =>
      (await list({ saleId: own.id, ...more })).edges.map(({ node }) => node.requestId);
    expect(await ids({ status: "OPEN" })).toEqual([made[0], made[2]]);
    expect(await ids({ status: "COMPENSATED" })).toEqual([made[1]]);
    expect(await ids({ status: "DISCARDED" })).toEqual([]);
    const everywhere = (await list({ first: 100 })).edges.map(({ node }) => node.requestId);
    expect(everywhere).toEqual(expect.arrayContaining([...made, others.requestId]));
    expect((await list({ saleId: "there-is-none" })).edges).toEqual([]);
  });

  it("are for operators alone, and so is what is done to them", async () => {
    const { letter } = await givenUp("private");
    const variables = { saleId: sale.id, id: letter.id, reason: "mine" };
    for (const token of [null, await sluice.token("buyer", "private"), await sluice.token("payments", "pat")]) {
      const refused = [token === null ? "UNAUTHENTICATED" : "FORBIDDEN"];
      expect(codes(await api.call(token, LIST, {}))).toEqual(refused);
      for (const command of COMMANDS)
        expect(codes(await api.call(token, mutation(command), variables))).toEqual(refused);
    }
    expect((await list({ saleId: sale.id, first: 1 })).edges[0]?.node).toMatchObject({ id: letter.id, status: "OPEN" });
  });
});

describe("a compensation", () => {
  it("is heard by the buyer, with a reason, and lets him reserve again; a repeat is answered, another ending refused", async () => {
    const { token, requestId, letter } = await givenUp("anna");
    const watching = subscribe<{ status: string }>("WebSocket", api, token, {
      query: `subscription ($s: ID!, $r: UUID!) {
        reservationUpdates(saleId: $s, requestId: $r) { status reasonCode reason ahead }
      }`,
      variables: { s: sale.id, r: requestId },
    });
    // It waits for an operator, and for nobody in front of it.
    expect(await watching.next()).toEqual({ status: "QUEUED", reasonCode: null, reason: null, ahead: null });
    expect((await reserve(api, token, sale)).data?.reserve.status).toBe("ALREADY_RESERVED");

    const answers = await Promise.all(Array.from({ length: 5 }, () => run("compensateDeadLetter", letter)));
    for (const { data, errors } of answers) {
      expect(errors).toBeUndefined();
      expect(data?.compensateDeadLetter).toMatchObject({
        status: "COMPENSATED",
        resolvedAt: expect.any(String),
        reservation: { status: "FAILED", reasonCode: "PROCESSING_FAILED" },
      });
    }
    expect(await watching.next()).toMatchObject({
      status: "FAILED",
      reasonCode: "PROCESSING_FAILED",
      reason: expect.stringMatching(/\w+ \w+/),
    });
    expect(await watching.done).toEqual({ kind: "completed" });
    expect(watching.values).toHaveLength(2);
    for (const other of ["replayDeadLetter", "discardDeadLetter"] as const) {
      expect(codes(await run(other, letter))).toEqual(["CONFLICT"]);
    }
    expect((await reserve(api, token, sale, { requestId })).data?.reserve.status).toBe("DECIDED");
    expect((await reserve(api, token, sale)).data?.reserve.status).toBe("QUEUED");
    expect(await auditOf(letter)).toEqual([{ actor: "olga", action: "compensateDeadLetter", reason: "seen to" }]);
  });

  it("of what was written meanwhile is refused: then it is discarded, and the order stands", async () => {
    const { requestId, letter } = await givenUp("late");
    expect(codes(await run("discardDeadLetter", letter))).toEqual(["CONFLICT"]);
    await writeOrders(inside, sale.id, [requestId]);
    expect(codes(await run("compensateDeadLetter", letter))).toEqual(["CONFLICT"]);
    const { data } = await run("discardDeadLetter", letter, "it has its order");
    expect(data?.discardDeadLetter).toMatchObject({ status: "DISCARDED", reservation: { status: "SUCCESS" } });
    expect(await auditOf(letter)).toEqual([{ actor: "olga", action: "discardDeadLetter", reason: "it has its order" }]);
  });
});

it("a replay has it tried again, once", async () => {
  const { requestId, letter } = await givenUp("again");
  await inside.queues.remove(sale.id, [requestId]);
  const { data } = await run("replayDeadLetter", letter);
  expect(data?.replayDeadLetter).toMatchObject({ status: "REPLAYED", reservation: { status: "QUEUED" } });
  expect(await inside.queues.states(sale.id, [requestId])).toEqual(["waiting"]);
  await writeOrders(inside, sale.id, [requestId]);
  expect((await run("replayDeadLetter", letter)).data?.replayDeadLetter.reservation?.status).toBe("SUCCESS");
  expect(await auditOf(letter)).toHaveLength(1);
});

describe("bad input changes nothing", () => {
  const LONE = "Xy1\ud800";
  const IDS = ["", " ", "0", "-1", "1.5", "1e3", "01", "9".repeat(30), "a:b", "1\0", LONE, "😀", "1".repeat(10_000)];
  const bad: [string, string, string, Record<string, unknown>][] = [
    ...["", " \n", "a\0", "\udc00", "x".repeat(501)].map(badReason),
    ...["unknown", "", "a b", "é", "1\0", LONE, "x".repeat(10_000)].map(badSale),
    ...IDS.map(badId),
    ...COMMANDS.map((command): (typeof bad)[number] => [
      `${command} without a reason`,
      mutation(command),
      "BAD_USER_INPUT",
      { reason: undefined },
    ]),
    ...[0, -1, 101, 1.5].map((first): (typeof bad)[number] => [
      `${first} letters a page`,
      LIST,
      "BAD_USER_INPUT",
      { first },
    ]),
    ...["", "x", "😀", LONE, Buffer.from("[1,2]").toString("base64url"), "9".repeat(9_000)].map(badCursor),
    ["a status that isn't there", LIST, "BAD_USER_INPUT", { status: "LOST" }],
  ];

  it("of every argument", async () => {
    const { letter } = await givenUp("bad");
    const good = { saleId: sale.id, id: letter.id, reason: "seen to", first: 20 };
    const before = await snapshotOf(sluice.databaseUrl, sluice.redis.url);
    for (const [what, text, code, wrong] of bad) {
      expect({ what, codes: codes(await api.call(operator, text, { ...good, ...wrong })) }).toEqual({
        what,
        codes: [code],
      });
    }
    expect(await snapshotOf(sluice.databaseUrl, sluice.redis.url)).toEqual(before);
  });

  type Bad = (typeof bad)[number];

  function badReason(reason: string, at: number): Bad {
    const command = COMMANDS[at % COMMANDS.length] as Command;
    return [`${command} for ${JSON.stringify(reason.slice(0, 9))}`, mutation(command), "BAD_USER_INPUT", { reason }];
  }

  function badSale(saleId: string, at: number): Bad {
    const command = COMMANDS[at % COMMANDS.length] as Command;
    return [`${command} in ${JSON.stringify(saleId.slice(0, 9))}`, mutation(command), "NOT_FOUND", { saleId }];
  }

  function badId(id: string, at: number): Bad {
    const command = COMMANDS[at % COMMANDS.length] as Command;
    return [`${command} of ${JSON.stringify(id.slice(0, 9))}`, mutation(command), "NOT_FOUND", { id }];
  }

  function badCursor(after: string): Bad {
    return [`after ${JSON.stringify(after.slice(0, 9))}`, LIST, "BAD_USER_INPUT", { after }];
  }
});

/** What the log has of a letter, the oldest first. */
function auditOf({ id }: Letter): Promise<Record<string, unknown>[]> {
  return query(
    sluice.databaseUrl,
    `SELECT actor, action, reason FROM audit_entries WHERE details->>'deadLetter' = $1 ORDER BY id`,
    [id],
  );
}
