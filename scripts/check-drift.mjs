/** Whether the committed migrations lead to prisma/schema.prisma: part of `npm run check`. */
import { migrationsToSchema } from "./schema-engine.mjs";
import { withScratchDatabase } from "./scratch-database.mjs";

const sql = await withScratchDatabase(migrationsToSchema);
if (sql !== null) {
  console.error(`prisma/schema.prisma is ahead of prisma/migrations by:\n\n${sql}`);
  console.error("Write it as a migration: npm run migration -- <name>");
  process.exitCode = 1;
}
