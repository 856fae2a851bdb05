/** The contenders that are no Sluice: programs of this folder, compiled as Sluice is and run by plain Node. */
import type { Entrant, Running, StartOptions } from "./entrant.js";
import type { Promised } from "./invariants.js";
import type { ContenderName } from "./names.js";
import { type Program, startProgram } from "./program.js";
import { SLUICE } from "./sluice/entrant.js";
import { AUTH } from "./sluice/operate.js";
import { type FreshStores, query } from "./stores.js";

interface Programs {
  readonly promises: Promised | null;
  readonly api: string;
  readonly worker?: string;
  readonly env?: Record<string, string>;
}

/** The queue that the worker without any work empties. */
export const NOOP_QUEUE = "noop";

const WORKER = "bench/baseline/straightforward-worker.ts";

export const ENTRANTS: Readonly<Partial<Record<ContenderName, Entrant>>> = {
  sluice: SLUICE,
  straightforward: programs({ promises: "S U", api: "bench/baseline/straightforward-api.ts", worker: WORKER }),
  "round-1": programs({ promises: "S U", api: "bench/baseline/rounds-api.ts", env: { ROUND: "1" } }),
  "round-2": programs({ promises: "S U", api: "bench/baseline/rounds-api.ts", env: { ROUND: "2" } }),
  "round-3": programs({ promises: "S U", api: "bench/baseline/rounds-api.ts", worker: WORKER, env: { ROUND: "3" } }),
  "yoga-noop": programs({ promises: null, api: "bench/ceilings/yoga-noop.ts" }),
  // Its limit costs more than all the rest of it: who turns it off must not find himself left out.
  "yoga-noop-lean": programs({ promises: null, api: "bench/ceilings/yoga-noop.ts", env: { BODY_LIMIT: "off" } }),
  echo: programs({ promises: null, api: "bench/ceilings/echo.ts" }),
};

/** Starts a worker that empties `NOOP_QUEUE`. */
export function startNoopWorker({ runDir }: StartOptions, stores: FreshStores): Promise<Program> {
  return start(runDir, "bench/ceilings/noop-worker.ts", { ...environment(stores), QUEUE: NOOP_QUEUE });
}

function programs({ promises, api, worker, env = {} }: Programs): Entrant {
  return {
    promises,
    async start({ runDir }, stores): Promise<Running> {
      const all = { ...environment(stores), ...env };
      const program = await start(runDir, api, all);
      const workers: Program[] = [];
      let reportDeath: (error: Error) => void = () => {};
      const workerDied = new Promise<never>((_, reject) => {
        reportDeath = reject;
      });
      return {
        url: program.url as string,
        apiPids: () => [program.pid],
        workerPids: () => workers.map(({ pid }) => pid),
        died: Promise.race([program.died, workerDied]),
        async startWorkers() {
          if (worker === undefined) return;
          const started = await start(runDir, worker, all);
          started.died.catch(reportDeath);
          workers.push(started);
        },
        async openSale(saleId) {
          await query(stores.databaseUrl, `UPDATE sales SET state = 'OPEN' WHERE id = $1`, [saleId]);
        },
        async stop() {
          await Promise.all([program, ...workers].map((each) => each.stop()));
        },
      };
    },
  };
}

function start(runDir: StartOptions["runDir"], entry: string, env: Record<string, string>): Promise<Program> {
  return startProgram(entry, env, { onSpawn: runDir.endWithRun });
}

function environment({ databaseUrl, redisUrl }: FreshStores): Record<string, string> {
  return {
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    JWT_SECRET: AUTH.secret,
    JWT_ISSUER: AUTH.issuer,
    JWT_AUDIENCE: AUTH.audience,
  };
}
