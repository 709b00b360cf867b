// The settings that a configuration file may have, at every depth. The compiler requires an entry for each field.

import { closest } from '../../foundation/closest.ts';
import { MillraceError } from '../../foundation/error.ts';
import { notifyLimits } from '../../topics/visitor-limits.ts';
import type { MillraceConfig } from './millrace-config.ts';

/** `true`: any value; one shape in a list: a list of such objects; `*`: objects under any names. */
type Shape = true | readonly [Shape] | { readonly [key: string]: Shape };

type ShapeOf<Value> = unknown extends Value
  ? true
  : Value extends string | number | boolean | ((...args: never) => unknown)
    ? true
    : Value extends readonly (infer Item)[]
      ? Item extends string
        ? true
        : readonly [ShapeOf<Item>]
      : string extends keyof Value
        ? { readonly '*': ShapeOf<Value[keyof Value]> }
        : { readonly [Key in keyof Value]-?: ShapeOf<NonNullable<Value[Key]>> };

/** Fields that a file cannot set, and modules, which are code. */
type OfCode = 'ids' | 'modules' | 'outbox' | 'usesBus';

const backoff = { initialMs: true, factor: true, capMs: true, jitterMs: true } as const;
const rate = { perSecond: true, burst: true } as const;

export const knownSettings: ShapeOf<Omit<MillraceConfig, OfCode>> & {
  readonly modules: true;
} = {
  busArchive: true,
  busArchiveKeys: { accessKeyId: true, secretAccessKey: true, sessionToken: true },
  busRetention: [
    {
      pattern: true,
      ageMs: true,
      lengthMax: true,
      bytesMax: true,
      isArchived: true,
      archiver: true,
    },
  ],
  dispatcher: {
    batchSize: true,
    concurrency: true,
    drainMs: true,
    leaseMs: true,
    schedule: { ...backoff, retryAfterMsMax: true },
    tickIntervalMs: true,
    timeoutMs: true,
  },
  eventFormat: true,
  engines: { store: true, outbox: true, keys: true, bus: true, tasks: true, queue: true },
  isProduction: true,
  leaseMs: true,
  localUrl: true,
  migrate: true,
  modules: true,
  notify: {
    users: [{ name: true, passwordHash: true, role: true }],
    tokens: [{ token: true, user: true, label: true }],
    access: [{ user: true, topic: true, permission: true }],
    defaultAccess: true,
    baseUrl: true,
    attachments: true,
    limits: everyKeyOf(notifyLimits),
    exemptHosts: true,
    behindProxy: true,
    templates: { '*': { title: true, message: true, priority: true } },
    reservedTopics: true,
    upstreamUrl: true,
    upstreamToken: true,
  },
  operationsEvents: true,
  outboxRetentionMs: true,
  payloadBytesMax: true,
  payloadDepthMax: true,
  roles: true,
  samples: true,
  server: {
    host: true,
    hosts: true,
    port: true,
    maskPayloads: true,
    corsOrigins: true,
    jwt: {
      secret: true,
      jwksUrl: true,
      audience: true,
      issuer: true,
      clockSkewSeconds: true,
      tenantClaim: true,
    },
    rateLimits: { known: rate, unknown: rate },
    limits: {
      bodyBytesMax: true,
      receiveMsMax: true,
      answerMsMax: true,
      unreadMsMax: true,
      connectionsMax: true,
      connectionsPerAddressMax: true,
    },
  },
  taskSweepEveryMs: true,
  taskTypes: [
    {
      name: true,
      workers: true,
      stepTimeoutMs: true,
      retries: true,
      backoff,
      priority: true,
      rate: { count: true, perMs: true, isPerTenant: true },
      concurrencyKey: true,
      concurrencyLimit: true,
      retentionMs: true,
      cron: { expression: true, timeZone: true, payload: true, tenant: true },
      dedupeWindowMs: true,
      onLost: true,
      cancelDeadlineMs: true,
    },
  ],
  taskTypesFile: true,
  tenants: true,
  traceRetentionMs: true,
  traces: true,
};

/** Throws `CONFIG_INVALID` for a setting that does not exist, or that is not an object or a list as it must be. */
export function checkSettings(settings: unknown, source: string): void {
  checkShape(settings, knownSettings, { path: '', source });
}

interface Place {
  readonly path: string;
  readonly source: string;
}

function checkShape(value: unknown, shape: Shape, place: Place): void {
  const { path, source } = place;
  if (shape === true || value === undefined) return;
  if (isListShape(shape)) {
    if (!Array.isArray(value)) throw invalid(place, `Setting "${path}" must be a list.`);
    const list: readonly unknown[] = value;
    list.forEach((item, index) =>
      checkShape(item, shape[0], { path: `${path}[${index}]`, source }),
    );
    return;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalid(place, `Setting "${path}" must be an object.`);
  }
  for (const [key, item] of Object.entries(value)) {
    const known = Object.hasOwn(shape, key) ? shape[key] : shape['*'];
    const inner = { path: path === '' ? key : `${path}.${key}`, source };
    if (known === undefined) {
      throw invalid(inner, `Unknown setting "${inner.path}". ${hintFor(key, { path, shape })}`);
    }
    checkShape(item, known, inner);
  }
}

/** The nearest key of the same object, else the place of a setting with this name. */
function hintFor(
  key: string,
  { path, shape }: { readonly path: string; readonly shape: Readonly<Record<string, Shape>> },
): string {
  const near = closest(key, Object.keys(shape));
  const suggestion =
    near === undefined
      ? pathsOf(knownSettings).find((each) => each.endsWith(`.${key}`))
      : [path, near].filter(Boolean).join('.');
  return suggestion === undefined
    ? `Known: ${Object.keys(shape).join(', ')}.`
    : `Did you mean "${suggestion}"?`;
}

function pathsOf(shape: Shape): readonly string[] {
  if (shape === true || isListShape(shape)) return [];
  return Object.entries(shape).flatMap(([key, inner]) => [
    key,
    ...pathsOf(inner).map((path) => `${key}.${path}`),
  ]);
}

function isListShape(shape: Exclude<Shape, true>): shape is readonly [Shape] {
  return Array.isArray(shape);
}

function everyKeyOf<Fields extends object>(
  fields: Fields,
): { readonly [Key in keyof Fields]: true } {
  return Object.fromEntries(Object.keys(fields).map((key) => [key, true])) as {
    readonly [Key in keyof Fields]: true;
  };
}

function invalid({ path, source }: Place, message: string): MillraceError {
  return new MillraceError('CONFIG_INVALID', `${source}: ${message}`, { details: { field: path } });
}
