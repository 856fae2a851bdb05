/** One start of Sluice on this machine, from taking the data directory to giving it back. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Role } from "../admission/identity.js";
import { signToken } from "../admission/sign-token.js";
import type { RuntimeFile, StartSettings } from "../config.js";
import { applyMigrations, MigrationError } from "../db/migrate.js";
import { SECOND } from "../domain/time.js";
import { banner } from "./banner.js";
import { type DemoSale, findOrMakeDemoSale } from "./demo-sale.js";
import { messageOf, StartFailure } from "./failure.js";
import { checkGivenRedis, placeOf } from "./given-servers.js";
import { waitUntilReady } from "./http-client.js";
import { takeInstanceLock } from "./instance-lock.js";
import { endOrphans, forgetProcesses, type ProcessName } from "./orphans.js";
import { buildPage } from "./page.js";
import { claimablePort, findFreePort } from "./ports.js";
import { readOrCreateSecret, type SecretName, writePrivateJson } from "./private-files.js";
import { logPathOf, programEnvironment, superviseProgram, superviseServer } from "./services.js";
import { tailOf } from "./spawn.js";
import type { Supervised } from "./supervisor.js";

/** What a start needs. */
export interface StartOptions {
  readonly settings: StartSettings;
  /** The project's directory. */
  readonly root: string;
  /** The programs to keep running. */
  readonly entries: { readonly api: string; readonly worker: string };
  readonly say: (line: string) => void;
  /** Asks for an orderly stop. */
  readonly stop: AbortSignal;
  /** Asks not to wait for the programs any longer. */
  readonly hurry: AbortSignal;
  /** @defaultValue a minute */
  readonly readyDeadlineMs?: number;
}

type Kept = Partial<Record<ProcessName, Supervised>>;

/**
 * Starts everything, and resolves when it was told to stop and all has ended, in order and without a rest.
 *
 * @throws StartFailure, after the same orderly end, where it can't start or a process can't be kept running
 */
export async function start(options: StartOptions): Promise<void> {
  const { settings, say, stop } = options;
  const { dataDir } = settings;
  const expectedUrl = settings.PORT === 0 ? {} : { url: urlOf(settings.HOST, settings.PORT) };
  const lock = await takeInstanceLock(dataDir, { purpose: "Sluice", ...expectedUrl });
  const runtimePath = join(dataDir, "runtime.json");
  const kept: Kept = {};
  try {
    rmSync(runtimePath, { force: true });
    await endOrphans(dataDir, say);
    await bringUp(options, kept, runtimePath);
    await aborted(stop);
  } catch (error) {
    if (!stop.aborted || error !== stop.reason) throw error;
  } finally {
    await bringDown(kept, say, options.hurry);
    rmSync(runtimePath, { force: true });
    forgetProcesses(dataDir);
    lock.release();
  }
}

async function bringUp(options: StartOptions, kept: Kept, runtimePath: string): Promise<void> {
  const { settings, entries, root, say, stop } = options;
  const { dataDir } = settings;
  const port = await claimablePort(settings.PORT, settings.HOST);
  const apiUrl = urlOf(settings.HOST, port);

  const { databaseUrl, redisUrl } = await bringUpServers(options, kept);
  stop.throwIfAborted();
  await migrate(databaseUrl, say);
  stop.throwIfAborted();

  const { jwtSecret, webhookSecret } = secretsOf(settings);
  const runtime: RuntimeFile = {
    ...{ databaseUrl, redisUrl, apiUrl },
    ...(jwtSecret !== undefined && { jwtSecret }),
    ...(webhookSecret !== undefined && { webhookSecret }),
  };
  writePrivateJson(runtimePath, runtime);

  // In production the output goes to a log, where an operator's token has no business.
  const tokens =
    jwtSecret === undefined || settings.NODE_ENV === "production" ? null : await signTokens(settings, jwtSecret);
  const page = tokens !== null && (await demoPage(options));
  const env = programEnvironment(settings, {
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    ...(jwtSecret !== undefined && { JWT_SECRET: jwtSecret }),
    ...(webhookSecret !== undefined && !settings.PAYMENT_WEBHOOK_SECRET && { PAYMENT_WEBHOOK_SECRET: webhookSecret }),
  });
  const metrics = await workerMetrics(settings);
  const environments = {
    // The API has its metrics on its own port; two programs can't share another one.
    api: { ...env, PORT: String(port), METRICS_PORT: "", SLUICE_DEMO: String(tokens !== null) },
    worker: { ...env, ...metrics, SLUICE_DEMO: "" },
  };
  say("Starting the API and the worker …");
  for (const name of ["api", "worker"] as const) {
    kept[name] = await superviseProgram(name, dataDir, { entry: entries[name], root, env: environments[name] }, say);
  }
  await orFailure(kept, stop, ready(options, apiUrl));
  const sale = tokens ? await demoSale(options, apiUrl, tokens.operator.token) : null;
  stop.throwIfAborted();
  const workerMetricsUrl = `${urlOf(metrics.HOST, Number(metrics.METRICS_PORT))}/metrics`;
  const webhook = webhookSecret !== undefined;
  say(banner({ apiUrl, workerMetricsUrl, dataDir, sale, tokens, page, webhook }));
  await orFailure(kept, stop, aborted(stop));
}

/** Both at once. What one of them has started is kept also when the other fails, so that it is ended in order. */
async function bringUpServers(
  { settings, say }: StartOptions,
  kept: Kept,
): Promise<{ databaseUrl: string; redisUrl: string }> {
  const wanted = [settings.DATABASE_URL ? null : "PostgreSQL", settings.REDIS_URL ? null : "Redis"].filter(
    (name) => name !== null,
  );
  const given = [settings.DATABASE_URL, settings.REDIS_URL].filter((url) => url !== undefined);
  if (given.length > 0) say(`Using ${given.map(placeOf).join(" and ")}, as the environment says.`);
  if (settings.REDIS_URL) await checkGivenRedis(settings.REDIS_URL, settings.NODE_ENV === "production");
  if (wanted.length > 0) say(`Starting ${wanted.join(" and ")} …`);
  const bring = async (name: "postgres" | "redis") => {
    const { url, supervised } = await superviseServer(name, settings.dataDir, say);
    kept[name] = supervised;
    return url;
  };
  const [database, redis] = await Promise.allSettled([
    settings.DATABASE_URL ?? bring("postgres"),
    settings.REDIS_URL ?? bring("redis"),
  ]);
  if (database.status === "rejected") throw database.reason;
  if (redis.status === "rejected") throw redis.reason;
  return { databaseUrl: database.value, redisUrl: redis.value };
}

/** The secrets as they were given, or of our own making where there is no better place for one. */
function secretsOf({ dataDir, NODE_ENV, JWT_SECRET, JWT_JWKS_URL, PAYMENT_WEBHOOK_SECRET }: StartSettings): {
  readonly jwtSecret: string | undefined;
  readonly webhookSecret: string | undefined;
} {
  const own = (name: SecretName) => readOrCreateSecret(dataDir, name);
  return {
    jwtSecret: JWT_SECRET ?? (JWT_JWKS_URL ? undefined : own("jwt-secret")),
    // Who takes real money agrees on one with the provider.
    webhookSecret: PAYMENT_WEBHOOK_SECRET?.[0] ?? (NODE_ENV === "production" ? undefined : own("webhook-secret")),
  };
}

async function migrate(databaseUrl: string, say: (line: string) => void): Promise<void> {
  try {
    await applyMigrations({ databaseUrl, log: say });
  } catch (error) {
    if (error instanceof MigrationError) throw error;
    // The URL stays out of it: it holds a password.
    const reason = messageOf(error) || (error as NodeJS.ErrnoException).code;
    throw new StartFailure(`The database can't be used: ${reason}. Is DATABASE_URL right, and does the server run?`);
  }
}

async function bringDown(kept: Kept, say: (line: string) => void, hurry: AbortSignal): Promise<void> {
  if (Object.keys(kept).length === 0) return;
  say("Stopping. What has begun is finished first; Ctrl-C again to hurry.");
  // Who uses the servers goes first, so that it can still write.
  await Promise.all([kept.api?.stop(hurry), kept.worker?.stop(hurry)]);
  await kept.redis?.stop(hurry);
  await kept.postgres?.stop(hurry);
  say("Stopped.");
}

/** What is waited for, unless a process is given up or a stop is asked for first: those are thrown. */
async function orFailure<T>(kept: Kept, stop: AbortSignal, wanted: Promise<T>): Promise<T> {
  const failures = Object.values(kept).map(({ gaveUp }) => gaveUp.then((failure) => Promise.reject(failure)));
  const stopped = aborted(stop).then(() => Promise.reject(stop.reason));
  return await Promise.race([wanted, stopped, ...failures]);
}

async function ready({ settings, stop, readyDeadlineMs = 60 * SECOND }: StartOptions, apiUrl: string): Promise<void> {
  const heard = await waitUntilReady(apiUrl, readyDeadlineMs, stop);
  if (heard === null || stop.aborted) return;
  const path = logPathOf(settings.dataDir, "api");
  throw new StartFailure(
    `The API was not ready within ${readyDeadlineMs / SECOND} s (last heard: ${heard}). From ${path}:\n${tailOf(path)}`,
  );
}

async function signTokens(
  settings: StartSettings,
  secret: string,
): Promise<Record<Role, { userId: string; token: string }>> {
  const sign = async (role: Role) => {
    const userId = `${role}-1`;
    return {
      userId,
      token: await signToken({ secret, issuer: settings.JWT_ISSUER, audience: settings.JWT_AUDIENCE, role, userId }),
    };
  };
  return { buyer: await sign("buyer"), operator: await sign("operator"), payments: await sign("payments") };
}

/** Where the worker tells its metrics, without a token: on this machine only, unless a port was asked for. */
async function workerMetrics({ METRICS_PORT, HOST }: StartSettings): Promise<{ HOST: string; METRICS_PORT: string }> {
  if (METRICS_PORT) return { HOST, METRICS_PORT: String(METRICS_PORT) };
  return { HOST: "127.0.0.1", METRICS_PORT: String(await findFreePort()) };
}

/** Bundles the storefront page. The demo is no reason not to run. */
async function demoPage({ root, settings, say }: StartOptions): Promise<boolean> {
  try {
    await buildPage(root, settings.dataDir);
    return true;
  } catch (error) {
    say(`The storefront page could not be made: ${messageOf(error)}`);
    return false;
  }
}

/** The demo is no reason not to run. */
async function demoSale(
  { settings, say, stop }: StartOptions,
  apiUrl: string,
  token: string,
): Promise<DemoSale | null> {
  try {
    return await findOrMakeDemoSale(settings.dataDir, apiUrl, token, stop);
  } catch (error) {
    if (!stop.aborted) say(`The demo sale could not be made: ${messageOf(error)}`);
    return null;
  }
}

/** Where the API is reached from this machine. */
function urlOf(host: string, port: number): string {
  const reachable =
    host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "[::1]" : host.includes(":") ? `[${host}]` : host;
  return `http://${reachable}:${port}`;
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
