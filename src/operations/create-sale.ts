import { insertAudit } from "../db/audit.js";
import type { Database } from "../db/client.js";
import { findSales, insertSale } from "../db/sales.js";
import { inTransaction } from "../db/transaction.js";
import { badUserInput } from "../domain/errors.js";
import { newId } from "../domain/ids.js";
import type { Sale } from "../domain/model.js";

export interface CreateSaleDeps {
  readonly db: Database;
}

export interface NewItemInput {
  readonly sku: string;
  readonly title: string;
  /** price of a unit in the currency's minor unit */
  readonly priceMinor: number;
  /** ISO 4217, upper case */
  readonly currency: string;
  /** units put on sale */
  readonly initial: number;
}

export interface CreateSaleInput {
  readonly title: string;
  readonly opensAt: Date;
  readonly closesAt: Date;
  readonly maxPerBuyer: number;
  readonly paymentWindowSeconds: number;
  readonly items: readonly NewItemInput[];
}

/** What the API's Int and the database's int can hold; an order's total must fit. */
const INT_MAX = 2_147_483_647;
const ITEMS_AT_MOST = 100;
const TEXT_AT_MOST = 200;
const WINDOW_SECONDS_AT_MOST = 30 * 24 * 60 * 60;
const DATES_FROM = Date.UTC(2000, 0, 1);
const DATES_UNTIL = Date.UTC(2200, 0, 1);

/**
 * Writes a sale as a draft. Nothing is sold until it is opened.
 * @throws SluiceError BAD_USER_INPUT, naming every field that is wrong
 */
export async function createSale(deps: CreateSaleDeps, input: CreateSaleInput, actor: string): Promise<Sale> {
  const problems = findProblems(input);
  if (problems.length > 0) throw badUserInput(problems.join("; "));
  const id = newId();
  const items = input.items.map((item) => ({ ...item, id: newId(8) }));
  await inTransaction(deps.db, async (tx) => {
    await insertSale(tx, { ...input, id, items });
    await insertAudit(tx, { saleId: id, actor, action: "createSale" });
  });
  const [sale] = await findSales(deps.db, [id]);
  return sale as Sale;
}

function findProblems(input: CreateSaleInput): string[] {
  const problems: string[] = [];
  const check = (holds: boolean, problem: string) => {
    if (!holds) problems.push(problem);
  };
  check(isText(input.title), `title must have 1 to ${TEXT_AT_MOST} characters`);
  check(
    isDate(input.opensAt) && isDate(input.closesAt),
    "opensAt and closesAt must lie between the years 2000 and 2200",
  );
  check(input.closesAt.getTime() > input.opensAt.getTime(), "closesAt must be after opensAt");
  check(isWhole(input.maxPerBuyer, 1, 1_000_000), "maxPerBuyer must be 1 to 1000000");
  check(
    isWhole(input.paymentWindowSeconds, 1, WINDOW_SECONDS_AT_MOST),
    `paymentWindowSeconds must be 1 to ${WINDOW_SECONDS_AT_MOST}`,
  );
  check(input.items.length >= 1, "items must not be empty");
  check(input.items.length <= ITEMS_AT_MOST, `items must be ${ITEMS_AT_MOST} at most`);
  input.items.slice(0, ITEMS_AT_MOST).forEach((item, at) => {
    const where = `items[${at}]`;
    check(/^[\x21-\x7e]{1,64}$/.test(item.sku), `${where}.sku must have 1 to 64 visible ASCII characters`);
    check(isText(item.title), `${where}.title must have 1 to ${TEXT_AT_MOST} characters`);
    check(isWhole(item.priceMinor, 0, INT_MAX), `${where}.priceMinor must be 0 or more`);
    check(
      item.priceMinor * input.maxPerBuyer <= INT_MAX,
      `${where}.priceMinor times maxPerBuyer must not exceed ${INT_MAX}`,
    );
    check(/^[A-Z]{3}$/.test(item.currency), `${where}.currency must be three capital letters (ISO 4217)`);
    check(isWhole(item.initial, 0, INT_MAX), `${where}.initial must be 0 or more`);
  });
  const skus = input.items.map((item) => item.sku);
  check(new Set(skus).size === skus.length, "every sku must be used once");
  return problems;
}

/** Visible text that every store keeps as it is: no NUL, which PostgreSQL refuses, and no half of a surrogate pair. */
function isText(text: string): boolean {
  const length = [...text].length;
  return text.trim() !== "" && length <= TEXT_AT_MOST && !text.includes("\0") && text.isWellFormed();
}

function isWhole(value: number, min: number, max: number): boolean {
  return Number.isInteger(value) && value >= min && value <= max;
}

function isDate(date: Date): boolean {
  return date.getTime() >= DATES_FROM && date.getTime() <= DATES_UNTIL;
}
