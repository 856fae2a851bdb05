/**
 * The only reader of process.env. Everything else is handed the parsed `Config`.
 *
 * Where DATABASE_URL, REDIS_URL or a secret is not set, the embedded services of `npm start` provide them through
 * `.data/runtime.json`, so that `npm run token` and its like find the running configuration. Not in production.
 */
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { z } from "zod";
import { parseFailpoints } from "./lifecycle/failpoints.js";
import { type Tuning, tuningSchema } from "./tuning.js";

const list = z.string().transform((text) =>
  text
    .split(",")
    .map((entry) => entry.trim())
    .filter(Boolean),
);

/** A text that `read` understands; what it throws is the problem, unless `problem` says it. */
function text<Value>(problem: string, read: (text: string) => Value, byDefault: string) {
  return z
    .string()
    .default(byDefault)
    .transform((given, context): Value => {
      try {
        return read(given);
      } catch (error) {
        context.addIssue({ code: "custom", message: problem || (error as Error).message });
        return z.NEVER;
      }
    });
}

const PORT_RANGE = "must be a number from 0 to 65535";
const port = z.coerce.number(PORT_RANGE).int(PORT_RANGE).min(0, PORT_RANGE).max(65_535, PORT_RANGE);

const schema = z.object({
  NODE_ENV: z.enum(["development", "test", "production"]).default("development"),
  PORT: port.default(4000),
  HOST: z.string().min(1).default("127.0.0.1"),
  DATABASE_URL: z.string().regex(/^postgres(ql)?:\/\//, "must be a postgresql:// URL"),
  REDIS_URL: z.string().regex(/^rediss?:\/\//, "must be a redis:// or rediss:// URL"),
  SLUICE_DATA_DIR: z.string().min(1).default(".data"),
  JWT_SECRET: z.string().min(32, "must have at least 32 characters").optional(),
  JWT_JWKS_URL: z.url().optional(),
  JWT_ISSUER: z.string().min(1).default("sluice"),
  JWT_AUDIENCE: z.string().min(1).default("sluice"),
  PAYMENT_WEBHOOK_SECRET: list
    .refine((secrets) => secrets.length > 0 && secrets.every((secret) => secret.length >= 16), {
      error: "must have at least 16 characters, and so must each of several with commas between them",
    })
    .optional(),
  CORS_ORIGINS: list.default([]),
  BACKLOG_LIMIT: z.coerce.number().int().min(1).default(10_000),
  LOG_LEVEL: z.enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"]).default("info"),
  METRICS_PORT: port.optional(),
  WEB_CONCURRENCY: z.coerce.number().int().min(1).max(256).default(1),
  SLUICE_DEMO: z.stringbool("must be true or false").default(false),
  SLUICE_TUNING: text("must be JSON", (json) => JSON.parse(json) as unknown, "{}").pipe(tuningSchema),
  SLUICE_FAILPOINTS: text("", parseFailpoints, ""),
});

export type Config = z.infer<typeof schema> & { tuning: Tuning; dataDir: string };

/** What `npm start` leaves for the other commands, mode 0600, under the data directory. */
const runtimeSchema = z.object({
  databaseUrl: z.string(),
  redisUrl: z.string(),
  jwtSecret: z.string().optional(),
  webhookSecret: z.string().optional(),
  apiUrl: z.string().optional(),
});
export type RuntimeFile = z.infer<typeof runtimeSchema>;

export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/**
 * Reads `.env` where it exists, the environment, and `.data/runtime.json` for what neither says. A process that serves nobody
 * (`servesCallers: false`) needs nothing to verify tokens with.
 */
export function loadConfig(env: NodeJS.ProcessEnv = process.env, { servesCallers = true } = {}): Config {
  const given = withDotEnv(env);
  const dataDir = dataDirOf(given);
  // What production runs on is said by whoever runs it, never found in a folder.
  const runtime = given.NODE_ENV === "production" ? null : readRuntimeFile(dataDir);
  const settings = parse(schema, {
    ...given,
    DATABASE_URL: given.DATABASE_URL || runtime?.databaseUrl,
    REDIS_URL: given.REDIS_URL || runtime?.redisUrl,
    JWT_SECRET: given.JWT_SECRET || (given.JWT_JWKS_URL ? undefined : runtime?.jwtSecret),
    PAYMENT_WEBHOOK_SECRET: given.PAYMENT_WEBHOOK_SECRET || runtime?.webhookSecret,
  });
  if (settings.NODE_ENV === "production" && settings.SLUICE_FAILPOINTS.size > 0) {
    throw new ConfigError("SLUICE_FAILPOINTS is for drills: unset it where NODE_ENV is production.");
  }
  if (settings.SLUICE_DEMO && (settings.NODE_ENV === "production" || !settings.JWT_SECRET)) {
    throw new ConfigError(
      "SLUICE_DEMO gives tokens to whoever asks: unset it where NODE_ENV is production, and where there is no JWT_SECRET.",
    );
  }
  if (servesCallers && !settings.JWT_SECRET && !settings.JWT_JWKS_URL) {
    throw new ConfigError("Set JWT_SECRET (HS256) or JWT_JWKS_URL, so that tokens can be verified. See .env.example.");
  }
  return { ...settings, tuning: settings.SLUICE_TUNING, dataDir };
}

const startSchema = schema.partial({ DATABASE_URL: true, REDIS_URL: true });

/** What was given to `npm start`, and to the commands that may run before it: the URLs and secrets can still be missing. */
export type StartSettings = z.infer<typeof startSchema> & {
  dataDir: string;
  /** The whole environment, for the processes that are started. */
  inherited: NodeJS.ProcessEnv;
};

/** Reads `.env` where it exists and the environment, and nothing of what a running `npm start` has left. */
export function readStartSettings(env: NodeJS.ProcessEnv = process.env): StartSettings {
  const given = withDotEnv(env);
  return { ...parse(startSchema, given), dataDir: dataDirOf(given), inherited: given };
}

/** The runtime file of a running `npm start`, or null. */
export function readRuntimeFile(dataDir: string): RuntimeFile | null {
  const path = join(dataDir, "runtime.json");
  if (!existsSync(path)) return null;
  try {
    return runtimeSchema.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch {
    throw new ConfigError(`${path} can't be read. Stop Sluice and run: npm run reset`);
  }
}

function parse<T extends z.ZodType>(shape: T, given: NodeJS.ProcessEnv): z.infer<T> {
  const parsed = shape.safeParse(withoutEmpty(given));
  if (parsed.success) return parsed.data;
  const lines = parsed.error.issues.map((issue) => {
    const name = issue.path.join(".");
    return given[name] ? `${name}: ${issue.message}` : `${name} is not set`;
  });
  throw new ConfigError(`The configuration is not usable. ${lines.join("; ")}. See .env.example.`);
}

function dataDirOf(given: NodeJS.ProcessEnv): string {
  return resolve(given.SLUICE_DATA_DIR || ".data");
}

function withDotEnv(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  if (env !== process.env || !existsSync(".env")) return env;
  process.loadEnvFile(".env");
  return process.env;
}

function withoutEmpty(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ""));
}
