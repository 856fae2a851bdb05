import { createRequire } from "node:module";
import { defineConfig } from "vitest/config";

const API = ["test/api/**/*.test.ts"];
const SYSTEM = ["test/embedded/**/*.test.ts", "test/house/**/*.test.ts"];
const BROWSER = ["test/browser/**/*.test.ts"];
const FAULT = ["test/fault/**/*.test.ts"];
/** They need the machine to themselves: the pace of a crowd, and how long a store is silent, are what they are about. */
const ALONE = ["test/house/demo.test.ts", "test/fault/database-moods.test.ts", "test/fault/silent-network.test.ts"];

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
          exclude: [...API, ...SYSTEM, ...BROWSER, ...FAULT],
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      // These wait for processes and for pages more than for processors, and have patience: two files at once.
      { resolve, test: { ...shared, name: "api", include: API, maxWorkers: 2, sequence: { groupOrder: 1 } } },
      {
        resolve,
        test: {
          ...shared,
          name: "system",
          include: SYSTEM,
          exclude: ALONE,
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
      {
        resolve,
        test: { ...shared, name: "fault", include: FAULT, exclude: ALONE, maxWorkers: 2, sequence: { groupOrder: 3 } },
      },
      { resolve, test: { ...shared, name: "browser", include: BROWSER, maxWorkers: 2, sequence: { groupOrder: 4 } } },
      { resolve, test: { ...shared, name: "alone", include: ALONE, maxWorkers: 1, sequence: { groupOrder: 5 } } },
    ],
  },
});
