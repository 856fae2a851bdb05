import { notFound } from "../domain/errors.js";
import type { LiveSale, RequestKey, Reservation } from "../domain/model.js";
import { isSettled, STAGES } from "../domain/stages.js";
import { jitteredMs, SECOND } from "../domain/time.js";
import type { Logger } from "../observability/logger.js";
import type { SaleEvents } from "../realtime/sale-events.js";
import type { SaleTickers } from "../realtime/sale-tickers.js";
import { createStream } from "../realtime/stream.js";
import { type ReadSalesDeps, readSale } from "./read-sales.js";

export interface WatchReservationDeps {
  readonly events: SaleEvents;
  /** reads many at once what many ask for at once */
  readonly reservationLoader: { load(key: RequestKey): Promise<Reservation | null> };
  readonly log: Logger;
}

/** A message may get lost: what is waited for is read again after about this time. */
const READ_AGAIN_MS = 30 * SECOND;
const RETRY_MS = 1 * SECOND;

/**
 * A reservation from now on: first its present state, where there is one, then every later one; versions only grow. Ends
 * when nothing is left to wait for. Listens before it reads, so nothing falls between; what was published is only a hint.
 * With `buyerId` null anybody's, else that buyer's own: another's is as if it weren't there.
 */
export function watchReservation(
  deps: WatchReservationDeps,
  key: RequestKey & { readonly buyerId: string | null },
): AsyncIterableIterator<Reservation> {
  return createStream<Reservation>(async ({ push, finish }) => {
    let sentRank = 0;
    let reading = false;
    let again = false;
    let stopped = false;
    let timer: NodeJS.Timeout | undefined;

    const read = async () => {
      if (reading) {
        again = true;
        return;
      }
      reading = true;
      clearTimeout(timer);
      let nextMs = jitteredMs(READ_AGAIN_MS / 2, READ_AGAIN_MS);
      try {
        do {
          again = false;
          const found = await deps.reservationLoader.load({ saleId: key.saleId, requestId: key.requestId });
          if (stopped || !found || (key.buyerId !== null && found.buyerId !== key.buyerId)) continue;
          const { rank } = STAGES[found.stage];
          if (rank > sentRank) {
            sentRank = rank;
            push(found);
          }
          if (isSettled(found.stage)) finish();
        } while (again && !stopped);
      } catch (error) {
        deps.log.debug(
          { saleId: key.saleId, requestId: key.requestId, err: error },
          "a watched reservation can't be read",
        );
        nextMs = jitteredMs(RETRY_MS / 2, RETRY_MS * 2);
      }
      reading = false;
      if (!stopped) timer = setTimeout(read, nextMs);
    };

    const stopListening = await deps.events.listen(key.saleId, key.requestId, (hint) => {
      if (hint.kind === "everything" || hint.rank > sentRank) void read();
    });
    void read();
    return () => {
      stopped = true;
      clearTimeout(timer);
      stopListening();
    };
  });
}

export interface WatchSaleDeps extends ReadSalesDeps {
  readonly tickers: SaleTickers<LiveSale>;
}

/**
 * A sale from now on: first its present state, then its changes, four a second at most. Ends when the sale is CLOSED.
 * @throws SluiceError NOT_FOUND before the first value
 */
export function watchSale(deps: WatchSaleDeps, saleId: string): AsyncIterableIterator<LiveSale> {
  return createStream<LiveSale>(async ({ push, finish }) => {
    const sale = await readSale(deps, saleId);
    if (!sale) throw notFound("There is no such sale.");
    let sent = "";
    let version = 0;
    const show = (next: LiveSale) => {
      const initial = next.items.map((item) => item.initial);
      const face = `${next.state} ${next.stateVersion} ${[...next.remaining].join()} ${initial.join()}`;
      // Read from the database a version is lower than Redis had it: a watcher that drops older ones must not drop this.
      version = Math.max(version, next.version);
      if (face !== sent) {
        sent = face;
        push({ ...next, version });
      }
      if (next.state === "CLOSED") finish();
    };
    show(sale);
    return deps.tickers.watch(saleId, show);
  });
}
