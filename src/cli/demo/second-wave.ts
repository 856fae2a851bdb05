/** The second wave: who was refused comes again when there is something, until every unit is paid or nobody wants one. */
import type { Database } from "../../db/client.js";
import { countRequests } from "../../db/request-counts.js";
import { countOrders } from "../../db/sale-results.js";
import { SECOND } from "../../domain/time.js";
import { pause } from "../../lifecycle/pause.js";
import type { Till } from "./till.js";
import { type Storm, visitAgain } from "./visit.js";

export interface SecondWaveScene {
  readonly reads: Database;
  readonly till: Till;
  readonly storm: Storm;
  readonly units: number;
}

const LOOK_EVERY_MS = SECOND / 4;
/** More of them than there are units: somebody is too late in the second wave, too. */
const FOR_EACH_UNIT = 2;
/** What has ended is on sale again within moments; where nothing is for this long, nothing will be. */
const NOTHING_FOR_MS = 2 * SECOND;

/** Resolves when nothing more will happen to the sale's orders, or the time is over: true where nothing more will. */
export async function sendSecondWave(scene: SecondWaveScene): Promise<boolean> {
  const { reads, till, storm, units } = scene;
  const { over, saleId, heard } = storm;
  let nothingSince: number | null = null;
  while (!over.aborted) {
    const remaining = await till.remaining(saleId);
    const state = await look(reads, saleId);
    if (remaining !== null && remaining > 0 && heard.wanting.length > 0) {
      const comers = heard.wanting.splice(0, remaining * FOR_EACH_UNIT);
      await Promise.all(comers.map((buyer) => visitAgain(storm, buyer)));
      nothingSince = null;
      continue;
    }
    if (state === null || state.open > 0) nothingSince = null;
    else {
      if (state.unitsPaid >= units || (remaining !== null && remaining > 0)) return true;
      nothingSince ??= performance.now();
      if (performance.now() - nothingSince > NOTHING_FOR_MS) return true;
    }
    await pause(LOOK_EVERY_MS, over);
  }
  return false;
}

/** What has no end yet, and what is paid; null where the database can't say so just now. */
async function look(reads: Database, saleId: string): Promise<{ open: number; unitsPaid: number } | null> {
  try {
    const { undecided } = await countRequests(reads, saleId);
    const { unpaid, unitsPaid } = await countOrders(reads, saleId, 0);
    return { open: undecided + unpaid, unitsPaid };
  } catch {
    return null;
  }
}
