import type { Entrant, StartOptions } from "../entrant.js";
import type { FreshStores } from "../stores.js";
import { AUTH, operate } from "./operate.js";
import { type SluiceProcess, startSluiceApi, startSluiceWorker } from "./start.js";

const OPEN_SALE = "mutation ($id: ID!) { openSale(saleId: $id) { state } }";

/** Sluice itself. */
export const SLUICE: Entrant = {
  promises: "S U C T",
  async start({ runDir, apis, workers }: StartOptions, stores: FreshStores) {
    const env = {
      DATABASE_URL: stores.databaseUrl,
      REDIS_URL: stores.redisUrl,
      JWT_SECRET: AUTH.secret,
      JWT_ISSUER: AUTH.issuer,
      JWT_AUDIENCE: AUTH.audience,
    };
    const api = await startSluiceApi(runDir, "sluice-api", env, apis);
    const url = api.ready[1] as string;
    const started: SluiceProcess[] = [];
    let reportDeath: (error: Error) => void = () => {};
    const workerDied = new Promise<never>((_, reject) => {
      reportDeath = reject;
    });
    workerDied.catch(() => {});
    return {
      url,
      apiPids: () => [api.pid],
      workerPids: () => started.map(({ pid }) => pid),
      died: Promise.race([api.died, workerDied]),
      async startWorkers() {
        const names = Array.from({ length: workers }, (_, at) => `sluice-worker-${started.length + at + 1}`);
        const all = await Promise.all(names.map((name) => startSluiceWorker(runDir, name, env)));
        for (const worker of all) worker.died.catch(reportDeath);
        started.push(...all);
      },
      openSale: (saleId) => operate(url, OPEN_SALE, { id: saleId }),
      async stop() {
        await Promise.all([api, ...started].map((process) => process.stop()));
      },
    };
  },
};
