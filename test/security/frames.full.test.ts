// Malformed requests, frames and messages of every protocol: a running product answers none of them with a server error, and
// serves on.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import fc from 'fast-check';
import { newSeed, soakMinutes } from '../store/rig.ts';
import { grpcServices } from '../../tools/scope-reference.ts';
import { startAttackedProduct, type AttackedProduct } from './attacked-product.ts';
import {
  changed,
  grpcBodies,
  http2Bytes,
  httpRequests,
  webSocketFrames,
  webSocketHandshake,
} from './frame-corpus.ts';

const runs = soakMinutes > 0 ? 4_000 : 40;
/** A part of the minutes of the soak for each protocol. */
const limits = { numRuns: runs, interruptAfterTimeLimit: Math.max(20_000, soakMinutes * 15_000) };
const loopback = '127.0.0.1';

let attacked: AttackedProduct;
before(async () => {
  attacked = await startAttackedProduct();
});
after(() => attacked[Symbol.asyncDispose]());

/** Sends the bytes, ends the connection, and returns what the server sent until it closed it. */
async function talk(open: () => Socket, bytes: Buffer, greeting?: Buffer): Promise<string> {
  const socket = open();
  let answer = '';
  socket.on('error', () => undefined);
  socket.on(
    'data',
    (data: Buffer) => (answer = (answer + data.toString('latin1')).slice(0, 4_000)),
  );
  const closed = once(socket, 'close');
  if (greeting !== undefined) {
    socket.write(greeting);
    await Promise.race([once(socket, 'data'), closed]);
  }
  socket.end(bytes);
  // A server may wait for the rest of a message: the client does not.
  const timer = setTimeout(() => socket.destroy(), 2_000);
  await closed;
  clearTimeout(timer);
  return answer;
}

/** The samples, then random changes of them. */
async function attack(samples: readonly Buffer[], send: (bytes: Buffer) => Promise<void>) {
  await Promise.all(samples.map((sample) => send(sample)));
  const seed = newSeed();
  await fc.assert(fc.asyncProperty(changed(samples), send), {
    ...limits,
    seed,
    endOnFailure: true,
  });
}

test('malformed HTTP requests cause no server error', async () => {
  const auth = `authorization: Bearer ${attacked.token}\r\n`;
  await attack(httpRequests(auth), async (bytes) => {
    const answer = await talk(() => connect(attacked.httpPort, loopback), bytes);
    assert.doesNotMatch(answer, /^HTTP\/1\.1 5/, JSON.stringify(bytes.toString('latin1')));
  });
  await attacked.assertServing('malformed HTTP requests');
});

test('malformed WebSocket frames cause no server error', async () => {
  const handshake = webSocketHandshake(`authorization: Bearer ${attacked.token}\r\n`);
  await attack(webSocketFrames, async (bytes) => {
    const answer = await talk(() => connect(attacked.httpPort, loopback), bytes, handshake);
    assert.match(answer, /^HTTP\/1\.1 101/);
    assert.doesNotMatch(answer, /"status":500/, bytes.toString('hex').slice(0, 400));
  });
  await attacked.assertServing('malformed WebSocket frames');
});

test('malformed HTTP/2 frames leave the gRPC server running', async () => {
  const { kurrentPort: port } = attacked;
  // The corpus of HTTP/2 also goes to the port without TLS.
  for (const bytes of http2Bytes) await talk(() => connect(port, loopback), bytes);
  const open = (): Socket =>
    connectTls({ port, host: loopback, ALPNProtocols: ['h2'], rejectUnauthorized: false });
  await attack(http2Bytes, async (bytes) => {
    await talk(open, bytes);
  });
  await attacked.assertServing('malformed HTTP/2 frames');
});

test('malformed gRPC messages cause no error that the server did not expect', async () => {
  const url = `https://${loopback}:${attacked.kurrentPort}`;
  const session = connectHttp2(url, { rejectUnauthorized: false });
  session.on('error', () => undefined);
  const paths = Object.entries(grpcServices()).flatMap(([service, methods]) =>
    Object.keys(methods).map((name) => `/${service}/${name}`),
  );
  try {
    let at = 0;
    await attack(grpcBodies, async (bytes) => {
      // Each body of the corpus goes to all methods, a changed one to the next method.
      const isSample = grpcBodies.includes(bytes);
      const chosen = isSample ? paths : [paths[(at += 1) % paths.length] ?? ''];
      for (const path of chosen) {
        const status = await call(session, path, bytes);
        const isUnexpected = /^(2|13) (?!Error deserializing request$)/.test(status ?? '');
        assert.ok(!isUnexpected, `${path} ${bytes.toString('hex').slice(0, 400)}: ${status}`);
      }
    });
  } finally {
    session.destroy();
  }
  await attacked.assertServing('malformed gRPC messages');
});

/** The status and message of a call; undefined: the call got none, or the client stopped waiting. */
async function call(
  session: ClientHttp2Session,
  path: string,
  body: Buffer,
): Promise<string | undefined> {
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
    authorization: `Bearer ${attacked.token}`,
  });
  let status: string | undefined;
  const take = (headers: Readonly<Record<string, unknown>>): void => {
    if (typeof headers['grpc-status'] === 'string') {
      status = `${headers['grpc-status']} ${decodeURIComponent(String(headers['grpc-message']))}`;
    }
  };
  stream.on('response', take);
  stream.on('trailers', take);
  stream.on('error', () => undefined);
  stream.resume();
  const closed = once(stream, 'close');
  stream.end(body);
  const timer = setTimeout(() => stream.close(), 2_000);
  await closed;
  clearTimeout(timer);
  return status;
}
