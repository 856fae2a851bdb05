/**
 * The layers of src/, imports only downward:
 *
 *   domain <- redis (<- queue, realtime), db, payments <- operations <- admission <- graphql <- http
 *
 * workers/ and src/cli sit on operations. observability and lifecycle may be imported by all and import none of these.
 * Types count as imports: what a layer knows of another one is a dependency also when it is erased.
 */
const EDGES = "^src/(redis|db|queue|realtime|payments)/";
const LAYERS = ["domain", "redis", "db", "queue", "realtime", "payments", "operations", "admission", "graphql", "http"];
const ROOTS =
  "^(src/main\\.ts|src/serve-api\\.ts|src/resources\\.ts|workers/main\\.ts|src/cli/|src/embedded/|test/|bench/)";

/** A layer and everything that may not be imported from it. */
const above = (layer) => LAYERS.slice(LAYERS.indexOf(layer) + 1);
const folders = (names) => `^src/(${names.join("|")})/`;

module.exports = {
  forbidden: [
    {
      name: "no-cycles",
      comment: "Two files that need each other can't be understood, tested or loaded one at a time.",
      severity: "error",
      from: {},
      to: { circular: true },
    },
    {
      name: "domain-is-pure",
      comment:
        "States, ranks and errors are the words all the others share; they must run anywhere, so they import only themselves." +
        " A hash is a pure function too, and Node has it.",
      severity: "error",
      from: { path: "^src/domain/" },
      to: { pathNot: "^(src/domain/|crypto$)" },
    },
    {
      name: "edges-know-no-operations",
      comment:
        "redis, db, queue, realtime and payments are typed edges: what is decided with them is decided in operations.",
      severity: "error",
      from: { path: EDGES },
      to: { path: folders(above("payments")) },
    },
    {
      name: "database-apart-from-redis",
      comment: "No Redis call happens inside a database transaction, so neither side has any use for the other.",
      severity: "error",
      from: { path: "^src/db/" },
      to: { path: "^src/(redis|queue|realtime)/" },
    },
    {
      name: "redis-apart-from-database",
      comment: "The same the other way round: what joins the two stores is an operation.",
      severity: "error",
      from: { path: "^src/(redis|queue|realtime)/" },
      to: { path: "^src/db/" },
    },
    {
      name: "redis-below-queue-and-realtime",
      comment:
        "The queue and the events of a sale live under its keys in Redis, not the other way round; and they are apart.",
      severity: "error",
      from: { path: "^src/(redis|queue|realtime)/" },
      to: { path: "^src/(queue|realtime)/", pathNot: "^src/$1/" },
    },
    {
      name: "payments-apart-from-stores",
      comment:
        "No provider is called inside a transaction or while a connection is held, so it has nothing to do with the stores.",
      severity: "error",
      from: { path: "^src/payments/" },
      to: { path: "^src/(redis|db|queue|realtime)/" },
    },
    {
      name: "stores-apart-from-payments",
      comment: "The same the other way round: what joins an order and a provider is an operation.",
      severity: "error",
      from: { path: "^src/(redis|db|queue|realtime)/" },
      to: { path: "^src/payments/" },
    },
    ...["operations", "admission", "graphql"].map((layer) => ({
      name: `${layer}-import-downward`,
      comment: `What ${layer} serves must not be needed by it: HTTP, workers and commands share the same code below them.`,
      severity: "error",
      from: { path: `^src/${layer}/` },
      to: { path: folders(above(layer)) },
    })),
    {
      name: "layers-know-no-process",
      comment:
        "What runs in a process must not know which one: workers, commands and the embedded servers import us, not we them.",
      severity: "error",
      from: { path: `^src/(${LAYERS.join("|")}|observability|lifecycle)/` },
      to: { path: "^(workers|src/cli|src/embedded|bench|test|scripts)/|^src/(main|serve-api|primary|resources)\\.ts$" },
    },
    {
      name: "workers-sit-on-operations",
      comment:
        "workers/ binds jobs and timers to operations. It answers nobody, so it has no use for admission, GraphQL or HTTP.",
      severity: "error",
      from: { path: "^workers/" },
      to: { path: "^src/(admission|graphql|http)/" },
    },
    {
      name: "cli-sits-on-operations",
      comment:
        "The operators' commands call operations. Two exceptions: the schema is printed from graphql, tokens are signed in admission.",
      severity: "error",
      from: { path: "^src/cli/", pathNot: "^src/cli/(print-schema|token)\\.ts$" },
      to: { path: "^src/(graphql|http)/" },
    },
    {
      name: "observability-and-lifecycle-are-neutral",
      comment:
        "Everybody may log, count and drain, so these two can import nobody: it would close a circle sooner or later.",
      severity: "error",
      from: { path: "^src/(observability|lifecycle)/" },
      to: { path: `^(workers/|src/(${LAYERS.join("|")}|cli|embedded)/)` },
    },
    {
      name: "config-values-in-roots-only",
      comment:
        "Only composition roots read the environment; everything else is handed what it needs. Types may be imported by all.",
      severity: "error",
      from: { pathNot: ROOTS },
      to: { path: "^src/config\\.ts$", dependencyTypesNot: ["type-only"] },
    },
    {
      name: "generated-client-in-db-only",
      comment: "Prisma's generated client is db's own affair: its types and errors get our names before they go up.",
      severity: "error",
      from: { pathNot: "^(src/db|test|bench)/" },
      to: { path: "^src/db/generated/" },
    },
    {
      name: "product-imports-no-tests",
      comment: "A build has no test/, bench/ or scripts/.",
      severity: "error",
      from: { path: "^(src|workers)/" },
      to: { path: "^(test|bench|scripts)/" },
    },
    {
      name: "product-needs-no-dev-packages",
      comment: "`npm ci --omit=dev` must leave everything that runs in production.",
      severity: "error",
      from: { path: "^(src|workers)/", pathNot: "^src/(cli|embedded)/" },
      to: { dependencyTypes: ["npm-dev"], dependencyTypesNot: ["type-only"] },
    },
    {
      name: "examples-are-copyable",
      comment:
        "An example is pasted into somebody's app, a browser's too: it stands alone, with npm packages and nothing of ours.",
      severity: "error",
      from: { path: "^examples/" },
      to: { pathNot: "(^|/)node_modules/" },
    },
    {
      name: "no-unresolvable",
      comment: "An import that resolves to nothing fails at the worst moment: when it runs.",
      severity: "error",
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules|^src/db/generated" },
    exclude: { path: "^(dist|\\.data)/" },
    tsConfig: { fileName: "tsconfig.json" },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["import", "node", "default", "types"] },
  },
};
