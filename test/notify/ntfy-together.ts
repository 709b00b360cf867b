// Several processes over one bus that behave as one server: what every engine of the bus has to show.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { systemClock } from '../../src/foundation/clock.ts';
import { hasCode } from '../../src/foundation/error.ts';
import { openTopics } from '../../src/notify/topics.ts';
import { openBus } from '../../src/platform/engines/open-bus.ts';
import { startChild, type Child } from '../../src/testing/child-process.ts';
import { createTempFolder, removeTempFolder } from '../../src/testing/servers/temp-folder.ts';
import {
  lines,
  newTopic,
  poll,
  publish,
  send,
  type CaseServer,
  type Message,
} from './ntfy-case.ts';
import { startOurNtfy } from './our-ntfy.ts';

const script = new URL('./ntfy-process-main.ts', import.meta.url);

interface Process extends CaseServer {
  readonly child: Child;
}

async function started(bus: string, folder: string): Promise<Process> {
  const child = startChild(script, { input: { bus, folder } });
  const isUrl = (message: unknown): message is { readonly url: string } =>
    typeof (message as { readonly url?: unknown }).url === 'string';
  return { child, url: (await child.message(isUrl)).url };
}

/** The messages of a stream until there are so many, without what opens it. */
async function follow(
  server: CaseServer,
  topics: string,
  count: number,
  opened?: () => void,
): Promise<readonly Message[]> {
  const over = new AbortController();
  const answer = await fetch(`${server.url}/${topics}/json`, { signal: over.signal });
  let text = '';
  for await (const chunk of answer.body ?? []) {
    text += Buffer.from(chunk as Uint8Array).toString('utf8');
    opened?.();
    if (text.split('\n').length > count + 1) break;
  }
  over.abort();
  return lines(text).filter(({ event }) => event === 'message');
}

/** Two processes for all cases: each case has its own topics. */
export function testTogether(
  name: string,
  startBus: () => Promise<AsyncDisposable & { readonly url: string }>,
  more: (busUrl: () => string) => void = () => undefined,
): void {
  describe(name, () => {
    const opened = new AsyncDisposableStack();
    let bus = '';
    let folder = '';
    let a: Process;
    let b: Process;
    before(async () => {
      folder = await createTempFolder('notify');
      opened.defer(() => removeTempFolder(folder));
      ({ url: bus } = opened.use(await startBus()));
      [a, b] = await Promise.all([started(bus, folder), started(bus, folder)]);
      opened.use(a.child);
      opened.use(b.child);
    });
    after(() => opened.disposeAsync());

    /** Called off before its time; a slow machine needs a longer delay for that. */
    async function calledOffInTime(): Promise<{ readonly topic: string; readonly gone: Message }> {
      for (const seconds of [1, 5, 30]) {
        const topic = newTopic();
        const headers = { Delay: `${seconds}s` };
        const off = await publish(a, topic, { path: '/{t}/off', headers, body: 'off' });
        const gone = await publish(b, topic, { method: 'DELETE', path: '/{t}/off' });
        if (Date.now() < off.time * 1_000) return { topic, gone };
      }
      return assert.fail('a delete took 30 s');
    }

    // The cases wait for different messages, so they wait at the same time.
    describe('while both run', { concurrency: true }, () => {
      it('a message of one process reaches readers of all, in one order', async () => {
        const topic = newTopic();
        const count = 40;
        const ready = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
        const reading = Promise.all([
          follow(a, topic, count, ready[0].resolve),
          follow(b, topic, count, ready[1].resolve),
        ]);
        await Promise.all(ready.map(({ promise }) => promise));
        await Promise.all(
          Array.from({ length: count }, (_, at) =>
            publish(at % 2 === 0 ? a : b, topic, { body: `m${at}` }),
          ),
        );
        const [fromA, fromB] = await reading;
        assert.equal(fromA.length, count);
        assert.deepEqual(fromA, fromB);
        assert.deepEqual(await poll(a, topic), fromA);
        assert.deepEqual(await poll(b, topic), fromA);
      });

      it('a reader continues after an id on any of them', async () => {
        const topic = newTopic();
        const first = await publish(a, topic, { body: '1' });
        const second = await publish(b, topic, { body: '2' });
        const third = await publish(a, topic, { body: '3' });
        assert.deepEqual(await poll(b, topic, `since=${first.id}`), [second, third]);
        assert.deepEqual(await poll(a, topic, `since=${second.id}`), [third]);
      });

      it('several topics have one order', async () => {
        const [one, two] = [newTopic(), newTopic()];
        const all: Message[] = [];
        for (let at = 0; at < 6; at += 1) {
          all.push(
            await publish(at % 2 === 0 ? a : b, at % 3 === 0 ? one : two, { body: `${at}` }),
          );
        }
        assert.deepEqual(await poll(b, `${one},${two}`), all);
        assert.deepEqual(await poll(a, `${two},${one}`, `since=${all[2]?.id ?? ''}`), all.slice(3));
      });

      it('a scheduled message is delivered once, called off on any of them', async () => {
        const { topic, gone } = await calledOffInTime();
        const ready = Promise.withResolvers<void>();
        const reading = follow(b, topic, 1, ready.resolve);
        await ready.promise;
        // Later than the other one, which would come first.
        const sent = await publish(a, topic, { headers: { Delay: '2s' }, body: 'on' });
        assert.deepEqual(await reading, [sent]);
        assert.deepEqual(await poll(a, topic), [gone, sent]);
      });
    });

    more(() => bus);

    it('a scheduled message outlives the process that took it', async () => {
      const topic = newTopic();
      const sent = await publish(a, topic, { headers: { Delay: '2s' }, body: 'later' });
      // It comes anyhow; if a process is killed before it gave the message back, ten seconds later.
      await systemClock.sleep(200);
      await Promise.all([a.child.kill('SIGKILL'), b.child.kill('SIGKILL')]);
      await using c = await startOurNtfy({ bus, folder, limits: { delayMsMin: 0 } });
      const answer = await send(c, topic, { method: 'GET', path: '/{t}/json?since=all' });
      let text = '';
      for await (const chunk of answer.body ?? []) {
        text += Buffer.from(chunk as Uint8Array).toString('utf8');
        if (text.split('\n').length > 2) break;
      }
      assert.deepEqual(lines(text).slice(1), [sent]);
      assert.deepEqual(await poll(c, topic), [sent]);
    });
  });
}

/** Of engines that give the order themselves. */
export function testOrderOfBus(busUrl: () => string): void {
  it('readers come first only where one process gives the order', async () => {
    await using bus = await openBus(busUrl());
    await assert.rejects(
      () => openTopics(bus, { durability: 'readers-first' }),
      (error) => hasCode(error, 'NOT_SUPPORTED'),
    );
  });
}
