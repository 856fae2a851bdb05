import type { NodeProcess } from "./processes.js";
import type { Api, TestSluice } from "./sluice.js";

/** One line of a scrape. */
interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** What a process told of itself at one moment. */
export interface Scrape {
  readonly text: string;
  /** How long the answer took, in milliseconds. */
  readonly tookMs: number;
  /** The samples of that name which have these labels, and maybe others. */
  find(name: string, labels?: Record<string, string>): Sample[];
  /** The sum of those; null where there are none. */
  value(name: string, labels?: Record<string, string>): number | null;
}

/** Reads the metrics of an API, as an operator. */
export async function scrapeApi(sluice: TestSluice, api: Api): Promise<Scrape> {
  return scrape(`${api.url}/metrics`, { authorization: `Bearer ${await sluice.token("operator", "olga")}` });
}

/** Reads the metrics of a worker that was started with METRICS_PORT=0. */
export async function scrapeWorker(worker: NodeProcess): Promise<Scrape> {
  const [, port] = await worker.waitForLine(/"port":(\d+).*"serving metrics"/);
  return scrape(`http://127.0.0.1:${port}/metrics`);
}

async function scrape(url: string, headers: Record<string, string> = {}): Promise<Scrape> {
  const started = performance.now();
  const response = await fetch(url, { headers });
  const text = await response.text();
  const tookMs = performance.now() - started;
  if (response.status !== 200) throw new Error(`${url} answered ${response.status}: ${text}`);
  const samples = parseSamples(text);
  const find = (name: string, labels: Record<string, string> = {}) =>
    samples.filter(
      (sample) =>
        sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
    );
  return {
    text,
    tookMs,
    find,
    value(name, labels) {
      const found = find(name, labels);
      return found.length === 0 ? null : found.reduce((sum, { value }) => sum + value, 0);
    },
  };
}

function parseSamples(text: string): Sample[] {
  return text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => {
      const [, name = "", labels = "", value = ""] = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      if (!name) throw new Error(`not a sample: ${line}`);
      const pairs = [...labels.matchAll(/([a-z_]+)="([^"]*)"/g)].map(([, label = "", text = ""]) => [label, text]);
      return { name, labels: Object.fromEntries(pairs), value: Number(value) };
    });
}
