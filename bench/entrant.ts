import type { Promised } from "./invariants.js";
import type { RunDir } from "./run-dir.js";
import type { FreshStores } from "./stores.js";

/** How a contender gets on the track. */
export interface Entrant {
  /** The invariants that it is held to; null where it keeps nothing. */
  readonly promises: Promised | null;
  /** Starts its API, and no worker. */
  start(options: StartOptions, stores: FreshStores): Promise<Running>;
}

export interface StartOptions {
  readonly runDir: RunDir;
  /** Sluice's processes */
  readonly apis: number;
  readonly workers: number;
}

/** A contender that runs. */
export interface Running {
  readonly url: string;
  apiPids(): number[];
  workerPids(): number[];
  /** Rejects when a process of it ends by itself; never resolves. */
  readonly died: Promise<never>;
  startWorkers(): Promise<void>;
  /** Lets buyers into a sale that stands in the database as a draft. */
  openSale(saleId: string): Promise<void>;
  stop(): Promise<void>;
}
