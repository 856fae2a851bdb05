/** A running `npm start`, known only from what it prints and leaves in its data directory. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { endOrphans } from "../../src/embedded/orphans.js";
import type { ProcessIdentity } from "../../src/embedded/process-identity.js";
import { sendSignal } from "../../src/embedded/process-identity.js";
import type { Answer } from "../support/sluice.js";
import { atEndOfFile, endWithRun } from "../support/test-file.js";
import { type Run, run } from "./run.js";

export interface House {
  readonly npm: Run;
  readonly banner: string;
  readonly url: string;
  readonly saleId: string | undefined;
  readonly itemIds: readonly string[];
  /** By role. */
  readonly tokens: Readonly<Record<string, string>>;
  readonly supervisor: ProcessIdentity;
  /** By name: what the supervisor keeps running. */
  readonly processes: Readonly<Record<string, ProcessIdentity>>;
}

/** Runs `npm start` until it has printed everything. */
export async function npmStart(env: Record<string, string> & { SLUICE_DATA_DIR: string }): Promise<House> {
  const npm = run("npm", ["start"], { env });
  const dataDir = env.SLUICE_DATA_DIR;
  atEndOfFile(async () => {
    // Nothing runs any more where the test got as far as stopping it.
    sendSignal(npm.pid, "SIGKILL", true);
    await npm.exited;
    await endOrphans(dataDir, () => {});
  });
  const [banner] = await npm.sees(/^ready$.*^Ctrl-C stops everything\.$/ms);
  const supervisor = readIdentities(dataDir, "instance.lock") as unknown as ProcessIdentity;
  const processes = readIdentities(dataDir, "processes.json");
  for (const { pid } of [supervisor, ...Object.values(processes)]) endWithRun(pid);
  return {
    npm,
    banner,
    url: /^ {2}GraphQL +(\S+)\/graphql$/m.exec(banner)?.[1] ?? "",
    saleId: /^ {2}sale +(\S+) /m.exec(banner)?.[1],
    itemIds: [...banner.matchAll(/^ {2}item +(\S+) /gm)].map(([, id]) => id as string),
    tokens: Object.fromEntries(
      [...banner.matchAll(/^ {2}(\w+) \S+ +(ey\S+)$/gm)].map(([, role, token]) => [role, token]),
    ),
    supervisor,
    processes,
  };
}

/** What `curl` would send if the command under this heading were pasted, after the shell has had its way with the quotes. */
export function printedRequest(banner: string, heading: string): Request {
  const command = banner.split(`${heading}:\n`)[1]?.split("\n\n")[0];
  const shell = `curl() { for word; do printf '%s\\0' "$word"; done; }\n${command}`;
  const words = execFileSync("sh", ["-c", shell], { encoding: "utf8" }).split("\0");
  const after = (flag: string) => words.filter((_, at) => words[at - 1] === flag);
  return new Request(words.find((word) => word.startsWith("http")) ?? "", {
    method: "POST",
    headers: after("-H").map((header) => header.split(": ", 2) as [string, string]),
    body: after("-d")[0] ?? "",
  });
}

/** Sends one operation. */
export async function ask<Data>(
  url: string,
  token: string | null,
  query: string,
  variables: object = {},
): Promise<Omit<Answer<Data>, "status">> {
  const response = await fetch(`${url}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) },
    body: JSON.stringify({ query, variables }),
  });
  return (await response.json()) as Omit<Answer<Data>, "status">;
}

function readIdentities(dataDir: string, file: string): Record<string, ProcessIdentity> {
  return JSON.parse(readFileSync(join(dataDir, file), "utf8"));
}
