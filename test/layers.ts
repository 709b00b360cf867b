// Which folder may import which (docs/architecture.md, "Layers"): pure rules over a list of imports.

export interface Import {
  readonly from: string;
  /** A path in the repository, or the name of a package. */
  readonly to: string;
}

const core = ['foundation', 'loops', 'contracts', 'store', 'aggregates', 'subscriptions'];
const siblings = [
  'projections',
  'reactors',
  'bus',
  'outbox',
  'tasks',
  'topics',
  'delivery',
  'traces',
  'work',
];
const belowEngines = [...core, ...siblings];

/** Folder of `src/` → the other folders that it may import. */
const layers: Readonly<Record<string, readonly string[]>> = {
  foundation: [],
  loops: ['foundation'],
  contracts: ['foundation'],
  store: ['foundation', 'contracts'],
  aggregates: ['foundation', 'contracts', 'store'],
  subscriptions: ['foundation', 'loops', 'contracts', 'store'],
  // Sibling folders never import each other: the platform passes functions in.
  ...Object.fromEntries(siblings.map((name) => [name, core])),
  // Queue mode puts jobs into work queues.
  outbox: [...core, 'work'],
  engines: belowEngines,
  destinations: [...belowEngines, 'engines'],
  // Chooses engines by URL and loads them lazily.
  platform: [...belowEngines, 'engines', 'destinations'],
  // Loads OpenTelemetry's adapter when its endpoint is configured.
  telemetry: [...belowEngines, 'engines'],
  server: [...belowEngines, 'platform', 'telemetry'],
  nest: [...belowEngines, 'platform', 'engines', 'telemetry'],
  cli: [...belowEngines, 'platform', 'telemetry', 'server'],
};

/** Engines and destinations that use the connection of another engine. */
const usesConnectionOf: Readonly<Record<string, string>> = {
  'engines/memory': 'engines/sqlite',
  'destinations/redis-stream': 'engines/redis',
  'destinations/nats': 'engines/nats',
};

/** Dependencies that every folder may import; every other package is a driver and belongs in its adapter. */
const dependencies = ['@standard-schema/spec', 're2js', 'typebox', 'yaml'];
/** Dependencies with one user: package → the folder that may import it. */
const libraries: Readonly<Record<string, string>> = {
  croner: 'src/tasks/',
  pino: 'src/telemetry/',
  'pino-pretty': 'src/telemetry/',
};
const mayUseDrivers =
  /^src\/(engines|destinations|nest|testing|server\/(kurrent|http|topics))\/|^src\/contracts\/lint\//;
const isTest = /\.test\.ts$/;
/** Packages that `modules/<name>/` may import: the same as the code of a user. */
const moduleMayUse = /^(millrace\/|node:|typebox$|zod$)/;

export function layerViolations(imports: readonly Import[]): string[] {
  return imports.flatMap((each) => {
    const [folder] = each.from.split('/');
    const violation =
      folder === 'console'
        ? consoleViolation
        : folder === 'modules'
          ? moduleViolation
          : srcViolation;
    const reason = violation(each);
    return reason === undefined ? [] : [`${each.from} → ${each.to}: ${reason}`];
  });
}

/** The page runs in browsers, and knows the server by its API only. */
function consoleViolation({ to }: Import): string | undefined {
  const isOther = /^(?:bench|modules|src|test|tools)\/|^node:|^millrace\//.test(to);
  return isOther ? 'the console imports its own folder and packages only' : undefined;
}

function moduleViolation({ from, to }: Import): string | undefined {
  const isForTests = isTest.test(from) || /^modules\/[^/]+\/testing\//.test(from);
  if (to === 'millrace/testing' || to === 'fast-check') {
    return isForTests ? undefined : 'only tests may import testing';
  }
  if (to.startsWith(from.split('/', 2).join('/'))) return undefined;
  return moduleMayUse.test(to) ? undefined : "a module imports the package's public name only";
}

function srcViolation({ from, to }: Import): string | undefined {
  if (isTest.test(from)) return undefined;
  const layer = layerOf(from);
  if (layer === 'testing') return undefined;
  const allowed = layers[layer];
  if (allowed === undefined) return `'${layer}' has no row in the table of layers`;
  if (!to.startsWith('src/')) return packageViolation(from, to);
  const target = layerOf(to);
  if (target === 'testing') return 'only tests may import testing';
  if (target !== layer && !allowed.includes(target)) return `${layer} may not import ${target}`;
  if (!isDriverFolder(layer) || !isDriverFolder(target)) return undefined;
  const [own, other] = [driverFolderOf(from), driverFolderOf(to)];
  return own === other || usesConnectionOf[own] === other
    ? undefined
    : 'an engine or destination may not import another one';
}

function packageViolation(from: string, to: string): string | undefined {
  if (to.startsWith('node:') || mayUseDrivers.test(from)) return undefined;
  const folder = libraries[to];
  if (folder !== undefined && from.startsWith(folder)) return undefined;
  const isOurs = dependencies.some((name) => to === name || to.startsWith(`${name}/`));
  return isOurs ? undefined : 'drivers belong in engines and destinations';
}

function layerOf(path: string): string {
  return path.split('/')[1]?.replace(/\.ts$/, '') ?? '';
}

function isDriverFolder(layer: string): boolean {
  return layer === 'engines' || layer === 'destinations';
}

/** `src/engines/redis/bus/bus.ts` → `engines/redis`. */
function driverFolderOf(path: string): string {
  return path.split('/').slice(1, 3).join('/');
}
