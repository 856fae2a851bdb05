import { type SaleState, SEQ_PER_EPOCH } from "../domain/sale-state.js";
import { type ReservationReason, STAGES, type Stage } from "../domain/stages.js";
import { forgetAtMs, saleKeys } from "./keys.js";
import type { RedisLink } from "./link.js";
import { callScript, type ScriptReply } from "./scripts.js";

/** A sale as step 1 of a load found it in the database. */
export interface LoadHeader {
  readonly saleId: string;
  readonly epoch: number;
  readonly state: SaleState;
  readonly stateVersion: number;
  readonly opensAt: Date;
  readonly closesAt: Date;
  readonly maxPerBuyer: number;
  readonly backlogLimit: number;
  /** itemId → units that can be reserved */
  readonly remaining: ReadonlyMap<string, number>;
}

/** A request as it goes into Redis, with how it stands towards holders and backlog. */
export interface LoadRequest {
  readonly requestId: string;
  readonly buyerId: string;
  readonly itemId: string;
  readonly quantity: number;
  readonly stage: Stage;
  readonly reason: ReservationReason | null;
  readonly acceptedAt: Date;
  readonly seq: number;
  readonly stands: "undecided" | "parked" | "valid_order" | "ended";
}

export type LoadReply = "ok" | "superseded" | "damaged";

/** Requests in one call of load.lua: about a millisecond of Redis, so that other sales don't notice. */
export const LOAD_CHUNK = 100;

const STANDS = { undecided: "P", parked: "D", valid_order: "V", ended: "E" } as const;

/** Clears the sale and puts it under LOADING. @throws RedisUnavailableError */
export async function beginLoad(link: RedisLink, header: LoadHeader): Promise<LoadReply> {
  return call(link, header.saleId, [], (runId) => [
    "begin",
    runId,
    header.epoch,
    header.state,
    header.stateVersion,
    header.opensAt.getTime(),
    header.closesAt.getTime(),
    forgetAtMs(header.closesAt),
    header.maxPerBuyer,
    header.backlogLimit,
    header.epoch * SEQ_PER_EPOCH,
    ...[...header.remaining].flat(),
  ]);
}

/** Brings requests, LOAD_CHUNK of them at the most. @throws RedisUnavailableError */
export async function loadChunk(
  link: RedisLink,
  saleId: string,
  epoch: number,
  requests: readonly LoadRequest[],
): Promise<LoadReply> {
  return call(
    link,
    saleId,
    requests.map(({ requestId }) => requestId),
    (runId) => [
      "chunk",
      runId,
      epoch,
      ...requests.flatMap((request) => [
        request.requestId,
        request.buyerId,
        request.itemId,
        request.quantity,
        request.stage,
        STAGES[request.stage].rank,
        request.reason ?? "",
        request.acceptedAt.getTime(),
        request.seq,
        STANDS[request.stands],
      ]),
    ],
  );
}

/** Lets buyers in and tells every process to read again what it has subscribers for. @throws RedisUnavailableError */
export async function finishLoad(link: RedisLink, saleId: string, epoch: number): Promise<LoadReply> {
  return call(link, saleId, [], (runId) => ["finish", runId, epoch, saleKeys(saleId).events]);
}

async function call(
  link: RedisLink,
  saleId: string,
  requestIds: readonly string[],
  args: (runId: string) => (string | number)[],
): Promise<LoadReply> {
  const keys = saleKeys(saleId);
  const raw = await link.run((client, runId) =>
    callScript(
      client,
      "load",
      [keys.sale, keys.stock, keys.holders, keys.pending, ...requestIds.map(keys.request)],
      args(runId),
    ),
  );
  return (raw as [ScriptReply<"load">])[0].toLowerCase() as LoadReply;
}
