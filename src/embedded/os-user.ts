/**
 * PostgreSQL refuses to run as root, and root is who many containers and small servers are used as. Then it runs as the
 * operating system's user `postgres`, also where that user may not walk to the checkout (/root has mode 700).
 */
import { execFileSync, spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { dirname } from "node:path";
import { StartFailure } from "./failure.js";

/** A command line and the user to start it as. */
export interface LaunchPlan {
  readonly command: string;
  readonly args: readonly string[];
  readonly uid?: number;
  readonly gid?: number;
}

/** Starts PostgreSQL's programs as a user that they accept. */
export interface Launcher {
  plan(command: string, args: readonly string[]): LaunchPlan;
  /** Who must own the cluster's directory; null for whoever runs this. */
  readonly owner: { readonly uid: number; readonly gid: number } | null;
}

/** `PATH` for programs that are given no environment of ours. */
export const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/**
 * Finds out how the database can be started here.
 *
 * @param program one of PostgreSQL's programs, tried with --version
 * @param directory the data directory, which its user must be able to reach
 * @throws StartFailure where root can't become another user that reaches both
 */
export function findLauncher(program: string, directory: string): Launcher {
  if (process.getuid?.() !== 0) return { owner: null, plan: (command, args) => ({ command, args }) };
  const owner = findOrMakeUser();
  const launchers: Launcher[] = [
    { owner, plan: (command, args) => ({ command, args, ...owner }) },
    // Docker grants root dac_override by default, but not the narrower dac_read_search.
    ...["dac_read_search", "dac_override"].map((capability) => ({
      owner,
      plan: (command: string, args: readonly string[]) => withCapability(capability, owner, command, args),
    })),
  ];
  const reachable = canReach(program, owner) && canReach(directory, owner);
  const usable = (reachable ? launchers : launchers.slice(1)).find((launcher) => works(launcher, program));
  if (usable) return usable;
  throw new StartFailure(
    `PostgreSQL doesn't run as root, and the user "postgres" can't reach ${reachable ? program : directory}. ` +
      "Move the checkout below a directory that others may enter, start as another user, or set DATABASE_URL.",
  );
}

/**
 * Walks through directories that the user has no right to enter. Only reading and searching is granted, and only to these
 * programs. access(2), with which PostgreSQL looks for its own files, drops capabilities for a user other than root unless
 * no_setuid_fixup is set, and then its programs don't find one another.
 */
function withCapability(
  capability: string,
  owner: { uid: number; gid: number },
  command: string,
  args: readonly string[],
): LaunchPlan {
  return {
    command: "setpriv",
    args: [
      "--securebits=+no_setuid_fixup",
      `--reuid=${owner.uid}`,
      `--regid=${owner.gid}`,
      "--clear-groups",
      `--inh-caps=+${capability}`,
      `--ambient-caps=+${capability}`,
      "--",
      command,
      ...args,
    ],
  };
}

function works(launcher: Launcher, program: string): boolean {
  const { command, args, uid, gid } = launcher.plan(program, ["--version"]);
  const result = spawnSync(command, args, {
    stdio: "ignore",
    cwd: "/",
    env: { PATH: systemPath },
    ...(uid !== undefined && { uid, gid }),
  });
  return result.status === 0;
}

/** By the plain permission bits. Access control lists aren't read: where they grant more, setpriv is used without need. */
function canReach(path: string, user: { uid: number; gid: number }): boolean {
  const { mode, uid, gid } = statSync(path);
  const bit = uid === user.uid ? 0o100 : gid === user.gid ? 0o010 : 0o001;
  const parent = dirname(path);
  return (mode & bit) !== 0 && (parent === path || canReach(parent, user));
}

function findOrMakeUser(): { uid: number; gid: number } {
  const existing = lookUpUser();
  if (existing) return existing;
  for (const [command, args] of [
    [
      "useradd",
      [
        "--system",
        "--user-group",
        "--no-create-home",
        "--home-dir",
        "/nonexistent",
        "--shell",
        "/usr/sbin/nologin",
        "postgres",
      ],
    ],
    ["adduser", ["-S", "-D", "-H", "postgres"]],
  ] as const) {
    spawnSync(command, args, { stdio: "ignore", env: { PATH: systemPath } });
    const made = lookUpUser();
    if (made) return made;
  }
  throw new StartFailure(
    'PostgreSQL doesn\'t run as root, and no user "postgres" could be made for it. Start as another user, or set DATABASE_URL.',
  );
}

function lookUpUser(): { uid: number; gid: number } | null {
  try {
    const id = (flag: string) =>
      Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8", stdio: "pipe", env: { PATH: systemPath } }));
    return { uid: id("-u"), gid: id("-g") };
  } catch {
    return null;
  }
}
