import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { test } from 'node:test';
import { runNodeScript } from './node-script.ts';
import { portSpace, reservePort } from './reserve-port.ts';

const pid = 0x01_02_03;

test('ports come from the larger range outside the ephemeral ports', () => {
  const linux = { first: 32_768, last: 60_999 };
  assert.deepEqual(portSpace(linux, pid), { host: '127.0.0.1', first: 10_240, last: 32_767 });
  const low = { first: 1_024, last: 40_000 };
  assert.deepEqual(portSpace(low, pid), { host: '127.0.0.1', first: 40_001, last: 65_535 });
});

test('uses a separate address per process if every port is ephemeral', () => {
  const everything = { first: 1_024, last: 65_535 };
  assert.deepEqual(portSpace(everything, pid), {
    host: '127.65.2.3',
    first: 10_240,
    last: 65_535,
  });
  assert.notEqual(portSpace(everything, pid).host, portSpace(everything, pid + 1).host);
});

test('no port is reserved twice, in this process or in another one', async () => {
  const others = [0, 1].map(() =>
    runNodeScript(`
      const { reservePort } = await load('./reserve-port.ts');
      const reserved = await Promise.all(Array.from({ length: 100 }, () => reservePort()));
      console.log(JSON.stringify(reserved.map(({ port }) => port)));
      setInterval(() => undefined, 1_000);
    `),
  );
  const own = await Promise.all(Array.from({ length: 100 }, () => reservePort()));
  const ports = own.map(({ port }) => port);
  for (const other of others) ports.push(...((await other.printed()) as number[]));
  assert.equal(new Set(ports).size, 300);
  for (const other of others) other.kill('SIGKILL');
  for (const reserved of own) await reserved[Symbol.asyncDispose]();
});

test('a reserved port refuses connections until its owner listens, and again after it closed', async () => {
  await using reserved = await reservePort();
  const { host, port } = reserved;
  const connectionError = async (): Promise<string | undefined> => {
    const [error] = (await once(connect({ host, port }), 'error')) as [NodeJS.ErrnoException];
    return error.code;
  };
  assert.equal(await connectionError(), 'ECONNREFUSED');
  for (let round = 0; round < 3; round += 1) {
    const server = createServer().listen(port, host);
    await once(server, 'listening');
    assert.equal((server.address() as AddressInfo).port, port);
    server.close();
    await once(server, 'close');
  }
  assert.equal(await connectionError(), 'ECONNREFUSED');
});
