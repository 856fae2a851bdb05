import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { tuningSchema } from "../../src/tuning.js";
import { findProgram } from "../support/programs.js";
import { type Composition, NEEDED, printConfig, readComposition, secondsOf, serviceOf } from "./compose.js";
import { root } from "./run.js";

const installed = findProgram("docker-compose", "docker-compose") !== null;
const composition: Composition = installed ? await readComposition() : { services: {}, networks: {} };
const read = (path: string) => readFileSync(join(root, path), "utf8");

describe.skipIf(!installed)("docker-compose.yml", () => {
  const { services, networks } = composition;
  const service = (name: string) => serviceOf(composition, name);
  const named = (names: readonly string[]) => Object.entries(services).filter(([name]) => names.includes(name));
  const staying = Object.entries(services).filter(([name]) => name !== "migrate");

  test.each([[[]], [["--profile", "monitoring"]]])("is taken without a word, with %j", async (options) => {
    expect(await printConfig(NEEDED, ...options)).toMatchObject({ code: 0, stderr: "" });
  });

  test.each([
    ["POSTGRES_PASSWORD", undefined],
    ["POSTGRES_PASSWORD", ""],
    ["JWT_SECRET", undefined],
  ])("with %s=%s nothing starts, and one is told what to put into .env", async (name, value) => {
    const { code, stderr } = await printConfig({ ...NEEDED, [name]: value });
    expect(code).toBe(1);
    expect(stderr.trim()).toMatch(new RegExp(`: Put ${name}=<.*> into \\.env, for example what openssl rand`));
  });

  test("an identity provider's keys do instead of a secret", async () => {
    const keys = "https://login.example.com/keys";
    const { services } = await readComposition({ ...NEEDED, JWT_SECRET: "", JWT_JWKS_URL: keys });
    expect(services.api?.environment).toMatchObject({ JWT_SECRET: "", JWT_JWKS_URL: keys });
  });

  test("two APIs and two workers run, or as many as one says", async () => {
    expect([service("api").deploy.replicas, service("worker").deploy.replicas]).toEqual([2, 2]);
    const { services } = await readComposition({ ...NEEDED, API_REPLICAS: "3", WORKER_REPLICAS: "5" });
    expect([services.api?.deploy.replicas, services.worker?.deploy.replicas]).toEqual([3, 5]);
  });

  test("other machines reach the gateway and nothing else, and the stores reach nobody", async () => {
    const published = ({ services }: Composition) =>
      Object.entries(services).flatMap(([name, { ports = [] }]) =>
        ports.map((port) => {
          if (typeof port === "string") return `${name} ${port}`;
          return `${name} ${port.host_ip ?? "everywhere"} ${port.published}`;
        }),
      );
    expect(published(composition).sort()).toEqual([
      "gateway 127.0.0.1:4001:8081/tcp",
      "gateway everywhere 4000",
      "grafana 127.0.0.1:3000:3000/tcp",
    ]);
    const besideTls = await readComposition({ ...NEEDED, SLUICE_PORT: "127.0.0.1:4000" });
    expect(published(besideTls).filter((port) => port.includes("everywhere"))).toEqual([]);

    const internal = Object.keys(networks).filter((name) => networks[name]?.internal);
    for (const [name, { networks }] of named(["postgres", "redis", "worker", "migrate"])) {
      expect([name, Object.keys(networks ?? {})]).toEqual([name, internal]);
    }
    expect(Object.keys(service("gateway").networks ?? {})).not.toContain(internal[0]);
  });

  test("whoever needs another one starts after it", () => {
    const conditions = (name: string) =>
      Object.fromEntries(Object.entries(service(name).depends_on ?? {}).map(([on, { condition }]) => [on, condition]));
    const migrated = { migrate: "service_completed_successfully", redis: "service_healthy" };
    expect(conditions("migrate")).toEqual({ postgres: "service_healthy" });
    expect(conditions("api")).toEqual(migrated);
    expect(conditions("worker")).toEqual(migrated);
    expect(conditions("gateway")).toEqual({ api: "service_healthy" });
  });

  test("what stays is looked after: checked, limited, started again, and its log can't fill the disk", () => {
    for (const [name, service] of staying) {
      expect([name, service]).toEqual([
        name,
        expect.objectContaining({
          healthcheck: expect.objectContaining({ test: ["CMD", expect.any(String), ...anything(service)] }),
          restart: "unless-stopped",
          logging: expect.objectContaining({ options: { "max-size": "20m", "max-file": "5" } }),
        }),
      ]);
    }
    for (const [name, { deploy }] of Object.entries(services)) {
      const { cpus, memory } = deploy.resources.limits;
      expect([name, Number(cpus) > 0, memory]).toEqual([name, true, expect.stringMatching(/^\d+[MG]$/)]);
    }
    // One that ended well must not run again and again.
    expect(service("migrate").restart).toBe("no");
  });

  test("nothing can write to its own programs or gain a right", () => {
    for (const [name, service] of Object.entries(services)) {
      expect([name, service]).toEqual([
        name,
        expect.objectContaining({ read_only: true, cap_drop: ["ALL"], security_opt: ["no-new-privileges:true"] }),
      ]);
    }
  });

  test("a stop waits longer than a process takes for what is under way", () => {
    const { drainMs } = tuningSchema.parse({});
    for (const name of ["api", "worker"]) {
      // Two seconds more are the primary's, where an API is several processes.
      expect(secondsOf(service(name).stop_grace_period)).toBeGreaterThan(drainMs / 1_000 + 2);
    }
  });

  test("the database has a connection for everybody", () => {
    const { pools } = tuningSchema.parse({});
    // The probe has one of its own, and a start needs one for a moment.
    const each = pools.sale + pools.orders + pools.reads + 2;
    const processes =
      (service("api").deploy.replicas ?? 0) * Number(service("api").environment?.WEB_CONCURRENCY) +
      (service("worker").deploy.replicas ?? 0);
    const [, limit] = /max_connections=(\d+)/.exec(service("postgres").command?.join(" ") ?? "") ?? [];
    // Three are kept for the superuser, one is the migration's.
    expect(processes * each).toBeLessThanOrEqual(Number(limit) - 4);
    const documented = /(\d+) connections/.exec(read("docs/deploy.md"))?.[1];
    expect(Number(documented)).toBe(each);
  });

  test("every file that is mounted is there", () => {
    const files = Object.values(services)
      .flatMap(({ volumes = [] }) => volumes.map((volume) => volume.split(":")[0] ?? ""))
      .filter((source) => source.startsWith("/"));
    expect(files.length).toBeGreaterThan(3);
    expect(files.filter((file) => !existsSync(file))).toEqual([]);
  });

  test("Prometheus and Grafana look where there is something", () => {
    const { scrape_configs } = parse(read("deploy/prometheus.yml")) as {
      scrape_configs: { job_name: string; dns_sd_configs: { names: string[]; type: string; port: number }[] }[];
    };
    const [, port] = /METRICS_PORT=(\d+)/.exec(read("Dockerfile")) ?? [];
    expect(
      scrape_configs.map(({ job_name, dns_sd_configs: [at] }) => [job_name, at?.names, at?.type, at?.port]),
    ).toEqual(["api", "worker"].map((name) => [name, [name], "A", Number(port)]));
    const shared = (one: string, other: string) =>
      Object.keys(service(one).networks ?? {}).some((network) => network in (service(other).networks ?? {}));
    for (const scraped of ["api", "worker", "grafana"])
      expect([scraped, shared("prometheus", scraped)]).toEqual([scraped, true]);

    const { datasources } = parse(read("deploy/grafana/datasource.yml")) as {
      datasources: { uid: string; url: string }[];
    };
    expect(datasources).toEqual([expect.objectContaining({ uid: "prometheus", url: "http://prometheus:9090" })]);
    const { providers } = parse(read("deploy/grafana/dashboards.yml")) as {
      providers: { options: { path: string } }[];
    };
    expect(service("grafana").volumes?.join(" ")).toContain(`sluice.json:${providers[0]?.options.path}/sluice.json:ro`);
  });
});

/** The arguments of a check, whatever they are. */
function anything({ healthcheck }: { readonly healthcheck?: { readonly test: readonly string[] } }): unknown[] {
  return (healthcheck?.test ?? []).slice(2).map(() => expect.anything());
}
