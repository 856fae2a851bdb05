import type { Database } from "../../db/client.js";
import { countRequests } from "../../db/request-counts.js";
import { countOrders } from "../../db/sale-results.js";
import { pause } from "../../lifecycle/pause.js";
import type { Heard } from "./heard.js";
import type { Progress } from "./progress.js";

const LOOK_EVERY_MS = 200;

/** Shows how far a run has come, by the database where it knows, until the returned function is called. */
export function watch(reads: Database, saleId: string, heard: Heard, progress: Progress): () => Promise<void> {
  const stop = new AbortController();
  const look = async () => {
    const { accepted, undecided, ordered } = await countRequests(reads, saleId);
    const { unitsPaid, cameBack } = await countOrders(reads, saleId, 0);
    const soldOut = heard.endings.sold_out;
    progress.show({ accepted, soldOut, inLine: undecided, written: ordered, paid: unitsPaid, cameBack });
  };
  // Where the database can't say so just now, the next look may.
  const tryToLook = () => look().catch(() => {});
  const watching = (async () => {
    while (!stop.signal.aborted) {
      await tryToLook();
      await pause(LOOK_EVERY_MS, stop.signal);
    }
    await tryToLook();
    progress.stop();
  })();
  return async () => {
    stop.abort();
    await watching;
  };
}
