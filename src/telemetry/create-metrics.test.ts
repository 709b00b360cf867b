import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createMetrics } from './create-metrics.ts';
import { metricTable, type MetricDefinition } from './metric-table.ts';
import { codePoint } from '../testing/support/code-point.ts';

const table: readonly MetricDefinition[] = [
  { name: 'orders_total', type: 'counter', help: 'Orders.', labels: ['shop', 'kind'] },
  { name: 'tables_free', type: 'gauge', help: 'Free\ntables \\ now.' },
  { name: 'wait_seconds', type: 'histogram', help: 'Waits.', labels: ['shop'], buckets: [1, 5] },
  { name: 'telemetry_dropped_total', type: 'counter', help: 'Dropped.', labels: ['reason'] },
];

test('writes counters, gauges and histograms as Prometheus reads them', () => {
  const { observer, expose } = createMetrics({ table });
  observer.count('orders_total', { shop: 'a', kind: 'large' });
  observer.count('orders_total', { shop: 'a', kind: 'large' }, 4);
  observer.count('orders_total', { shop: 'b' });
  observer.gauge('tables_free', 3, {});
  observer.gauge('tables_free', 2.5, {});
  for (const seconds of [0.5, 1, 3, 60]) observer.record('wait_seconds', seconds, { shop: 'a' });
  assert.equal(
    expose(),
    `# HELP orders_total Orders.
# TYPE orders_total counter
orders_total{shop="a",kind="large"} 5
orders_total{shop="b"} 1
# HELP tables_free Free\\ntables \\\\ now.
# TYPE tables_free gauge
tables_free 2.5
# HELP wait_seconds Waits.
# TYPE wait_seconds histogram
wait_seconds_bucket{shop="a",le="1"} 2
wait_seconds_bucket{shop="a",le="5"} 3
wait_seconds_bucket{shop="a",le="+Inf"} 4
wait_seconds_sum{shop="a"} 64.5
wait_seconds_count{shop="a"} 4
`,
  );
});

test('OpenMetrics has the correlation id of the last observation as exemplar', () => {
  const { observer, expose } = createMetrics({
    table: [...table, { name: 'odd', type: 'counter', help: 'A "counter" without a suffix.' }],
  });
  observer.count('orders_total', { shop: 'a', correlationId: 'c-1' });
  observer.count('orders_total', { shop: 'a', correlationId: 'c-"2"' }, 4);
  observer.count('orders_total', { shop: 'a', correlationId: 'x'.repeat(115) });
  observer.gauge('tables_free', 3, { correlationId: 'c-3' });
  observer.record('wait_seconds', 0.5, { shop: 'a', correlationId: 'c-4' });
  observer.record('wait_seconds', 3, { shop: 'a' });
  observer.record('wait_seconds', 60, { shop: 'a', correlationId: 'c-5' });
  observer.count('odd', { correlationId: 'c-6' });
  assert.equal(
    expose('openmetrics'),
    `# HELP orders Orders.
# TYPE orders counter
orders_total{shop="a"} 6 # {correlation_id="c-\\"2\\""} 4
# HELP tables_free Free\\ntables \\\\ now.
# TYPE tables_free gauge
tables_free 3
# HELP wait_seconds Waits.
# TYPE wait_seconds histogram
wait_seconds_bucket{shop="a",le="1"} 1 # {correlation_id="c-4"} 0.5
wait_seconds_bucket{shop="a",le="5"} 2
wait_seconds_bucket{shop="a",le="+Inf"} 3 # {correlation_id="c-5"} 60
wait_seconds_sum{shop="a"} 63.5
wait_seconds_count{shop="a"} 3
# HELP odd A \\"counter\\" without a suffix.
# TYPE odd unknown
odd 1
# EOF
`,
  );
  assert.doesNotMatch(expose(), /c-/);
});

test('does not expose attributes that are not labels of the metric', () => {
  const { observer, expose } = createMetrics({ table });
  observer.count('orders_total', { shop: 'a', correlationId: 'c-1' });
  assert.match(expose(), /orders_total\{shop="a"\} 1/);
  assert.doesNotMatch(expose(), /c-1/);
});

test('a label accepts the attribute name of the log', () => {
  const { observer, expose } = createMetrics();
  observer.count('outbox_sent_total', { integrationType: 'kafka:a', event_type: 'a.b.v1' });
  assert.match(expose(), /outbox_sent_total\{integration_type="kafka:a",event_type="a\.b\.v1"\} 1/);
});

test('replaces label values above the limit with other', () => {
  const { observer, expose } = createMetrics({ table, limits: { valuesPerLabelMax: 2 } });
  for (let at = 0; at < 1_000; at += 1) observer.count('orders_total', { shop: `s${at}` });
  const text = expose();
  assert.match(text, /orders_total\{shop="s1"\} 1\norders_total\{shop="other"\} 998\n/);
  assert.match(text, /telemetry_dropped_total\{reason="limit"\} 998/);
});

test('replaces label combinations above the limit with other', () => {
  const { observer, expose } = createMetrics({ table, limits: { seriesPerMetricMax: 10 } });
  for (let shop = 0; shop < 10; shop += 1) {
    for (let kind = 0; kind < 10; kind += 1) observer.count('orders_total', { shop, kind });
  }
  const lines = expose().match(/^orders_total.*$/gm) ?? [];
  assert.equal(lines.length, 11);
  assert.equal(lines.at(-1), 'orders_total{shop="other",kind="other"} 90');
});

test('counts undeclared, mistyped and non-numeric observations as dropped', () => {
  const { observer, expose } = createMetrics({ table });
  observer.count('unheard_of_total', {});
  observer.gauge('orders_total', 1, {});
  observer.count('orders_total', {}, -1);
  observer.count('orders_total', {}, Number.NaN);
  observer.record('wait_seconds', Number.NaN, {});
  assert.match(expose(), /\{reason="undeclared"\} 2\n.*\{reason="invalid"\} 3\n/);
  assert.doesNotMatch(expose(), /^(orders|unheard|wait)/m);
});

test('no label value breaks a line', () => {
  const line = /^orders_total(\{shop="((?:[^"\\\n]|\\["\\n])*)"\})? 1$/;
  fc.assert(
    fc.property(fc.string({ unit: codePoint, maxLength: 20 }), (shop) => {
      const { observer, expose } = createMetrics({ table });
      observer.count('orders_total', { shop });
      const lines = expose().split('\n');
      assert.match(lines[2] ?? '', line);
      assert.equal(lines.length, 4);
    }),
  );
});

test('values of different series never collide', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.string(), fc.string(), (a, b, c, d) => {
      fc.pre(a !== c || b !== d);
      const clean = [a, b, c, d].every((each) => !/\p{Cc}/u.test(each));
      fc.pre(clean);
      const { observer, expose } = createMetrics({ table });
      observer.count('orders_total', { shop: a, kind: b });
      observer.count('orders_total', { shop: c, kind: d });
      assert.equal(expose().match(/^orders_total/gm)?.length, 2);
    }),
  );
});

test('derives labels from the event type', () => {
  const { observer, expose } = createMetrics();
  const attributes = { handler: 'sub:a:b:v1', status: 'success', bc: 'paymenthub', tenant: 'core' };
  const event_type = 'payment.completed.v1';
  observer.count('events_processed_total', { ...attributes, event_type });
  assert.match(
    expose(),
    /events_processed_total\{handler="sub:a:b:v1",event_type="payment\.completed\.v1",status="success",bc="paymenthub",tenant="core",agg="payment",action="completed",version="1"\} 1/,
  );
});

test('replacing removes the previous series', () => {
  const { observer, replace, expose } = createMetrics({ table });
  observer.gauge('tables_free', 1, {});
  replace(['tables_free'], []);
  assert.equal(expose(), '');
  replace(['tables_free'], [{ name: 'tables_free', value: 7 }]);
  assert.match(expose(), /tables_free 7/);
});

test('the table follows the rules for names, units and buckets', () => {
  assert.equal(new Set(metricTable.map(({ name }) => name)).size, metricTable.length);
  for (const { name, type, help, labels = [], derived, buckets = [] } of metricTable) {
    assert.match(name, /^[a-z][a-z0-9_]*$/);
    // The document of the outbox defines one of them as a gauge.
    const isTotal = name.endsWith('_total') && name !== 'outbox_pending_total';
    assert.equal(isTotal, type === 'counter', name);
    assert.equal(buckets.length > 0, type === 'histogram', name);
    assert.deepEqual(
      buckets,
      buckets.toSorted((a, b) => a - b),
    );
    assert.match(help, /^[A-Z0-9].*\.$/);
    for (const label of [...labels, ...(derived?.labels ?? [])]) assert.match(label, /^[a-z_]+$/);
    assert.ok(!labels.includes('correlation_id'), 'a label that never repeats');
  }
});
