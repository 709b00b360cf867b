// Writers that are killed at random moments and started again, and what must be true afterwards.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { systemClock } from '../../src/foundation/clock.ts';
import type { EventStore } from '../../src/store/index.ts';
import { startChild, type Child } from '../../src/testing/child-process.ts';
import { assertNoViolations, checkStored } from '../../src/testing/history.ts';
import { seededRandom, type SeededRandom } from '../../src/testing/seeded-random.ts';
import { readPlaces, type EngineName, type Workspace } from './rig.ts';
import type { WriterInput, WriterMessage } from './writer-main.ts';

export interface KillPlan {
  readonly engine: EngineName;
  readonly url: string;
  readonly workspace: Workspace;
  readonly seed: number;
  readonly kills: number;
  /** Writers alive at once. */
  readonly writers: number;
  readonly transactionsPercent: number;
}

export function startWriter(
  input: Omit<WriterInput, 'history'> & { readonly workspace: Workspace },
): Child {
  const { workspace, ...rest } = input;
  const history = join(workspace.folder, `${input.name}.history`);
  const script = new URL('./writer-main.ts', import.meta.url);
  return startChild(script, { input: { ...rest, history } satisfies WriterInput });
}

/** Resolves when the plan's kills are done; nobody writes any more then. */
export async function killWriters(plan: KillPlan): Promise<void> {
  let left = plan.kills;
  await Promise.all(
    Array.from({ length: plan.writers }, async (_, slot) => {
      const random = seededRandom(plan.seed * 100 + slot);
      let generation = 0;
      const start = (): Child => {
        generation += 1;
        const name = `w${slot}-${generation}`;
        return startWriter({
          ...plan,
          name,
          seed: plan.seed + generation,
          streams: 12,
          inFlight: 8,
        });
      };
      let spare = start();
      try {
        while (left > 0) {
          left -= 1;
          await using child = spare;
          // The next one loads its modules while this one writes.
          spare = start();
          await killOne(child, random);
        }
      } finally {
        await spare.kill();
      }
    }),
  );
}

async function killOne(child: Child, random: SeededRandom): Promise<void> {
  await child.message(hasKind('loaded'));
  child.send('go');
  if (random.below(10) > 0) {
    const acknowledged = random.below(40);
    await child.message(hasKind('ready'));
    await child.message(
      (message): message is WriterMessage =>
        acknowledged === 0 || (hasKind('ok')(message) && message.count >= acknowledged),
    );
  }
  // One in ten dies while it opens the store. Half of the others die the moment that they were told
  // of an append: what a store tells too early, it has not written yet.
  if (random.below(2) === 0) await systemClock.sleep(random.next() * 20);
  assert.equal(await child.kill(), 'SIGKILL', child.errors());
}

type OfKind<K extends WriterMessage['kind']> = Extract<WriterMessage, { readonly kind: K }>;

export function hasKind<K extends WriterMessage['kind']>(kind: K) {
  return (message: unknown): message is OfKind<K> => (message as WriterMessage).kind === kind;
}

/** What the writers noted against what the store holds; returns how much was acknowledged. */
export async function checkHistories(
  store: EventStore,
  workspace: Workspace,
  seed: number,
): Promise<number> {
  const history = await workspace.histories();
  assertNoViolations(checkStored(history, await readPlaces(store)), `MILLRACE_SEED=${seed}`);
  return history.filter(({ kind }) => kind === 'ok').length;
}
