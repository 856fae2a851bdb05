import type { Role } from "../../admission/identity.js";
import { signToken } from "../../admission/sign-token.js";
import { ConfigError, readRuntimeFile, readStartSettings } from "../../config.js";
import { SECOND } from "../../domain/time.js";
import { waitUntilReady } from "../../embedded/http-client.js";

/** The Sluice that `npm start` runs, and what it takes to be its buyers. */
export interface RunningSluice {
  readonly dataDir: string;
  readonly apiUrl: string;
  readonly databaseUrl: string;
  readonly redisUrl: string;
  /** what payment providers sign with; null where they can't */
  readonly webhookSecret: string | null;
  /** as this command's environment says it, which is that of `npm start` unless somebody made them differ */
  readonly backlogLimit: number;
  /** A token of anybody. */
  token(role: Role, userId: string): Promise<string>;
}

const NOT_RUNNING = "No running Sluice was found. In another terminal: npm start";
const READY_WITHIN_MS = 3 * SECOND;

/** Finds it by its runtime file, and makes sure that it sells. @throws ConfigError, one line with the remedy */
export async function findRunningSluice(): Promise<RunningSluice> {
  const settings = readStartSettings();
  const runtime = readRuntimeFile(settings.dataDir);
  if (!runtime?.apiUrl) throw new ConfigError(NOT_RUNNING);
  const { apiUrl, databaseUrl, redisUrl, jwtSecret, webhookSecret = null } = runtime;
  if (!jwtSecret) {
    throw new ConfigError(
      "The crowd can't sign its tokens: they come from your identity provider here (JWT_JWKS_URL). Start without it.",
    );
  }
  const heard = await waitUntilReady(apiUrl, READY_WITHIN_MS, new AbortController().signal);
  // What a kill -9 has left behind names an API that isn't there any more.
  if (heard?.includes("ECONNREFUSED")) throw new ConfigError(NOT_RUNNING);
  if (heard !== null) throw new ConfigError(`Sluice at ${apiUrl} is not ready to sell: ${heard.trim()}`);
  return {
    dataDir: settings.dataDir,
    apiUrl,
    databaseUrl,
    redisUrl,
    webhookSecret,
    backlogLimit: settings.BACKLOG_LIMIT,
    token: (role, userId) =>
      signToken({
        secret: jwtSecret,
        issuer: settings.JWT_ISSUER,
        audience: settings.JWT_AUDIENCE,
        role,
        userId,
      }),
  };
}
