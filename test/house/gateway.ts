/** deploy/nginx.conf, running in front of APIs that are started here. */
import { chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findFreePort } from "../../src/embedded/ports.js";
import { atEndOfFile } from "../support/test-file.js";
import { waitFor } from "../support/wait.js";
import { type Run, root, run, userWhoMayRun } from "./run.js";

/** An ordinary user: a worker of nginx, too, must get by without root. */
const NOBODY = 65_534;

export interface Gateway {
  readonly url: string;
  /** Where docker-compose.yml lets only the machine itself in. */
  readonly operatorUrl: string;
  readonly process: Run;
  /** What it has written down of the requests so far. */
  log(): readonly Record<string, string>[];
}

/**
 * Runs nginx with the project's configuration, in which only the places are others: its own address, where it writes, and
 * where the APIs are. Debian's nginx asks no DNS for them; everything else it takes as it is.
 *
 * @param apis host and port of each
 */
export async function startGateway(nginx: string, apis: readonly string[]): Promise<Gateway> {
  const directory = mkdtempSync(join(tmpdir(), "sluice-gateway-"));
  atEndOfFile(() => rmSync(directory, { recursive: true, force: true }));
  const uid = userWhoMayRun(nginx, NOBODY);
  if (uid !== undefined) chownSync(directory, uid, uid);
  const address = `127.0.0.1:${await findFreePort()}`;
  const operatorAddress = `127.0.0.1:${await findFreePort()}`;
  const path = join(directory, "nginx.conf");
  const accessLog = join(directory, "access.log");
  const places: [place: RegExp, there: string][] = [
    // The first, for the others bring in paths below it.
    [/\/tmp\//g, `${directory}/`],
    [/^ *resolver(_timeout)? .*$/gm, ""],
    [/server api:4000 resolve (.*);/g, apis.map((api) => `server ${api} $1;`).join(" ")],
    [/listen 8080 /g, `listen ${address} `],
    [/listen 8081;/g, `listen ${operatorAddress};`],
    [/\/dev\/stdout/g, accessLog],
  ];
  let configuration = readFileSync(join(root, "deploy/nginx.conf"), "utf8");
  for (const [place, there] of places) {
    if (configuration.search(place) < 0) throw new Error(`nothing to replace in deploy/nginx.conf: ${place}`);
    configuration = configuration.replaceAll(place, there);
  }
  writeFileSync(path, configuration);

  const process = run(nginx, ["-p", directory, "-e", "stderr", "-c", path, "-g", "daemon off;"], {
    uid,
    cwd: directory,
  });
  const url = `http://${address}`;
  const ended = process.exited.then(() => {
    throw new Error(`the gateway ended: ${process.stderr}`);
  });
  const answers = waitFor(() => fetch(`${url}/health`).then((response) => response.status > 0), {
    what: "the gateway",
  });
  await Promise.race([answers, ended]);
  ended.catch(() => {});
  return {
    url,
    operatorUrl: `http://${operatorAddress}`,
    process,
    log: () =>
      readFileSync(accessLog, "utf8")
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line)),
  };
}
