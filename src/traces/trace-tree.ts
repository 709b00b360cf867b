// Builds the tree of a flow as a list in depth-first order, because a flow may be too deep for recursion
// or nested JSON. Pure; inconsistent data never causes an infinite loop.

import { commandHeader } from '../aggregates/idempotency.ts';
import {
  aliveHandler,
  commandNode,
  deadHandler,
  deliveryNode,
  eventNode,
  eventNodeId,
  jobNode,
  messageNode,
  sagaNode,
  taskNode,
  taskNodeId,
  timeOf,
  type Draft,
  type HandlerNode,
  type TracedEvent,
  type TraceFacts,
  type TraceNode,
} from './trace-node.ts';

export interface TraceTree {
  /** In depth-first order. */
  readonly nodes: readonly TraceNode[];
  readonly startedAt: string | null;
  /** The latest time in the flow. */
  readonly endedAt: string | null;
  readonly durationMs: number;
  /** The flow has more nodes than the limit. */
  readonly truncated: boolean;
}

export const traceLimits = { eventsMax: 1_000, nodesMax: 10_000 } as const;

/**
 * Builds the tree of a flow. The parent of an event is the command named in its headers; the parent of a
 * command is the handler that sent it or the event that caused it.
 *
 * @example
 * import { buildTraceTree } from 'millrace/traces';
 *
 * const { nodes } = buildTraceTree({ events: [], handlers: [], letters: [], messages: [] });
 * for (const { depth, kind } of nodes) console.log('  '.repeat(depth), kind);
 */
export function buildTraceTree(
  facts: TraceFacts,
  limits: { readonly nodesMax: number } = traceLimits,
): TraceTree {
  const events = facts.events.toSorted((a, b) => (a.position < b.position ? -1 : 1));
  const drafts = new Map<string, Draft>();
  const parents: { readonly id: string; readonly parent: string | undefined }[] = [];
  const add = (draft: Draft, parent: string | undefined): void => {
    drafts.set(draft.id, draft);
    parents.push({ id: draft.id, parent });
  };

  // Event ids are unique only within a stream: if two events share an id, the first counts as the cause.
  const byEventId = new Map(events.toReversed().map((event) => [event.eventId, event]));
  const causeOf = ({ causationId, position }: TracedEvent): TracedEvent | undefined => {
    const cause = causationId === undefined ? undefined : byEventId.get(causationId);
    return cause?.position === position ? undefined : cause;
  };
  const { tasks = [], publications = [], sagas = [] } = facts.work ?? {};
  const taskIds = new Set(tasks.map(({ id }) => id));
  /** The node of an event or a job of the flow. */
  const nodeOf = (causationId: string | undefined): string | undefined => {
    if (causationId === undefined) return undefined;
    const cause = byEventId.get(causationId);
    if (cause !== undefined) return eventNodeId(cause);
    return taskIds.has(causationId) ? taskNodeId({ id: causationId }) : undefined;
  };
  const groups = Map.groupBy(events, groupKey);
  const handlers = handlersOf(facts, events);

  for (const [event, each] of handlers) for (const draft of each) add(draft, event);
  const bySource = new Map(events.map((event) => [sourceKey(event.stream, event.eventId), event]));
  for (const message of facts.messages) {
    const source = bySource.get(sourceKey(message.sourceStreamId, message.sourceEventId));
    if (source === undefined) continue;
    const delivery = deliveryNode(message);
    add(delivery, eventNodeId(source));
    for (const job of message.jobs ?? []) add(jobNode(job), delivery.id);
  }
  for (const [first, ...rest] of groups.values()) {
    if (first === undefined) continue;
    const cause = causeOf(first);
    const isOwnCause = byEventId.get(first.causationId ?? '')?.position === first.position;
    const above =
      cause !== undefined ? eventNodeId(cause) : isOwnCause ? undefined : nodeOf(first.causationId);
    const command = commandOf(first);
    if (command === undefined) {
      add(eventNode(first, above === undefined ? first.causationId : undefined), above);
      continue;
    }
    const last = rest.at(-1) ?? first;
    const draft = commandNode(first, last, { command, isCaused: above !== undefined });
    const sender = (above === undefined ? undefined : handlers.get(above))?.filter((handler) =>
      isSender(handler.subscription, first.idempotencyKey),
    );
    // All versions of a handler use the same keys, so with several versions the sender is unknown.
    add(draft, sender?.length === 1 ? sender[0]?.id : above);
    for (const event of [first, ...rest]) add(eventNode(event, undefined), draft.id);
  }

  for (const task of tasks) {
    const cause = [task.parentId, task.causationId].find((id) => id !== task.id && nodeOf(id));
    add(taskNode(task, cause === undefined ? task.causationId : undefined), nodeOf(cause));
  }
  for (const published of publications) {
    const above = nodeOf(published.causationId);
    add(messageNode(published, above === undefined ? published.causationId : undefined), above);
  }
  for (const saga of sagas) {
    const first = events.find(({ stream }) => stream === saga.stream);
    add(sagaNode(saga), first === undefined ? undefined : eventNodeId(first));
  }

  const times = timesOf(facts);
  const below = Map.groupBy(parents, ({ parent }) => parent);
  const nodes = inOrder({ drafts, below, startMs: times.startMs }, limits.nodesMax);
  return {
    nodes,
    startedAt: isoOf(times.startMs),
    endedAt: isoOf(times.endMs),
    durationMs: times.startMs === null || times.endMs === null ? 0 : times.endMs - times.startMs,
    truncated: nodes.length < drafts.size,
  };
}

interface Forest {
  readonly drafts: ReadonlyMap<string, Draft>;
  /** Nodes by parent; those without a parent are the roots. */
  readonly below: ReadonlyMap<string | undefined, readonly { readonly id: string }[]>;
  readonly startMs: number | null;
}

function inOrder({ drafts, below, startMs }: Forest, max: number): readonly TraceNode[] {
  const nodes: TraceNode[] = [];
  const seen = new Set<string>();
  const walk = (root: string): void => {
    const left: { id: string; parent: string | null; depth: number }[] = [
      { id: root, parent: null, depth: 0 },
    ];
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const { id, parent, depth } = next;
      const draft = drafts.get(id);
      if (draft === undefined || seen.has(id)) continue;
      if (nodes.length === max) return;
      seen.add(id);
      const { atMs, ...node } = draft;
      const offsetMs = atMs === null || startMs === null ? null : atMs - startMs;
      nodes.push({ ...node, parent, depth, offsetMs });
      const children = below.get(id) ?? [];
      for (const child of children.toReversed()) {
        left.push({ id: child.id, parent: id, depth: depth + 1 });
      }
    }
  };
  for (const { id } of below.get(undefined) ?? []) walk(id);
  // Events or jobs that name each other as causes have no root: the first of them becomes one.
  for (const { id, kind } of drafts.values()) {
    if (!seen.has(id) && (kind === 'command' || kind === 'event' || kind === 'task')) walk(id);
  }
  return nodes;
}

/** Events with the same command, cause, stream, key and time belong to one command. */
function groupKey(event: TracedEvent): string {
  const command = commandOf(event);
  if (command === undefined) return `event ${event.position}`;
  const { causationId, stream, idempotencyKey, occurredAt } = event;
  return JSON.stringify([command, causationId, stream, idempotencyKey, occurredAt]);
}

function commandOf({ headers }: TracedEvent): string | undefined {
  const command = headers?.[commandHeader];
  return typeof command === 'string' && command !== '' ? command : undefined;
}

/** Handlers by the id of their event's node, sorted by name. A dead letter takes precedence over a checkpoint. */
function handlersOf(
  { handlers, letters }: TraceFacts,
  events: readonly TracedEvent[],
): ReadonlyMap<string, readonly Draft<HandlerNode>[]> {
  const lettersBy = Map.groupBy(letters, ({ stream, eventId }) => sourceKey(stream, eventId));
  const factsBy = Map.groupBy(handlers, ({ position }) => position);
  return new Map(
    events.map((event) => {
      const dead = lettersBy.get(sourceKey(event.stream, event.eventId)) ?? [];
      const isDead = new Set(dead.map(({ handler }) => handler));
      const alive = (factsBy.get(event.position) ?? []).filter(
        ({ subscription }) => !isDead.has(subscription),
      );
      const id = (name: string): string => `handler ${event.position} ${name}`;
      const drafts = [
        ...alive.map((fact) => aliveHandler(id(fact.subscription), fact)),
        ...dead.map((letter) => deadHandler(id(letter.handler), letter)),
      ];
      const sorted = drafts.toSorted((a, b) => (a.subscription < b.subscription ? -1 : 1));
      return [eventNodeId(event), sorted];
    }),
  );
}

/** Reactors and sagas use keys with their name: `<tenant>|<service>|<name>|…`. */
function isSender(subscription: string, idempotencyKey: string | undefined): boolean {
  if (idempotencyKey === undefined) return false;
  const [, service, name] = subscription.split(':');
  const [, sentBy, operation] = idempotencyKey.split('|');
  return sentBy === service && operation === name;
}

function timesOf({ events, letters, messages, work }: TraceFacts): {
  readonly startMs: number | null;
  readonly endMs: number | null;
} {
  const known = [
    ...events.flatMap(({ occurredAt, recordedAt }) => [timeOf(occurredAt), timeOf(recordedAt)]),
    ...letters.map(({ createdAt }) => timeOf(createdAt)),
    ...messages.flatMap(({ createdAt, updatedAt }) => [createdAt.getTime(), updatedAt.getTime()]),
    ...(work?.tasks ?? []).flatMap(({ enqueuedAt, claimedAt, endedAt }) =>
      [enqueuedAt, claimedAt, endedAt].map((at) => at?.getTime() ?? null),
    ),
    ...(work?.publications ?? []).map(({ storedAt }) => storedAt.getTime()),
  ].filter((each) => each !== null);
  const edge = (better: (a: number, b: number) => number): number | null =>
    known.length === 0 ? null : known.reduce((a, b) => better(a, b));
  return { startMs: edge(Math.min), endMs: edge(Math.max) };
}

function sourceKey(stream: string, eventId: string): string {
  return JSON.stringify([stream, eventId]);
}

function isoOf(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
