/** Who the visitor is: a buyer of the demo, with a token that the API gave. */
import type { Storage } from "./storage.js";

export interface Buyer {
  readonly buyerId: string;
  readonly token: string;
}

export interface Buyers {
  /** The present buyer; a new one where there is none yet, and null where none can be had now. */
  current(): Promise<Buyer | null>;
  /** A valid token after `refused` was refused: the same buyer's wherever that is possible. Null where none can be had now. */
  renew(refused: Buyer): Promise<Buyer | null>;
  /** Becomes somebody else. Null where that can't be had now: then the present buyer stays. */
  change(): Promise<Buyer | null>;
  /** Takes over what another tab has stored. */
  read(): Buyer | null;
}

export const BUYER_KEY = "sluice:buyer";

const TIMEOUT_MS = 8_000;

/** @param onReplaced called when a token could not be renewed, and the visitor has become another buyer */
export function createBuyers(storage: Storage, onReplaced: () => void): Buyers {
  let buyer = stored(storage);
  // Many ask at once; all get the same new token.
  let coming: Promise<Buyer | null> | null = null;

  const take = (next: Buyer) => {
    buyer = next;
    storage.set(BUYER_KEY, next);
    return next;
  };
  const once = (get: () => Promise<Buyer | null>) => {
    coming ??= get().finally(() => {
      coming = null;
    });
    return coming;
  };

  return {
    // While another one is coming, its token is the one to use.
    current: async () => (await coming) ?? buyer ?? once(async () => keep(await request(null), take)),
    renew(refused) {
      if (buyer && buyer.token !== refused.token) return Promise.resolve(buyer);
      return once(async () => {
        const next = await request(refused.token);
        if (!next) return null;
        take(next);
        if (next.buyerId !== refused.buyerId) onReplaced();
        return next;
      });
    },
    change: () => once(async () => keep(await request(null), take)),
    read() {
      buyer = stored(storage) ?? buyer;
      return buyer;
    },
  };
}

function keep(next: Buyer | null, take: (next: Buyer) => Buyer): Buyer | null {
  return next && take(next);
}

/** A new token: for the buyer of an old one, if the API knows it for its own, else for a new buyer. */
async function request(oldToken: string | null): Promise<Buyer | null> {
  try {
    const response = await fetch("/demo/buyer", {
      method: "POST",
      headers: oldToken === null ? {} : { authorization: `Bearer ${oldToken}` },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const body: unknown = response.ok ? await response.json() : null;
    return isBuyer(body) ? { buyerId: body.buyerId, token: body.token } : null;
  } catch {
    return null;
  }
}

function stored(storage: Storage): Buyer | null {
  const value = storage.get(BUYER_KEY);
  return isBuyer(value) ? value : null;
}

function isBuyer(value: unknown): value is Buyer {
  if (typeof value !== "object" || value === null) return false;
  const { buyerId, token } = value as Record<string, unknown>;
  return typeof buyerId === "string" && typeof token === "string";
}
