import { pause } from "../lifecycle/pause.js";

/** Reads a sale again and again for as long as somebody watches it: one reader a sale and process, whoever watches. */
export interface SaleTickers<Sale> {
  /** Calls back with every reading. Returns what stops it. */
  watch(saleId: string, listener: (sale: Sale) => void): () => void;
  /** Sales that are read at present. */
  size(): number;
}

export function createSaleTickers<Sale>(options: {
  read(saleId: string): Promise<Sale | null>;
  readonly everyMs: number;
  onError(error: unknown): void;
}): SaleTickers<Sale> {
  const watched = new Map<string, Set<(sale: Sale) => void>>();

  const tick = async (saleId: string, listeners: Set<(sale: Sale) => void>) => {
    while (listeners.size > 0) {
      await pause(options.everyMs);
      try {
        const sale = listeners.size > 0 ? await options.read(saleId) : null;
        if (sale) for (const listener of [...listeners]) listener(sale);
      } catch (error) {
        options.onError(error);
      }
    }
  };

  return {
    watch(saleId, listener) {
      let listeners = watched.get(saleId);
      if (!listeners) {
        listeners = new Set();
        watched.set(saleId, listeners);
        listeners.add(listener);
        void tick(saleId, listeners);
      } else {
        listeners.add(listener);
      }
      return () => {
        listeners.delete(listener);
        // The loop ends by itself; a watcher that comes meanwhile starts one of its own.
        if (listeners.size === 0 && watched.get(saleId) === listeners) watched.delete(saleId);
      };
    },
    size: () => watched.size,
  };
}
