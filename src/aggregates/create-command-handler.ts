// Commands in, events out: the loop around one attempt, with turns, retries, snapshots and telemetry.

import type { NewCommand } from '../contracts/define-command.ts';
import type { NewEvent } from '../contracts/envelope.ts';
import { nextAttempt, type BackoffPolicy } from '../foundation/backoff.ts';
import { systemClock } from '../foundation/clock.ts';
import { createIds } from '../foundation/ids.ts';
import { silentObserver } from '../foundation/observer.ts';
import { subjectHeader } from '../store/erasure.ts';
import type { EventStore } from '../store/event-store.ts';
import type { Aggregate } from './aggregate.ts';
import { attemptCommand, type CommandCall } from './attempt-command.ts';
import type {
  AggregateAddress,
  CommandHandler,
  CommandHandlerOptions,
  CommandResult,
} from './command-handler.ts';
import { identifyCommand } from './command-identity.ts';
import { createCommandLanes } from './command-lanes.ts';
import { snapshotLimits } from './encode-state.ts';
import { assertSameUse } from './first-result.ts';
import { observeCommand } from './observe-command.ts';
import { rehydrate, type Rehydrated } from './rehydrate.ts';
import { createRememberedStates } from './remembered-states.ts';
import { createSnapshotTaker } from './snapshot-taker.ts';

export const commandHandlerLimits = {
  conflictRetriesMax: 5,
  /** Commands of this process that wait for the same aggregate. */
  waitingPerAggregateMax: 1_000,
} as const;

/** Writers that collided once must not come back together; the work itself takes milliseconds. */
const conflictBackoff = { initialMs: 1, factor: 2, capMs: 32, jitterMs: 10 } as const;

/**
 * Handles the commands of one kind of aggregate over any event store. A command with an idempotency
 * key has its effect once: across crashes, retries and processes.
 *
 * @example
 * import { memoryEventStore } from 'millrace/adapters/memory';
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
 * await using store = memoryEventStore();
 * await using accounts = createCommandHandler(store, account);
 * const { state, revision } = await accounts.handle({
 *   tenant: 'core',
 *   id: 'a1',
 *   command: deposit({ amount: 12 }),
 *   idempotencyKey: 'core|banking|deposit|order-1',
 * });
 * console.log(state.balance, revision); // 12 0
 */
export function createCommandHandler<State, Event extends NewEvent, Command extends NewCommand>(
  store: EventStore,
  aggregate: Aggregate<State, Event, Command>,
  options: CommandHandlerOptions = {},
): CommandHandler<State, Event, Command> {
  const { ids = createIds(), clock = systemClock, random = Math.random } = options;
  const { observer = silentObserver, snapshots, keyClaims, tenants } = options;
  const { conflictRetriesMax = commandHandlerLimits.conflictRetriesMax } = options;
  const backoff: BackoffPolicy = { ...conflictBackoff, attemptsMax: conflictRetriesMax + 1 };
  const remembered = createRememberedStates(aggregate.snapshot);
  const source = { store, aggregate, remembered, snapshots, observer };
  const lanes = createCommandLanes(commandHandlerLimits.waitingPerAggregateMax);
  const taker = createSnapshotTaker({ aggregate, snapshots, clock, observer });

  const streamOf = ({ tenant, id }: AggregateAddress): string =>
    aggregate.streamOf(tenant, id, tenants);

  /** What was just loaded or decided: for the next command, and for the snapshot that may be due. */
  const keep = (
    stream: string,
    loaded: Rehydrated<State>,
    result?: CommandResult<State, Event>,
  ): void => {
    const isTaken = taker.consider(stream, loaded, result);
    const { state, revision } = result ?? loaded;
    const last = result?.events.at(-1);
    const eventId = last?.eventId ?? loaded.eventId;
    // All events of one command carry the same headers.
    if (eventId === undefined || loaded.personal || last?.headers?.[subjectHeader] !== undefined) {
      remembered.forget(stream);
      return;
    }
    const nowMs = clock.now();
    const { snapshotRevision, sinceMs = nowMs } = isTaken ? { snapshotRevision: revision } : loaded;
    remembered.remember(stream, { state, revision, eventId, snapshotRevision, sinceMs });
  };

  type Call = Omit<CommandCall<Command>, 'nowMs' | 'afterConflict' | 'mayRecall'>;

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
        // A memory that others have outdated costs one of the attempts: there has to be another one.
        mayRecall: conflicts === 0 && conflictRetriesMax > 0,
      });
      if (attempt.kind === 'done') {
        if (attempt.loaded !== undefined) keep(stream, attempt.loaded, attempt.result);
        return attempt.result;
      }
      conflicts += 1;
      observer.count?.('command_conflicts_total', { aggregate: aggregate.name });
      const next = nextAttempt(backoff, {
        failures: conflicts,
        nowMs: clock.now(),
        random: random(),
      });
      if (next.kind === 'give-up') throw attempt.error;
      if (attempt.wasRemembered) continue;
      await clock.sleep(next.atMs - clock.now(), request.signal);
    }
  };

  const handled = async (call: Call): Promise<CommandResult<State, Event>> => {
    try {
      return await handle(call);
    } catch (error) {
      // Whatever it was: the next command reads what is there.
      remembered.forget(call.stream);
      throw error;
    }
  };

  const flush = (deadlineMs: number = snapshotLimits.flushMs): Promise<boolean> =>
    taker.flush(deadlineMs);

  return {
    handle(request) {
      const { correlationId = ids.next() } = request;
      return observeCommand(observer, aggregate, { ...request, correlationId }, (headers) => {
        const stream = streamOf(request);
        const identity = identifyCommand(request, ids);
        const call = { request, stream, identity, correlationId, headers };
        return lanes.run(stream, () => handled(call), request.signal);
      });
    },

    async load(address) {
      const stream = streamOf(address);
      const loaded = await rehydrate(source, { stream, signal: address.signal });
      keep(stream, loaded);
      const { state, revision } = loaded;
      return { state, revision };
    },

    flush: ({ deadlineMs } = {}) => flush(deadlineMs),

    async [Symbol.asyncDispose]() {
      await flush();
    },
  };
}
