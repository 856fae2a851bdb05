import { expect, it } from "vitest";
import { seededRandom } from "./seed.js";

it("gives the same numbers for the same seed, and others for another", () => {
  const draw = (seed: number) => {
    const random = seededRandom("self-test", seed);
    return Array.from({ length: 20 }, () => random.int(0, 1_000_000));
  };
  expect(draw(7)).toEqual(draw(7));
  expect(draw(7)).not.toEqual(draw(8));
});

it("stays within its limits and reaches them", () => {
  const random = seededRandom("self-test", 1);
  const drawn = new Set(Array.from({ length: 1_000 }, () => random.int(3, 6)));
  expect([...drawn].sort()).toEqual([3, 4, 5, 6]);
  expect(random.shuffle([1, 2, 3, 4, 5]).sort()).toEqual([1, 2, 3, 4, 5]);
});
