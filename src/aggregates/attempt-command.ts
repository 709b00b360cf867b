// One attempt at a command: load, recognise a repeat, decide, append. Conflicts are a value, so that
// whether to try again is decided in one place.

import type { NewCommand } from '../contracts/define-command.ts';
import type { DomainEventEnvelope, NewEvent } from '../contracts/envelope.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import type { AggregateEvent, DecideContext } from './aggregate.ts';
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
}

export type Attempt<State, Event extends NewEvent> =
  | {
      readonly kind: 'done';
      readonly result: CommandResult<State, Event>;
      /** What the decision was taken on; undefined for a repeat. */
      readonly loaded: Rehydrated<State> | undefined;
    }
  | { readonly kind: 'conflict'; readonly error: MillraceError };

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
  const { store, aggregate } = source;
  const { request, stream, identity } = call;
  const { command, signal } = request;
  const use = { stream, command: command.type };
  const isKeyed = identity.key !== undefined;

  const loaded = await rehydrate(source, {
    stream,
    watchFor: isKeyed ? identity.eventId(0) : undefined,
    afterConflict: call.afterConflict,
    signal,
  });
  const { revision } = loaded;
  if (isKeyed && (loaded.sawWatched || !loaded.complete)) {
    const result = await firstResult(source, use, identity, signal);
    if (result !== undefined) return { kind: 'done', result, loaded: undefined };
  }
  assertExpected(call, revision);

  const decided = aggregate.decide(command, loaded.state, contextOf(call, revision));
  if (decided.length === 0) {
    const { state } = loaded;
    const result = { state, events: [], revision, position: undefined, repeated: false };
    return { kind: 'done', result, loaded };
  }
  const envelopes = decided.map((event, index) =>
    toEnvelope(event, call, { index, version: revision + index + 2, aggregate }),
  );
  // Before the append: an event that evolve cannot take must not get into the stream.
  const state = place<Event>(envelopes, stream, revision + 1).reduce<State>(
    (before, event) => aggregate.evolve(before, event),
    loaded.state,
  );
  try {
    const appended = await store.append(stream, envelopes, {
      expected: revision === -1 ? 'none' : revision,
      ...(signal === undefined ? {} : { signal }),
    });
    if (isKeyed && appended.repeated) {
      // Another process was faster with the same command; what it decided is what happened.
      const result = await firstResult(source, use, identity, signal);
      if (result !== undefined) return { kind: 'done', result, loaded: undefined };
    }
    const events = place<Event>(envelopes, stream, appended.revision - envelopes.length + 1);
    const { revision: last, position } = appended;
    const result = { state, events, revision: last, position, repeated: false };
    return { kind: 'done', result, loaded };
  } catch (error) {
    if (hasCode(error, 'VERSION_CONFLICT')) return { kind: 'conflict', error };
    throw error;
  }
}

/** Checked here and not by the append: the decision must not be taken on what nobody expected. */
function assertExpected<Command extends NewCommand>(
  { stream, request: { expected } }: CommandCall<Command>,
  actual: number,
): void {
  const fits =
    expected === undefined ||
    (expected === 'exists' ? actual >= 0 : actual === (expected === 'none' ? -1 : expected));
  if (fits) return;
  throw new MillraceError(
    'VERSION_CONFLICT',
    `stream '${stream}' was expected at ${expected} and is at ${actual === -1 ? 'none' : actual}`,
    { details: { stream, expected, actual } },
  );
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
  readonly aggregate: { readonly bc: string; readonly name: string };
}

/** The store checks what it is given, so nothing is checked twice here. */
function toEnvelope<Command extends NewCommand>(
  { type, payload }: NewEvent,
  { request, identity, correlationId, headers, nowMs }: CommandCall<Command>,
  { index, version, aggregate }: EventPlace,
): DomainEventEnvelope {
  const { tenant, id, user, command, causationId = identity.commandId } = request;
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
    headers: { ...headers, [commandHeader]: command.type },
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
