// Who may import whom (docs/architecture.md, "Layers"): pure rules over a list of imports.

export interface Import {
  readonly from: string;
  /** A path of the repository, or a package's name. */
  readonly to: string;
}

const core = ['foundation', 'contracts', 'store', 'aggregates', 'subscriptions'];
const siblings = [
  'projections',
  'reactors',
  'bus',
  'outbox',
  'tasks',
  'notify',
  'delivery',
  'traces',
  'work',
];
const belowAdapters = [...core, ...siblings];

/** Folder of `src/` → the folders that it may import beside itself. */
const layers: Readonly<Record<string, readonly string[]>> = {
  foundation: [],
  contracts: ['foundation'],
  store: ['foundation', 'contracts'],
  aggregates: ['foundation', 'contracts', 'store'],
  subscriptions: ['foundation', 'contracts', 'store'],
  // Never a sibling: the platform passes functions in.
  ...Object.fromEntries(siblings.map((name) => [name, core])),
  adapters: belowAdapters,
  // Chooses adapters by URL and loads them lazily.
  platform: [...belowAdapters, 'adapters'],
  // A module like those of users, which the package brings.
  customers: [...belowAdapters, 'platform'],
  // Loads OpenTelemetry's adapter when its endpoint is configured.
  telemetry: [...belowAdapters, 'adapters'],
  server: [...belowAdapters, 'platform', 'telemetry'],
  nest: [...belowAdapters, 'platform', 'adapters', 'telemetry'],
  cli: [...belowAdapters, 'platform', 'telemetry', 'server'],
};

/** An adapter on top of another one's technology. */
const standsOn: Readonly<Record<string, string>> = { bullmq: 'redis' };

/** Dependencies that every folder may import; every other package is a driver and belongs in its adapter. */
const dependencies = ['@standard-schema/spec', 're2js', 'typebox', 'yaml'];
/** Dependencies with one user: package → the folder that may import it. */
const libraries: Readonly<Record<string, string>> = {
  croner: 'src/tasks/',
  pino: 'src/telemetry/',
  'pino-pretty': 'src/telemetry/',
};
const mayUseDrivers =
  /^src\/(adapters|nest|testing|server\/(kurrent|http|ntfy))\/|^src\/contracts\/lint\//;
const isTest = /\.(test|conformance)\.ts$/;
/** Of `modules/<name>/`, which a user could have written: what a user would have. */
const moduleMayUse = /^(millrace\/|node:|typebox$|zod$)/;

export function layerViolations(imports: readonly Import[]): string[] {
  return imports.flatMap((each) => {
    const reason = each.from.startsWith('modules/') ? moduleViolation(each) : srcViolation(each);
    return reason === undefined ? [] : [`${each.from} → ${each.to}: ${reason}`];
  });
}

function moduleViolation({ from, to }: Import): string | undefined {
  const isForTests = isTest.test(from) || from.endsWith('-main.ts');
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
  if (target !== layer)
    return allowed.includes(target) ? undefined : `${layer} may not import ${target}`;
  if (layer !== 'adapters') return undefined;
  const [own = '', other = ''] = [adapterOf(from), adapterOf(to)];
  return own !== other && standsOn[own] !== other
    ? 'an adapter knows its own technology only'
    : undefined;
}

function packageViolation(from: string, to: string): string | undefined {
  if (to.startsWith('node:') || mayUseDrivers.test(from)) return undefined;
  const folder = libraries[to];
  if (folder !== undefined && from.startsWith(folder)) return undefined;
  const isOurs = dependencies.some((name) => to === name || to.startsWith(`${name}/`));
  return isOurs ? undefined : 'packages that users install belong in adapters';
}

function layerOf(path: string): string {
  return path.split('/')[1]?.replace(/\.ts$/, '') ?? '';
}

function adapterOf(path: string): string | undefined {
  return path.split('/')[2];
}
