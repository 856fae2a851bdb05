/** A run as one object, for scripts. */
import { pace, percentile } from "./heard.js";
import { exitStatusOf, type RunResult } from "./report.js";
import { SOCKETS } from "./sockets.js";
import type { Verdict } from "./verdict.js";

/** The run as one object. */
export function asJson(result: RunResult): Record<string, unknown> {
  const { run, target, buyers, habits, heard, kill, verdict, obstacles } = result;
  const round = (number: number) => Math.round(number * 100) / 100;
  const { requests, seconds, perSecond } = pace(heard);
  return {
    ok: exitStatusOf(result) === 0,
    run,
    sale: { id: target.saleId, itemId: target.itemId, units: target.units, windowSeconds: target.windowSeconds },
    crowd: { buyers, sockets: SOCKETS, habits },
    heard: {
      requests,
      seconds: round(seconds),
      perSecond: Math.round(perSecond),
      latencyMs: {
        p50: round(percentile(heard.latenciesMs, 0.5)),
        p95: round(percentile(heard.latenciesMs, 0.95)),
        p99: round(percentile(heard.latenciesMs, 0.99)),
      },
      answers: heard.answers,
      errors: heard.errors,
      hungUp: heard.hungUp,
      buyers: heard.endings,
      acknowledged: heard.acknowledged.size,
      followed: heard.followed,
      winners: heard.settled,
      payments: { reported: heard.payments.size, by: heard.paidBy, answers: heard.paymentAnswers },
      secondWave: { asked: heard.secondWave.asked, reserved: heard.secondWave.reserved },
    },
    worker: kill && {
      killed: kill.pid,
      unwritten: kill.unwritten,
      unwrittenAtMost: kill.unwrittenAtMost,
      next: kill.next?.pid ?? null,
      nextSeconds: kill.next && round(kill.next.seconds),
      decidedSeconds: kill.decidedSeconds && round(kill.decidedSeconds),
    },
    verdict: verdictAsJson(verdict),
    obstacles,
  };
}

function verdictAsJson(verdict: Verdict): Record<string, unknown> {
  const { orders, money } = verdict;
  return {
    unitsSold: verdict.sold,
    units: verdict.units,
    unitsPaid: orders.unitsPaid,
    unitsCameBack: orders.cameBack,
    unitsSoldAgain: verdict.soldAgain,
    paidBySecondWave: verdict.paidBySecondWave,
    orders: { paid: orders.paid, unpaid: orders.unpaid, cancelled: orders.cancelled, expired: orders.expired },
    payments: { onRecord: money.onRecord, reported: money.reported, toGiveBack: money.toGiveBack },
    oversold: verdict.oversold,
    buyersTwice: verdict.buyersTwice,
    withoutEnd: verdict.withoutEnd,
    invariants: Object.fromEntries(
      verdict.invariants.map(({ name, means, breaches }) => [name, { holds: breaches.length === 0, means, breaches }]),
    ),
  };
}
