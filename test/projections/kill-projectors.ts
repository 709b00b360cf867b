// Kills projecting processes at random, and checks the documents afterwards.

import assert from 'node:assert/strict';
import { systemClock } from '../../src/foundation/clock.ts';
import {
  activeDocuments,
  startProjection,
  switchProjection,
  type ProjectionRoles,
} from '../../src/projections/index.ts';
import { startPosition } from '../../src/store/index.ts';
import { startChild, type Child } from '../../src/testing/child-process.ts';
import { seededRandom } from '../../src/testing/seeded-random.ts';
import {
  messageOfKind,
  newEvent,
  newEvents,
  soakMinutes,
  streamName,
  until,
  type EngineName,
} from '../store/rig.ts';
import { checkItems, itemProjection } from './item-projection.ts';
import type { ProjectorInput, ProjectorMessage } from './projector-main.ts';

export interface ProjectorRig {
  readonly engine: EngineName;
  readonly url: string;
  readonly seed: number;
  readonly db: ProjectionRoles;
}

const streams = 40;
const leaseMs = 600;

function startProjector(
  { engine, url }: ProjectorRig,
  more: Pick<ProjectorInput, 'role' | 'version'> & Partial<ProjectorInput>,
): Child {
  return startChild(new URL('./projector-main.ts', import.meta.url), {
    input: {
      engine,
      url,
      shards: 2,
      leaseMs,
      name: 'none',
      streams,
      ...more,
    } satisfies ProjectorInput,
  });
}

const says = messageOfKind<ProjectorMessage>();

/**
 * Two processes share the shards while events come in. Each kill waits until the process has applied
 * an event and a checkpoint has moved, so there is always progress that the kill could lose.
 */
export async function killLiveProjectors(rig: ProjectorRig): Promise<void> {
  const random = seededRandom(rig.seed);
  const kills = soakMinutes > 0 ? 4 : 1;
  let isOver = false;
  const append = async (): Promise<void> => {
    for (let round = 0; !isOver; round += 1) {
      await Promise.all(
        Array.from({ length: 6 }, (_, each) =>
          rig.db.store.append(
            streamName(random.below(streams)),
            newEvents(`e${round}-${each}`, 1 + random.below(4)),
          ),
        ),
      );
      await systemClock.sleep(30);
    }
  };
  const appending = append();
  const { name } = itemProjection(1);
  const checkpoint = async (): Promise<string> => {
    const state = await rig.db.subscriptions.checkpoints.get(name);
    const moved = (state?.positions ?? []).filter((at) => at !== undefined && at !== startPosition);
    return moved.join();
  };
  const children: Child[] = [];
  const start = (): Child => startProjector(rig, { role: 'run', version: 1 });
  try {
    children.push(start(), start());
    for (let kill = 0; kill < kills; kill += 1) {
      const slot = random.below(children.length);
      const child = children[slot] as Child;
      const before = await checkpoint();
      await child.message(says('working'));
      await until('a checkpoint has moved', async () => (await checkpoint()) !== before);
      await systemClock.sleep(random.below(100));
      await child.kill();
      children[slot] = start();
    }
  } finally {
    isOver = true;
    await appending;
    await Promise.all(children.map((child) => child.kill()));
  }
  await using runner = await startProjection(rig.db, itemProjection(1, 2), { leaseMs });
  await runner.whenCaughtUp();
  await checkItems(rig.db, 1);
  assert.equal(await rig.db.subscriptions.deadLetters.count({ handler: name }), 0);
}

/** Kills a rebuild after some pages; the next process resumes it. */
export async function killRebuilds(rig: ProjectorRig): Promise<void> {
  const random = seededRandom(rig.seed);
  const { total, kills } =
    soakMinutes > 0 ? { total: 3_000, kills: 2 } : { total: 1_000, kills: 1 };
  for (let at = 0; at < total; at += 100) {
    const events = Array.from({ length: 100 }, (_, each) => newEvent(`r${at + each}`));
    await Promise.all(
      events.map((event) => rig.db.store.append(streamName(random.below(streams)), [event])),
    );
  }
  const [one, two] = [itemProjection(1, 2), itemProjection(2, 2)];
  {
    await using runner = await startProjection(rig.db, one);
    await runner.whenCaughtUp();
  }
  const queries = activeDocuments(rig.db, [one.readModel, two.readModel]);
  let killed = 0;
  let folded = 0;
  for (;;) {
    await using child = startProjector(rig, { role: 'rebuild', version: 2 });
    if (killed === kills) {
      const { events } = await child.message(says('done'));
      assert.ok(events < total, `the last rebuild did not resume: ${events}`);
      break;
    }
    // Each process gets further than the previous one, because it resumes.
    const pages = 2 + random.below(4);
    const progress = await child.message(
      (message): message is Extract<ProjectorMessage, { kind: 'progress' }> =>
        says('progress')(message) && message.events >= pages * 50,
    );
    await child.kill();
    assert.equal((await queries.bySet('core', 'all', { limit: 1_000 })).items.length, streams);
    killed += 1;
    folded += progress.events;
  }
  assert.ok(folded < 2 * total, `${folded} events were folded without a result`);
  await checkItems(rig.db, 2);
  await switchProjection(rig.db, two);
  await checkItems(rig.db, 1);
}

/** Inline projections write documents with their events, so no process has to catch up. */
export async function killInlineProjectors(rig: ProjectorRig): Promise<void> {
  const random = seededRandom(rig.seed);
  const kills = soakMinutes > 0 ? 2 : 1;
  for (let kill = 0; kill < kills; kill += 1) {
    const children = ['a', 'b'].map((name) =>
      startProjector(rig, { role: 'inline', version: 1, name: `${name}${kill}` }),
    );
    await Promise.all(children.map((child) => child.message(says('appended'))));
    await systemClock.sleep(random.below(100));
    await Promise.all(children.map((child) => child.kill()));
    await checkSettled(rig);
  }
  const [last] = await rig.db.store.readAll({ direction: 'backwards', limit: 1 }).toArray();
  assert.notEqual(last, undefined, 'no event was appended');
}

/**
 * A server notices late that a client is gone. Until then it commits the running transactions, and readers
 * of all events wait for them. No process is left that could add a missing document.
 */
async function checkSettled({ db }: ProjectorRig): Promise<void> {
  let problem: unknown;
  const isRight = async (): Promise<boolean> => {
    try {
      await checkItems(db, 1);
      return true;
    } catch (error) {
      problem = error;
      return false;
    }
  };
  await until('events and documents agree', isRight).catch(() => {
    throw problem;
  });
}
