// From what is known of a flow to its tree, as a list in the order in which a tree is drawn: flows may be
// deeper than what recursion or nested JSON bears. Pure; bad data makes an odd tree, never a loop.

import { commandHeader } from '../aggregates/idempotency.ts';
import type { TracedEvent, TraceFacts } from './trace-facts.ts';
import {
  aliveHandler,
  commandNode,
  deadHandler,
  deliveryNode,
  eventNode,
  eventNodeId,
  jobNode,
  timeOf,
  type Draft,
  type HandlerNode,
  type TraceNode,
} from './trace-node.ts';

export interface TraceTree {
  /** Each behind its parent, children together. */
  readonly nodes: readonly TraceNode[];
  readonly startedAt: string | null;
  /** The last thing that is known to have happened. */
  readonly endedAt: string | null;
  readonly durationMs: number;
  /** There are more than were asked for. */
  readonly truncated: boolean;
}

export const traceLimits = { eventsMax: 1_000, nodesMax: 10_000 } as const;

/**
 * Builds the tree of a flow. An event hangs below the command that its headers name, a command below the
 * handler that sent it or the event that caused it.
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
  const place = (draft: Draft, parent: string | undefined): void => {
    drafts.set(draft.id, draft);
    parents.push({ id: draft.id, parent });
  };

  // Ids are unique within a stream only: of two that share one, the first is taken for the cause.
  const byEventId = new Map(events.toReversed().map((event) => [event.eventId, event]));
  const causeOf = ({ causationId, position }: TracedEvent): TracedEvent | undefined => {
    const cause = causationId === undefined ? undefined : byEventId.get(causationId);
    return cause?.position === position ? undefined : cause;
  };
  const groups = Map.groupBy(events, groupKey);
  const handlers = handlersOf(facts, events);

  for (const [event, each] of handlers) for (const draft of each) place(draft, event);
  const byPlace = new Map(events.map((event) => [sourceKey(event.stream, event.eventId), event]));
  for (const message of facts.messages) {
    const source = byPlace.get(sourceKey(message.sourceStreamId, message.sourceEventId));
    if (source === undefined) continue;
    const delivery = deliveryNode(message);
    place(delivery, eventNodeId(source));
    for (const job of message.jobs ?? []) place(jobNode(job), delivery.id);
  }
  for (const [first, ...rest] of groups.values()) {
    if (first === undefined) continue;
    const cause = causeOf(first);
    const above = cause === undefined ? undefined : eventNodeId(cause);
    const command = commandOf(first);
    if (command === undefined) {
      place(eventNode(first, cause === undefined ? first.causationId : undefined), above);
      continue;
    }
    const last = rest.at(-1) ?? first;
    const draft = commandNode(first, last, { command, isCaused: cause !== undefined });
    const sender = (above === undefined ? undefined : handlers.get(above))?.filter((handler) =>
      isSender(handler.subscription, first.idempotencyKey),
    );
    // Versions of one handler send under the same key: which of them it was is not known.
    place(draft, sender?.length === 1 ? sender[0]?.id : above);
    for (const event of [first, ...rest]) place(eventNode(event, undefined), draft.id);
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
  /** By parent; those below nothing are the tops. */
  readonly below: ReadonlyMap<string | undefined, readonly { readonly id: string }[]>;
  readonly startMs: number | null;
}

function inOrder({ drafts, below, startMs }: Forest, max: number): readonly TraceNode[] {
  const nodes: TraceNode[] = [];
  const seen = new Set<string>();
  const walk = (top: string): void => {
    const left: { id: string; parent: string | null; depth: number }[] = [
      { id: top, parent: null, depth: 0 },
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
  // Events that claim to have caused each other hang below no top: the first of them becomes one.
  for (const { id, kind } of drafts.values()) {
    if (!seen.has(id) && (kind === 'command' || kind === 'event')) walk(id);
  }
  return nodes;
}

/** Events of one command: decided at one time, for one aggregate, because of one thing. */
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

/** By the id of their event's node, in the order of their names. A letter says more than a checkpoint. */
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

/** Reactors and sagas send under keys of their own name: `<tenant>|<service>|<name>|…`. */
function isSender(subscription: string, idempotencyKey: string | undefined): boolean {
  if (idempotencyKey === undefined) return false;
  const [, service, name] = subscription.split(':');
  const [, sentBy, operation] = idempotencyKey.split('|');
  return sentBy === service && operation === name;
}

function timesOf({ events, letters, messages }: TraceFacts): {
  readonly startMs: number | null;
  readonly endMs: number | null;
} {
  const known = [
    ...events.flatMap(({ occurredAt, recordedAt }) => [timeOf(occurredAt), timeOf(recordedAt)]),
    ...letters.map(({ createdAt }) => timeOf(createdAt)),
    ...messages.flatMap(({ createdAt, updatedAt }) => [createdAt.getTime(), updatedAt.getTime()]),
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
