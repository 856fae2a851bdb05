import { Redis } from "ioredis";
import DECIDE from "./decide.lua";
import GIVE_BACK from "./give-back.lua";
import { type Claim, type Reservation, reservationOf } from "./reservations.js";
import type { Sale } from "./sales.js";

/** What Redis decided. */
export type Decision =
  | { readonly kind: "ACCEPTED" | "SOLD_OUT" | "INSUFFICIENT" }
  /** the buyer has this reservation already: this request's, or another's */
  | { readonly kind: "CLAIMED"; readonly reservation: Reservation };

/** The stock of sales in Redis, and who has claimed some of it. */
export interface StockInRedis {
  /** Puts an item's stock there that isn't there yet: before anybody buys, the database's is what there is. */
  fill(sale: Sale): Promise<void>;
  decide(claim: Claim): Promise<Decision>;
  /** Undoes an acceptance, once. */
  giveBack(claim: Claim): Promise<void>;
}

interface Scripted extends Redis {
  decide(stock: string, claims: string, ...args: (string | number)[]): Promise<[kind: string, claim?: string]>;
  giveBack(stock: string, claims: string, ...args: (string | number)[]): Promise<[kind: string]>;
}

export function openStock(client: Redis): StockInRedis {
  client.defineCommand("decide", { numberOfKeys: 2, lua: DECIDE });
  client.defineCommand("giveBack", { numberOfKeys: 2, lua: GIVE_BACK });
  const redis = client as Scripted;
  const filled = new Set<string>();
  return {
    async fill({ id, state, items }) {
      if (state !== "OPEN" || filled.has(id)) return;
      const pipeline = client.pipeline();
      for (const [itemId, { available }] of items) pipeline.hsetnx(stockKey(id), itemId, available);
      for (const [error] of (await pipeline.exec()) ?? []) if (error) throw error;
      filled.add(id);
    },
    async decide(claim) {
      const [kind, held] = await redis.decide(...keysAndArguments(claim));
      switch (kind) {
        case "ACCEPTED":
        case "SOLD_OUT":
        case "INSUFFICIENT":
          return { kind };
        case "CLAIMED":
          return { kind, reservation: parseClaim(claim.saleId, held ?? "") };
        default:
          throw new Error(`Redis can't decide: ${kind}`);
      }
    },
    async giveBack(claim) {
      await redis.giveBack(...keysAndArguments(claim));
    },
  };
}

function keysAndArguments({ saleId, buyerId, requestId, itemId, quantity }: Claim) {
  const claim = `${requestId} ${itemId} ${quantity}`;
  return [stockKey(saleId), `shop:{${saleId}}:claims`, buyerId, claim, itemId, quantity] as const;
}

const stockKey = (saleId: string) => `shop:{${saleId}}:stock`;

function parseClaim(saleId: string, text: string): Reservation {
  const [requestId = "", itemId = "", quantity = ""] = text.split(" ");
  return reservationOf({ saleId, requestId, itemId, quantity: Number(quantity) }, "PENDING");
}

/** For commands that somebody waits for: they fail after one attempt more, not after twenty. */
export function connectRedis(url: string): Redis {
  const redis = new Redis(url, { maxRetriesPerRequest: 1 });
  redis.on("error", (error) => console.error(`Redis: ${error.message}`));
  return redis;
}
