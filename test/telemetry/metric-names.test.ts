// The sources, docs/telemetry.md, the dashboard and the alerts use the metrics of one table.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { metricTable } from '../../src/telemetry/index.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const names = new Set(metricTable.map(({ name }) => name));

/** The metrics that the sources record, with type and file. */
function recordedMetrics(): readonly {
  readonly name: string;
  readonly type: string;
  readonly file: string;
}[] {
  const types = { count: 'counter', gauge: 'gauge', record: 'histogram' } as const;
  // Optional calls, and calls on an `observer`.
  const call =
    /(?:\b|observer\.)(count|gauge|record)(?:\?\.|(?<=observer\.\w+))\(\s*['"`]([^'"`]+)/g;
  return globSync('src/**/*.ts', { cwd: root })
    .filter((file) => !/\.(test|conformance)\.ts$|^src\/testing\//.test(file))
    .flatMap((file) =>
      [...withoutComments(read(file)).matchAll(call)].map(([, method, name = '']) => ({
        file,
        name,
        type: types[method as keyof typeof types],
      })),
    );
}

function withoutComments(source: string): string {
  return source.replaceAll(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, '');
}

test('every metric that the sources record is in the table with its type', () => {
  const found = recordedMetrics();
  assert.ok(found.length > 20, `only ${found.length} found`);
  for (const { name, type, file } of found) {
    const definition = metricTable.find((each) => each.name === name);
    assert.equal(definition?.type, type, `${name} in ${file}`);
  }
});

test('the sources record every metric of the table', () => {
  const counted = new Set(recordedMetrics().map(({ name }) => name));
  const collected = ['collectors', 'collect-metrics', 'create-metrics']
    .map((file) => read(`src/telemetry/${file}.ts`))
    .join('\n');
  const missing = [...names].filter(
    (name) => !counted.has(name) && !collected.includes(`'${name}'`),
  );
  assert.deepEqual(missing, []);
});

test('the table contains the metrics of the application documents', () => {
  for (const [name, labels] of Object.entries({
    events_processed_total: 'handler event_type status bc agg action version tenant',
    events_published_total: 'event_type',
    event_processing_duration_seconds: 'handler event_type',
    projection_lag_seconds: 'sub',
    queue_depth: 'queue',
    dead_letter_queue_size: '',
    outbox_pending_total: '',
    outbox_claimed_total: '',
    outbox_sent_total: '',
    outbox_failed_total: '',
    outbox_dead_total: '',
    outbox_claim_duration_ms: '',
    outbox_delivery_duration_ms: '',
  })) {
    const found = metricTable.find((each) => each.name === name);
    const has = new Set([...(found?.labels ?? []), ...(found?.derived?.labels ?? [])]);
    assert.ok(found !== undefined, name);
    for (const label of labels.split(' '))
      if (label !== '') assert.ok(has.has(label), `${name} ${label}`);
  }
});

test('docs/telemetry.md lists all metrics of the table', () => {
  const rows = metricTable.map(({ name, type, labels = [], derived, help }) => {
    const all = [...labels, ...(derived?.labels ?? [])].map((label) => `\`${label}\``).join(', ');
    return `| \`${name}\` | ${type} | ${all} | ${help} |`;
  });
  const listed = read('docs/telemetry.md').match(
    /^\| `[a-z0-9_]+` \| (counter|gauge|histogram) .*$/gm,
  );
  assert.deepEqual(listed, rows);
});

/** The metrics that a PromQL expression uses. */
function metricsIn(expression: string): readonly string[] {
  const words =
    /\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)|\{[^}]*\}|\[[^\]]*\]|"[^"]*"/g;
  const functions = /[a-z_]+(?=\s*\()/g;
  const bare = expression.replaceAll(words, ' ').replaceAll(functions, ' ');
  return (bare.match(/[a-z_][a-z0-9_]*_[a-z0-9_]*/g) ?? []).map((name) =>
    names.has(name) ? name : name.replace(/_(bucket|sum|count)$/, ''),
  );
}

test('the dashboard uses metrics that exist', () => {
  const dashboard = JSON.parse(read('docs/grafana-dashboard.json')) as {
    readonly panels: readonly { readonly targets?: readonly { readonly expr: string }[] }[];
  };
  const expressions = dashboard.panels.flatMap(({ targets = [] }) =>
    targets.map(({ expr }) => expr),
  );
  assert.ok(expressions.length > 10);
  for (const expression of expressions) {
    assert.ok(metricsIn(expression).length > 0, expression);
    for (const name of metricsIn(expression))
      assert.ok(names.has(name), `${name} in ${expression}`);
  }
});

test('the alert rules use metrics that exist, and describe what to do', () => {
  const text = read('docs/alerts.yml');
  const expressions = [...text.matchAll(/^ +expr: (.+)$/gm)].map(([, expr = '']) => expr);
  assert.ok(expressions.length > 8);
  for (const key of ['alert', 'for', 'severity', 'summary', 'description']) {
    const count = text.match(new RegExp(`^ +(?:- )?${key}: \\S`, 'gm'))?.length;
    assert.equal(count, expressions.length, key);
  }
  for (const expression of expressions) {
    assert.ok(metricsIn(expression).length > 0, expression);
    for (const name of metricsIn(expression))
      assert.ok(names.has(name), `${name} in ${expression}`);
  }
});

test('the parser of PromQL finds the metrics of an expression and nothing else', () => {
  const expression =
    'histogram_quantile(0.99, sum by (le, integration_type) (rate(outbox_delivery_duration_ms_bucket{event_type="a_b"}[5m]))) > 0';
  assert.deepEqual(metricsIn(expression), ['outbox_delivery_duration_ms']);
  assert.deepEqual(metricsIn('queue_depth / not_there_total'), ['queue_depth', 'not_there_total']);
});
