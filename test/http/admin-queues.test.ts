import { expect, it } from "vitest";
import { spawnNode } from "../support/processes.js";

it("an API that nobody asks for the board has not loaded it", async () => {
  const program = await spawnNode("test/http/fixtures/what-is-loaded.ts");
  const [line] = await program.waitForLine(/\{.*\}/, 60_000);
  expect(JSON.parse(line)).toEqual({ withServer: false, withBoard: true });
});
