import { createRequire } from "node:module";
import { defineConfig } from "vitest/config";

const SYSTEM = ["test/api/**/*.test.ts", "test/embedded/**/*.test.ts", "test/house/**/*.test.ts"];
const FAULT = ["test/fault/**/*.test.ts"];

const shared = {
  environment: "node",
  pool: "forks",
  testTimeout: 60_000,
  hookTimeout: 60_000,
  // A test that passes the second time has found something: see it.
  retry: 0,
} as const;

// As Node resolves it. By Vite's own order our sources would get graphql's ES modules, while the libraries, which are left
// to Node, get its CommonJS ones: two copies that refuse each other's types.
const resolve = { alias: [{ find: /^graphql$/, replacement: createRequire(import.meta.url).resolve("graphql") }] };

export default defineConfig({
  test: {
    // Here and not in `shared`: one PostgreSQL for the whole run.
    globalSetup: "test/support/global-setup.ts",
    reporters: ["default", "./test/support/summary-reporter.ts"],
    projects: [
      {
        // Whatever is of no other kind, two files at once.
        resolve,
        test: {
          ...shared,
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: [...SYSTEM, ...FAULT],
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      // These run several processes of ours each and measure deadlines: one file at a time, after the others.
      { resolve, test: { ...shared, name: "system", include: SYSTEM, maxWorkers: 1, sequence: { groupOrder: 1 } } },
      { resolve, test: { ...shared, name: "fault", include: FAULT, maxWorkers: 1, sequence: { groupOrder: 2 } } },
    ],
  },
});
