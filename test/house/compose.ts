/** docker-compose.yml, as docker-compose understands it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { makeTempDir } from "../support/test-file.js";
import { finished, root } from "./run.js";

export interface Service {
  readonly image: string;
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly ports?: readonly (string | { readonly published: number | string; readonly host_ip?: string })[];
  readonly volumes?: readonly string[];
  readonly networks?: Readonly<Record<string, unknown>>;
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly profiles?: readonly string[];
  readonly restart?: string;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly stop_grace_period?: string;
  readonly deploy: {
    readonly replicas?: number;
    readonly resources: { readonly limits: { readonly cpus: number; readonly memory: string } };
  };
}

export interface Composition {
  readonly services: Readonly<Record<string, Service>>;
  readonly networks: Readonly<Record<string, { readonly internal?: boolean }>>;
}

export type ComposeSettings = Readonly<Record<string, string | undefined>>;

/** The least that `.env` must say. */
export const NEEDED: ComposeSettings = {
  POSTGRES_PASSWORD: "a1b2c3",
  JWT_SECRET: "a secret of the tests, longer than 32 characters",
};

/** Prints the configuration, with these settings and no `.env`. */
export function printConfig(settings: ComposeSettings, ...options: string[]) {
  const noSettings = join(makeTempDir("compose"), "empty.env");
  writeFileSync(noSettings, "");
  return finished(
    "docker-compose",
    ["--env-file", noSettings, "--file", join(root, "docker-compose.yml"), ...options, "config"],
    { env: { POSTGRES_PASSWORD: undefined, JWT_SECRET: undefined, ...settings } },
  );
}

/** What would run with these settings, all profiles included. */
export async function readComposition(settings: ComposeSettings = NEEDED): Promise<Composition> {
  const { code, stdout, stderr } = await printConfig(settings);
  if (code !== 0) throw new Error(`docker-compose refuses its file: ${stderr}`);
  return parse(stdout) as Composition;
}

/** A service that must be there. */
export function serviceOf({ services }: Composition, name: string): Service {
  const service = services[name];
  if (!service) throw new Error(`docker-compose.yml has no service ${name}`);
  return service;
}

/** Seconds of a time as it is written there, like 20s or 1m. */
export function secondsOf(time = ""): number {
  const [, number = "", unit] = /^(\d+)(s|m)$/.exec(time) ?? [];
  if (!number) throw new Error(`not a time: ${time}`);
  return Number(number) * (unit === "m" ? 60 : 1);
}
