import type * as engine from "@prisma/schema-engine-wasm";
import type { SchemaEngine } from "@prisma/schema-engine-wasm";

export declare const root: string;
export declare const NO_FILTERS: engine.SchemaFilter;
export declare function withSchemaEngine<T>(databaseUrl: string, use: (engine: SchemaEngine) => Promise<T>): Promise<T>;
export declare function readSchema(path?: string): engine.SchemasContainer;
export declare function readMigrations(baseDir?: string): engine.MigrationList;
export declare function migrationsToSchema(databaseUrl: string): Promise<string | null>;
