import assert from 'node:assert/strict';
import { stripVTControlCharacters } from 'node:util';
import { test } from 'node:test';
import type { Trace } from '../../traces/create-traces.ts';
import { toPosition } from '../../store/position.ts';
import type { TracedEvent } from '../../traces/trace-node.ts';
import { buildTraceTree } from '../../traces/trace-tree.ts';
import { createPaint } from '../terminal/paint.ts';
import { traceText } from './trace-text.ts';

const startMs = Date.UTC(2025, 8, 30, 10);
const iso = (offsetMs: number): string => new Date(startMs + offsetMs).toISOString();

function event(at: number, more: Partial<TracedEvent> = {}): TracedEvent {
  return {
    type: `order.step${at}.v1`,
    eventId: `e${at}`,
    occurredAt: iso(at * 600),
    recordedAt: iso(at * 600 + 3),
    correlationId: 'flow',
    tenant: 'core',
    aggregate: { bc: 'shop', type: 'order', id: 'o1' },
    stream: 'shop.order.v1-core-o1',
    revision: at,
    position: toPosition(at + 1),
    ...more,
  };
}

function flow(): Trace {
  const placed = event(0, { headers: { command: 'order.place' }, causationId: 'c1' });
  const billed = event(1, { causationId: 'e0' });
  const tree = buildTraceTree({
    events: [placed, billed],
    handlers: [
      { subscription: 'sub:shop:orders:v1', position: placed.position, state: 'passed' },
      { subscription: 'sub:shop:later:v1', position: billed.position, state: 'pending' },
    ],
    letters: [
      {
        id: 'd1',
        handler: 'sub:shop:mail:v1',
        eventId: 'e0',
        stream: placed.stream,
        status: 'pending',
        attempts: 6,
        error: 'no such mailbox\n  at …',
        createdAt: iso(31_000),
      },
    ],
    messages: [
      {
        id: 'm1',
        sourceStreamId: billed.stream,
        sourceEventId: 'e1',
        integrationType: 'webhook:partner',
        eventType: 'order.billed.v1',
        tenantId: 'core',
        status: 'SENT',
        attempts: 1,
        maxAttempts: 10,
        dueAt: new Date(startMs + 700),
        createdAt: new Date(startMs + 700),
        updatedAt: new Date(startMs + 950),
        sentAt: new Date(startMs + 950),
        lastError: undefined,
        jobs: [
          {
            id: 'outbox~m1~2~7.9',
            queue: 'outbox-webhook~partner',
            attempt: 2,
            enqueuedAt: new Date(startMs + 900),
            startedAt: new Date(startMs + 910),
            finishedAt: new Date(startMs + 950),
            outcome: 'sent',
          },
        ],
      },
    ],
  });
  return { correlationId: 'flow', complete: true, missing: 0, ...tree };
}

test('draws a flow as a tree with its times', () => {
  const lines = traceText(flow(), createPaint(false)).split('\n');
  assert.deepEqual(lines, [
    'flow  1 command, 2 events, 1 delivery, 1 dead, 31.00 s, since 2025-09-30T10:00:00.000Z',
    '',
    '   +0 ms  order.place  3 ms  caused by c1',
    '   +3 ms  └─ order.step0.v1  shop.order.v1-core-o1 @0',
    '+31.00 s     ├─ ✗ sub:shop:mail:v1  dead after 6 failures: no such mailbox  dlq d1',
    '             ├─ ✓ sub:shop:orders:v1',
    ' +603 ms     └─ order.step1.v1  shop.order.v1-core-o1 @1',
    '                ├─ · sub:shop:later:v1  pending',
    ' +700 ms        └─ ➜ webhook:partner  SENT in 250 ms after 1 failure  outbox m1',
    ' +900 ms           └─ ⚙ outbox-webhook~partner #2  sent in 40 ms, waited 10 ms  job outbox~m1~2~7.9',
    '',
  ]);
});

test('a coloured tree differs only by escape codes', () => {
  const painted = traceText(flow(), createPaint(true));
  assert.ok(painted.includes('\u001b[31m'));
  assert.equal(stripVTControlCharacters(painted), traceText(flow(), createPaint(false)));
});

test('reports incomplete traces, and escapes control characters', () => {
  const wild = event(0, { type: 'a\u001b[2J\u001b[8mb\u0007', eventId: 'e0' });
  const tree = buildTraceTree({ events: [wild], handlers: [], letters: [], messages: [] });
  const trace = {
    correlationId: 'x\u001b]0;t',
    ...tree,
    complete: false,
    missing: 2,
    truncated: true,
  };
  const text = traceText(trace, createPaint(true));
  for (const code of ['\u001b[2J', '\u001b[8m', '\u001b]', '\u0007']) {
    assert.ok(!text.includes(code), text);
  }
  assert.match(text, /the trace index has not caught up/);
  assert.match(text, /truncated: the trace has more nodes/);
  assert.match(text, /removed from the store: 2 events/);
});

test('limits the width of deep flows', () => {
  const events = Array.from({ length: 300 }, (_, at) => event(at, { causationId: `e${at - 1}` }));
  const tree = buildTraceTree({ events, handlers: [], letters: [], messages: [] });
  const text = traceText(
    { correlationId: 'deep', complete: true, missing: 0, ...tree },
    createPaint(false),
  );
  for (const line of text.split('\n')) assert.ok(line.length < 220, line);
  assert.match(text, /… 299 {2}order\.step299\.v1/);
});
