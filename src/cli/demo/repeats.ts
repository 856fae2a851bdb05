/** Invariant R: what was acknowledged is stored, and sent again gets the state that the database has. */
import type { Database } from "../../db/client.js";
import { OFFENDERS_AT_MOST, type Offender, type Offenders } from "../../db/offenders.js";
import { findRequests, type RequestRow } from "../../db/reservations.js";
import { orderIdOf } from "../../domain/ids.js";
import { STAGES, stageOf, UNDECIDED } from "../../domain/stages.js";
import { pause } from "../../lifecycle/pause.js";
import type { Buyer } from "./crowd.js";
import type { ReserveReply, Sockets, Wish } from "./sockets.js";
import { retryAfterMs, wishOf } from "./visit.js";

/** One way in which an invariant is broken, and by whom. */
export interface Breach extends Offenders {
  readonly what: string;
}

export interface ProveRepeatsDeps {
  readonly reads: Database;
  readonly sockets: Sockets;
}

const ROWS_AT_ONCE = 1_000;
const TRIES = 8;
const CONFLICTS = 10;

/** Looks up every acknowledged request, sends each again as it was sent first, and some with other contents. */
export async function proveRepeats(
  deps: ProveRepeatsDeps,
  target: { readonly saleId: string; readonly itemId: string },
  acknowledged: ReadonlyMap<string, Buyer>,
): Promise<Breach[]> {
  const requests = [...acknowledged].map(([requestId, buyer]) => ({ ...wishOf(target, requestId), buyer }));
  const rows: (RequestRow | null)[] = [];
  for (let at = 0; at < requests.length; at += ROWS_AT_ONCE) {
    rows.push(...(await findRequests(deps.reads, requests.slice(at, at + ROWS_AT_ONCE))));
  }
  const stored = requests.flatMap(({ buyer, ...wish }, at) => {
    const row = rows[at];
    return row ? [{ wish, buyer, row }] : [];
  });
  const missing = requests
    .filter((_, at) => !rows[at])
    .map(({ requestId }) => ({ id: requestId, expected: "a row", actual: "none" }));
  return [
    breach("requests that were acknowledged and are not stored", missing),
    breach("requests that were sent again", await sendAgain(deps, stored)),
    breach("requests that were sent again with other contents", await sendChanged(deps, stored)),
  ].filter(({ count }) => count > 0);
}

interface Stored {
  readonly wish: Wish;
  readonly buyer: Buyer;
  readonly row: RequestRow;
}

async function sendAgain(deps: ProveRepeatsDeps, stored: readonly Stored[]): Promise<Offender[]> {
  const answers = await Promise.all(stored.map(({ buyer, wish }) => ask(deps, buyer, wish)));
  const different = stored.flatMap(({ row }, at) =>
    answers[at] === stateOf(row) ? [] : [{ row, actual: answers[at] }],
  );
  // Where a row was not at its end yet, it may have moved on before its request was sent again.
  const rows = await findRequests(
    deps.reads,
    different.map(({ row }) => row),
  );
  return different.flatMap(({ row, actual }, at) => {
    const expected = stateOf(rows[at] ?? row);
    return actual === expected ? [] : [{ id: row.requestId, expected, actual: actual ?? "no answer" }];
  });
}

/** By turns with another quantity, and by another buyer. */
async function sendChanged(deps: ProveRepeatsDeps, stored: readonly Stored[]): Promise<Offender[]> {
  const compared = await Promise.all(
    stored.slice(0, CONFLICTS).map(async ({ buyer, wish }, at) => {
      const other = stored[at + 1]?.buyer;
      const byOther = at % 2 === 1 && other !== undefined && other.id !== buyer.id;
      const actual = byOther
        ? await ask(deps, other, wish)
        : await ask(deps, buyer, { ...wish, quantity: wish.quantity + 1 });
      return { id: wish.requestId, expected: "REQUEST_CONFLICT", actual };
    }),
  );
  return compared.filter(({ expected, actual }) => expected !== actual);
}

/** The answer to a request in a line, once it has one. */
async function ask({ sockets }: ProveRepeatsDeps, buyer: Buyer, wish: Wish): Promise<string> {
  for (let attempt = 1; ; attempt += 1) {
    const reply = await sockets.reserve(buyer.token, wish);
    const waitMs = retryAfterMs(reply);
    if (waitMs === null || attempt === TRIES) return inWords(reply);
    await pause(waitMs);
  }
}

function inWords(reply: ReserveReply): string {
  if (reply.kind !== "answered") return "no answer";
  const reserved = reply.body.data?.reserve;
  if (!reserved) return `error ${reply.body.errors?.[0]?.extensions?.code}`;
  const { status, reservation } = reserved;
  return words(status, reservation?.requestId, reservation?.status, reservation?.order?.status, reservation?.order?.id);
}

/** What the API has to say of a request whose row is this one. */
function stateOf({ outcome, order, saleId, requestId }: RequestRow): string {
  const stage = stageOf(outcome, order?.status ?? null);
  const answer = UNDECIDED.has(stage) ? "QUEUED" : "DECIDED";
  return words(
    answer,
    requestId,
    STAGES[stage].status,
    order?.status,
    order ? orderIdOf(saleId, requestId) : undefined,
  );
}

function words(...parts: readonly (string | undefined)[]): string {
  return parts.filter((part) => part !== undefined).join(" ");
}

function breach(what: string, offenders: readonly Offender[]): Breach {
  return { what, count: offenders.length, shown: offenders.slice(0, OFFENDERS_AT_MOST) };
}
