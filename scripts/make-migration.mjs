/**
 * `npm run migration -- <name>`: writes the difference between the committed migrations and prisma/schema.prisma as a new
 * migration. The committed ones are replayed in a private database, which is there for that moment only.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { migrationsToSchema, root } from "./schema-engine.mjs";
import { withScratchDatabase } from "./scratch-database.mjs";

const name = process.argv[2]?.toLowerCase().replaceAll(/[^a-z0-9]+/g, "_");
if (!name) {
  console.error("Give the migration a name: npm run migration -- add_waiting_room");
  process.exit(1);
}

const sql = await withScratchDatabase(migrationsToSchema);
if (sql === null) {
  console.log("Nothing to do: the migrations already lead to prisma/schema.prisma.");
} else {
  const stamp = new Date().toISOString().replaceAll(/\D/g, "").slice(0, 14);
  const folder = join("prisma/migrations", `${stamp}_${name}`);
  mkdirSync(join(root, folder));
  writeFileSync(join(root, folder, "migration.sql"), sql);
  console.log(`Wrote ${folder}/migration.sql. Read it, and add by hand what Prisma's schema has no word for.`);
}
