import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parseSync } from 'oxc-parser';
import { layerViolations, type Import } from './layers.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

test('every import in src/, modules/ and console/ follows the table of layers', () => {
  const files = globSync('{src,modules,console/src}/**/*.{ts,tsx}', { cwd: root }).filter(
    (file) => !file.includes('/templates/'),
  );
  const imports = files.flatMap(importsOf);
  assert.ok(imports.length > 100, `only ${imports.length} imports seen`);
  assert.deepEqual(layerViolations(imports), []);
});

test('the rules detect each kind of forbidden import', () => {
  const caught = (from: string, to: string): number => layerViolations([{ from, to }]).length;
  assert.equal(caught('src/foundation/ids.ts', 'src/contracts/envelope.ts'), 1);
  assert.equal(caught('src/outbox/ledger.ts', 'src/bus/port.ts'), 1);
  assert.equal(caught('src/engines/redis/keys.ts', 'src/engines/nats/kv.ts'), 1);
  assert.equal(caught('src/destinations/kafka/record.ts', 'src/engines/redis/keys.ts'), 1);
  assert.equal(caught('src/engines/redis/keys.ts', 'src/destinations/kafka/record.ts'), 1);
  assert.equal(caught('src/store/event-store.ts', 'src/testing/fake-clock.ts'), 1);
  assert.equal(caught('src/store/event-store.ts', 'pg'), 1);
  assert.equal(caught('src/store/event-store.ts', 'pino'), 1);
  assert.equal(caught('console/src/main.tsx', 'src/foundation/ids.ts'), 1);
  assert.equal(caught('console/src/main.tsx', 'console/src/shell.tsx'), 0);
  assert.equal(caught('src/surprise/file.ts', 'src/foundation/ids.ts'), 1);
  assert.equal(caught('modules/payments/payment.ts', 'src/aggregates/index.ts'), 1);
  assert.equal(caught('modules/payments/payment.test.ts', 'src/testing/index.ts'), 1);
  assert.equal(caught('modules/payments/payment.ts', 'modules/shop/order.ts'), 1);
  assert.equal(caught('modules/payments/payment.ts', 'millrace/testing'), 1);
  assert.equal(caught('modules/payments/payment.ts', 'pg'), 1);
  assert.equal(caught('modules/payments/payment.ts', 'millrace/aggregates'), 0);
  assert.equal(caught('modules/payments/payment.ts', 'modules/payments/account.ts'), 0);
  assert.equal(caught('modules/payments/payment.test.ts', 'millrace/testing'), 0);
  assert.equal(caught('modules/payments/testing/rig.ts', 'millrace/testing'), 0);
  assert.equal(caught('src/engines/postgres/pool.ts', 'pg'), 0);
  assert.equal(caught('src/destinations/nats/nats.ts', 'src/engines/nats/connection.ts'), 0);
  assert.equal(caught('src/telemetry/create-logger.ts', 'pino'), 0);
  assert.equal(caught('src/store/event-store.test.ts', 'src/testing/fake-clock.ts'), 0);
  assert.equal(caught('src/platform.ts', 'src/engines/redis/keys.ts'), 0);
});

test("our code never loads TypeBox's builders, which are 300 files", () => {
  const files = globSync('{src,modules}/**/*.ts', { cwd: root }).filter(
    (file) => !file.endsWith('.test.ts') && !file.includes('/templates/'),
  );
  assert.deepEqual(files.filter(loadsBuilders), []);
});

test("detects an import of TypeBox's builders among type imports", () => {
  assert.ok(bringsBuilders('a.ts', `import { type TSchema, Type } from 'typebox';`));
  assert.ok(bringsBuilders('a.ts', `import 'typebox';`));
  assert.ok(bringsBuilders('a.ts', `export { Type } from 'typebox';`));
  assert.ok(!bringsBuilders('a.ts', `import type { TSchema } from 'typebox';`));
  assert.ok(!bringsBuilders('a.ts', `import { Type } from './type.ts';`));
});

function loadsBuilders(file: string): boolean {
  return bringsBuilders(file, readFileSync(join(root, file), 'utf8'));
}

function bringsBuilders(file: string, source: string): boolean {
  const { staticImports, staticExports } = parseSync(file, source).module;
  const isLoaded = (entries: readonly { readonly isType: boolean }[]): boolean =>
    entries.length === 0 || entries.some(({ isType }) => !isType);
  return (
    staticImports.some(
      (each) => each.moduleRequest.value === 'typebox' && isLoaded(each.entries),
    ) ||
    staticExports.some(({ entries }) =>
      entries.some(({ moduleRequest, isType }) => moduleRequest?.value === 'typebox' && !isType),
    )
  );
}

/** Static imports, type imports, re-exports and dynamic imports of literals. */
function importsOf(file: string): Import[] {
  const { module, errors } = parseSync(file, readFileSync(join(root, file), 'utf8'));
  assert.deepEqual(errors, [], file);
  const source = readFileSync(join(root, file), 'utf8');
  const dynamic = module.dynamicImports
    .map(({ moduleRequest: { start, end } }) => source.slice(start, end))
    .filter((text) => /^['"]/.test(text))
    .map((text) => text.slice(1, -1));
  const all = [
    ...module.staticImports.map(({ moduleRequest }) => moduleRequest.value),
    ...module.staticExports.flatMap(({ entries }) =>
      entries.flatMap(({ moduleRequest }) => (moduleRequest === null ? [] : [moduleRequest.value])),
    ),
    ...dynamic,
  ];
  return all.map((to) => ({
    from: file,
    to: to.startsWith('.') ? normalize(join(dirname(file), to)) : to,
  }));
}
