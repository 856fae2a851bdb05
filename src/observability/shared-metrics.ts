/**
 * The figures of several processes of one API as one. A scrape reaches any of them: it asks the primary, which asks all.
 *
 * Not prom-client's own `clusterMetrics`: there one process that is busy or frozen fails the scrape of all, and the
 * counters of one that died are subtracted from the sum, which Prometheus takes for a restart and counts everything twice.
 */
import { randomUUID } from "node:crypto";
import { AggregatorRegistry, Registry } from "prom-client";

/** Where a scrape's answer comes from. */
export interface MetricsSource {
  readonly contentType: string;
  /** Everything that is counted, in Prometheus' text format. */
  read(): Promise<string>;
}

/** What a process tells at one moment, as prom-client hands it over. */
type Snapshot = Awaited<ReturnType<Registry["getMetricsAsJSON"]>>;

type Message =
  | { readonly sluice: "metrics.read"; readonly id: string }
  | { readonly sluice: "metrics.text"; readonly id: string; readonly text: string }
  | { readonly sluice: "metrics.collect"; readonly id: string }
  | { readonly sluice: "metrics.collected"; readonly id: string; readonly snapshot: Snapshot };

/** One end of the channel between the primary and one of its processes. Sending over one that is closed is ignored. */
export interface Channel {
  send(message: object): void;
  onMessage(listener: (message: unknown) => void | Promise<void>): void;
}

/** How long the primary waits for a process; what a slower one told last counts then. */
const COLLECT_MS = 1_000;

/** The figures of a process that is alone. */
export function metricsOfOne(registry: Registry): MetricsSource {
  return { contentType: registry.contentType, read: () => registry.metrics() };
}

/** In one of several processes: tells the primary its figures when asked, and reads everybody's from it. */
export function metricsOfAll(registry: Registry, primary: Channel): MetricsSource {
  const reading = new Map<string, (text: string) => void>();
  primary.onMessage(async (given) => {
    const message = asMessage(given);
    if (message?.sluice === "metrics.text") {
      reading.get(message.id)?.(message.text);
    } else if (message?.sluice === "metrics.collect") {
      const snapshot = await registry.getMetricsAsJSON();
      primary.send({ sluice: "metrics.collected", id: message.id, snapshot } satisfies Message);
    }
  });
  return {
    contentType: registry.contentType,
    async read() {
      const id = randomUUID();
      try {
        return await new Promise<string>((resolve, reject) => {
          setTimeout(() => reject(new Error("the primary process does not answer")), 2 * COLLECT_MS).unref();
          reading.set(id, resolve);
          primary.send({ sluice: "metrics.read", id } satisfies Message);
        });
      } finally {
        reading.delete(id);
      }
    },
  };
}

/** The primary's side. */
export interface GatheredMetrics extends MetricsSource {
  /** A process has started: its figures count from now on. Returns what says that it has ended; what it counted stays. */
  join(channel: Channel): () => void;
}

/** Gathers the figures of processes as they come and go. */
export function gatherMetrics(): GatheredMetrics {
  const members = new Set<Member>();
  /** what those counted that have ended */
  let ended: Promise<Snapshot> = Promise.resolve([]);

  const read = async () => {
    await Promise.all([...members].map((member) => member.collect()));
    const snapshots = [await ended, ...[...members].map((member) => member.latest())];
    return AggregatorRegistry.aggregate(snapshots).metrics();
  };

  return {
    contentType: Registry.PROMETHEUS_CONTENT_TYPE,
    read,
    join(channel) {
      const member = createMember(channel);
      members.add(member);
      channel.onMessage(async (given) => {
        const message = asMessage(given);
        if (message?.sluice !== "metrics.read") return;
        channel.send({ sluice: "metrics.text", id: message.id, text: await read() } satisfies Message);
      });
      return () => {
        if (!members.delete(member)) return;
        const last = member.latest().filter(({ type }) => GROWING.has(String(type)));
        ended = ended.then((before) => AggregatorRegistry.aggregate([before, last]).getMetricsAsJSON());
      };
    },
  };
}

/** What only ever grows. Gauges end with their process. */
const GROWING: ReadonlySet<string> = new Set(["counter", "histogram"]);

interface Member {
  latest(): Snapshot;
  /** Asks for the present figures. Never rejects, and waits no longer than COLLECT_MS. */
  collect(): Promise<void>;
}

function createMember(channel: Channel): Member {
  const waiting = new Map<string, () => void>();
  let latest: Snapshot = [];
  channel.onMessage((given) => {
    const message = asMessage(given);
    if (message?.sluice !== "metrics.collected") return;
    latest = message.snapshot;
    waiting.get(message.id)?.();
  });
  return {
    latest: () => latest,
    async collect() {
      const id = randomUUID();
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, COLLECT_MS);
        waiting.set(id, () => {
          clearTimeout(timer);
          resolve();
        });
        channel.send({ sluice: "metrics.collect", id } satisfies Message);
      });
      waiting.delete(id);
    },
  };
}

function asMessage(given: unknown): Message | null {
  return typeof given === "object" && given !== null && "sluice" in given ? (given as Message) : null;
}
