import type { DeadLetter } from "../../db/dead-letters.js";
import { notFound, SluiceError } from "../../domain/errors.js";
import type { DeadLetterCommand } from "../../operations/dead-letter.js";
import { listDeadLetters } from "../../operations/read-dead-letters.js";
import type { Resources } from "../../resources.js";
import { actorOf, saleOf } from "./arguments.js";
import { failureOf } from "./failure.js";
import { counted, type Failure, type Report } from "./report.js";

/** An operation that ends a dead letter. */
export type Ending = (sluice: Resources, command: DeadLetterCommand) => Promise<DeadLetter>;

export interface Given {
  readonly all?: true;
  readonly reason: string;
  readonly actor?: string;
}

/** Ends one dead letter. @throws what the operation throws */
export async function endOne(
  sluice: Resources,
  saleId: string,
  id: string,
  { reason, actor }: Given,
  end: Ending,
): Promise<Report> {
  if (!SERIAL.test(id)) throw notFound("There is no such dead letter.");
  const letter = await end(sluice, { saleId, id: BigInt(id), reason, actor: actorOf(actor) });
  return { text: `${describe(letter)}.${hearsLater(sluice)}`, json: letter };
}

/** One of many, and what became of it. */
interface Ended {
  readonly id: bigint;
  readonly requestId: string;
  /** null where it was refused */
  readonly status: DeadLetter["status"] | null;
  readonly error: Failure | null;
}

/**
 * Ends all dead letters of a sale that are open now, one after the other, the oldest first. One that is refused does not stand in
 * the others' way; a store that fails ends it, and what was done until then was said. @throws a store's error, NOT_FOUND
 */
export async function endAll(
  sluice: Resources,
  say: (line: string) => void,
  saleId: string,
  { reason, actor }: Given,
  end: Ending,
): Promise<Report> {
  await saleOf(sluice, saleId);
  const command = { saleId, reason, actor: actorOf(actor) };
  const ended: Ended[] = [];
  for (const { id, requestId } of await findOpen(sluice, saleId)) {
    const one = await tryToEnd(sluice, { ...command, id }, requestId, end);
    say(
      one.error
        ? `${nameOf(one)} is left: ${one.error.code}: ${one.error.message}`
        : describe({ ...one, status: one.status }),
    );
    ended.push(one);
  }
  const refused = ended.filter(({ error }) => error !== null).length;
  const done = counted(ended.length - refused, "dead letter");
  return {
    text: ended.length === 0 ? "There are no open dead letters." : `${done} ended.${hearsLater(sluice)}`,
    json: { deadLetters: ended.map((one) => ({ saleId, ...one })) },
    ...(refused > 0 && {
      failure: { code: "CONFLICT", message: `${counted(refused, "dead letter")} could not be ended.` },
    }),
  };
}

async function tryToEnd(sluice: Resources, command: DeadLetterCommand, requestId: string, end: Ending): Promise<Ended> {
  const { id } = command;
  try {
    const { status } = await end(sluice, command);
    return { id, requestId, status, error: null };
  } catch (error) {
    // Decided meanwhile, or ended by somebody else. What is wrong with all of them is thrown.
    if (!(error instanceof SluiceError) || !["CONFLICT", "NOT_FOUND"].includes(error.code)) throw error;
    return { id, requestId, status: null, error: failureOf(error) };
  }
}

const PAGE = 200;

/** Those that are open at this moment: one that comes back while the others are seen to is not tried for ever. */
async function findOpen(sluice: Resources, saleId: string): Promise<DeadLetter[]> {
  const open: DeadLetter[] = [];
  for (;;) {
    const after = open.at(-1) ?? null;
    const { rows, hasNextPage } = await listDeadLetters(sluice, { saleId, status: "OPEN", first: PAGE, after });
    open.push(...rows);
    if (!hasNextPage) return open.reverse();
  }
}

const SERIAL = /^[1-9][0-9]{0,17}$/;

function describe(letter: Pick<DeadLetter, "id" | "requestId"> & { readonly status: string | null }): string {
  return `${nameOf(letter)} is ${letter.status}`;
}

function nameOf({ id, requestId }: Pick<DeadLetter, "id" | "requestId">): string {
  return `Dead letter ${id}, of request ${requestId},`;
}

function hearsLater({ redis }: Resources): string {
  return redis.isUsable() ? "" : " Redis is away and hears of it as soon as it answers.";
}
