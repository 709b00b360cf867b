// Handles commands: a retry loop around one attempt, with per-aggregate queueing, snapshots and telemetry.

import type { NewCommand } from '../contracts/define-command.ts';
import type { NewEvent } from '../contracts/envelope.ts';
import type { TenantLookup } from '../contracts/tenant.ts';
import { nextAttempt, type BackoffPolicy } from '../foundation/backoff.ts';
import { systemClock, type Clock } from '../foundation/clock.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import { createIds, type IdSource } from '../foundation/ids.ts';
import { traceOf, silentObserver, type Observer } from '../foundation/observer.ts';
import { unlessAborted } from '../foundation/async/when-aborted.ts';
import { subjectOf } from '../store/erasure.ts';
import type { EventStore } from '../store/event-store.ts';
import {
  attemptCommand,
  type AggregateAddress,
  type CommandCall,
  type CommandRequest,
  type CommandResult,
} from './attempt-command.ts';
import type { Aggregate } from './define-aggregate.ts';
import { assertSameUse, identifyCommand, type KeyClaims } from './idempotency.ts';
import { rehydrate, type Rehydrated } from './rehydrate.ts';
import { createRememberedStates } from './remembered-states.ts';
import type { SnapshotStore } from './snapshot-store.ts';
import { createSnapshotTaker, snapshotLimits } from './snapshots.ts';

export const commandHandlerLimits = {
  conflictRetriesMax: 5,
  /** Maximum number of commands in this process that wait for the same aggregate. */
  waitingPerAggregateMax: 1_000,
} as const;

export interface LoadedAggregate<State> {
  readonly state: State;
  /** −1: the stream has no events. */
  readonly revision: number;
}

export interface CommandHandler<
  State,
  Event extends NewEvent,
  Command extends NewCommand,
> extends AsyncDisposable {
  handle(request: CommandRequest<Command>): Promise<CommandResult<State, Event>>;
  load(address: AggregateAddress): Promise<LoadedAggregate<State>>;
  /** Waits until scheduled snapshots are saved. False: the deadline passed first. Dispose also waits. */
  flush(options?: { readonly deadlineMs?: number | undefined }): Promise<boolean>;
}

export interface CommandHandlerOptions {
  /** Required for tenants whose names contain a hyphen. */
  readonly tenants?: TenantLookup | undefined;
  readonly ids?: IdSource | undefined;
  readonly clock?: Clock | undefined;
  readonly observer?: Observer | undefined;
  /** Returns a number in [0, 1), for the jitter of retries. */
  readonly random?: (() => number) | undefined;
  /** Maximum number of new decisions after conflicts with concurrent writers. Default: 5. */
  readonly conflictRetriesMax?: number | undefined;
}

/** What a command handler stores; the handle of an engine has these roles. */
export interface CommandRoles {
  readonly store: EventStore;
  readonly snapshots?: SnapshotStore | undefined;
  /** Also rejects an idempotency key that was used with another aggregate. */
  readonly keyClaims?: KeyClaims | undefined;
}

/** Jitter keeps conflicting writers from retrying together; delays are short because a command takes milliseconds. */
const conflictBackoff = { initialMs: 1, factor: 2, capMs: 32, jitterMs: 10 } as const;

/**
 * Handles the commands of one aggregate type on any event store. A command with an idempotency key
 * takes effect once, across crashes, retries and processes.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { createCommandHandler, defineAggregate } from 'millrace/aggregates';
 * import { defineCommand, defineEvent } from 'millrace/contracts';
 * import { z } from 'zod';
 *
 * const deposited = defineEvent('account.deposited.v1', z.object({ amount: z.number() }));
 * const deposit = defineCommand('account.deposit', z.object({ amount: z.number().positive() }));
 * const account = defineAggregate({
 *   bc: 'banking',
 *   name: 'account',
 *   version: 1,
 *   events: [deposited],
 *   commands: [deposit],
 *   initial: { balance: 0 },
 *   evolve: { 'account.deposited.v1': ({ balance }, { amount }) => ({ balance: balance + amount }) },
 *   decide: { 'account.deposit': ({ amount }) => deposited({ amount }) },
 * });
 *
 * await using db = openMemory();
 * await using accounts = createCommandHandler(db, account);
 * const { state, revision } = await accounts.handle({
 *   tenant: 'core',
 *   id: 'a1',
 *   command: deposit({ amount: 12 }),
 *   idempotencyKey: 'core|banking|deposit|order-1',
 * });
 * console.log(state.balance, revision); // 12 0
 */
export function createCommandHandler<State, Event extends NewEvent, Command extends NewCommand>(
  { store, snapshots, keyClaims }: CommandRoles,
  aggregate: Aggregate<State, Event, Command>,
  options: CommandHandlerOptions = {},
): CommandHandler<State, Event, Command> {
  const { ids = createIds(), clock = systemClock, random = Math.random } = options;
  const { observer = silentObserver, tenants } = options;
  const { conflictRetriesMax = commandHandlerLimits.conflictRetriesMax } = options;
  const backoff: BackoffPolicy = { ...conflictBackoff, attemptsMax: conflictRetriesMax + 1 };
  const remembered = createRememberedStates(aggregate.snapshot);
  const source = { store, aggregate, remembered, snapshots, observer };
  const queues = createCommandQueues(commandHandlerLimits.waitingPerAggregateMax);
  const taker = createSnapshotTaker(aggregate.snapshot, {
    snapshots,
    personalData: store.personalData,
    clock,
    observer,
  });

  const streamOf = ({ tenant, id }: AggregateAddress): string =>
    aggregate.streamOf(tenant, id, tenants);

  /** Caches a loaded or decided state for the next command, and takes a snapshot if one is due. */
  const keepState = (
    stream: string,
    loaded: Rehydrated<State>,
    result?: CommandResult<State, Event>,
  ): void => {
    const { state, revision } = result ?? loaded;
    const last = result?.events.at(-1);
    const eventId = last?.eventId ?? loaded.eventId;
    if (eventId === undefined) return remembered.evict(stream);
    const decided = (result?.events ?? []).flatMap((event) => subjectOf(event) ?? []);
    const subjects = new Set([...loaded.subjects, ...decided]);
    const candidate = { ...loaded, state, revision, eventId, subjects };
    const isTaken = taker.consider(stream, candidate);
    if (subjects.size > 0) return remembered.evict(stream);
    const nowMs = clock.now();
    const { snapshotRevision, sinceMs = nowMs } = isTaken ? { snapshotRevision: revision } : loaded;
    const { tenant } = loaded;
    remembered.remember(stream, { tenant, state, revision, eventId, snapshotRevision, sinceMs });
  };

  type Call = Omit<CommandCall<Command>, 'nowMs' | 'afterConflict' | 'mayUseCachedState'>;

  const handle = async (call: Call): Promise<CommandResult<State, Event>> => {
    const { request, stream, identity } = call;
    if (identity.key !== undefined && keyClaims !== undefined) {
      const use = { stream, command: request.command.type };
      assertSameUse(use, await keyClaims.claim(identity.key, use), identity.key);
    }
    for (let conflicts = 0; ;) {
      const nowMs = clock.now();
      const attempt = await attemptCommand(source, {
        ...call,
        nowMs,
        afterConflict: conflicts > 0,
        // A stale cached state costs one attempt, so at least one retry must be left.
        mayUseCachedState: conflicts === 0 && conflictRetriesMax > 0,
      });
      if (attempt.kind === 'done') {
        if (attempt.loaded !== undefined) keepState(stream, attempt.loaded, attempt.result);
        return attempt.result;
      }
      conflicts += 1;
      observer.count?.('command_conflicts_total', labelsOf(aggregate));
      const next = nextAttempt(backoff, {
        failures: conflicts,
        nowMs: clock.now(),
        random: random(),
      });
      if (next.kind === 'give-up') throw attempt.error;
      if (attempt.usedCachedState) continue;
      await clock.sleep(next.atMs - clock.now(), request.signal);
    }
  };

  const handleOrEvict = async (call: Call): Promise<CommandResult<State, Event>> => {
    try {
      return await handle(call);
    } catch (error) {
      // After any error, the next command reads the state from the store.
      remembered.evict(call.stream);
      throw error;
    }
  };

  const flush = (deadlineMs: number = snapshotLimits.flushMs): Promise<boolean> =>
    taker.flush(deadlineMs);

  return {
    async handle(request) {
      const { correlationId = ids.next(), aggregate: named = aggregate.category } = request;
      if (named !== aggregate.category) throw otherAggregate(request.command.type, named);
      return observeCommand(observer, aggregate, { ...request, correlationId }, (headers) => {
        const stream = streamOf(request);
        const identity = identifyCommand(request, ids);
        const call = { request, stream, identity, correlationId, headers };
        return queues.run(stream, () => handleOrEvict(call), request.signal);
      });
    },

    async load(address) {
      const stream = streamOf(address);
      const loaded = await rehydrate(source, { stream, ...address });
      keepState(stream, loaded);
      const { state, revision } = loaded;
      return { state, revision };
    },

    flush: ({ deadlineMs } = {}) => flush(deadlineMs),

    async [Symbol.asyncDispose]() {
      await flush();
    },
  };
}

/** Records one span and one count per command; `work` gets the caller's headers with this trace context. */
async function observeCommand<State, Event extends NewEvent, Command extends NewCommand>(
  observer: Observer,
  aggregate: AggregateLabels,
  { tenant, command, correlationId, headers = {} }: CommandRequest<Command>,
  work: (headers: Readonly<Record<string, unknown>>) => Promise<CommandResult<State, Event>>,
): Promise<CommandResult<State, Event>> {
  const attributes = { ...labelsOf(aggregate), command: command.type, tenant, correlationId };
  const span = observer.span?.('handle command', attributes, traceOf(headers));
  const count = (outcome: string): void =>
    observer.count?.('commands_handled_total', { ...attributes, outcome });
  try {
    const result = await work({ ...headers, ...span?.context });
    count(result.isDuplicate ? 'duplicate' : result.events.length === 0 ? 'unchanged' : 'accepted');
    return result;
  } catch (error) {
    const rejected = hasCode(error, 'COMMAND_REJECTED');
    count(rejected ? 'rejected' : hasCode(error, 'VERSION_CONFLICT') ? 'conflict' : 'failed');
    // A rejected command is a normal outcome, not an error in the trace.
    if (!rejected) span?.fail(error);
    throw error;
  } finally {
    span?.end();
  }
}

type AggregateLabels = Pick<Aggregate<unknown, NewEvent, NewCommand>, 'bc' | 'name' | 'version'>;

function labelsOf({ bc, name, version }: AggregateLabels): Readonly<Record<string, string>> {
  return { bc, aggregate: name, version: String(version) };
}

/** Runs the commands of one aggregate one at a time, because concurrent appends would conflict. */
interface CommandQueues {
  /** Runs the work after all earlier work for the same stream has succeeded or failed. */
  run<Result>(
    stream: string,
    work: () => Promise<Result>,
    signal: AbortSignal | undefined,
  ): Promise<Result>;
}

interface Queue {
  last: Promise<void>;
  length: number;
}

function createCommandQueues(lengthMax: number): CommandQueues {
  const queues = new Map<string, Queue>();
  return {
    async run(stream, work, signal) {
      const queue = queues.get(stream) ?? { last: Promise.resolve(), length: 0 };
      if (queue.length >= lengthMax) throw busy(stream, lengthMax);
      const turn = queue.last;
      const { promise: finished, resolve: finish } = Promise.withResolvers<void>();
      // Chain after `turn`: when a waiting command is aborted, the next one must still wait its turn.
      queue.last = turn.then(() => finished);
      queue.length += 1;
      queues.set(stream, queue);
      try {
        await unlessAborted(turn, signal);
        return await work();
      } finally {
        finish();
        queue.length -= 1;
        if (queue.length === 0) queues.delete(stream);
      }
    },
  };
}

function busy(stream: string, lengthMax: number): Error {
  return new MillraceError('AGGREGATE_BUSY', `${lengthMax} commands already wait for '${stream}'`, {
    details: { stream, lengthMax },
  });
}

function otherAggregate(command: string, named: string): Error {
  return new MillraceError(
    'COMMAND_UNKNOWN',
    `this handler does not accept '${command}' for '${named}'`,
    { details: { command, aggregate: named } },
  );
}
