import { createServer, connect as dial, type Socket } from "node:net";
import { type PipeControls, pump } from "./tcp-pump.js";
import { atEndOfFile } from "./test-file.js";

/** Stands between a client and a server, and does to their connections what networks do. All faults last until `heal()`. */
export type TcpProxy = {
  readonly host: "127.0.0.1";
  readonly port: number;
  /** The given URL of the server, leading through the proxy. */
  url(serverUrl: string): string;
  /** Connections open now, as clients see them. */
  readonly connections: number;
  /** Connections accepted so far. */
  readonly accepted: number;
  /** Resets all connections, and every new one until `heal()`; with `once` new ones are fine. */
  cut(options?: { once?: boolean }): void;
  /** The server hears and does everything, its replies are lost. Wait for `swallowedBytes` before healing. */
  swallowReplies(): void;
  /** Bytes of replies lost so far. */
  readonly swallowedBytes: number;
  /** What is sent arrives so much later, in both directions. */
  delay(ms: number): void;
  /** Nothing arrives, nothing is refused. What was sent meanwhile arrives after `heal()`, as TCP sends again. */
  blackhole(): void;
  /**
   * Nothing arrives any more on the connections that are open now, and neither side is told, for ever: what is left of a
   * connection when a firewall has forgotten it. New ones are fine.
   */
  strand(): void;
  /** From now on it leads to this server, as after a failover; connections that are open are reset. */
  redirect(target: string): void;
  /** Ends all faults. A connection that has lost bytes is reset: going on in the middle of a reply never happens. */
  heal(): void;
  close(): Promise<void>;
};

/** Starts a proxy on a free port in front of `target`: a URL with host and port. It ends with the test file. */
export async function startTcpProxy(target: string): Promise<TcpProxy> {
  let server = new URL(target);
  const controls: PipeControls = { swallow: false, swallowedBytes: 0, hold: false, delayMs: 0 };
  const pairs = new Set<Pair>();
  let refuse = false;
  let accepted = 0;

  const listener = createServer((client) => {
    if (refuse) return void client.resetAndDestroy();
    accepted += 1;
    const pair = connectPair(
      client,
      () => dial({ host: server.hostname, port: Number(server.port), noDelay: true }),
      controls,
    );
    pairs.add(pair);
    client.once("close", () => pairs.delete(pair));
  });
  await new Promise<void>((listening) => listener.listen(0, "127.0.0.1", listening));
  const { port } = listener.address() as { port: number };
  const resetAll = (which: (pair: Pair) => boolean = () => true) => {
    for (const pair of pairs) if (which(pair)) pair.reset();
  };
  const close = () =>
    new Promise<void>((closed) => {
      listener.close(() => closed());
      resetAll();
    });
  atEndOfFile(close);

  return {
    host: "127.0.0.1",
    port,
    url: (serverUrl) => {
      const url = new URL(serverUrl);
      url.hostname = "127.0.0.1";
      url.port = String(port);
      return url.href;
    },
    get connections() {
      return pairs.size;
    },
    get accepted() {
      return accepted;
    },
    cut: ({ once = false } = {}) => {
      refuse = !once;
      resetAll();
    },
    swallowReplies: () => {
      controls.swallow = true;
    },
    get swallowedBytes() {
      return controls.swallowedBytes;
    },
    delay: (ms) => {
      controls.delayMs = ms;
    },
    blackhole: () => {
      controls.hold = true;
      for (const pair of pairs) pair.update();
    },
    strand: () => {
      for (const pair of pairs) pair.strand();
    },
    redirect: (other) => {
      server = new URL(other);
      resetAll();
    },
    heal: () => {
      refuse = false;
      Object.assign(controls, { swallow: false, hold: false, delayMs: 0 });
      resetAll((pair) => pair.lostBytes() > 0);
      for (const pair of pairs) pair.update();
    },
    close,
  };
}

type Pair = { reset(): void; update(): void; strand(): void; lostBytes(): number };

function connectPair(client: Socket, connect: () => Socket, controls: PipeControls): Pair {
  client.setNoDelay(true);
  let upstream: Socket | undefined;
  let requests: ReturnType<typeof pump> | undefined;
  let replies: ReturnType<typeof pump> | undefined;
  let stranded = false;
  const reset = () => {
    client.resetAndDestroy();
    upstream?.resetAndDestroy();
  };
  const update = () => {
    // While everything is held, not even the connection to the server is made.
    if (!upstream && !controls.hold && !client.destroyed) {
      upstream = connect();
      upstream.once("error", reset).once("close", () => client.destroySoon());
      requests = pump(client, upstream, controls, false, () => stranded);
      replies = pump(upstream, client, controls, true, () => stranded);
    }
    requests?.update();
    replies?.update();
  };
  client.once("error", reset).once("close", () => upstream?.destroy());
  client.pause();
  update();
  const strand = () => {
    stranded = true;
    update();
  };
  return { reset, update, strand, lostBytes: () => replies?.lostBytes() ?? 0 };
}
