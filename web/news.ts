/** What is worth telling of a change: states, never each second of a countdown or each unit of stock. */

import type { Notice } from "./find-sale.js";
import { isSoldOut, phaseOf } from "./sale.js";
import { phaseName, phaseNote, purchaseText } from "./sentences.js";
import type { Shown } from "./view.js";

export interface News {
  /** Later news of the same topic replace earlier ones. */
  readonly topic: string;
  readonly text: string;
}

/** News between two views of the page. Where nothing was shown before, only of the visitor's own purchase. */
export function newsBetween(before: Shown | null, after: Shown): News[] {
  const news: News[] = [];
  const { sale } = after;
  if (!sale) return after.notice && after.notice.title !== before?.notice?.title ? [noticeNews(after.notice)] : news;

  const text = purchaseText(after.purchase, after.settlement, sale, after.nowMs);
  if (text && stageOf(after) !== (before && stageOf(before))) {
    news.push({ topic: "purchase", text: `${sentence(text.title)} ${text.detail}`.trim() });
  }
  if (!before) return news;
  if (before.connection !== after.connection) {
    if (after.connection === "lost") news.push({ topic: "connection", text: "Connection lost, trying again." });
    else if (before.connection === "lost") news.push({ topic: "connection", text: "Connected again." });
  }
  if (!before.sale) return news;
  const [was, is] = [phaseOf(before.sale, before.nowMs), phaseOf(sale, after.nowMs)];
  if (was !== is && was !== "unknown") {
    news.push({ topic: "sale", text: `The sale: ${phaseName(is)}. ${phaseNote(sale, is)}`.trim() });
  }
  for (const item of sale.items) {
    const known = before.sale.items.find(({ id }) => id === item.id);
    if (!known || isSoldOut(known) === isSoldOut(item)) continue;
    news.push({
      topic: `item ${item.id}`,
      text: `${item.title} is ${isSoldOut(item) ? "sold out" : "on sale again"}.`,
    });
  }
  return news;
}

function sentence(title: string): string {
  return /[.?]$/.test(title) ? title : `${title}.`;
}

function noticeNews({ title, note }: Notice): News {
  return { topic: "sale", text: `${title}. ${note}`.trim() };
}

/** What a purchase must differ in to be told of again: not the place in line. */
function stageOf({ purchase, settlement: { settling } }: Shown): string {
  switch (purchase.kind) {
    case "reserved": {
      const { requestId, status, order } = purchase.reservation;
      const trouble = "trouble" in settling ? settling.trouble : "";
      return `reserved ${requestId} ${status} ${order?.status} ${settling.kind} ${trouble}`;
    }
    case "refused":
      return `refused ${purchase.intention.requestId}`;
    case "asking":
      return `asking ${purchase.intention.requestId} ${purchase.trouble}`;
    default:
      return purchase.kind;
  }
}
