// A flow as rows and as sentences.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { explain, sentenceText, type Explanation } from '../../console/src/lib/explain.ts';
import {
  filterRows,
  foldedAtFirst,
  traceRows,
  unfolded,
  type Trace,
  type TraceNode,
} from '../../console/src/lib/trace-rows.ts';

const at = '2026-11-18T12:00:00.000Z';
const later = '2026-11-18T13:00:00.000Z';

const command: TraceNode = {
  kind: 'command',
  id: 'c',
  parent: null,
  depth: 0,
  offsetMs: 0,
  command: 'order.place',
  causationId: null,
  idempotencyKey: null,
  tenant: 'core',
  stream: 'shop.order.v1-core-1',
  at,
  durationMs: 4,
};

const event: TraceNode = {
  kind: 'event',
  id: 'e',
  parent: 'c',
  depth: 1,
  offsetMs: 4,
  type: 'order.placed.v1',
  eventId: 'e-1',
  causationId: null,
  tenant: 'core',
  stream: 'shop.order.v1-core-1',
  revision: 0,
  position: '1',
  occurredAt: at,
  recordedAt: at,
};

const below = { parent: 'e', depth: 2, offsetMs: 10 } as const;

const handler = {
  ...below,
  kind: 'handler',
  id: 'h',
  subscription: 'sub:shop:mail:v1',
  state: 'passed',
  failures: null,
  error: null,
  deadLetter: null,
  at: null,
} as const;

const delivery = {
  ...below,
  kind: 'delivery',
  id: 'd',
  message: 'm-1',
  destination: 'webhook:partner',
  type: 'order.placed.v1',
  status: 'PENDING',
  attempts: 0,
  attemptsMax: 10,
  enqueuedAt: at,
  dueAt: later,
  sentAt: null,
  durationMs: null,
  error: null,
} as const;

const task = {
  ...below,
  kind: 'task',
  id: 't',
  task: 'email-send.1',
  type: 'email-send',
  state: 'completed',
  attempt: 1,
  causationId: null,
  enqueuedAt: at,
  startedAt: at,
  endedAt: at,
  dueAt: null,
  waitsFor: null,
  durationMs: 12,
  error: null,
} as const;

const attempt = {
  parent: 'd',
  depth: 3,
  offsetMs: 12,
  kind: 'job',
  id: 'j',
  job: 'q-1',
  queue: 'outbox-webhook',
  attempt: 1,
  outcome: 'failed',
  enqueuedAt: at,
  startedAt: at,
  finishedAt: at,
  waitedMs: 1,
  durationMs: 20,
} as const;

const message = {
  ...below,
  kind: 'message',
  id: 'p',
  message: 'p-1',
  topic: 'orders',
  causationId: null,
  storedAt: at,
} as const;

const saga = {
  ...below,
  kind: 'saga',
  id: 's',
  saga: 'fulfilment',
  key: 'o-1',
  stream: 'shop.fulfilment.v1-core-o-1',
  status: 'running',
  reason: null,
  timers: [{ timer: 'unpaid', dueAt: later }],
} as const;

function traceOf(...nodes: readonly TraceNode[]): Trace {
  return {
    correlationId: 'flow-1',
    complete: true,
    truncated: false,
    missing: 0,
    startedAt: at,
    endedAt: at,
    durationMs: 10,
    nodes,
  };
}

const texts = ({ causes, followed, waits }: Explanation) => ({
  causes: causes.map(sentenceText),
  followed: followed.map(sentenceText),
  waits: waits.map(sentenceText),
});

const flow = (...nodes: readonly TraceNode[]) => texts(explain(traceOf(command, event, ...nodes)));

test('a flow is explained from its command to what waits', () => {
  const { causes, followed, waits } = flow(handler, delivery);
  assert.deepEqual(causes, [`The command order.place was sent for the tenant core at ${at}.`]);
  assert.deepEqual(followed, [
    'The event order.placed.v1 was recorded at revision 0 of shop.order.v1-core-1.',
    'The handler sub:shop:mail:v1 has processed order.placed.v1.',
    'The message order.placed.v1 to webhook:partner has not been sent.',
  ]);
  assert.deepEqual(waits, [
    `The message to webhook:partner waits for its first attempt at ${later}; it is given up after 10 more.`,
  ]);
});

test('a command names its causation id', () => {
  const { causes } = texts(explain(traceOf({ ...command, causationId: 'request-7' })));
  assert.match(causes[0] ?? '', /\. Its causation id is request-7\.$/);
});

test('an event without a command, and one whose cause is outside of the flow, say so', () => {
  const alone = { ...event, parent: null, depth: 0 };
  assert.match(texts(explain(traceOf(alone))).causes[0] ?? '', /No command is recorded\.$/);
  const caused = texts(explain(traceOf({ ...alone, causationId: 'e-0' })));
  assert.match(caused.causes[0] ?? '', /caused by e-0, which is not part of this flow/);
});

test('every kind and state of a node has its own sentences', () => {
  const cases: readonly (readonly [node: TraceNode, followed: RegExp, waits: RegExp])[] = [
    [
      { ...handler, state: 'dead', failures: 6, error: 'no mailbox', at },
      /failed 6 times and made the event a dead letter at .*: no mailbox\./,
      /waits for an operator: replay or discard/,
    ],
    [
      { ...handler, state: 'waiting', failures: 1, error: 'HTTP 503' },
      /has not processed/,
      /tries the event again; it failed once: HTTP 503/,
    ],
    [
      { ...handler, state: 'waiting', failures: 0 },
      /has not processed/,
      /waits for an earlier event of the same aggregate/,
    ],
    [{ ...handler, state: 'pending' }, /has not processed/, /has not reached the event/],
    [{ ...handler, state: 'discarded' }, /discarded the event/, /^$/],
    [{ ...handler, state: 'replayed', failures: 2 }, /was replayed .* failed 2 times/, /^$/],
    [
      { ...delivery, status: 'SENT', attempts: 1, durationMs: 21 },
      /was delivered to webhook:partner 21 ms after it was enqueued, after 1 failed attempt/,
      /^$/,
    ],
    [
      { ...delivery, status: 'FAILED', attempts: 3, error: 'HTTP 503' },
      /failed 3 of 10 times .*: HTTP 503/,
      /waits for its next attempt at 2026-11-18T13:00:00.000Z; it is given up after 7 more/,
    ],
    [
      { ...delivery, status: 'DEAD', attempts: 10, error: 'HTTP 400' },
      /failed 10 times and is not tried again .*: HTTP 400/,
      /waits for an operator: replay/,
    ],
    [{ ...delivery, status: 'CLAIMED' }, /has not been sent/, /is being sent/],
    [task, /The job email-send completed after 12 ms/, /^$/],
    [
      { ...task, state: 'failed', error: 'no mailbox' },
      /failed in attempt 1 .*: no mailbox/,
      /waits for an operator: retry/,
    ],
    [{ ...task, state: 'cancelled' }, /was cancelled/, /^$/],
    [{ ...task, state: 'running' }, /runs, attempt 1, since/, /runs, attempt 1/],
    [{ ...task, state: 'queued' }, /was enqueued at/, /waits for a free worker/],
    [
      { ...task, state: 'scheduled', dueAt: later, waitsFor: 'sleep' },
      /was enqueued/,
      /sleeps until 2026-11-18T13/,
    ],
    [
      { ...task, state: 'scheduled', dueAt: later, waitsFor: 'retry' },
      /was enqueued/,
      /next attempt until 2026/,
    ],
    [
      { ...task, state: 'waiting', waitsFor: 'event paid' },
      /was enqueued/,
      /waits for the event “paid”\./,
    ],
    [
      { ...task, state: 'waiting', waitsFor: 'children' },
      /was enqueued/,
      /waits for its child jobs/,
    ],
    [message, /published to the topic orders at/, /^$/],
    [
      saga,
      /The saga fulfilment of o-1 is running/,
      /waits for the timer “unpaid” at 2026-11-18T13/,
    ],
    [{ ...saga, timers: [] }, /is running/, /waits for an event/],
    [
      { ...saga, status: 'parked', reason: 'handler-failed' },
      /is parked: handler failed\./,
      /waits for an operator: resume/,
    ],
  ];
  for (const [node, followed, waits] of cases) {
    const all = flow(node);
    assert.match(all.followed.at(-1) ?? '', followed);
    assert.match(all.waits.join(' '), waits, `${node.kind} ${all.followed.at(-1)}`);
  }
  const outcomes = {
    sent: 'sent the message',
    running: 'runs',
    lost: 'worker was lost',
    failed: 'failed',
    dead: 'was the last',
  } as const;
  for (const [outcome, text] of Object.entries(outcomes)) {
    const all = flow(delivery, { ...attempt, outcome: outcome as typeof attempt.outcome });
    assert.ok(all.followed.at(-1)?.includes(text), outcome);
    assert.equal(all.waits.length, outcome === 'running' ? 2 : 1);
  }
});

test('one node is explained by the nodes above and below it only', () => {
  const other = { ...event, id: 'other', type: 'order.paid.v1' };
  const trace = traceOf(command, event, handler, delivery, attempt, other, {
    ...task,
    parent: 'other',
  });
  const { causes, followed, waits } = texts(explain(trace, 'd'));
  assert.deepEqual(
    causes.map((text) => text.split(' ').slice(0, 3).join(' ')),
    ['The command order.place', 'The event order.placed.v1', 'The message order.placed.v1'],
  );
  assert.deepEqual(followed, ['The attempt 1 of the queue outbox-webhook failed after 20 ms.']);
  assert.match(waits.join(' '), /^The message to webhook:partner waits for its first attempt/);
  assert.deepEqual(texts(explain(trace, 'unknown')), texts(explain(trace)));
});

test('handlers that passed, and many events of one type, are one sentence', () => {
  const handlers = Array.from({ length: 3 }, (_, n) => ({
    ...handler,
    id: `h${n}`,
    subscription: `sub:shop:h${n}:v1`,
  }));
  const events = Array.from({ length: 20 }, (_, n) => ({
    ...event,
    id: `e${n}`,
    type: 'order.changed.v1',
  }));
  const { followed } = flow(...handlers, ...events);
  assert.deepEqual(followed.slice(1), [
    '3 handlers have processed order.placed.v1: sub:shop:h0:v1, sub:shop:h1:v1, sub:shop:h2:v1.',
    '20 events order.changed.v1 were recorded.',
  ]);
});

test('filters inside of a flow keep the causes of the rows that match', () => {
  const dead = { ...handler, id: 'bad', state: 'dead', error: 'broken' } as const;
  const rows = traceRows(traceOf(command, event, handler, dead, delivery, task));
  const ids = (filter: Parameters<typeof filterRows>[1]): readonly string[] =>
    filterRows(rows, filter).map(({ node }) => node.id);
  assert.deepEqual(ids({}), ['c', 'e', 'h', 'bad', 'd', 't']);
  assert.deepEqual(ids({ isFailed: true }), ['c', 'e', 'bad']);
  assert.deepEqual(ids({ kind: 'task' }), ['c', 'e', 't']);
  assert.deepEqual(ids({ text: 'WEBHOOK' }), ['c', 'e', 'd']);
  assert.deepEqual(ids({ text: 'broken', kind: 'handler' }), ['c', 'e', 'bad']);
  assert.deepEqual(ids({ text: 'nothing' }), []);
});

test('a large flow opens folded, and a fold shows how many rows it hides', () => {
  const nodes = Array.from({ length: 250 }, (_, n) => [
    { ...event, id: `e${n}`, parent: 'c' },
    ...['a', 'b', 'x'].map((name) => ({ ...handler, id: `h${n}${name}`, parent: `e${n}` })),
  ]).flat();
  const rows = traceRows(traceOf(command, ...nodes));
  const shown = unfolded(rows, foldedAtFirst(rows));
  assert.equal(shown.length, 251);
  assert.deepEqual(
    shown.slice(0, 2).map(({ row, hidden }) => [row.node.id, hidden]),
    [
      ['c', 0],
      ['e0', 3],
    ],
  );
  const opened = unfolded(rows, new Set(nodes.slice(0, 1).map(({ id }) => id)));
  assert.deepEqual(
    opened.slice(0, 3).map(({ row, hidden }) => [row.node.id, hidden]),
    [
      ['c', 0],
      ['e0', 3],
      ['e1', 0],
    ],
  );
  assert.equal(foldedAtFirst(rows.slice(0, 40)).size, 0);
});
