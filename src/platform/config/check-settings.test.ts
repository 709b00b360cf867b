import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { hasCode } from '../../foundation/error.ts';
import { propertyRuns } from '../../testing/property-runs.ts';
import { retentionDefaults } from '../../bus/retention.ts';
import { taskBackoffDefault, taskType } from '../../tasks/task-type.ts';
import { notifyLimits } from '../../topics/visitor-limits.ts';
import type { MillraceConfig } from './millrace-config.ts';
import { checkSettings, knownSettings } from './check-settings.ts';

type Shape = true | readonly [Shape] | { readonly [key: string]: Shape };

/** A key of the table, with the keys next to it. */
interface Known {
  readonly path: readonly string[];
  readonly key: string;
  readonly siblings: readonly string[];
}

function keysIn(shape: Shape, path: readonly string[] = []): readonly Known[] {
  if (shape === true) return [];
  if (Array.isArray(shape)) return keysIn((shape as readonly [Shape])[0], [...path, '0']);
  return Object.entries(shape as Readonly<Record<string, Shape>>).flatMap(([key, inner]) =>
    key === '*'
      ? keysIn(inner, [...path, 'any-name'])
      : [
          { path, key, siblings: Object.keys(shape).filter((each) => each !== key) },
          ...keysIn(inner, [...path, key]),
        ],
  );
}

const perSecond = { perSecond: 5 };
const allKeys = keysIn(knownSettings);

/** `{ a: [{ b: … }] }` for `a`, `0`, `b`. */
const nested = (path: readonly string[], value: unknown): unknown =>
  path.reduceRight<unknown>((inner, key) => (key === '0' ? [inner] : { [key]: inner }), value);

const textOf = (path: readonly string[]): string =>
  path
    .map((key) => (key === '0' ? '[0]' : `.${key}`))
    .join('')
    .replace(/^\./, '');

function messageFor(settings: unknown): string {
  try {
    checkSettings(settings, 'millrace.config.ts');
  } catch (error) {
    assert.ok(hasCode(error, 'CONFIG_INVALID'));
    return error.message;
  }
  return '';
}

const withoutOne = (text: string): readonly string[] =>
  text.split('').map((_, index) => text.slice(0, index) + text.slice(index + 1));

/** Whether one letter, or two swapped letters, may turn the one into the other: then both are good suggestions. */
function isSimilar(one: string, other: string): boolean {
  const [longer, shorter] = one.length < other.length ? [other, one] : [one, other];
  if (longer.length > shorter.length) return withoutOne(longer).includes(shorter);
  return one.split('').filter((letter, index) => letter !== other[index]).length <= 2;
}

test('any known key with one letter changed is an error that names its path and suggests the key', () => {
  const letter = fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz'.split(''));
  fc.assert(
    fc.property(
      fc.constantFrom(...allKeys),
      fc.nat(),
      letter,
      ({ path, key, siblings }, at, to) => {
        const index = at % key.length;
        const typo = key.slice(0, index) + to + key.slice(index + 1);
        fc.pre(typo !== key && !siblings.some((sibling) => isSimilar(typo, sibling)));
        assert.equal(
          messageFor(nested(path, { [typo]: {} })),
          `millrace.config.ts: Unknown setting "${textOf([...path, typo])}". ` +
            `Did you mean "${textOf([...path, key])}"?`,
        );
      },
    ),
    { numRuns: propertyRuns(2_000) },
  );
});

test('a configuration with nested objects, lists and free names is accepted', () => {
  const config: MillraceConfig = {
    busRetention: retentionDefaults(),
    dispatcher: { schedule: { ...taskBackoffDefault, retryAfterMsMax: 1_000 } },
    engines: { store: 'memory:' },
    modules: [{ name: 'shop' }],
    notify: {
      access: [{ topic: 'up*', permission: 'write-only' }],
      limits: notifyLimits,
      templates: { shop: { title: 'A' } },
    },
    server: { corsOrigins: ['https://a'], rateLimits: { known: perSecond, unknown: perSecond } },
    taskTypes: [taskType('greet', { rate: { count: 1, perMs: 1_000, isPerTenant: true } })],
  };
  assert.equal(messageFor(config), '');
});

for (const [settings, expected] of [
  [{ port: 7480 }, 'Unknown setting "port". Did you mean "server.port"?'],
  [{ store: 'postgres://a/b' }, 'Unknown setting "store". Did you mean "engines.store"?'],
  [
    { engines: { database: 'postgres://a/b' } },
    'Unknown setting "engines.database". Known: store, outbox, keys, bus, tasks, queue.',
  ],
  [{ engines: 'postgres://a/b' }, 'Setting "engines" must be an object.'],
  [{ busRetention: {} }, 'Setting "busRetention" must be a list.'],
  [{ notify: { users: ['ada'] } }, 'Setting "notify.users[0]" must be an object.'],
] as const) {
  test(`${JSON.stringify(settings)} is refused with a hint`, () => {
    assert.equal(messageFor(settings), `millrace.config.ts: ${expected}`);
  });
}
