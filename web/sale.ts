/** What a sale is at a moment of the server's time. */
import type { Item, Sale } from "./documents.js";

export type Phase = "unknown" | "before" | "open" | "paused" | "ended";

/** `nowMs` is the server's time, or null while it isn't known: then only what needs no clock is said. */
export function phaseOf(sale: Sale, nowMs: number | null): Phase {
  if (sale.state === "CLOSED") return "ended";
  if (nowMs === null) return sale.state === "PAUSED" ? "paused" : "unknown";
  if (nowMs >= Date.parse(sale.closesAt)) return "ended";
  if (sale.state === "PAUSED") return "paused";
  return nowMs < Date.parse(sale.opensAt) ? "before" : "open";
}

/** What the countdown counts to, or null where there is nothing to count. */
export function countdownTarget(sale: Sale, phase: Phase): number | null {
  if (phase === "before") return Date.parse(sale.opensAt);
  return phase === "open" ? Date.parse(sale.closesAt) : null;
}

/** Of sales, the newest first, the one to show: where something can be bought before sold out, that before not yet begun. */
export function foremost(sales: readonly Sale[], nowMs: number): Sale | null {
  const worth = (sale: Sale) => {
    const phase = phaseOf(sale, nowMs);
    if (phase === "open") return sale.items.every(isSoldOut) ? 2 : 4;
    return { paused: 3, before: 1, unknown: 0, ended: 0 }[phase];
  };
  return [...sales].sort((a, b) => worth(b) - worth(a))[0] ?? null;
}

/** The newer of two readings of a sale: versions never go back. */
export function newerSale(known: Sale | null, next: Sale): Sale {
  return known !== null && known.id === next.id && known.version > next.version ? known : next;
}

export function isSoldOut(item: Item): boolean {
  return item.remaining <= 0;
}
