// Forgetting a person: the payloads become unreadable, the streams stay complete.

import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import { fakeClock } from '../../fake-clock.ts';
import type { DomainEventEnvelope } from '../../../contracts/envelope.ts';
import { isForgotten, subjectHeader } from '../../../store/erasure.ts';
import type { EventStore } from '../../../store/event-store.ts';
import {
  follow,
  idsOf,
  needs,
  newEvent,
  newEvents,
  newStream,
  only,
  storedIds,
  unique,
  type StoreCases,
} from './fixture.ts';

export const erasureCases: StoreCases = {
  'returns a payload about a person as written': async ({ store }) => {
    const subject = unique('person-');
    for (const payload of [{ name: 'Jané 👩' }, 'text', 42, null, [], 'x'.repeat(500_000)]) {
      const stream = newStream();
      await store.append(stream, [about(subject, { payload })]);
      assert.deepEqual(only(await store.readStream(stream).toArray()).payload, payload);
    }
  },

  'the engine stores the payload encrypted': needs('rawContent', async ({ open, rawContent }) => {
    const store = await open();
    const stream = newStream();
    const [secret, plain] = [unique('secret'), unique('plain')];
    await store.append(stream, [
      about(unique('person-'), { payload: { name: secret } }),
      newEvent({ payload: { name: plain } }),
    ]);
    const content = await rawContent(store);
    assert.ok(content.includes(plain), 'the raw content does not contain the impersonal payload');
    assert.ok(
      !content.includes(secret),
      'the raw content contains the personal payload unencrypted',
    );
  }),

  'forgotten: the payload names the person and the time, the rest is unchanged': async ({
    open,
  }) => {
    const clock = fakeClock();
    const store = await open({ clock });
    const [stream, subject] = [newStream(), unique('person-')];
    await store.append(stream, [about(subject)]);
    const before = only(await store.readStream(stream).toArray());
    await clock.advance(90_000);
    assert.deepEqual(await store.forget(subject), { forgotten: true });
    const after = only(await store.readStream(stream).toArray());
    const forgottenAt = new Date(clock.now()).toISOString();
    assert.deepEqual(after, { ...before, payload: { $forgotten: { subject, forgottenAt } } });
    assert.ok(isForgotten(after.payload));
  },

  'forgotten: every kind of read hides the payload': async ({ store, signal }) => {
    const category = unique('c');
    const [stream, subject] = [newStream(category), unique('person-')];
    const event = about(subject);
    await store.append(stream, [event]);
    await store.forget(subject);
    const filter = { category };
    const direction = 'backwards';
    await using all = follow(store.subscribe({ filter, signal }));
    await using one = follow(store.subscribeToStream(stream, { signal }));
    for (const read of [
      only(await store.readStream(stream).toArray()),
      only(await store.readStream(stream, { direction }).toArray()),
      only(await store.readAll({ filter }).toArray()),
      only(await store.readAll({ filter, direction }).toArray()),
      await store.findEvent(stream, event.eventId),
      only(await all.count(1)),
      only(await one.count(1)),
    ]) {
      assert.ok(isForgotten(read?.payload));
    }
  },

  'forgotten: other people and impersonal events are unaffected': async ({ store }) => {
    const stream = newStream();
    const [jane, john] = [unique('person-'), unique('person-')];
    const events = [
      about(jane),
      about(john),
      newEvent({ payload: 'not about a person' }),
      about(jane),
    ];
    await store.append(stream, events);
    await store.forget(jane);
    const payloads = (await store.readStream(stream).toArray()).map(({ payload }) =>
      isForgotten(payload) ? 'forgotten' : payload,
    );
    const { payload } = about(john);
    assert.deepEqual(payloads, ['forgotten', payload, 'not about a person', 'forgotten']);
  },

  'forgotten: the payloads become unreadable in every stream at once': async ({ store }) => {
    const subject = unique('person-');
    const streams = [newStream(), newStream('crm.contact.v1'), newStream('crm.contact.v1')];
    for (const stream of streams) await store.append(stream, [about(subject), about(subject)]);
    await store.forget(subject);
    for (const stream of streams) {
      const events = await store.readStream(stream).toArray();
      assert.equal(events.filter(({ payload }) => isForgotten(payload)).length, 2);
    }
  },

  'forgotten: a subscription continues': async ({ store, signal }) => {
    const category = unique('c');
    const stream = newStream(category);
    const subject = unique('person-');
    await store.append(stream, [newEvent(), about(subject), newEvent()]);
    await using follower = follow(store.subscribe({ filter: { category }, signal, pageSize: 1 }));
    await follower.count(1);
    await store.forget(subject);
    await follower.count(3);
    await store.append(stream, [newEvent()]);
    assert.equal((await follower.count(4)).length, 4);
  },

  'forgotten: the store rejects new events about the person': async ({ store }) => {
    const [stream, subject] = [newStream(), unique('person-')];
    await store.append(stream, [about(subject)]);
    await store.forget(subject);
    const { details, retryable } = await rejectsWith(
      () => store.append(stream, [newEvent(), about(unique('person-')), about(subject)]),
      'SUBJECT_FORGOTTEN',
    );
    assert.equal(details['subject'], subject);
    assert.equal(retryable, false);
    assert.equal((await store.streamInfo(stream))?.revision, 0);
    assert.equal((await store.append(stream, [newEvent()], { expected: 0 })).revision, 1);
  },

  'forgetting an unknown person rejects later data about that person': async ({ store }) => {
    const subject = unique('person-');
    assert.deepEqual(await store.forget(subject), { forgotten: false });
    await rejectsWith(() => store.append(newStream(), [about(subject)]), 'SUBJECT_FORGOTTEN');
  },

  'forgetting twice keeps the first timestamp': async ({ open }) => {
    const clock = fakeClock();
    const store = await open({ clock });
    const [stream, subject] = [newStream(), unique('person-')];
    await store.append(stream, [about(subject)]);
    await store.forget(subject);
    const before = await store.readStream(stream).toArray();
    await clock.advance(1_000);
    assert.deepEqual(await store.forget(subject), { forgotten: false });
    assert.deepEqual(await store.readStream(stream).toArray(), before);
  },

  'the first events about a person, written concurrently, are all readable': async ({ store }) => {
    const [stream, subject] = [newStream(), unique('person-')];
    await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        store.append(stream, [about(subject, { payload: { index } })]),
      ),
    );
    const payloads = (await store.readStream(stream).toArray()).map(
      ({ payload }) => (payload as { readonly index: number }).index,
    );
    assert.deepEqual(
      payloads.toSorted((a, b) => a - b),
      Array.from({ length: 20 }, (_, index) => index),
    );
  },

  'each person in an append has a separate key': async ({ store }) => {
    const stream = newStream();
    const subjects = Array.from({ length: 100 }, () => unique('person-'));
    await store.append(
      stream,
      subjects.map((subject) => about(subject, { payload: { subject } })),
    );
    await store.forget(subjects[41] ?? '');
    const events = await store.readStream(stream).toArray();
    for (const [index, { payload }] of events.entries()) {
      if (index === 41) assert.ok(isForgotten(payload));
      else assert.deepEqual(payload, { subject: subjects[index] });
    }
  },

  'distinguishes people exactly by their ids': async ({ store }) => {
    const base = unique('p');
    const subjects = ['a', 'A', 'a ', '%', '_', `'; --`, '\u00e9', 'e\u0301', '__proto__'].map(
      (name) => `${base}${name}`,
    );
    const stream = newStream();
    await store.append(
      stream,
      subjects.map((subject) => about(subject, { payload: subject })),
    );
    for (const [index, subject] of subjects.entries()) {
      await store.forget(subject);
      const events = await store.readStream(stream).toArray();
      const readable = events.filter(({ payload }) => !isForgotten(payload));
      assert.deepEqual(
        readable.map(({ payload }) => payload),
        subjects.slice(index + 1),
      );
    }
  },

  'rejects a person for whom no key can be stored, instead of storing the payload unencrypted':
    async ({ store }) => {
      const stream = newStream();
      for (const subject of ['', 42, null, {}, 'a\u0000b', 'a\nb', '\ud800', 'x'.repeat(256)]) {
        const event = newEvent({ headers: { [subjectHeader]: subject } });
        await rejectsWith(() => store.append(stream, [event]), 'NAME_INVALID');
        await rejectsWith(() => store.forget(subject as string), 'NAME_INVALID');
      }
      assert.equal(await store.streamInfo(stream), undefined);
    },

  'detects a duplicate append of events about a person': async ({ store }) => {
    const [stream, subject] = [newStream(), unique('person-')];
    const events = [about(subject), about(subject)];
    await store.append(stream, events);
    assert.equal((await store.append(stream, events)).isDuplicate, true);
    assert.deepEqual(await storedIds(store, stream), idsOf(events));
  },

  'does not decrypt an impersonal payload that looks encrypted': async ({ store }) => {
    const stream = newStream();
    const payloads = [{ $sealed: 'AAAA' }, { $forgotten: 'no' }];
    await store.append(
      stream,
      payloads.map((payload) => newEvent({ payload })),
    );
    await store.append(stream, [about(unique('person-'), { payload: { $sealed: 'BBBB' } })]);
    assert.deepEqual(await payloadsOf(store, stream), [...payloads, { $sealed: 'BBBB' }]);
  },

  'encrypted events are part of the order': async ({ store }) => {
    const category = unique('c');
    const stream = newStream(category);
    const subject = unique('person-');
    const events = newEvents(10).map((event, index) => (index % 2 === 0 ? event : about(subject)));
    await store.append(stream, events);
    await store.forget(subject);
    const all = await store.readAll({ filter: { category }, pageSize: 3 }).toArray();
    assert.deepEqual(idsOf(all), idsOf(events));
  },
};

function about(subject: string, fields: Partial<DomainEventEnvelope> = {}): DomainEventEnvelope {
  return newEvent({
    payload: { name: 'Jane', email: 'jane@example.com' },
    ...fields,
    headers: { [subjectHeader]: subject },
  });
}

async function payloadsOf(store: EventStore, stream: string): Promise<unknown[]> {
  return (await store.readStream(stream).toArray()).map(({ payload }) => payload);
}
