/** Numbers, money and times as they are shown, in the page's own language. */
const LANGUAGE = "en";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const numbers = new Intl.NumberFormat(LANGUAGE);

/** 12,345 */
export function grouped(count: number): string {
  return numbers.format(count);
}

/** An amount in minor units, by the currency's own number of digits: 19900 EUR is €199.00, 19900 JPY is ¥19,900. */
export function money(minor: number, currency: string): string {
  try {
    const format = new Intl.NumberFormat(LANGUAGE, { style: "currency", currency });
    return format.format(minor / 10 ** (format.resolvedOptions().maximumFractionDigits ?? 2));
  } catch {
    // Not a code that the browser takes for one: then how many digits it has is anybody's guess.
    return `${grouped(minor)} ${currency}`;
  }
}

/** Time left, in whole seconds that have begun: 2 d 03:04:05, 3:04:05, 04:05. Nothing below zero. */
export function countdown(leftMs: number): string {
  const left = Math.max(0, Math.ceil(leftMs / SECOND)) * SECOND;
  const days = Math.floor(left / DAY);
  const hours = Math.floor((left % DAY) / HOUR);
  const minutes = two(Math.floor((left % HOUR) / MINUTE));
  const seconds = two(Math.floor((left % MINUTE) / SECOND));
  if (days > 0) return `${days} d ${two(hours)}:${minutes}:${seconds}`;
  return hours > 0 ? `${hours}:${minutes}:${seconds}` : `${minutes}:${seconds}`;
}

/** How long until a countdown to `targetMs` shows another number. */
export function untilNextSecond(targetMs: number, nowMs: number): number {
  const part = (targetMs - nowMs) % SECOND;
  return part > 0 ? part : SECOND + part;
}

/** Clock time where the visitor is, with the day where that is another one than today. */
export function timeOfDay(atMs: number, nowMs: number): string {
  const sameDay = new Date(atMs).toDateString() === new Date(nowMs).toDateString();
  return new Intl.DateTimeFormat(LANGUAGE, {
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
    ...(!sameDay && { weekday: "short", day: "numeric", month: "short" }),
  }).format(atMs);
}

/** 1 unit, 2 units */
export function units(count: number): string {
  return `${grouped(count)} ${count === 1 ? "unit" : "units"}`;
}

function two(number: number): string {
  return String(number).padStart(2, "0");
}
