/** How a buyer behaves: as any client should that keeps to the API, and some that don't wait for an answer. */
import { randomUUID } from "node:crypto";
import { jitteredMs, SECOND } from "../../domain/time.js";
import { pause } from "../../lifecycle/pause.js";
import type { Buyer } from "./crowd.js";
import { type Following, follow } from "./follow.js";
import { type Ending, type Heard, hear } from "./heard.js";
import type { ReserveReply, Sockets, Wish } from "./sockets.js";

/** What the crowd storms, and what it hears. */
export interface Storm {
  readonly apiUrl: string;
  readonly sockets: Sockets;
  readonly heard: Heard;
  readonly saleId: string;
  readonly itemId: string;
  /** told of a reservation whenever its buyer is */
  readonly onReserved: (buyer: Buyer, requestId: string) => void;
  /** ends all waiting: the time is over */
  readonly over: AbortSignal;
}

const TRIES = 12;
/** Answers and errors after which the same request is to be sent again. */
const TRY_AGAIN = new Set(["PENDING", "BUSY", "SERVICE_UNAVAILABLE", "OVERLOADED", "RATE_LIMITED"]);

/** One visit, from the first request to the last answer. What a follower has to wait for goes on behind it. */
export async function visit(storm: Storm, buyer: Buyer): Promise<Following | null> {
  const requestId = randomUUID();
  const following = buyer.habit === "follows" ? follow(storm.apiUrl, buyer, storm.saleId, requestId) : null;
  const ending = await behave(storm, buyer, requestId);
  storm.heard.endings[ending] += 1;
  if (ending === "sold_out") storm.heard.wanting.push(buyer);
  if (ending !== "reserved") following?.leave();
  return ending === "reserved" ? following : null;
}

/** Another visit of somebody who had been refused: another intention, and so another request. */
export async function visitAgain(storm: Storm, buyer: Buyer): Promise<void> {
  const { secondWave } = storm.heard;
  const requestId = randomUUID();
  secondWave.requestIds.push(requestId);
  secondWave.asked += 1;
  const ending = await askUntilAnswered(storm, buyer, requestId);
  if (ending === "reserved") secondWave.reserved += 1;
  else if (ending !== "sold_out") secondWave.unanswered += 1;
}

async function behave(storm: Storm, buyer: Buyer, requestId: string): Promise<Ending> {
  switch (buyer.habit) {
    case "asks_once":
    case "follows":
      return askUntilAnswered(storm, buyer, requestId);
    case "repeats_at_once":
      return best(await Promise.all([1, 2, 3].map(() => askUntilAnswered(storm, buyer, requestId))));
    case "repeats_later": {
      const first = await askUntilAnswered(storm, buyer, requestId);
      await pause(jitteredMs(0.1 * SECOND, 1 * SECOND), storm.over);
      return best([first, await askUntilAnswered(storm, buyer, requestId)]);
    }
    case "sends_two_requests":
      return best(await Promise.all([requestId, randomUUID()].map((id) => askUntilAnswered(storm, buyer, id))));
    case "disconnects_and_returns":
      await hangUp(storm, buyer, requestId);
      await pause(jitteredMs(0.3 * SECOND, 1.5 * SECOND), storm.over);
      return askUntilAnswered(storm, buyer, requestId);
    case "disconnects":
      await hangUp(storm, buyer, requestId);
      return "left";
  }
}

/** Sends one request until it has an answer that is the last word for now, as often as the API asks for it, within reason. */
async function askUntilAnswered(storm: Storm, buyer: Buyer, requestId: string): Promise<Ending> {
  for (let attempt = 1; attempt <= TRIES && !storm.over.aborted; attempt += 1) {
    const reply = await storm.sockets.reserve(buyer.token, wishOf(storm, requestId));
    hear(storm.heard, buyer, requestId, reply);
    const waitMs = retryAfterMs(reply);
    if (waitMs === null) {
      const ending = endingOf(reply);
      if (ending === "reserved") storm.onReserved(buyer, reservedIn(reply) ?? requestId);
      return ending;
    }
    await pause(waitMs, storm.over);
  }
  return "unanswered";
}

async function hangUp(storm: Storm, buyer: Buyer, requestId: string): Promise<void> {
  const reply = await storm.sockets.reserve(buyer.token, wishOf(storm, requestId), true);
  hear(storm.heard, buyer, requestId, reply);
}

/** What everybody asks for, in every request. */
export function wishOf({ saleId, itemId }: Pick<Storm, "saleId" | "itemId">, requestId: string): Wish {
  return { saleId, itemId, requestId, quantity: 1 };
}

/** When to send the same request again, in milliseconds; null where there is nothing more to learn. */
export function retryAfterMs(reply: ReserveReply): number | null {
  if (reply.kind !== "answered") return jitteredMs(0.5 * SECOND, 1.5 * SECOND);
  const { data, errors } = reply.body;
  const extensions = errors?.[0]?.extensions;
  if (!TRY_AGAIN.has(extensions?.code ?? data?.reserve.status ?? "")) return null;
  return extensions?.retryAfterMs ?? data?.reserve.retryAfterMs ?? jitteredMs(1 * SECOND, 3 * SECOND);
}

function reservedIn(reply: ReserveReply): string | undefined {
  return reply.kind === "answered" ? reply.body.data?.reserve.reservation?.requestId : undefined;
}

function endingOf(reply: ReserveReply): Ending {
  switch (reply.kind === "answered" && reply.body.data?.reserve.status) {
    case "QUEUED":
    case "DECIDED":
    case "ALREADY_RESERVED":
      return "reserved";
    case "SOLD_OUT":
      return "sold_out";
    // An error that the API doesn't ask to repeat is no answer.
    case undefined:
    case false:
      return "unanswered";
    default:
      return "refused";
  }
}

/** Of several answers to one buyer, what he has got. */
function best(endings: readonly Ending[]): Ending {
  const order: readonly Ending[] = ["reserved", "sold_out", "refused", "left", "unanswered"];
  return order.find((ending) => endings.includes(ending)) ?? "unanswered";
}
