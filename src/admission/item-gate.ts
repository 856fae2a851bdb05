/** Which time an item ran out of stock: units that come back, a load or another server make it another one. */
export interface Emptying {
  readonly runId: string;
  readonly epoch: number;
  readonly generation: number;
}

/** All buyers who were accepted for an item, and some who only look so. */
export interface AcceptedBuyers {
  test(buyerId: string): boolean;
}

/**
 * What is to be done with a request:
 * - `answer`: sold out, and the buyer is a stranger
 * - `maybe`: the buyer may have been accepted once: only Redis can tell
 * - `probe`: like `answer`, but it is time that one asks Redis again
 * - `open`: the gate isn't shut
 */
export type Verdict = "answer" | "maybe" | "probe" | "open";

/** Why a gate that was shut is open: news, another reply of Redis, no reply in time, or a broken way of the news. */
export type OpenedBy = "event" | "reply" | "lease" | "silence";

/**
 * The gate of one item: shut for strangers while Redis has said SOLD_OUT a moment ago, all who were accepted until then are
 * known, and nothing was heard since that could have changed it. Times are those of performance.now(), handed in.
 */
export interface ItemGate {
  /** Redis said SOLD_OUT to what it was asked at `askedAt`. Whether that was of this emptying, or of a newer one. */
  soldOut(emptying: Emptying, askedAt: number): boolean;
  /** Takes the buyers that were read after a SOLD_OUT of this emptying; of no use where there was another one since. */
  fill(emptying: Emptying, accepted: AcceptedBuyers): void;
  /** Whether the buyers of its emptying have yet to be read. */
  readonly isEmpty: boolean;
  readonly emptying: Emptying | null;
  /** Units may have come back, or the sale may not be open: only what Redis is asked from now on shuts it again. */
  open(now: number, by: OpenedBy): void;
  /** False where the buyer was never accepted. */
  mayKnow(buyerId: string): boolean;
  /**
   * `heardAllSince`: since when nothing that was published can have passed by unheard, Infinity where that can't be said.
   */
  judge(buyerId: string, now: number, heardAllSince: number): Verdict;
}

export interface ItemGateOptions {
  readonly leaseMs: number;
  /** Called where a gate that was shut is so no longer. */
  onOpened(by: OpenedBy): void;
}

const NEVER = Number.NEGATIVE_INFINITY;

export function createItemGate({ leaseMs, onOpened }: ItemGateOptions): ItemGate {
  let emptying: Emptying | null = null;
  let accepted: AcceptedBuyers | null = null;
  /** when that was asked which Redis last answered with SOLD_OUT */
  let askedAt = NEVER;
  let openedAt = NEVER;
  let probeAt = NEVER;
  let isShut = false;

  const open = (now: number, by: OpenedBy) => {
    openedAt = Math.max(openedAt, now);
    askedAt = NEVER;
    tellOpened(by);
  };
  const tellOpened = (by: OpenedBy) => {
    if (isShut) onOpened(by);
    isShut = false;
  };
  // Apart from each other, so that the processes of a crowd don't ask together.
  const jittered = () => leaseMs * (0.4 + Math.random() * 0.2);

  return {
    soldOut(said, saidTo) {
      if (emptying && isOlder(said, emptying)) return false;
      if (!emptying || !isSame(said, emptying)) {
        emptying = said;
        accepted = null;
        askedAt = NEVER;
        tellOpened("reply");
      }
      // A reply may arrive after news of what happened behind it.
      if (saidTo > openedAt && saidTo > askedAt) {
        askedAt = saidTo;
        probeAt = saidTo + jittered();
      }
      return true;
    },
    fill(of, buyers) {
      if (emptying && isSame(of, emptying)) accepted = buyers;
    },
    get isEmpty() {
      return accepted === null;
    },
    get emptying() {
      return emptying;
    },
    open,
    mayKnow: (buyerId) => accepted === null || accepted.test(buyerId),
    judge(buyerId, now, heardAllSince) {
      if (!accepted) return "open";
      if (now >= askedAt + leaseMs) {
        tellOpened("lease");
        return "open";
      }
      if (askedAt < heardAllSince) {
        tellOpened("silence");
        return "open";
      }
      isShut = true;
      if (accepted.test(buyerId)) return "maybe";
      if (now < probeAt) return "answer";
      probeAt = now + jittered();
      return "probe";
    },
  };
}

function isSame(a: Emptying, b: Emptying): boolean {
  return a.runId === b.runId && a.epoch === b.epoch && a.generation === b.generation;
}

/** Of one server both numbers only grow; of another one nothing is known. */
function isOlder(a: Emptying, b: Emptying): boolean {
  return a.runId === b.runId && (a.epoch < b.epoch || (a.epoch === b.epoch && a.generation < b.generation));
}
