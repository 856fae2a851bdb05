import { arch, availableParallelism, cpus, loadavg, platform, release, totalmem } from "node:os";
import { POSTGRES_SETTINGS } from "./stores.js";

/** On what a run was made. Ratios carry over to other machines, figures don't. */
export interface Machine {
  readonly processor: string;
  readonly cores: number;
  readonly memoryGb: number;
  /** how many processes wanted a core on average over the minute before the run: much above 0, it was not alone */
  readonly busyBefore: number;
  readonly system: string;
  readonly node: string;
  readonly redis: string;
  readonly postgres: string;
}

/** The load before a run; afterwards it is the run's own. */
export function measureBusyness(): number {
  return loadavg()[0] ?? 0;
}

export function describeMachine(
  versions: { readonly postgres: string; readonly redis: string },
  busyBefore: number,
): Machine {
  const settings = Object.entries(POSTGRES_SETTINGS).map(([name, value]) => `${name} ${value}`);
  return {
    processor: cpus()[0]?.model.trim() ?? "unknown",
    cores: availableParallelism(),
    memoryGb: Math.round(totalmem() / 2 ** 30),
    busyBefore,
    system: `${platform()} ${release()} ${arch()}`,
    node: process.versions.node,
    redis: `${versions.redis}, AOF every second, noeviction`,
    postgres: `${versions.postgres}, fsync on, ${settings.join(", ")}`,
  };
}
