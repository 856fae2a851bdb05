const START = "<!-- bench:start -->";
const END = "<!-- bench:end -->";

/** The text with what stands between its two markers replaced. @throws Error where it doesn't have them, once and in order */
export function replaceBetweenMarkers(text: string, replacement: string): string {
  const start = text.indexOf(START);
  const end = text.indexOf(END);
  const once = start === text.lastIndexOf(START) && end === text.lastIndexOf(END);
  if (start < 0 || end < start || !once) throw new Error(`README.md needs ${START} and, below it, ${END}, once each.`);
  return `${text.slice(0, start + START.length)}\n${replacement}\n${text.slice(end)}`;
}
