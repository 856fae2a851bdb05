/** One intention to buy, remembered before it is first sent: a repeat after a reload must carry the same requestId. */
import type { Storage } from "./storage.js";

export interface Intention {
  readonly requestId: string;
  readonly itemId: string;
  readonly quantity: number;
  /** when the visitor pressed the button, in the server's time */
  readonly pressedAtMs: number;
  /** whether it is known to be durable: then it is never sent again by itself */
  readonly accepted: boolean;
}

export interface Intentions {
  load(): Intention | null;
  save(intention: Intention): void;
  forget(): void;
}

/** The name under which a buyer's intention in a sale is remembered. */
export function intentionKey(saleId: string, buyerId: string): string {
  return `sluice:intention:${saleId}:${buyerId}`;
}

export function createIntentions(storage: Storage, key: string): Intentions {
  return {
    load() {
      const stored = storage.get(key);
      return isIntention(stored) ? stored : null;
    },
    save: (intention) => storage.set(key, intention),
    forget: () => storage.remove(key),
  };
}

/** A random UUID. Not by crypto.randomUUID, which pages have only over https and on localhost. */
export function newRequestId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

function isIntention(value: unknown): value is Intention {
  if (typeof value !== "object" || value === null) return false;
  const { requestId, itemId, quantity, pressedAtMs, accepted } = value as Record<string, unknown>;
  return (
    typeof requestId === "string" &&
    typeof itemId === "string" &&
    typeof quantity === "number" &&
    typeof pressedAtMs === "number" &&
    typeof accepted === "boolean"
  );
}
