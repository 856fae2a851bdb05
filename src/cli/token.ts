/** `npm run --silent token -- <role> <userId>`: prints a token for the running Sluice, and nothing else. */
import { parseArgs } from "node:util";
import { ROLES, type Role } from "../admission/identity.js";
import { signToken } from "../admission/sign-token.js";
import { ConfigError, readRuntimeFile, readStartSettings } from "../config.js";

const usage = `Usage: npm run --silent token -- <${ROLES.join("|")}> <userId> [--expires-in <seconds>]`;

try {
  const { role, userId, expiresInSeconds } = readArguments();
  const settings = readStartSettings();
  // The same order as the API has it: its own setting first, then what `npm start` made.
  const secret =
    settings.JWT_SECRET ?? (settings.JWT_JWKS_URL ? undefined : readRuntimeFile(settings.dataDir)?.jwtSecret);
  if (!secret) {
    throw new ConfigError(
      settings.JWT_JWKS_URL
        ? "Tokens come from your identity provider here: JWT_JWKS_URL is set, and there is no secret to sign with."
        : "No running Sluice was found. Run npm start first, or set JWT_SECRET to the secret of the API.",
    );
  }
  const token = await signToken({
    secret,
    issuer: settings.JWT_ISSUER,
    audience: settings.JWT_AUDIENCE,
    role,
    userId,
    ...(expiresInSeconds !== undefined && { expiresInSeconds }),
  });
  process.stdout.write(`${token}\n`);
} catch (error) {
  if (!(error instanceof ConfigError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}

function readArguments(): { role: Role; userId: string; expiresInSeconds?: number } {
  let parsed: ReturnType<typeof parse>;
  try {
    parsed = parse();
  } catch {
    throw new ConfigError(usage);
  }
  const [role, userId, ...more] = parsed.positionals;
  const expiresIn = parsed.values["expires-in"];
  if (!isRole(role) || !userId || more.length > 0) throw new ConfigError(usage);
  if (expiresIn === undefined) return { role, userId };
  if (!/^[1-9]\d{0,9}$/.test(expiresIn)) throw new ConfigError(usage);
  return { role, userId, expiresInSeconds: Number(expiresIn) };
}

function parse() {
  return parseArgs({ allowPositionals: true, options: { "expires-in": { type: "string" } } });
}

function isRole(text: string | undefined): text is Role {
  return (ROLES as readonly (string | undefined)[]).includes(text);
}
