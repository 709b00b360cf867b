import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import {
  assertLost,
  at,
  newLetter,
  acquireShard,
  takeOverShard,
  type StorageCases,
} from './fixture.ts';

const atMs = Date.UTC(2025, 8, 30, 11);

export const deadLetterCases: StorageCases = {
  async 'returns a dead letter as stored, and marks its event as done'({ storage }) {
    const fence = await acquireShard(storage);
    const added = newLetter(fence);
    const { letter } = await storage.deadLetters.add(fence, added);
    assert.deepEqual(letter, {
      ...added,
      status: 'pending',
      replayedAt: null,
      replayedBy: null,
      notes: '',
      replayRequestedAt: null,
      discardedAt: null,
      discardedBy: null,
      discardReason: null,
    });
    assert.deepEqual(await storage.deadLetters.get(added.id), letter);
    const { done, blocked } = await storage.checkpoints.load(fence);
    assert.deepEqual([done, blocked], [[added.position], []]);
    assert.equal(await storage.deadLetters.get(randomUUID()), undefined);
  },

  async 'stores one dead letter per handler and event'({ storage }) {
    const [one, two] = [await acquireShard(storage), await acquireShard(storage)];
    const eventId = randomUUID();
    const { deadLetters } = storage;
    const { letter: first } = await deadLetters.add(one, newLetter(one, { eventId }));
    const { letter: other } = await deadLetters.add(two, newLetter(two, { eventId }));
    assert.notEqual(first.id, other.id);
    const cause = { name: 'Error', fingerprint: 'fedcba987654' };
    const again = newLetter(one, { eventId, error: 'worse', cause, attempts: 2 });
    const { letter: reopened } = await deadLetters.add(one, again);
    assert.equal(reopened.id, first.id);
    assert.deepEqual([reopened.attempts, reopened.error, reopened.history.length], [8, 'worse', 2]);
    assert.deepEqual(reopened.cause, cause);
    assert.equal(await deadLetters.count({ handler: one.subscription }), 1);
    // This call is a retry of the first one, whose response was lost; it is not a replay.
    assert.equal((await deadLetters.add(one, again)).isNew, true);
    await deadLetters.replay({ ids: [first.id] }, { by: 'ada', atMs });
    assert.equal((await deadLetters.add(one, again)).isNew, false);
  },

  async 'lists the dead letters that park their aggregate'({ storage }) {
    const fence = await acquireShard(storage);
    const { deadLetters } = storage;
    const handler = fence.subscription;
    const parked = newLetter(fence, { parked: true });
    await deadLetters.add(fence, parked);
    await deadLetters.add(fence, newLetter(fence, { stream: 'banking.account.v1-core-a-2' }));
    const idsOf = async (isParked: boolean | undefined): Promise<readonly string[]> =>
      (await deadLetters.list({ handler, parked: isParked })).map(({ id }) => id);
    assert.deepEqual(await idsOf(true), [parked.id]);
    assert.equal((await idsOf(false)).includes(parked.id), false);
    assert.equal((await idsOf(undefined)).length, 2);
    assert.equal(await deadLetters.count({ handler, parked: true }), 1);
  },

  async 'a parked dead letter blocks its aggregate until it is replayed'({ storage }) {
    const fence = await acquireShard(storage);
    const { deadLetters, waiting } = storage;
    const { letter } = await deadLetters.add(fence, newLetter(fence, { parked: true }));
    assert.deepEqual(await waiting.due(fence, Number.MAX_SAFE_INTEGER, 9), []);
    assert.deepEqual((await storage.checkpoints.load(fence)).blocked, [letter.stream]);
    assert.equal(await deadLetters.replay({ ids: [letter.id] }, { by: 'ada', atMs }), 1);
    assert.deepEqual(await waiting.due(fence, 0, 9), [letter.stream]);
    const asked = await deadLetters.get(letter.id);
    assert.deepEqual(
      [asked?.status, asked?.replayedBy, asked?.replayRequestedAt],
      ['pending', 'ada', new Date(atMs).toISOString()],
    );
    const { stream, position, eventId } = letter;
    await storage.settle(fence, { kind: 'drained', stream, position, eventId, atMs });
    const replayed = await deadLetters.get(letter.id);
    assert.deepEqual(
      [replayed?.status, replayed?.replayedAt, replayed?.replayRequestedAt],
      ['replayed', new Date(atMs).toISOString(), null],
    );
    assert.equal(await deadLetters.replay({ ids: [letter.id] }, { by: 'ada', atMs }), 0);
    assert.equal(await waiting.count(fence.subscription), 0);
  },

  async 'damaged rows are listed, attempted, replayed and discarded'({ storage, fixture }) {
    if (fixture.damage === undefined) return;
    const [fence, other] = [await acquireShard(storage), await acquireShard(storage)];
    const { checkpoints, deadLetters, waiting } = storage;
    const added = newLetter(fence);
    await deadLetters.add(fence, added);
    await deadLetters.add(
      fence,
      newLetter(fence, { position: at(8), createdAt: '2025-09-30T11:00:00.000Z' }),
    );
    const parked = { position: at(9), eventId: 'e9', failures: 2, history: added.history };
    await waiting.park(fence, [{ stream: added.stream, due: 0, events: [parked] }]);
    await checkpoints.open(fence.subscription, 1, { tenant: 'core' });
    await fixture.damage(fence.subscription, '[{"a');

    const filter = { handler: fence.subscription };
    const [damaged] = await deadLetters.list(filter);
    assert.deepEqual(
      [damaged?.id, damaged?.payload, damaged?.history, damaged?.cause, damaged?.error],
      [added.id, null, [], null, `${added.error} (the stored payload is damaged)`],
    );
    assert.deepEqual(
      (await waiting.next(fence, added.stream, 9)).map(({ position, history }) => [
        position,
        history,
      ]),
      [[parked.position, []]],
    );
    const states = await checkpoints.list();
    for (const { subscription } of [fence, other]) {
      assert.ok(states.some((state) => state.subscription === subscription));
    }
    const again = await deadLetters.add(fence, { ...added, attempts: 1 });
    assert.deepEqual([again.letter.attempts, again.letter.history], [7, added.history]);
    assert.equal(await deadLetters.replay({ ids: [added.id] }, { by: 'ada', atMs }), 1);
    assert.equal(await deadLetters.discard(filter, { by: 'ada', reason: 'damaged', atMs }), 2);
  },

  async 'a failed replay reopens the dead letter'({ storage }) {
    const fence = await acquireShard(storage);
    const { deadLetters, waiting } = storage;
    const added = newLetter(fence);
    await deadLetters.add(fence, added);
    await deadLetters.replay({ handler: fence.subscription }, { by: 'ada', atMs });
    assert.equal(await waiting.count(fence.subscription), 1);
    const { letter: again } = await deadLetters.add(fence, { ...added, id: randomUUID() });
    assert.deepEqual(
      [again.status, again.replayRequestedAt, again.attempts],
      ['pending', null, 12],
    );
    assert.equal(await waiting.count(fence.subscription), 0);
  },

  async 'a discarded dead letter keeps its reason and unblocks later events'({ storage }) {
    const fence = await acquireShard(storage);
    const { deadLetters, waiting } = storage;
    const { letter } = await deadLetters.add(fence, newLetter(fence, { parked: true }));
    const behind = { position: at(9), eventId: 'e9', failures: 0, history: [] };
    await waiting.park(fence, [{ stream: letter.stream, due: 'queued', events: [behind] }]);
    assert.deepEqual(await waiting.due(fence, Number.MAX_SAFE_INTEGER, 9), []);
    const request = { by: 'ada', reason: 'a test payment', atMs };
    assert.equal(await deadLetters.discard({ ids: [letter.id] }, request), 1);
    assert.equal(await deadLetters.discard({ ids: [letter.id] }, request), 0);
    const discarded = await deadLetters.get(letter.id);
    assert.deepEqual(
      [discarded?.status, discarded?.discardedBy, discarded?.discardReason, discarded?.discardedAt],
      ['discarded', 'ada', 'a test payment', new Date(atMs).toISOString()],
    );
    assert.deepEqual(await waiting.due(fence, 0, 9), [letter.stream]);
    assert.deepEqual(await waiting.next(fence, letter.stream, 9), [behind]);
  },

  async 'lists dead letters by filter, page by page, oldest first'({ storage }) {
    const fence = await acquireShard(storage);
    const { deadLetters } = storage;
    const handler = fence.subscription;
    for (let index = 0; index < 12; index += 1) {
      await deadLetters.add(
        fence,
        newLetter(fence, {
          createdAt: new Date(atMs + Math.floor(index / 3)).toISOString(),
          eventType: index % 2 === 0 ? 'a.b.v1' : 'a.c.v1',
          aggregateId: `id-${index}`,
          stream: `a.b.v1-core-id-${index}`,
          position: at(index + 1),
        }),
      );
    }
    const all: string[] = [];
    for (let after: string | undefined; ;) {
      const page = await deadLetters.list({ handler }, { limit: 5, ...(after ? { after } : {}) });
      all.push(...page.map(({ id }) => id));
      after = page.at(-1)?.id;
      if (after === undefined) break;
    }
    assert.equal(new Set(all).size, 12);
    const listed = await deadLetters.list({ handler }, { limit: 100 });
    assert.deepEqual(
      listed.map(({ id }) => id),
      all,
    );
    assert.deepEqual(
      listed.map(({ createdAt }) => createdAt),
      listed.map(({ createdAt }) => createdAt).toSorted(),
    );
    const brief = await deadLetters.list({ handler }, { limit: 100, withoutPayloads: true });
    assert.deepEqual(
      brief,
      listed.map((letter) => ({ ...letter, payload: null })),
    );
    assert.ok(listed.every(({ payload }) => payload !== null));
    assert.equal(await deadLetters.count({ handler, eventType: 'a.b.v1' }), 6);
    assert.equal((await deadLetters.list({ handler, aggregateId: 'id-3' })).length, 1);
    assert.equal(await deadLetters.count({ handler, tenant: 'other' }), 0);
    const filter = { handler, eventType: 'a.c.v1' };
    const since = new Date(atMs + 2).toISOString();
    assert.equal(await deadLetters.count({ handler, since }), 6);
    assert.equal(await deadLetters.count({ handler, since, aggregateId: 'id-3' }), 0);
    assert.equal(await deadLetters.replay(filter, { by: 'ada', atMs }), 6);
    assert.equal(await deadLetters.count({ ...filter, replayRequested: true }), 6);
    assert.equal(await deadLetters.count({ handler, replayRequested: false }), 6);
    assert.equal(await deadLetters.discard({ handler }, { by: 'ada', reason: 'x', atMs }), 12);
    assert.equal(await deadLetters.count({ handler, status: 'pending' }), 0);
  },

  async 'finds dead letters by their events'({ storage }) {
    const fence = await acquireShard(storage);
    const { deadLetters } = storage;
    const letters = [newLetter(fence), newLetter(fence, { position: at(2) })];
    for (const letter of letters) await deadLetters.add(fence, letter);
    const idsOf = async (eventIds: readonly string[]): Promise<string[]> =>
      (await deadLetters.list({ eventIds })).map(({ id }) => id).toSorted();
    assert.deepEqual(await idsOf([letters[1]?.eventId ?? '', 'unknown']), [letters[1]?.id]);
    assert.deepEqual(
      await idsOf(letters.map(({ eventId }) => eventId)),
      letters.map(({ id }) => id).toSorted(),
    );
    assert.deepEqual(await idsOf([]), []);
  },

  async 'stores notes with the dead letter'({ storage }) {
    const fence = await acquireShard(storage);
    const {
      letter: { id },
    } = await storage.deadLetters.add(fence, newLetter(fence));
    assert.equal(await storage.deadLetters.note(id, 'asked the bank'), true);
    assert.equal((await storage.deadLetters.get(id))?.notes, 'asked the bank');
    assert.equal(await storage.deadLetters.note(randomUUID(), 'x'), false);
  },

  async 'a former owner adds no dead letter'({ storage }) {
    const late = await acquireShard(storage);
    await takeOverShard(storage, late);
    await assertLost(() => storage.deadLetters.add(late, newLetter(late)));
    assert.equal(await storage.deadLetters.count({ handler: late.subscription }), 0);
  },
};
