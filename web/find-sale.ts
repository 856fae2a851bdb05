/** Which sale the page shows. */
import type { Ask } from "./api.js";
import { RUNNING_SALES, SALE_BY_ID, type Sale } from "./documents.js";
import { type Answer, troubleOf } from "./purchase.js";
import { foremost } from "./sale.js";
import { backoffMs, type Waits } from "./waits.js";

/** Why there is no sale to show yet. */
export interface Notice {
  readonly title: string;
  readonly note: string;
  /** whether there may be another sale to see instead */
  readonly elsewhere: boolean;
}

const LOOK_EVERY_MS = 10_000;

/** The sale with this id, or without one that which is worth showing. Looks again and again until there is one. */
export async function findSale(
  ask: Ask,
  waits: Waits,
  saleId: string | null,
  onNotice: (notice: Notice) => void,
): Promise<Sale> {
  for (let attempt = 0; ; attempt += 1) {
    const answer = await (saleId === null ? running(ask) : byId(ask, saleId));
    if (answer.kind === "error") {
      const helpless = troubleOf(answer.code) === null;
      onNotice({ title: "The shop is not there", note: helpless ? answer.message : "Trying again…", elsewhere: false });
      await waits.pause(Math.max(backoffMs(attempt, Math.random()), answer.retryAfterMs ?? 0));
    } else if (answer.data) {
      return answer.data;
    } else {
      onNotice({
        title: saleId === null ? "Nothing is on sale right now" : "There is no such sale",
        note: "This page looks again by itself.",
        elsewhere: saleId !== null,
      });
      await waits.pause(LOOK_EVERY_MS * (0.75 + Math.random() / 2));
    }
  }
}

async function running(ask: Ask): Promise<Answer<Sale | null>> {
  const answer = await ask(RUNNING_SALES, {});
  if (answer.kind === "error") return answer;
  const { serverTime, open, paused } = answer.data;
  const sales = [...open.edges, ...paused.edges].map(({ node }) => node);
  return { kind: "data", data: foremost(sales, Date.parse(serverTime)) };
}

async function byId(ask: Ask, id: string): Promise<Answer<Sale | null>> {
  const answer = await ask(SALE_BY_ID, { id });
  return answer.kind === "error" ? answer : { kind: "data", data: answer.data.sale };
}
