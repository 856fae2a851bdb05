/** The crowd's two waves, and what becomes of everything that they have got. */
import { setMaxListeners } from "node:events";
import type { Database } from "../../db/client.js";
import { SECOND } from "../../domain/time.js";
import { orWhenLate } from "../../lifecycle/pause.js";
import type { Buyer } from "./crowd.js";
import type { Following } from "./follow.js";
import type { Target } from "./fresh-sale.js";
import type { Heard } from "./heard.js";
import { sendSecondWave } from "./second-wave.js";
import { mannerOf, settle } from "./settle.js";
import type { Sockets } from "./sockets.js";
import type { Till } from "./till.js";
import { visit } from "./visit.js";

/** When nothing more will happen, everybody hears so the next time that he looks, which is each second. */
const LOOK_AGAIN_WITHIN_MS = 5 * SECOND;

export interface Waves {
  readonly apiUrl: string;
  readonly reads: Database;
  readonly sockets: Sockets;
  readonly till: Till;
  readonly target: Target;
  readonly crowd: readonly Buyer[];
  readonly heard: Heard;
  /** called when the last of the first wave has had the last answer */
  readonly onCalm: () => void;
  /** ends all waiting: the time is over */
  readonly over: AbortSignal;
}

export interface WavesEnd {
  /** those who follow a reservation that they have */
  readonly followings: readonly Following[];
  /** whether all came to its end before the time was over */
  readonly finished: boolean;
}

/**
 * Everybody at once; whoever gets something pays, gives it back or forgets it, also while the others are still coming; and
 * then those who were refused come again for what came back.
 */
export async function runWaves(waves: Waves): Promise<WavesEnd> {
  const { apiUrl, reads, sockets, till, target, crowd, heard, over } = waves;
  const { saleId, itemId, units, windowSeconds } = target;
  setMaxListeners(0, over);
  const [calm, end] = [new AbortController(), new AbortController()];
  const endOrOver = AbortSignal.any([end.signal, over]);
  for (const signal of [calm.signal, endOrOver]) setMaxListeners(0, signal);
  const winners = new Set<string>();
  const settling: Promise<void>[] = [];
  const onReserved = (buyer: Buyer, requestId: string) => {
    if (winners.has(requestId)) return;
    const winner = { buyer, requestId, nth: winners.size };
    winners.add(requestId);
    const scene = { till, heard, saleId, windowSeconds, calm: calm.signal, over: endOrOver };
    settling.push(settle(scene, winner, mannerOf(winner, units)));
  };
  const storm = { apiUrl, sockets, heard, saleId, itemId, onReserved, over };

  const startedAt = performance.now();
  const followings = await Promise.all(crowd.map((buyer) => visit(storm, buyer)));
  heard.storm = { requests: heard.latenciesMs.length, seconds: (performance.now() - startedAt) / SECOND };
  calm.abort();
  waves.onCalm();
  const finished = await sendSecondWave({ reads, till, storm, units });
  const settled = Promise.all(settling);
  await orWhenLate(settled, LOOK_AGAIN_WITHIN_MS, () => end.abort());
  await settled;
  return { followings: followings.filter((following) => following !== null), finished };
}
