import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { openMemory } from '../engines/memory/index.ts';
import type { NewEvent } from '../contracts/envelope.ts';
import { MillraceError } from '../foundation/error.ts';
import type { CommandResult } from './attempt-command.ts';
import { createCommandHandler } from './create-command-handler.ts';
import {
  accountWith,
  deposit,
  deposited,
  open,
  rename,
  withdraw,
  withdrawn,
  type AccountCommand,
  type AccountEvent,
  type AccountState,
} from '../testing/support/aggregates/example-account.ts';
import {
  appendDirectly,
  instantClock,
  tapped,
} from '../testing/support/aggregates/test-doubles.ts';
import { propertyRuns } from '../testing/property-runs.ts';

const stream = 'banking.account.v1-core-a1';
const at = { tenant: 'core', id: 'a1' } as const;
const conflictRetriesMax = 2;
const amount = fc.integer({ min: 1, max: 120 });
const owner = fc.constantFrom('ada', 'bob');

const command: fc.Arbitrary<AccountCommand> = fc.oneof(
  { weight: 1, arbitrary: owner.map((name) => open({ owner: name })) },
  { weight: 4, arbitrary: amount.map((each) => deposit({ amount: each })) },
  { weight: 4, arbitrary: amount.map((each) => withdraw({ amount: each })) },
  { weight: 1, arbitrary: owner.map((name) => rename({ owner: name })) },
);

interface Step {
  readonly command: AccountCommand;
  /** Few distinct keys, so keys repeat with the same command or another one. */
  readonly key: number | undefined;
  /** Events of another writer, one appended before each of our appends. */
  readonly rivals: readonly NewEvent[];
  /** The append succeeds, but its result is lost. */
  readonly crash: boolean;
  readonly restart: boolean;
}

const step: fc.Arbitrary<Step> = fc.record({
  command,
  key: fc.option(fc.integer({ min: 0, max: 5 }), { nil: undefined, freq: 2 }),
  rivals: fc.array(
    fc.oneof(
      amount.map((each) => deposited({ amount: each })),
      amount.map((each) => withdrawn({ amount: each })),
    ),
    { maxLength: conflictRetriesMax + 1 },
  ),
  crash: fc.boolean(),
  restart: fc.boolean(),
});

type Outcome =
  | { readonly kind: 'failed'; readonly code: string }
  | {
      readonly kind: 'done';
      readonly state: AccountState;
      readonly events: readonly NewEvent[];
      readonly revision: number;
      readonly isDuplicate: boolean;
    };

const aggregate = accountWith({ every: 3 });
const context = { tenant: 'core', id: 'a1', nowMs: 0, commandId: '', correlationId: '' };

/** The account as a list of events in memory, without a store, snapshots or concurrency. */
class Model {
  private readonly history: NewEvent[] = [];
  private readonly done = new Map<number, Outcome & { readonly command: string }>();

  handle({ command: wanted, key, rivals, crash }: Step): Outcome {
    const first = key === undefined ? undefined : this.done.get(key);
    if (first?.kind === 'done') {
      if (first.command !== wanted.type) return { kind: 'failed', code: 'COMMAND_KEY_REUSED' };
      const { command: _command, ...outcome } = first;
      return { ...outcome, isDuplicate: true };
    }
    const waiting = [...rivals];
    for (let conflicts = 0; ; conflicts += 1) {
      if (conflicts > conflictRetriesMax) return { kind: 'failed', code: 'VERSION_CONFLICT' };
      const decided = this.decide(wanted);
      if (decided === undefined) return { kind: 'failed', code: 'COMMAND_REJECTED' };
      if (decided.length === 0) return this.outcome([]);
      const rival = waiting.shift();
      if (rival === undefined) {
        this.history.push(...decided);
        const outcome = this.outcome(decided);
        if (key !== undefined) this.done.set(key, { ...outcome, command: wanted.type });
        return crash ? { kind: 'failed', code: 'CRASH' } : outcome;
      }
      this.history.push(rival);
    }
  }

  get state(): AccountState {
    return this.history.reduce<AccountState>(
      (state, { type, payload }) =>
        aggregate.evolve(state, { ...envelope, type, payload, stream, revision: 0 }),
      aggregate.initial,
    );
  }

  get revision(): number {
    return this.history.length - 1;
  }

  private decide(wanted: AccountCommand): readonly AccountEvent[] | undefined {
    try {
      const { revision } = this;
      return aggregate.decide(wanted, this.state, { ...context, revision, nextId: () => '' });
    } catch {
      return undefined;
    }
  }

  private outcome(events: readonly NewEvent[]): Outcome {
    const { state, revision } = this;
    return { kind: 'done', state, events, revision, isDuplicate: false };
  }
}

const envelope = {
  eventId: '',
  occurredAt: '',
  correlationId: '',
  tenant: 'core',
  aggregate: { bc: 'banking', type: 'account', id: 'a1' },
};

function toOutcome(result: CommandResult<AccountState, AccountEvent>): Outcome {
  const { state, revision, isDuplicate } = result;
  const events = result.events.map(({ type, payload }) => ({ type, payload }));
  return { kind: 'done', state, events, revision, isDuplicate };
}

function toFailure(error: unknown): Outcome {
  if (error instanceof MillraceError) return { kind: 'failed', code: error.code };
  if (error instanceof Error && error.message === 'CRASH') return { kind: 'failed', code: 'CRASH' };
  throw error;
}

test('the handler matches an in-memory model: duplicates, conflicts, crashes, restarts', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      await using db = openMemory();
      const snapshots = openMemory().snapshots;
      const clock = instantClock();
      const model = new Model();
      let rivals: NewEvent[] = [];
      let crash = false;
      const store = tapped(db.store, {
        async beforeAppend() {
          const rival = rivals.shift();
          if (rival !== undefined) await appendDirectly(db.store, stream, [rival]);
        },
        afterAppend() {
          if (crash) throw new Error('CRASH');
        },
      });
      const start = () =>
        createCommandHandler({ store, snapshots }, aggregate, { clock, conflictRetriesMax });
      let handler = start();
      for (const each of steps) {
        if (each.restart) {
          await handler[Symbol.asyncDispose]();
          handler = start();
        }
        rivals = [...each.rivals];
        crash = each.crash;
        const { key } = each;
        const keyed = key === undefined ? {} : { idempotencyKey: `core|banking|any|${key}` };
        const outcome = await handler
          .handle({ ...at, command: each.command, ...keyed })
          .then(toOutcome, toFailure);
        assert.deepEqual(outcome, model.handle(each));
      }
      await handler.flush();
      const { state, revision } = model;
      assert.deepEqual(await handler.load(at), { state, revision });
      await using unaided = createCommandHandler({ store: db.store }, aggregate);
      assert.deepEqual(await unaided.load(at), { state, revision });
    }),
    { numRuns: propertyRuns(300) },
  );
});

test('each key takes effect once, however many handlers race for it', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 2, maxLength: 10 }),
      async (scheduler, keys) => {
        await using db = openMemory();
        await using opener = createCommandHandler(db, aggregate);
        await opener.handle({ ...at, command: open({ owner: 'ada' }) });
        // The scheduler decides which handler continues at each read and append.
        const turn = async (): Promise<void> => scheduler.schedule(Promise.resolve());
        const store = tapped(db.store, { beforeAppend: turn, onRead: turn, onFind: turn });
        const snapshots = openMemory().snapshots;
        const results = keys.map((key) => {
          const options = { snapshots, clock: instantClock(), conflictRetriesMax: 50 };
          return createCommandHandler({ store }, aggregate, options).handle({
            ...at,
            command: deposit({ amount: 10 ** key }),
            idempotencyKey: `core|banking|deposit|${key}`,
          });
        });
        const settled = await scheduler.waitFor(Promise.all(results));
        const distinct = new Set(keys);
        const { state, revision } = await opener.load(at);
        assert.equal(revision, distinct.size);
        assert.equal(
          state.balance,
          [...distinct].reduce((sum, key) => sum + 10 ** key, 0),
        );
        assert.equal(settled.filter(({ isDuplicate }) => !isDuplicate).length, distinct.size);
        for (const key of distinct) {
          const same = settled.filter((_result, index) => keys[index] === key);
          for (const result of same) {
            assert.deepEqual({ ...result, isDuplicate: true }, { ...same[0], isDuplicate: true });
          }
        }
      },
    ),
    { numRuns: propertyRuns(150) },
  );
});
