import assert from 'node:assert/strict';
import { test } from 'node:test';
import { converse, type Turn } from './converse.ts';
import { startNats } from './nats-server.ts';

const hello: readonly Turn[] = [
  { expect: /^INFO .*"jetstream":true.*\r\n/ },
  { send: 'CONNECT {"verbose":false}\r\nPING\r\n', expect: /PONG\r\n/ },
];

function request(subject: string, body: string): string {
  return `SUB inbox 1\r\nPUB ${subject} inbox ${body.length}\r\n${body}\r\n`;
}

test('a NATS server responds on a separate port', async () => {
  await using nats = await startNats();
  assert.equal(nats.url, `nats://127.0.0.1:${nats.port}`);
  assert.notEqual(nats.port, 4222);
  await converse(nats.port, [
    ...hello,
    { send: request('inbox', 'hi'), expect: /MSG inbox 1 .*2\r\nhi\r\n/ },
  ]);
});

test('a stream survives a kill of NATS, on the same port', async () => {
  await using nats = await startNats();
  const { port } = nats;
  const stream = JSON.stringify({ name: 'orders', subjects: ['orders.>'], storage: 'file' });
  await converse(port, [
    ...hello,
    { send: request('$JS.API.STREAM.CREATE.orders', stream), expect: /"did_create":true/ },
    { send: request('orders.placed', '{}'), expect: /"stream":"orders", ?"seq":1/ },
  ]);

  await nats.kill();
  await assert.rejects(converse(port, []), { code: 'ECONNREFUSED' });
  await nats.start();
  assert.equal(nats.port, port);
  await converse(port, [
    ...hello,
    { send: request('$JS.API.STREAM.INFO.orders', ''), expect: /"messages":1\b/ },
  ]);
});

test('passes further settings to NATS and JetStream', async () => {
  await using nats = await startNats({
    jetstream: { max_file_store: '64MB' },
    settings: { max_payload: '4321' },
  });
  await converse(nats.port, [
    { expect: /"max_payload":4321\b/ },
    { send: `CONNECT {}\r\n${request('$JS.API.INFO', '')}`, expect: /account_info_response/ },
  ]);
  await nats.stop();
  assert.match(nats.log(), /Max Storage: +64\.00 MB/);
});
