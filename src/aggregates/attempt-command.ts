// One attempt at a command: recall or load, recognise a repeat, decide, append. Conflicts are a value, so that
// whether to try again is decided in one place.

import type { NewCommand } from '../contracts/define-command.ts';
import type { DomainEventEnvelope, NewEvent } from '../contracts/envelope.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import { subjectHeader } from '../store/erasure.ts';
import type { Aggregate, AggregateEvent, DecideContext } from './aggregate.ts';
import type { CommandIdentity } from './command-identity.ts';
import type { CommandRequest, CommandResult } from './command-handler.ts';
import { commandHeader, firstResult } from './first-result.ts';
import { rehydrate, type Rehydrated, type RehydrateSource } from './rehydrate.ts';

export interface CommandCall<Command extends NewCommand> {
  readonly request: CommandRequest<Command>;
  readonly stream: string;
  readonly identity: CommandIdentity;
  readonly correlationId: string;
  /** The request's, with the trace that this command is part of. */
  readonly headers: Readonly<Record<string, unknown>>;
  readonly nowMs: number;
  readonly afterConflict: boolean;
  /** False: it is decided on what is read now. */
  readonly mayRecall: boolean;
}

export type Attempt<State, Event extends NewEvent> =
  | {
      readonly kind: 'done';
      readonly result: CommandResult<State, Event>;
      /** What the decision was taken on; undefined for a repeat. */
      readonly loaded: Rehydrated<State> | undefined;
    }
  | {
      readonly kind: 'conflict';
      readonly error: MillraceError;
      /** What it was decided on was remembered, not read: nobody need wait before the next attempt. */
      readonly wasRemembered: boolean;
    };

/**
 * A repeat must be recognised before the decision, because today's state may refuse what was fine
 * the first time ('already paid'), or allow it once more. Looking every key up would cost each
 * first-time command a read, so the history that is loaded anyway is watched for the key's first
 * event. Only where part of it was not read (behind a snapshot, hidden by retention, deleted: nothing
 * to read may mean that) is the key looked up, by event id. Whoever comes between this load and the
 * append causes a conflict there.
 */
export async function attemptCommand<State, Event extends NewEvent, Command extends NewCommand>(
  source: RehydrateSource<State, Event, Command>,
  call: CommandCall<Command>,
): Promise<Attempt<State, Event>> {
  const { request, stream, identity } = call;
  const quick = call.mayRecall ? await attemptRemembered(source, call) : undefined;
  if (quick !== undefined) return quick;
  const isKeyed = identity.key !== undefined;

  const loaded = await rehydrate(source, {
    stream,
    watchFor: isKeyed ? identity.eventId(0) : undefined,
    afterConflict: call.afterConflict,
    signal: request.signal,
  });
  if (isKeyed && (loaded.sawWatched || !loaded.complete)) {
    const result = await repeatOf(source, call);
    if (result !== undefined) return result;
  }
  assertExpected(call, loaded.revision);
  const decision = decide(source.aggregate, call, loaded);
  if (decision.envelopes.length === 0) {
    const { state, revision } = loaded;
    const result = { state, events: [], revision, position: undefined, repeated: false };
    return { kind: 'done', result, loaded };
  }
  return append(source, call, { loaded, decision });
}

/**
 * Decides on what is remembered, without a read, where the append itself finds out whether the stream is
 * still there. Undefined: that is not enough. Whatever is not appended (a refusal, nothing to do) is
 * decided on the stream as it is, as others may have changed it.
 */
async function attemptRemembered<State, Event extends NewEvent, Command extends NewCommand>(
  source: RehydrateSource<State, Event, Command>,
  call: CommandCall<Command>,
): Promise<Attempt<State, Event> | undefined> {
  const { store, aggregate, remembered } = source;
  if (store.capabilities.followingAppend !== true) return undefined;
  const known = remembered?.recall(call.stream);
  if (known === undefined || !isExpected(call, known.revision)) return undefined;
  if (call.identity.key !== undefined) {
    const repeat = await repeatOf(source, call);
    if (repeat !== undefined) return repeat;
  }
  const loaded = { ...known, complete: false, sawWatched: false, personal: false };
  const decision = decisionOn(aggregate, call, loaded);
  if (decision === undefined || decision.envelopes.length === 0) return undefined;
  return append(source, call, { loaded, decision, follows: known.eventId });
}

/** Undefined: refused. */
function decisionOn<State, Event extends NewEvent, Command extends NewCommand>(
  aggregate: Aggregate<State, Event, Command>,
  call: CommandCall<Command>,
  loaded: Rehydrated<State>,
): Decision<State> | undefined {
  try {
    return decide(aggregate, call, loaded);
  } catch {
    // Thrown again by the decision on the stream as it is, if that is one, too.
    return undefined;
  }
}

interface Decision<State> {
  readonly envelopes: readonly DomainEventEnvelope[];
  /** With these events. */
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
  // Before the append: an event that evolve cannot take must not get into the stream.
  const state = place<Event>(envelopes, call.stream, revision + 1).reduce<State>(
    (each, event) => aggregate.evolve(each, event),
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
    readonly follows?: string;
  },
): Promise<Attempt<State, Event>> {
  const { stream, identity, request } = call;
  const { signal } = request;
  const { envelopes, state } = decision;
  try {
    const appended = await source.store.append(stream, envelopes, {
      expected: loaded.revision === -1 ? 'none' : loaded.revision,
      ...(follows === undefined ? {} : { follows }),
      ...(signal === undefined ? {} : { signal }),
    });
    if (identity.key !== undefined && appended.repeated) {
      // Another process was faster with the same command; what it decided is what happened.
      const result = await repeatOf(source, call);
      if (result !== undefined) return result;
    }
    const events = place<Event>(envelopes, stream, appended.revision - envelopes.length + 1);
    const { revision, position } = appended;
    const result = { state, events, revision, position, repeated: false };
    return { kind: 'done', result, loaded };
  } catch (error) {
    if (hasCode(error, 'VERSION_CONFLICT')) {
      return { kind: 'conflict', error, wasRemembered: follows !== undefined };
    }
    throw error;
  }
}

async function repeatOf<State, Event extends NewEvent, Command extends NewCommand>(
  source: RehydrateSource<State, Event, Command>,
  { request, stream, identity }: CommandCall<Command>,
): Promise<Attempt<State, Event> | undefined> {
  const use = { stream, command: request.command.type };
  const result = await firstResult(source, use, identity, request.signal);
  return result === undefined ? undefined : { kind: 'done', result, loaded: undefined };
}

/** Checked here and not by the append: the decision must not be taken on what nobody expected. */
function assertExpected<Command extends NewCommand>(
  call: CommandCall<Command>,
  actual: number,
): void {
  if (isExpected(call, actual)) return;
  const { stream } = call;
  const { expected } = call.request;
  throw new MillraceError(
    'VERSION_CONFLICT',
    `stream '${stream}' was expected at ${expected} and is at ${actual === -1 ? 'none' : actual}`,
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
  const known = { tenant, id, revision, nowMs, commandId, correlationId, headers, nextId };
  return user === undefined ? known : { ...known, user };
}

interface EventPlace {
  readonly index: number;
  /** Counts from 1, as the envelope does; revisions count from 0. */
  readonly version: number;
  readonly aggregate: Pick<Aggregate<unknown, NewEvent, NewCommand>, 'bc' | 'dataSubject' | 'name'>;
}

/** The store checks what it is given, so nothing is checked twice here. */
function toEnvelope<Command extends NewCommand>(
  { type, payload }: NewEvent,
  { request, identity, correlationId, headers, nowMs }: CommandCall<Command>,
  { index, version, aggregate }: EventPlace,
): DomainEventEnvelope {
  const { tenant, id, user, command, causationId = identity.commandId } = request;
  const subject = aggregate.dataSubject?.(tenant, id);
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
    headers: {
      ...headers,
      ...(subject === undefined ? {} : { [subjectHeader]: subject }),
      [commandHeader]: command.type,
    },
    payload,
  };
}

function place<Event extends NewEvent>(
  envelopes: readonly DomainEventEnvelope[],
  stream: string,
  firstRevision: number,
): readonly AggregateEvent<Event>[] {
  return envelopes.map(
    (envelope, index) =>
      ({ ...envelope, stream, revision: firstRevision + index }) as AggregateEvent<Event>,
  );
}
