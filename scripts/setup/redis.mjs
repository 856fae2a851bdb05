/** Redis comes from the operating system: no npm package has it. */
import { existsSync, rmSync, writeFileSync } from "node:fs";

/** Where Debian's packages ask whether they may start their services. */
const policy = "/usr/sbin/policy-rc.d";

/**
 * What to do where redis-server is missing. Only decides.
 *
 * @returns `install` where that needs no question, as root on Debian and Ubuntu; `remedy`, what to type otherwise
 */
export function planRedis({ uid, platform, onPath }) {
  return { install: uid === 0 && onPath("apt-get"), remedy: remedyFor(platform, onPath) };
}

/**
 * Installs redis-server with apt-get, as root.
 *
 * @returns whether it is on the PATH afterwards
 */
export async function installRedis({ say, run, onPath }) {
  say("Installing redis-server with apt-get (once) …");
  // RUNLEVEL=1 is a second way of saying "start nothing", for a policy of the machine's own that allows everything.
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" };
  const withoutService = forbidServices();
  try {
    // Without a network, what was fetched before may do: only the install decides.
    await run("apt-get", ["update", "-q"], { env });
    await run("apt-get", ["install", "-y", "-q", "--no-install-recommends", "redis-server"], { env });
  } finally {
    withoutService.end();
  }
  // Nor at the next boot: Sluice runs its own, and port 6379 stays free.
  if (existsSync("/run/systemd/system")) await run("systemctl", ["disable", "redis-server"]);
  else if (onPath("update-rc.d")) await run("update-rc.d", ["redis-server", "disable"]);
  return onPath("redis-server");
}

function remedyFor(platform, onPath) {
  if (platform === "darwin") return "Install it: brew install redis";
  if (onPath("apt-get")) return "Install it: sudo apt-get install redis-server";
  if (onPath("dnf")) return "Install it: sudo dnf install redis";
  if (onPath("apk")) return "Install it: apk add redis";
  if (onPath("pacman")) return "Install it: sudo pacman -S redis";
  return "Install Redis 6.2 or newer";
}

/** The package starts its service on port 6379, unless the policy says no. A policy that is there stays as it is. */
function forbidServices() {
  if (existsSync(policy)) return { end() {} };
  writeFileSync(policy, "#!/bin/sh\nexit 101\n", { mode: 0o755 });
  const end = () => rmSync(policy, { force: true });
  process.once("exit", end);
  return {
    end() {
      process.off("exit", end);
      end();
    },
  };
}
