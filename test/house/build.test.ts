import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { createTestDatabase } from "../support/database.js";
import { prepareSluice, RESERVE, type ReserveAnswer, saleInput, type TestSale } from "../support/sluice.js";
import { query } from "../support/sql.js";
import { makeTempDir } from "../support/test-file.js";
import { waitFor } from "../support/wait.js";
import { ask } from "./npm-start.js";
import { commandLineOf, finished, root, run } from "./run.js";

const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { scripts: Record<string, string> };

/** As `npm run` gives it to the shell, which it then replaces. */
const runScript = (name: string, env: Record<string, string>) => run("sh", ["-c", scripts[name] ?? ""], { env });

beforeAll(async () => {
  const { code, stdout, stderr } = await finished("npm", ["run", "build"]);
  expect({ code, stderr }, stdout).toEqual({ code: 0, stderr: "" });
});

test("what is built migrates, sells and writes the order, without TypeScript", async () => {
  const database = await createTestDatabase({ empty: true });
  const sluice = await prepareSluice({ databaseUrl: database.url, env: { SLUICE_DATA_DIR: makeTempDir("build") } });

  // Anywhere: it finds its migrations and scripts by where it lies itself.
  const migrate = () =>
    finished(process.execPath, [join(root, "dist/src/cli/migrate.js")], {
      env: sluice.env,
      cwd: makeTempDir("elsewhere"),
    });
  expect(await migrate()).toMatchObject({ code: 0, stderr: "", stdout: expect.stringContaining("applied migration") });
  expect(await migrate()).toMatchObject({ code: 0, stderr: "", stdout: "The database is up to date.\n" });

  const env = { ...sluice.env, NODE_ENV: "production", PORT: "0" };
  const api = runScript("start:api", env);
  const worker = runScript("start:worker", env);
  const [, url = ""] = await api.sees(/"url":"([^"]+)".*api ready/);
  await worker.sees(/worker ready/);
  expect(commandLineOf(api.pid)).toMatch(/^\S*node --enable-source-maps dist\/src\/main\.js$/);
  expect(commandLineOf(worker.pid)).toMatch(/^\S*node --enable-source-maps dist\/workers\/main\.js$/);

  const operator = await sluice.token("operator", "olga");
  const { data } = await ask<{ createSale: TestSale }>(
    url,
    operator,
    "mutation ($input: CreateSaleInput!) { createSale(input: $input) { id items { id } } }",
    { input: saleInput() },
  );
  const sale = data?.createSale as TestSale;
  await ask(url, operator, "mutation ($id: ID!) { openSale(saleId: $id) { state } }", { id: sale.id });

  const buyer = await sluice.token("buyer", "alice");
  const input = { saleId: sale.id, itemId: sale.items[0]?.id, requestId: randomUUID() };
  const reserved = await ask<ReserveAnswer>(url, buyer, RESERVE, { input });
  expect(reserved.data?.reserve.status).toBe("QUEUED");
  await waitFor(
    async () => {
      const repeated = await ask<ReserveAnswer>(url, buyer, RESERVE, { input });
      return repeated.data?.reserve.reservation?.status === "SUCCESS";
    },
    { what: "the order" },
  );
  expect(await query(database.url, "SELECT 1 FROM orders")).toHaveLength(1);

  for (const process of [api, worker]) {
    globalThis.process.kill(process.pid, "SIGTERM");
    expect(await process.exited).toEqual({ code: 0, signal: null });
    expect(process.stderr).toBe("");
  }
});
