/** Invariant R, of money: what was reported is on record once, says the same when reported again, and buys or is given back. */
import type { Database } from "../../db/client.js";
import { OFFENDERS_AT_MOST, type Offender } from "../../db/offenders.js";
import { type RecordedPayment, readPayments } from "../../db/sale-results.js";
import type { ReportedPayment } from "./heard.js";
import type { Breach } from "./repeats.js";
import type { Till } from "./till.js";

export interface ProveMoneyDeps {
  readonly reads: Database;
  readonly till: Till;
}

/** What the money came to. */
export interface Money {
  readonly onRecord: number;
  readonly reported: number;
  /** of those on record, those that could not buy */
  readonly toGiveBack: number;
  readonly breaches: readonly Breach[];
}

/** Compares what was reported with what is on record, reports it all once more, and sees that this has added nothing. */
export async function proveMoney(
  { reads, till }: ProveMoneyDeps,
  saleId: string,
  reported: ReadonlyMap<string, ReportedPayment>,
): Promise<Money> {
  const records = await readPayments(reads, saleId);
  const recordOf = new Map(records.map((record) => [record.paymentRef, record]));
  const pairs = [...reported.values()].flatMap((report) => {
    const record = recordOf.get(report.paymentRef);
    return record ? [{ report, record }] : [];
  });
  const again = await reportAgain(till, pairs);
  const after = await readPayments(reads, saleId);
  const breaches = [
    breach("payments that were acknowledged and are not on record", findLost(reported, recordOf)),
    breach("payments on record that nobody has reported", findUnreported(reported, records)),
    breach("payments that are on record as something else", pairs.flatMap(findDifferences)),
    breach("payments that paid nobody, or can't be given back", records.flatMap(findUseless)),
    breach("payments that were reported again", again),
    breach("payments that a repeat has changed", findChanged(recordOf, after)),
  ].filter(({ count }) => count > 0);
  const toGiveBack = records.filter(({ outcome }) => outcome !== "PAID").length;
  return { onRecord: records.length, reported: reported.size, toGiveBack, breaches };
}

interface Pair {
  readonly report: ReportedPayment;
  readonly record: RecordedPayment;
}

function findLost(reported: ReadonlyMap<string, ReportedPayment>, records: ReadonlyMap<string, unknown>): Offender[] {
  return [...reported.values()]
    .filter(({ paymentRef, told }) => told.length > 0 && !records.has(paymentRef))
    .map(({ paymentRef, told }) => ({ id: paymentRef, expected: told[0] ?? "", actual: "no record" }));
}

function findUnreported(reported: ReadonlyMap<string, unknown>, records: readonly RecordedPayment[]): Offender[] {
  return records
    .filter(({ paymentRef }) => !reported.has(paymentRef))
    .map(({ paymentRef, outcome }) => ({ id: paymentRef, expected: "no record", actual: outcome }));
}

/** The same order, the same amount, and every answer that there was one that this record gives. */
function findDifferences({ report, record }: Pair): Offender[] {
  const [expected, actual] = [report, record].map(({ orderId, amountMinor }) => `${amountMinor} for ${orderId}`);
  const wrong = report.told.find((word) => !answersOf(record).includes(word));
  return [
    ...(expected !== actual ? [{ id: report.paymentRef, expected: expected ?? "", actual: actual ?? "" }] : []),
    ...(wrong === undefined ? [] : [{ id: report.paymentRef, expected: wrong, actual: record.outcome }]),
  ];
}

/** Money has bought the order that it is for, or is due to be given back. */
function findUseless({ paymentRef, outcome, paidTheOrder, orderStatus, refundDue }: RecordedPayment): Offender[] {
  if (outcome === "PAID") {
    if (paidTheOrder && orderStatus === "PAID") return [];
    return [{ id: paymentRef, expected: "an order that is paid by it", actual: orderStatus ?? "no order" }];
  }
  return refundDue ? [] : [{ id: paymentRef, expected: "due to be given back", actual: outcome }];
}

async function reportAgain(till: Till, pairs: readonly Pair[]): Promise<Offender[]> {
  const compared = await Promise.all(
    pairs.map(async ({ report, record }, at) => {
      const { orderId, paymentRef, amountMinor } = report;
      const way = till.ways[at % till.ways.length] ?? "mutation";
      const actual = (await till.report(way, { orderId, paymentRef, amountMinor })) ?? "no answer";
      return { id: paymentRef, expected: answersOf(record).at(-1) ?? "", actual };
    }),
  );
  return compared.filter(({ expected, actual }) => expected !== actual);
}

/** What a report of it may have been answered: at first, and from then on. */
function answersOf({ outcome }: RecordedPayment): readonly string[] {
  return outcome === "PAID" ? ["PAID", "ALREADY_PAID"] : [outcome];
}

function findChanged(before: ReadonlyMap<string, RecordedPayment>, after: readonly RecordedPayment[]): Offender[] {
  return after.flatMap((record) => {
    const known = before.get(record.paymentRef);
    const [expected, actual] = [known, record].map((one) => (one ? JSON.stringify(one) : "no record"));
    return expected === actual ? [] : [{ id: record.paymentRef, expected: expected ?? "", actual: actual ?? "" }];
  });
}

function breach(what: string, offenders: readonly Offender[]): Breach {
  return { what, count: offenders.length, shown: offenders.slice(0, OFFENDERS_AT_MOST) };
}
