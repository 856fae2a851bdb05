import { isId } from "../domain/ids.js";
import type { RequestKey } from "../domain/model.js";
import { type Stage, UNDECIDED } from "../domain/stages.js";
import { SECOND } from "../domain/time.js";
import { pause } from "../lifecycle/pause.js";
import { listEntries, type TraceEntry } from "./trace-entries.js";
import { readTraceFacts, type TraceDeps, type TraceFacts } from "./trace-facts.js";
import { findGaps } from "./trace-gaps.js";

export type { TraceDeps, TraceEntry };

/** One request's whole life, over all the stores. Names the buyer: it is for operators. */
export interface RequestTrace {
  readonly saleId: string;
  readonly requestId: string;
  /** null where no store can tell */
  readonly buyerId: string | null;
  /** how far it has come, by the database where it knows the request; null where no store can tell */
  readonly stage: Stage | null;
  /** how it stands, in a sentence or two */
  readonly summary: string;
  /** by time, and then, without one, how it stands in each store */
  readonly entries: readonly TraceEntry[];
  /** what should be there and isn't, and what could not be asked: a sentence each */
  readonly missing: readonly string[];
}

const LOOKS = 3;
const BETWEEN_LOOKS_MS = SECOND / 10;

/**
 * Tells one request's life from Redis, its row, its job, its order, movements, events, payments, dead letters and the audit
 * log; null where no store knows it. It reads only. A request under way is between two stores for moments: what seems to
 * be missing is looked at again, a few times, before it is said.
 *
 * With a store away it says so, and tells what the other one knows. @throws that store's error where the other one knows
 * nothing: RedisUnavailableError, a database error
 */
export async function traceRequest(deps: TraceDeps, key: RequestKey): Promise<RequestTrace | null> {
  if (!isId(key.saleId)) return null;
  for (let look = 1; ; look += 1) {
    const facts = await readTraceFacts(deps, key);
    const away = [facts.rows, facts.inRedis].find((answer) => answer instanceof Error);
    if (!isKnown(facts)) {
      if (away) throw away;
      return null;
    }
    const missing = findGaps(facts);
    if (missing.length === 0 || away || look === LOOKS) {
      const { buyerId, stage } = facts;
      return { ...key, buyerId, stage, summary: summaryOf(facts, missing), entries: listEntries(facts), missing };
    }
    await pause(BETWEEN_LOOKS_MS);
  }
}

function isKnown({ rows, inRedis }: TraceFacts): boolean {
  if (!(inRedis instanceof Error) && (inRedis.request || inRedis.unreadable || inRedis.job)) return true;
  if (rows instanceof Error) return false;
  const { request, order, ...lists } = rows;
  const { movements, events, payments, deadLetters, audit } = lists;
  return (
    Boolean(request || order) || [movements, events, payments, deadLetters, audit].some(({ length }) => length > 0)
  );
}

function summaryOf(facts: TraceFacts, missing: readonly string[]): string {
  const lacking =
    missing.length === 0
      ? "Nothing is missing."
      : missing.length === 1
        ? missing[0]
        : `${missing.length} things are not as they should be.`;
  return `${standing(facts)} ${lacking}`;
}

function standing({ stage, rows, inRedis }: TraceFacts): string {
  if (stage === null) return "How far it has come can't be told.";
  const { request = null, order = null, deadLetters = [] } = rows instanceof Error ? {} : rows;
  const ahead = inRedis instanceof Error ? null : (inRedis.request?.ahead ?? null);
  const letter = deadLetters.find(({ status }) => status === "OPEN");
  if (UNDECIDED.has(stage)) {
    if (letter) return `${stage}: given up, and waits for an operator to see to the dead letter ${letter.id}.`;
    return ahead === null ? `${stage}: undecided.` : `${stage}: waits to be decided, ${ahead} ahead of it.`;
  }
  if (stage === "ORDERED" && order) return `ORDERED: to be paid until ${order.payBy.toISOString()}.`;
  const reason = order?.reason ?? request?.reason;
  return reason ? `${stage}: ${reason}.` : `${stage}.`;
}
