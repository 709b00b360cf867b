// One attempt at a command: load the state, detect a duplicate, decide, append. A conflict is returned as a
// value, because the caller decides whether to retry.

import type { NewCommand } from '../contracts/define-command.ts';
import type { DomainEventEnvelope, NewEvent } from '../contracts/envelope.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import { subjectHeader } from '../store/erasure.ts';
import type { Position } from '../store/position.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import type { Aggregate, DecideContext } from './define-aggregate.ts';
import {
  assertSamePayload,
  assertSameUse,
  commandHeader,
  payloadHashHeader,
  type CommandIdentity,
  type KeyUse,
} from './idempotency.ts';
import { rehydrate, type Rehydrated, type RehydrateSource } from './rehydrate.ts';
import type { AggregateEvent } from './upcast.ts';

export interface AggregateAddress {
  readonly tenant: string;
  readonly id: string;
  readonly signal?: AbortSignal | undefined;
}

export interface CommandRequest<Command extends NewCommand> extends AggregateAddress {
  /** Created by its definition, or checked by `aggregate.parseCommand`. */
  readonly command: Command;
  /**
   * The category of the aggregate, such as `banking.account.v2`. A platform needs it if several of its aggregates
   * accept this command type.
   */
  readonly aggregate?: string | undefined;
  /**
   * `<tenant>|<service>|<operation>|<naturalKey>`: the command takes effect once, and a duplicate
   * gets the first result. A duplicate of a command that creates an aggregate needs the same `id`:
   * derive it with `idFromKey(idempotencyKey)`.
   */
  readonly idempotencyKey?: string | undefined;
  /** The flow that the command belongs to. Default: a new one. */
  readonly correlationId?: string | undefined;
  /** The event that caused this command, if any. Default: the id of the command. */
  readonly causationId?: string | undefined;
  readonly user?: NonNullable<DomainEventEnvelope['user']> | undefined;
  readonly headers?: Readonly<Record<string, unknown>> | undefined;
  /** The revision that the caller has seen; any other one is a `VERSION_CONFLICT` without a retry. */
  readonly expected?: number | 'none' | 'exists' | undefined;
}

export interface CommandResult<State, Event extends NewEvent> {
  /** The state at `revision`. */
  readonly state: State;
  readonly events: readonly AggregateEvent<Event>[];
  /** Revision of the last event; without events, of the aggregate (−1: the stream has no events). */
  readonly revision: number;
  /** Position of the last event; undefined without events. */
  readonly position: Position | undefined;
  /** The command is a duplicate: this is the result of the first one. */
  readonly isDuplicate: boolean;
}

export interface CommandCall<Command extends NewCommand> {
  readonly request: CommandRequest<Command>;
  readonly stream: string;
  readonly identity: CommandIdentity;
  readonly correlationId: string;
  /** The headers of the request, with the trace context of this command. */
  readonly headers: Readonly<Record<string, unknown>>;
  readonly nowMs: number;
  readonly afterConflict: boolean;
  /** False: the state must be read from the store, not from memory. */
  readonly mayUseCachedState: boolean;
}

export type Attempt<State, Event extends NewEvent> =
  | {
      readonly kind: 'done';
      readonly result: CommandResult<State, Event>;
      /** The state before the decision; undefined for a duplicate. */
      readonly loaded: Rehydrated<State> | undefined;
    }
  | {
      readonly kind: 'conflict';
      readonly error: MillraceError;
      /** The decision used a cached state, so the next attempt needs no backoff. */
      readonly usedCachedState: boolean;
    };

/**
 * A duplicate must be detected before the decision: the current state may reject a command that succeeded
 * the first time ('already paid'), or accept it again. A lookup per key would cost each new
 * command a read. Instead, loading the history reports whether it contains the key's first event. The
 * key is looked up by event id only if part of the history was not read: covered by a snapshot, hidden by
 * retention, or deleted. An append by another process after this load causes a conflict.
 */
export async function attemptCommand<State, Event extends NewEvent, Command extends NewCommand>(
  source: RehydrateSource<State, Event, Command>,
  call: CommandCall<Command>,
): Promise<Attempt<State, Event>> {
  const { request, stream, identity } = call;
  const cached = call.mayUseCachedState ? await attemptCached(source, call) : undefined;
  if (cached !== undefined) return cached;
  const isKeyed = identity.key !== undefined;

  const loaded = await rehydrate(source, {
    stream,
    tenant: request.tenant,
    watchFor: isKeyed ? identity.eventId(0) : undefined,
    afterConflict: call.afterConflict,
    signal: request.signal,
  });
  if (isKeyed && (loaded.sawWatched || !loaded.complete)) {
    const result = await duplicateOf(source, call);
    if (result !== undefined) return result;
  }
  assertExpected(call, loaded.revision);
  const decision = decide(source.aggregate, call, loaded);
  if (decision.envelopes.length === 0) {
    const { state, revision } = loaded;
    const result = { state, events: [], revision, position: undefined, isDuplicate: false };
    return { kind: 'done', result, loaded };
  }
  return append(source, call, { loaded, decision });
}

/**
 * Decides on the cached state without reading the stream; the append detects a stale state. Returns
 * undefined if the stream must be read: a rejected or unchanged command has no append to detect that.
 */
async function attemptCached<State, Event extends NewEvent, Command extends NewCommand>(
  source: RehydrateSource<State, Event, Command>,
  call: CommandCall<Command>,
): Promise<Attempt<State, Event> | undefined> {
  const { store, aggregate, remembered } = source;
  if (store.capabilities.followingAppend !== true) return undefined;
  const known = remembered?.recall(call.stream);
  if (known === undefined || known.tenant !== call.request.tenant) return undefined;
  if (!isExpected(call, known.revision)) return undefined;
  if (call.identity.key !== undefined) {
    const duplicate = await duplicateOf(source, call);
    if (duplicate !== undefined) return duplicate;
  }
  const loaded = { ...known, complete: false, sawWatched: false, subjects: noSubjects };
  const decision = tryDecide(aggregate, call, loaded);
  if (decision === undefined || decision.envelopes.length === 0) return undefined;
  return append(source, call, { loaded, decision, follows: known.eventId });
}

const noSubjects: ReadonlySet<string> = new Set();

/** Undefined: the decision threw. */
function tryDecide<State, Event extends NewEvent, Command extends NewCommand>(
  aggregate: Aggregate<State, Event, Command>,
  call: CommandCall<Command>,
  loaded: Rehydrated<State>,
): Decision<State> | undefined {
  try {
    return decide(aggregate, call, loaded);
  } catch {
    // If the command is still rejected on the state read from the stream, that decision throws.
    return undefined;
  }
}

interface Decision<State> {
  readonly envelopes: readonly DomainEventEnvelope[];
  /** The state after these events. */
  readonly state: State;
}

function decide<State, Event extends NewEvent, Command extends NewCommand>(
  aggregate: Aggregate<State, Event, Command>,
  call: CommandCall<Command>,
  { state: before, revision }: Rehydrated<State>,
): Decision<State> {
  const decided = aggregate.decide(call.request.command, before, contextOf(call, revision));
  const envelopes = decided.map((event, index) =>
    toEnvelope(event, call, { index, version: revision + index + 2, aggregate }),
  );
  // Evolve before the append: an event that evolve cannot apply must not be stored.
  const state = withRevisions<Event>(envelopes, call.stream, revision + 1).reduce<State>(
    (current, event) => aggregate.evolve(current, event),
    before,
  );
  return { envelopes, state };
}

async function append<State, Event extends NewEvent, Command extends NewCommand>(
  source: RehydrateSource<State, Event, Command>,
  call: CommandCall<Command>,
  {
    loaded,
    decision,
    follows,
  }: {
    readonly loaded: Rehydrated<State>;
    readonly decision: Decision<State>;
    readonly follows?: string | undefined;
  },
): Promise<Attempt<State, Event>> {
  const { stream, identity, request } = call;
  const { envelopes, state } = decision;
  try {
    const appended = await source.store.append(stream, envelopes, {
      expected: loaded.revision === -1 ? 'none' : loaded.revision,
      follows,
      signal: request.signal,
    });
    if (identity.key !== undefined && appended.isDuplicate) {
      // Another process handled the same command first; return its result.
      const result = await duplicateOf(source, call);
      if (result !== undefined) return result;
    }
    const events = withRevisions<Event>(
      envelopes,
      stream,
      appended.revision - envelopes.length + 1,
    );
    const { revision, position } = appended;
    const result = { state, events, revision, position, isDuplicate: false };
    return { kind: 'done', result, loaded };
  } catch (error) {
    if (hasCode(error, 'VERSION_CONFLICT')) {
      return { kind: 'conflict', error, usedCachedState: follows !== undefined };
    }
    throw error;
  }
}

async function duplicateOf<State, Event extends NewEvent, Command extends NewCommand>(
  source: RehydrateSource<State, Event, Command>,
  { request, stream, identity }: CommandCall<Command>,
): Promise<Attempt<State, Event> | undefined> {
  const use = { stream, command: request.command.type };
  const result = await firstResult(source, use, identity, request);
  return result === undefined ? undefined : { kind: 'done', result, loaded: undefined };
}

/** Checked before the decision, which must not run on a state that the caller did not expect. */
function assertExpected<Command extends NewCommand>(
  call: CommandCall<Command>,
  actual: number,
): void {
  if (isExpected(call, actual)) return;
  const { stream } = call;
  const { expected } = call.request;
  throw new MillraceError(
    'VERSION_CONFLICT',
    `stream '${stream}' was expected at ${expected}, but is at ${actual === -1 ? 'none' : actual}`,
    { details: { stream, expected, actual } },
  );
}

function isExpected<Command extends NewCommand>(
  { request: { expected } }: CommandCall<Command>,
  actual: number,
): boolean {
  if (expected === undefined) return true;
  return expected === 'exists' ? actual >= 0 : actual === (expected === 'none' ? -1 : expected);
}

function contextOf<Command extends NewCommand>(
  { request, identity, correlationId, headers, nowMs }: CommandCall<Command>,
  revision: number,
): DecideContext {
  const { tenant, id, user } = request;
  const { commandId } = identity;
  const nextId = identity.decisionIds();
  return { tenant, id, revision, nowMs, commandId, correlationId, user, headers, nextId };
}

interface EnvelopeContext {
  readonly index: number;
  /** Counts from 1, like the envelope; revisions count from 0. */
  readonly version: number;
  readonly aggregate: Pick<Aggregate<unknown, NewEvent, NewCommand>, 'bc' | 'dataSubject' | 'name'>;
}

/** Builds an envelope without validation, because the store validates it. Absent fields must stay absent. */
function toEnvelope<Command extends NewCommand>(
  { type, payload, headers: own }: NewEvent,
  { request, identity, correlationId, headers, nowMs }: CommandCall<Command>,
  { index, version, aggregate }: EnvelopeContext,
): DomainEventEnvelope {
  const { tenant, id, user, command, causationId = identity.commandId } = request;
  const subject = aggregate.dataSubject?.(tenant, id);
  const all: Readonly<Record<string, unknown>> = {
    ...headers,
    ...own,
    ...(subject === undefined ? {} : { [subjectHeader]: subject }),
    [commandHeader]: command.type,
  };
  const { [payloadHashHeader]: _hash, ...withoutHash } = all;
  return {
    type,
    eventId: identity.eventId(index),
    occurredAt: new Date(nowMs).toISOString(),
    correlationId,
    causationId,
    ...(identity.key === undefined ? {} : { idempotencyKey: identity.key }),
    tenant,
    aggregate: { bc: aggregate.bc, type: aggregate.name, id, version },
    ...(user === undefined ? {} : { user }),
    // `forget` does not erase headers, and a hash may be matched with guessed personal data.
    headers: subjectHeader in all ? withoutHash : all,
    payload,
  };
}

function withRevisions<Event extends NewEvent>(
  envelopes: readonly DomainEventEnvelope[],
  stream: string,
  firstRevision: number,
): readonly AggregateEvent<Event>[] {
  return envelopes.map(
    (envelope, index) =>
      ({ ...envelope, stream, revision: firstRevision + index }) as AggregateEvent<Event>,
  );
}

/** The first result of a command with a key; undefined: the stream has no event with this key. */
async function firstResult<State, Event extends NewEvent, Command extends NewCommand>(
  source: RehydrateSource<State, Event, Command>,
  use: KeyUse,
  identity: CommandIdentity,
  { tenant, signal, headers }: Pick<CommandRequest<Command>, 'headers' | 'signal' | 'tenant'>,
): Promise<CommandResult<State, Event> | undefined> {
  const { store, aggregate } = source;
  const recorded: RecordedEvent[] = [];
  // Look up each event by id: retention may hide some of them from a read, and a lookup uses an index.
  for (;;) {
    const event = await store.findEvent(use.stream, identity.eventId(recorded.length));
    if (event === undefined) break;
    recorded.push(event);
  }
  const last = recorded.at(-1);
  if (last === undefined) return undefined;
  assertSameUse(use, { stream: last.stream, command: commandOf(last) }, identity.key);
  assertSamePayload(use, [headers, last.headers], identity.key);
  const { stream } = use;
  const past = await rehydrate(source, { stream, tenant, through: last.revision, signal });
  // If retention hides the history up to that revision, the current state is the closest one available.
  const isKnown = past.complete || past.snapshotRevision !== -1;
  const { state } = isKnown ? past : await rehydrate(source, { stream, tenant, signal });
  const events = recorded.flatMap((event) => aggregate.interpret(toAggregateEvent(event)) ?? []);
  return { state, events, revision: last.revision, position: last.position, isDuplicate: true };
}

function commandOf({ headers }: RecordedEvent): string {
  const command = headers?.[commandHeader];
  return typeof command === 'string' ? command : '';
}

function toAggregateEvent(recorded: RecordedEvent): AggregateEvent {
  const { position: _position, recordedAt: _recordedAt, ...event } = recorded;
  return event;
}
