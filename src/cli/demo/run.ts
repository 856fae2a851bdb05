/** One run of the demo, from the choice of a sale to the verdict. */
import { newId } from "../../domain/ids.js";
import { MINUTE, SECOND } from "../../domain/time.js";
import type { ProcessIdentity } from "../../embedded/process-identity.js";
import { orWhenLate } from "../../lifecycle/pause.js";
import type { DemoOptions } from "./arguments.js";
import { countHabits, gatherCrowd, type Habit } from "./crowd.js";
import type { Following } from "./follow.js";
import { closeFreshSale, openFreshSale, type Target } from "./fresh-sale.js";
import { type Heard, hearNothing } from "./heard.js";
import { findWorker, killWorker, SOCKETS_UNTIL_KILL, type WorkerKill, waitWhileYoung } from "./kill-worker.js";
import type { Numbers, Progress } from "./progress.js";
import { describeStart, type RunResult } from "./report.js";
import type { RunningSluice } from "./running-sluice.js";
import { openSockets, SOCKETS, type Sockets } from "./sockets.js";
import { openStores, type Stores } from "./stores.js";
import { openTill } from "./till.js";
import { prove, waitForRest } from "./verdict.js";
import { watch } from "./watch.js";
import { runWaves } from "./waves.js";

/** Where a run tells how it is getting on. */
export interface Screen {
  say(text: string): void;
  startProgress(full: Numbers): Progress;
}

/** Of both waves, besides the time that an order may stay unpaid. */
const WAVES_AT_MOST_MS = 5 * MINUTE;
/** Longer than a killed worker's jobs take to be taken over: 10 s of a lock, and 5 s until somebody looks. */
const REST_WITHIN_MS = 60 * SECOND;
const FOLLOWERS_WAIT_MS = 5 * SECOND;

/** @throws ConfigError or DemoFailure before anything is sold; later what the database or Redis failed with */
export async function runDemo(options: DemoOptions, sluice: RunningSluice, screen: Screen): Promise<RunResult> {
  if (options.killWorker) findWorker(sluice.dataDir);
  const stores = await openStores(sluice);
  const sockets = openSockets(sluice.apiUrl);
  try {
    if (options.killWorker) await waitWhileYoung(sluice.dataDir, screen.say);
    const worker = options.killWorker ? findWorker(sluice.dataDir) : null;
    return await carryThrough({ options, sluice, screen, stores, sockets, worker });
  } finally {
    sockets.close();
    await stores.close();
  }
}

interface Scene {
  readonly options: DemoOptions;
  readonly sluice: RunningSluice;
  readonly screen: Screen;
  readonly stores: Stores;
  readonly sockets: Sockets;
  /** to be killed */
  readonly worker: ProcessIdentity | null;
}

async function carryThrough(scene: Scene): Promise<RunResult> {
  const { options, sluice, screen, stores, sockets } = scene;
  const run = newId(6);
  const target = await openFreshSale(sluice, run, options);
  const crowd = await gatherCrowd(sluice, run, options.buyers, options.units);
  const habits = countHabits(crowd);
  screen.say(describeStart(target, habits, options, sluice.backlogLimit));

  const over = AbortSignal.timeout(WAVES_AT_MOST_MS + options.windowSeconds * SECOND);
  const till = await openTill(sluice, run, over);
  const progress = screen.startProgress(fullNumbers(options, habits));
  const heard = hearNothing();
  const stopWatching = watch(stores.reads, target.saleId, heard, progress);
  const calm = new AbortController();
  const killing = kill(scene, target, progress, calm.signal);
  // Heard of below, and not as an error that nobody was waiting for.
  killing.catch(() => {});
  try {
    const { reads } = stores;
    const onCalm = () => calm.abort();
    const waves = { apiUrl: sluice.apiUrl, reads, sockets, till, target, crowd, heard, onCalm, over };
    const { followings, finished } = await runWaves(waves);
    await waitForRest(stores, target.saleId, REST_WITHIN_MS);
    const killed = await killing;
    await hearFollowers(followings, heard);
    await stopWatching();

    const verdict = await prove({ ...stores, sockets, till }, target, heard);
    await closeFreshSale(sluice, run, target.saleId);
    const obstacles = obstaclesOf({ heard, options, killed, finished });
    return { run, target, buyers: options.buyers, habits, heard, kill: killed, verdict, obstacles };
  } finally {
    till.close();
  }
}

/** Holds the crowd back until the worker is killed, half-way, and lets it loose then. Null where none is to be killed. */
async function kill(
  { worker, sluice, stores, sockets, options }: Scene,
  target: Target,
  progress: Progress,
  calm: AbortSignal,
): Promise<WorkerKill | null> {
  if (!worker) return null;
  sockets.admit(SOCKETS_UNTIL_KILL);
  const deps = {
    dataDir: sluice.dataDir,
    reads: stores.reads,
    saleId: target.saleId,
    expected: Math.min(options.units, options.buyers),
    note: progress.note,
  };
  return killWorker(worker, deps, () => sockets.admit(SOCKETS), calm);
}

async function hearFollowers(followings: readonly Following[], heard: Heard): Promise<void> {
  const told = await Promise.all(
    followings.map((following) => orWhenLate(following.told, FOLLOWERS_WAIT_MS, () => null)),
  );
  for (const following of followings) following.leave();
  // RELEASED: he was away while the order was there. What has become of it was told all the same.
  heard.followed.told = told.filter((status) => status === "SUCCESS" || status === "RELEASED").length;
  heard.followed.untold = told.length - heard.followed.told;
}

/**
 * What the numbers come to at the end, if all goes well: those who hang up for good are told nothing, and three of ten units
 * come back, to be sold again where somebody was refused.
 */
function fullNumbers({ units, buyers }: DemoOptions, habits: Readonly<Record<Habit, number>>): Numbers {
  const sold = Math.min(units, buyers);
  const soldOut = Math.max(0, buyers - sold - habits.disconnects);
  const cameBack = Math.max(1, Math.round(sold * 0.3));
  const written = sold + Math.min(cameBack, soldOut);
  return { accepted: written, soldOut, inLine: sold, written, paid: sold, cameBack };
}

function obstaclesOf(end: {
  heard: Heard;
  options: DemoOptions;
  killed: WorkerKill | null;
  finished: boolean;
}): string[] {
  const { heard, options, killed, finished } = end;
  const obstacles: string[] = [];
  const { unanswered, refused } = heard.endings;
  const without = unanswered + heard.secondWave.unanswered;
  if (without > 0) obstacles.push(`The run was not carried through: ${without} buyers had no answer.`);
  if (refused > 0) obstacles.push(`${refused} buyers were refused for another reason than stock: see the answers.`);
  if (heard.acknowledged.size === 0) obstacles.push("Nobody was told QUEUED: there was nothing to prove.");
  if (!finished) obstacles.push("The run was not carried through: the time was over before every order had its end.");
  if (heard.settled.unanswered > 0) {
    obstacles.push(`${heard.settled.unanswered} buyers could not learn what became of their order or payment.`);
  }
  if (options.killWorker && !killed) obstacles.push("The worker was not killed: too few requests were accepted.");
  if (killed && !killed.next) obstacles.push("The worker that was killed was not started again.");
  return obstacles;
}
