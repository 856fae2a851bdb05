import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

/** Where Debian puts servers, and an ordinary user's PATH doesn't look. */
const SERVER_PROGRAMS = ["/usr/local/sbin", "/usr/sbin"];

const told = new Set<string>();

/**
 * The path of a program that some tests run, or null where it isn't installed: those tests are then left out with
 * `describe.skipIf`, and standard error says once what to install. In CI nothing is left out.
 *
 * @throws Error where it isn't installed and CI is set
 */
export function findProgram(name: string, debianPackage: string): string | null {
  const path = (process.env.PATH ?? "")
    .split(delimiter)
    .concat(SERVER_PROGRAMS)
    .map((directory) => join(directory, name))
    .find(isExecutable);
  if (path) return path;
  const line = `${name} is not installed, so what needs it is not tested: apt-get install ${debianPackage}`;
  if (process.env.CI) throw new Error(line);
  if (!told.has(name)) process.stderr.write(`${line}\n`);
  told.add(name);
  return null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
