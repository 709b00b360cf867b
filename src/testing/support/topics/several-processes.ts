// Several processes over one bus behave as one server, on every engine of the bus.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { systemClock } from '../../../foundation/clock.ts';
import { startChild, type Child } from '../../child-process.ts';
import { createTempFolder, removeTempFolder } from '../../servers/temp-folder.ts';
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

/** The first `count` messages of a stream, without its `open` event. */
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

/** All cases share two processes, and each uses different topics. */
export function testSeveralProcesses(
  name: string,
  startBus: () => Promise<AsyncDisposable & { readonly url: string }>,
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

    /** Cancels a scheduled message before its time, with a longer delay if the machine is slow. */
    async function cancelledInTime(): Promise<{ readonly topic: string; readonly gone: Message }> {
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
      it('a message of one process reaches readers of all processes, in one order', async () => {
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

      it('a reader continues after an id on any process', async () => {
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

      it('a scheduled message is delivered once, and any process can cancel it', async () => {
        const { topic, gone } = await cancelledInTime();
        const ready = Promise.withResolvers<void>();
        const reading = follow(b, topic, 1, ready.resolve);
        await ready.promise;
        // Due after the cancelled message, which would arrive first.
        const sent = await publish(a, topic, { headers: { Delay: '2s' }, body: 'on' });
        assert.deepEqual(await reading, [sent]);
        assert.deepEqual(await poll(a, topic), [gone, sent]);
      });
    });

    it('a scheduled message outlives the process that accepted it', async () => {
      const topic = newTopic();
      const sent = await publish(a, topic, { headers: { Delay: '2s' }, body: 'later' });
      // A process that is killed while it has the lease delays the message by ten seconds.
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
