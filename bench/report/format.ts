/** A figure with three digits that count, and thousands apart. */
export function formatFigure(value: number): string {
  const digits = value === 0 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toLocaleString("en-US", { maximumFractionDigits: digits, minimumFractionDigits: 0 });
}

/** A share in percent. */
export function formatShare(share: number): string {
  return `${(share * 100).toLocaleString("en-US", { maximumFractionDigits: 1 })} %`;
}
