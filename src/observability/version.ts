import { readFileSync } from "node:fs";

/** The version of what runs, from the package.json that is above the sources and above what is built of them. */
export function readVersion(): string {
  for (const path of ["../../package.json", "../../../package.json"]) {
    try {
      const { name, version } = JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"));
      if (name === "sluice") return String(version);
    } catch {
      // One of the two isn't there.
    }
  }
  return "unknown";
}
