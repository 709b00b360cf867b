// Kills writers at random moments, restarts them, and checks the store afterwards.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { systemClock } from '../../src/foundation/clock.ts';
import type { EventStore } from '../../src/store/index.ts';
import { startChild, type Child } from '../../src/testing/child-process.ts';
import { assertNoViolations, checkStored } from '../../src/testing/history.ts';
import { seededRandom, type SeededRandom } from '../../src/testing/seeded-random.ts';
import { messageOfKind, readLocations, type EngineName, type Workspace } from './rig.ts';
import type { WriterInput, WriterMessage } from './writer-main.ts';

export const hasKind = messageOfKind<WriterMessage>();

export interface KillPlan {
  readonly engine: EngineName;
  readonly url: string;
  readonly workspace: Workspace;
  readonly seed: number;
  readonly kills: number;
  /** The number of concurrent writers. */
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

/**
 * Resolves after all kills, when no process writes any more, to the minimum number of acknowledged
 * appends.
 */
export async function killWriters(plan: KillPlan): Promise<number> {
  let left = plan.kills;
  let acknowledged = 0;
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
          // The next writer loads its modules while this one writes.
          if (left > 0) spare = start();
          // The last writer is always killed after appends.
          acknowledged += await killOne(child, { random, whileOpening: left > 0 });
        }
      } finally {
        await spare.kill();
      }
    }),
  );
  assert.ok(acknowledged > 0);
  return acknowledged;
}

/** Resolves to the number of appends that were acknowledged to the writer. */
async function killOne(
  child: Child,
  { random, whileOpening }: { readonly random: SeededRandom; readonly whileOpening: boolean },
): Promise<number> {
  await child.message(hasKind('loaded'));
  child.send('go');
  // One writer in ten is killed while it opens the store.
  const isOpening = random.below(10) === 0 && whileOpening;
  const enough = isOpening ? 0 : 1 + random.below(40);
  if (!isOpening) {
    await child.message(
      (message): message is WriterMessage => hasKind('ok')(message) && message.count >= enough,
    );
  }
  // Half of the writers are killed immediately after an acknowledgement, which detects a store that
  // acknowledges before it writes.
  if (random.below(2) === 0) await systemClock.sleep(random.next() * 20);
  assert.equal(await child.kill(), 'SIGKILL', child.errors());
  return enough;
}

/** Waits until all writers have done their operations. */
export async function runWriters(writers: readonly Child[]): Promise<void> {
  try {
    for (const writer of writers) await writer.message(hasKind('loaded'));
    for (const writer of writers) writer.send('go');
    for (const writer of writers) await writer.message(hasKind('done'));
  } finally {
    for (const writer of writers) await writer.kill();
  }
}

/** Compares the histories of the writers with the store; returns the number of acknowledged operations. */
export async function checkHistories(
  store: EventStore,
  workspace: Workspace,
  seed: number,
): Promise<number> {
  const history = await workspace.histories();
  assertNoViolations(checkStored(history, await readLocations(store)), `MILLRACE_SEED=${seed}`);
  return history.filter(({ kind }) => kind === 'ok').length;
}
