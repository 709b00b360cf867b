// Trees from valid and invalid data: commands are parents of their events, and no data causes a loop, an
// error or a missing event.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { toPosition } from '../store/position.ts';
import type {
  TracedEvent,
  TracedJob,
  TracedMessage,
  TracedTask,
  TraceFacts,
} from './trace-node.ts';
import { buildTraceTree, type TraceTree } from './trace-tree.ts';

const startMs = Date.UTC(2025, 8, 30, 10);
const iso = (offsetMs: number): string => new Date(startMs + offsetMs).toISOString();

function event(
  at: number,
  more: Partial<TracedEvent> & { readonly command?: string } = {},
): TracedEvent {
  const { command, ...fields } = more;
  return {
    type: `thing.happened${at}.v1`,
    eventId: `e${at}`,
    occurredAt: iso(at * 10),
    recordedAt: iso(at * 10 + 2),
    correlationId: 'flow',
    tenant: 'core',
    aggregate: { bc: 'shop', type: 'thing', id: 't1' },
    stream: 'shop.thing.v1-core-t1',
    revision: at,
    position: toPosition(at),
    ...(command === undefined ? {} : { headers: { command } }),
    ...fields,
  };
}

function message(source: TracedEvent, more: Partial<TracedMessage> = {}): TracedMessage {
  return {
    id: 'm1',
    sourceStreamId: source.stream,
    sourceEventId: source.eventId,
    integrationType: 'webhook:partner',
    eventType: source.type,
    tenantId: 'core',
    status: 'SENT',
    attempts: 1,
    maxAttempts: 10,
    dueAt: new Date(startMs + 100),
    createdAt: new Date(startMs + 100),
    updatedAt: new Date(startMs + 350),
    sentAt: new Date(startMs + 350),
    lastError: 'HTTP 503',
    ...more,
  };
}

function attemptJob(attempt: number, more: Partial<TracedJob> = {}): TracedJob {
  return {
    id: `outbox~m1~${attempt}`,
    queue: 'outbox-webhook~partner',
    attempt,
    enqueuedAt: new Date(startMs + attempt * 100),
    startedAt: new Date(startMs + attempt * 100 + 5),
    finishedAt: undefined,
    outcome: 'running',
    ...more,
  };
}

function taskOf(id: string, causationId: string): TracedTask {
  return {
    id,
    type: 'email-send',
    tenant: 'core',
    state: 'queued',
    attempt: 1,
    parentId: undefined,
    causationId,
    enqueuedAt: new Date(startMs + 30),
    claimedAt: new Date(startMs + 40),
    endedAt: new Date(startMs + 90),
    dueAt: undefined,
    waitsFor: undefined,
    error: undefined,
  };
}

const none: TraceFacts = { events: [], handlers: [], letters: [], messages: [] };

/** `  event e1`, indented by depth. */
function drawn({ nodes }: TraceTree): string[] {
  return nodes.map((node) => {
    const name =
      node.kind === 'event'
        ? node.eventId
        : node.kind === 'command'
          ? node.command
          : node.kind === 'handler'
            ? `${node.subscription} ${node.state}`
            : node.kind === 'job'
              ? `${node.queue} #${node.attempt} ${node.outcome}`
              : node.kind === 'delivery'
                ? `${node.destination} ${node.status}`
                : node.kind === 'task'
                  ? `${node.type} ${node.state}`
                  : node.kind === 'message'
                    ? node.topic
                    : `${node.saga} ${node.status}`;
    return `${'  '.repeat(node.depth)}${node.kind} ${name}`;
  });
}

test('a flow from a command through a reactor to a delivery, with its handlers', () => {
  const ordered = event(1, { command: 'order.place', causationId: 'c1' });
  const key = 'core|shop|billing|x';
  const second = { causationId: 'e1', idempotencyKey: key, stream: 'shop.bill.v1-core-b1' };
  const billed = event(2, { command: 'bill.send', ...second });
  const noted = event(3, { command: 'bill.send', ...second, occurredAt: billed.occurredAt });
  const other = event(4, { causationId: 'e2' });
  const tree = buildTraceTree({
    events: [other, noted, billed, ordered],
    handlers: [
      { subscription: 'sub:shop:billing:v1', position: ordered.position, state: 'passed' },
      { subscription: 'sub:shop:accounts:v1', position: ordered.position, state: 'passed' },
      { subscription: 'sub:shop:mail:v1', position: ordered.position, state: 'passed' },
      {
        subscription: 'sub:shop:slow:v1',
        position: billed.position,
        state: 'waiting',
        failures: 2,
        error: 'away',
      },
    ],
    letters: [
      {
        id: 'd1',
        handler: 'sub:shop:mail:v1',
        eventId: 'e1',
        stream: ordered.stream,
        status: 'pending',
        attempts: 6,
        error: 'no such mailbox',
        createdAt: iso(900),
      },
    ],
    messages: [
      message(billed, {
        jobs: [
          attemptJob(1, { outcome: 'failed', finishedAt: new Date(startMs + 220) }),
          attemptJob(2, { outcome: 'lost' }),
        ],
      }),
    ],
  });
  assert.deepEqual(drawn(tree), [
    'command order.place',
    '  event e1',
    '    handler sub:shop:accounts:v1 passed',
    '    handler sub:shop:billing:v1 passed',
    '      command bill.send',
    '        event e2',
    '          handler sub:shop:slow:v1 waiting',
    '          delivery webhook:partner SENT',
    '            job outbox-webhook~partner #1 failed',
    '            job outbox-webhook~partner #2 lost',
    '          event e4',
    '        event e3',
    '    handler sub:shop:mail:v1 dead',
  ]);
  const [command, first] = tree.nodes;
  assert.ok(command?.kind === 'command' && first?.kind === 'event');
  assert.deepEqual([command.causationId, command.offsetMs, command.durationMs], ['c1', 0, 2]);
  assert.deepEqual([first.parent, first.offsetMs], [command.id, 2]);
  const delivery = tree.nodes.find(({ kind }) => kind === 'delivery');
  assert.ok(delivery?.kind === 'delivery');
  assert.deepEqual([delivery.offsetMs, delivery.durationMs, delivery.error], [90, 250, 'HTTP 503']);
  const jobs = tree.nodes.filter((node) => node.kind === 'job');
  assert.deepEqual(
    jobs.map((each) => [each.parent, each.offsetMs, each.waitedMs, each.durationMs]),
    [
      [delivery.id, 90, 5, 115],
      [delivery.id, 190, 5, null],
    ],
  );
  const dead = tree.nodes.at(-1);
  assert.ok(dead?.kind === 'handler');
  assert.deepEqual([dead.failures, dead.deadLetter, dead.error], [6, 'd1', 'no such mailbox']);
  assert.deepEqual([tree.startedAt, tree.endedAt, tree.durationMs], [iso(10), iso(900), 890]);
  assert.equal(tree.truncated, false);
});

test('with two versions of a handler, a command is a child of its event', () => {
  const cause = event(1);
  const sent = event(2, {
    command: 'bill.send',
    causationId: 'e1',
    idempotencyKey: 'core|shop|billing|x',
  });
  const tree = buildTraceTree({
    ...none,
    events: [cause, sent],
    handlers: ['v1', 'v2'].map((version) => ({
      subscription: `sub:shop:billing:${version}`,
      position: cause.position,
      state: 'passed',
    })),
  });
  assert.deepEqual(drawn(tree).slice(-2), ['  command bill.send', '    event e2']);
});

test('two commands of one type with the same cause are separate nodes', () => {
  const keyed = (at: number) =>
    event(at, { command: 'a.b', causationId: 'e1', idempotencyKey: `k${at}`, occurredAt: iso(5) });
  const tree = buildTraceTree({ ...none, events: [event(1), keyed(2), keyed(3)] });
  assert.deepEqual(drawn(tree), [
    'event e1',
    '  command a.b',
    '    event e2',
    '  command a.b',
    '    event e3',
  ]);
});

test('a cause outside the flow is named, and there may be several roots', () => {
  const tree = buildTraceTree({
    ...none,
    events: [event(1, { causationId: 'away' }), event(2), event(3, { causationId: 'e3' })],
  });
  assert.deepEqual(drawn(tree), ['event e1', 'event e2', 'event e3']);
  const [first] = tree.nodes;
  assert.equal(first?.kind === 'event' ? first.causationId : '', 'away');
});

test('events that name each other as causes start with the first of them', () => {
  const events = [
    event(1, { causationId: 'e3' }),
    event(2, { causationId: 'e1', command: 'a.b' }),
    event(3, { causationId: 'e2' }),
  ];
  const handlers = [{ subscription: 's', position: toPosition(1), state: 'passed' }] as const;
  assert.deepEqual(drawn(buildTraceTree({ ...none, events, handlers })), [
    'event e1',
    '  handler s passed',
    '  command a.b',
    '    event e2',
    '      event e3',
  ]);
});

test('invalid times and an empty flow do not fail', () => {
  assert.deepEqual(buildTraceTree(none), {
    nodes: [],
    startedAt: null,
    endedAt: null,
    durationMs: 0,
    truncated: false,
  });
  const [node] = buildTraceTree({ ...none, events: [event(1, { recordedAt: 'soon' })] }).nodes;
  assert.equal(node?.offsetMs, null);
});

test('jobs and messages of topics stand below their causes, and a saga below its first event', () => {
  const placed = event(1);
  const reported = event(2, { causationId: 'job-1' });
  const started = event(3, { stream: 'shop.check.v1-core-o1' });
  const again = event(4, { stream: 'shop.check.v1-core-o1' });
  const task = { ...taskOf('job-1', 'e1'), error: 'no such mailbox', state: 'failed' };
  const tree = buildTraceTree({
    ...none,
    events: [placed, reported, started, again],
    work: {
      tasks: [
        task,
        { ...taskOf('job-2', 'unknown'), parentId: 'job-1' },
        taskOf('job-3', 'outside'),
      ],
      publications: [
        {
          id: 'p1',
          topic: 'orders',
          tenant: 'core',
          causationId: 'e1',
          storedAt: new Date(startMs + 900),
        },
      ],
      sagas: [
        {
          stream: started.stream,
          saga: 'check',
          key: 'o1',
          status: 'running',
          reason: undefined,
          timers: [{ timer: 'late', dueAt: '2026-01-01T00:00:00.000Z' }],
        },
      ],
      isCut: false,
    },
  });
  assert.deepEqual(drawn(tree), [
    'event e1',
    '  task email-send failed',
    '    event e2',
    '    task email-send queued',
    '  message orders',
    'event e3',
    '  saga check running',
    'event e4',
    'task email-send queued',
  ]);
  const [, first] = tree.nodes;
  assert.deepEqual(first?.kind === 'task' && [first.error, first.offsetMs, first.durationMs], [
    'no such mailbox',
    first?.offsetMs,
    50,
  ]);
  assert.deepEqual(
    tree.nodes.flatMap((node) => (node.kind === 'task' ? [node.causationId] : [])),
    [null, null, 'outside'],
  );
});

test('jobs and events that name each other as causes appear once', () => {
  const { nodes } = buildTraceTree({
    ...none,
    events: [event(1, { causationId: 'job-1' })],
    work: { tasks: [taskOf('job-1', 'e1')], publications: [], sagas: [], isCut: false },
  });
  assert.equal(nodes.length, 2);
});

test('a flow with too many nodes is truncated and reports it', () => {
  const events = Array.from({ length: 20 }, (_, at) => event(at + 1, { causationId: `e${at}` }));
  const tree = buildTraceTree({ ...none, events }, { nodesMax: 7 });
  assert.deepEqual([tree.nodes.length, tree.nodes.at(-1)?.depth, tree.truncated], [7, 6, true]);
});

test('a chain of thousands of events keeps its depth', () => {
  const events = Array.from({ length: 5_000 }, (_, at) => event(at + 1, { causationId: `e${at}` }));
  const { nodes } = buildTraceTree({ ...none, events });
  assert.equal(nodes.at(-1)?.depth, 4_999);
});

test('for any causes, every event appears once, after its parent, in depth-first order', () => {
  const id = fc.integer({ min: 0, max: 12 });
  const events = fc.array(
    fc.record({
      eventId: id,
      causationId: fc.option(id),
      command: fc.option(fc.constantFrom('a', 'b')),
    }),
    { maxLength: 25 },
  );
  fc.assert(
    fc.property(events, (given) => {
      const flow = given.map(({ eventId, causationId, command }, at) =>
        event(at + 1, {
          eventId: `e${eventId}`,
          occurredAt: iso(0),
          ...(causationId === null ? {} : { causationId: `e${causationId}` }),
          ...(command === null ? {} : { command }),
        }),
      );
      const { nodes } = buildTraceTree({ ...none, events: flow });
      const positions = nodes.flatMap((node) => (node.kind === 'event' ? [node.position] : []));
      assert.deepEqual(
        positions.toSorted(),
        flow.map(({ position }) => position),
      );
      const path: string[] = [];
      for (const { id: own, parent, depth } of nodes) {
        path.length = depth;
        assert.equal(parent, path.at(-1) ?? null);
        path.push(own);
      }
    }),
  );
});
