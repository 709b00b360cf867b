// Malformed HTTP requests, WebSocket frames, HTTP/2 frames and gRPC messages: fixed ones, and seeded random changes of
// them.

import fc from 'fast-check';

const host = 'host: localhost\r\n';
const bytesOf = (text: string): Buffer => Buffer.from(text, 'latin1');

/** Complete and incomplete requests; `auth` is a header line. */
export const httpRequests = (auth: string): readonly Buffer[] =>
  [
    '',
    '\r\n\r\n',
    '\0\0\0\0',
    'GET',
    'GET / HTTP/1.1',
    `GET / HTTP/1.1\r\n${host}`,
    'GET / HTTP/9.9\r\n\r\n',
    'GET / HTTP/1.1\r\n\r\n',
    `GET\0/ HTTP/1.1\r\n${host}\r\n`,
    `GET /\xff\xfe HTTP/1.1\r\n${host}\r\n`,
    `GET /%ff%fe%00 HTTP/1.1\r\n${host}${auth}\r\n`,
    `GET /../../etc/passwd HTTP/1.1\r\n${host}\r\n`,
    `GET /admin/%2e%2e/tokens HTTP/1.1\r\n${host}\r\n`,
    `GET http://evil.example/admin/tokens HTTP/1.1\r\n${host}\r\n`,
    `GET //admin//tokens HTTP/1.1\r\n${host}\r\n`,
    `CONNECT 127.0.0.1:1 HTTP/1.1\r\n${host}\r\n`,
    `TRACE / HTTP/1.1\r\n${host}\r\n`,
    `DANCE / HTTP/1.1\r\n${host}\r\n`,
    `OPTIONS * HTTP/1.1\r\n${host}\r\n`,
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    `GET /${'a'.repeat(20_000)} HTTP/1.1\r\n${host}\r\n`,
    `GET /api/v1/events?${'a=b&'.repeat(3_000)} HTTP/1.1\r\n${host}${auth}\r\n`,
    `GET / HTTP/1.1\r\n${host}${'a: b\r\n'.repeat(5_000)}\r\n`,
    `GET / HTTP/1.1\r\n${host}host: other\r\n\r\n`,
    `GET / HTTP/1.1\r\n${host} folded: x\r\n\r\n`,
    `GET / HTTP/1.1\r\n${host}x y: z\r\n\r\n`,
    `GET / HTTP/1.1\r\n${host}x: \0\r\n\r\n`,
    `GET /api/v1/events HTTP/1.1\r\n${host}authorization: Bearer ${'x'.repeat(9_000)}\r\n\r\n`,
    `POST /admin/tokens HTTP/1.1\r\n${host}content-length: 3\r\ncontent-length: 5\r\n\r\nabc`,
    `POST /admin/tokens HTTP/1.1\r\n${host}content-length: -1\r\n\r\n`,
    `POST /admin/tokens HTTP/1.1\r\n${host}content-length: 99999999999999999999\r\n\r\n`,
    `POST /admin/tokens HTTP/1.1\r\n${host}transfer-encoding: chunked\r\ncontent-length: 3\r\n\r\nabc`,
    `POST /admin/tokens HTTP/1.1\r\n${host}transfer-encoding: chunked\r\n\r\nzz\r\n`,
    `POST /admin/tokens HTTP/1.1\r\n${host}transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n`,
    `POST /admin/tokens HTTP/1.1\r\n${host}transfer-encoding: identity, chunked\r\n\r\n0\r\n\r\n`,
    `POST /admin/tokens HTTP/1.1\r\n${host}${auth}content-type: application/json\r\ncontent-length: 5\r\n\r\n{"a":`,
    `POST /admin/tokens HTTP/1.1\r\n${host}${auth}content-type: application/json\r\ncontent-length: 4\r\n\r\n\xff\xfe{}`,
    `POST /admin/tokens HTTP/1.1\r\n${host}${auth}content-encoding: gzip\r\ncontent-type: application/json\r\ncontent-length: 4\r\n\r\n\x1f\x8b\x08\0`,
    `POST /admin/tokens HTTP/1.1\r\n${host}${auth}expect: 200-maybe\r\ncontent-length: 2\r\n\r\n{}`,
    `POST /t HTTP/1.1\r\n${host}filename: ../../x\r\ncontent-length: 1\r\n\r\nx`,
    `GET /health/live HTTP/1.1\r\n${host}\r\n`.repeat(200),
    `GET /ws HTTP/1.1\r\n${host}upgrade: websocket\r\nconnection: upgrade\r\n\r\n`,
    `GET /ws HTTP/1.1\r\n${host}upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 99\r\nsec-websocket-key: x\r\n\r\n`,
    `GET /health/live HTTP/1.1\r\n${host}upgrade: h2c\r\nconnection: upgrade\r\n\r\n`,
  ].map(bytesOf);

export const webSocketHandshake = (auth: string): Buffer =>
  bytesOf(
    [
      `GET /ws HTTP/1.1\r\n${host}upgrade: websocket\r\nconnection: upgrade\r\n`,
      'sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n',
      `${auth}\r\n`,
    ].join(''),
  );

/** A frame of a client; the masking key is zero, so the payload stays as it is. */
function frame(first: number, payload: Buffer, length: number | bigint = payload.length): Buffer {
  const mask = 0x80;
  const header =
    typeof length === 'bigint'
      ? Buffer.from([first, mask | 127, ...lengthBytes(length)])
      : length < 126
        ? Buffer.from([first, mask | length])
        : Buffer.from([first, mask | 126, length >> 8, length & 255]);
  return Buffer.concat([header, Buffer.alloc(4), payload]);
}

function lengthBytes(length: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(length);
  return bytes;
}

const text = Buffer.from('{"type":"unsubscribe","id":"x"}');

export const webSocketFrames: readonly Buffer[] = [
  frame(0x81, text),
  frame(0x81, Buffer.from('{')),
  frame(0x81, Buffer.from([0xff, 0xfe, 0xc0])),
  frame(0x82, text),
  // Not masked.
  Buffer.concat([Buffer.from([0x81, text.length]), text]),
  // Reserved bits and opcodes.
  frame(0xf1, text),
  frame(0x83, text),
  frame(0x8b, text),
  // A continuation without a start, and a start without an end.
  frame(0x80, text),
  frame(0x01, text),
  Buffer.concat([frame(0x01, text), frame(0x81, text)]),
  Buffer.concat([frame(0x01, text), frame(0x89, Buffer.from('ping')), frame(0x80, text)]),
  // Control frames that are too long or in parts.
  frame(0x89, Buffer.alloc(126)),
  frame(0x09, Buffer.alloc(1)),
  frame(0x88, Buffer.from([3])),
  frame(0x88, Buffer.from([0, 0])),
  frame(0x88, Buffer.from([3, 0xe8, 0xff, 0xfe])),
  // Lengths that are wrong, not minimal, or larger than any message.
  frame(0x81, text, 5),
  frame(0x81, text, 60_000),
  frame(0x81, text, BigInt(text.length)),
  frame(0x81, text, 2n ** 63n),
  frame(0x81, text, 2n ** 31n),
  Buffer.concat(Array.from({ length: 2_000 }, () => frame(0x89, Buffer.alloc(0)))),
  Buffer.concat(Array.from({ length: 2_000 }, () => frame(0x01, Buffer.alloc(0)))),
  Buffer.concat(Array.from({ length: 200 }, () => frame(0x81, text))),
];

const preface = bytesOf('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const kinds = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  push: 5,
  ping: 6,
} as const;
const laterKinds = { goAway: 7, window: 8, continuation: 9, unknown: 200 } as const;

function h2(kind: number, flags: number, stream: number, payload: Buffer, length?: number): Buffer {
  const header = Buffer.alloc(9);
  header.writeUIntBE(length ?? payload.length, 0, 3);
  header.writeUInt8(kind, 3);
  header.writeUInt8(flags, 4);
  header.writeUInt32BE(stream, 5);
  return Buffer.concat([header, payload]);
}

const settings = h2(kinds.settings, 0, 0, Buffer.alloc(0));
const start = Buffer.concat([preface, settings]);
const zeros = (bytes: number): Buffer => Buffer.alloc(bytes);
/** `:method: POST` and `:scheme: https` of the static table. */
const someHeaders = Buffer.from([0x83, 0x87, 0x84]);

/** What a client of HTTP/2 sends after the TLS handshake. */
export const http2Bytes: readonly Buffer[] = [
  zeros(0),
  zeros(100),
  bytesOf(`GET / HTTP/1.1\r\n${host}\r\n`),
  preface,
  start,
  Buffer.concat([preface, zeros(50)]),
  Buffer.concat([start, h2(kinds.data, 0, 0, zeros(10))]),
  Buffer.concat([start, h2(kinds.data, 1, 1, zeros(10))]),
  Buffer.concat([start, h2(kinds.headers, 5, 0, someHeaders)]),
  Buffer.concat([start, h2(kinds.headers, 5, 2, someHeaders)]),
  Buffer.concat([start, h2(kinds.headers, 5, 1, someHeaders)]),
  Buffer.concat([start, h2(kinds.headers, 5, 1, Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff]))]),
  Buffer.concat([start, h2(kinds.headers, 0, 1, someHeaders), h2(kinds.data, 1, 1, zeros(10))]),
  Buffer.concat([start, h2(kinds.headers, 0x0d, 1, Buffer.from([200, 0x83]))]),
  Buffer.concat([start, h2(laterKinds.continuation, 4, 1, someHeaders)]),
  Buffer.concat([
    start,
    h2(kinds.headers, 0, 1, someHeaders),
    ...Array.from({ length: 2_000 }, () => h2(laterKinds.continuation, 0, 1, zeros(16))),
  ]),
  Buffer.concat([start, h2(kinds.settings, 0, 0, zeros(5))]),
  Buffer.concat([start, h2(kinds.settings, 1, 0, zeros(6))]),
  Buffer.concat([start, h2(kinds.settings, 0, 1, zeros(6))]),
  Buffer.concat([start, ...Array.from({ length: 2_000 }, () => settings)]),
  Buffer.concat([start, ...Array.from({ length: 2_000 }, () => h2(kinds.ping, 0, 0, zeros(8)))]),
  Buffer.concat([start, h2(kinds.ping, 0, 0, zeros(7))]),
  Buffer.concat([start, h2(kinds.reset, 0, 0, zeros(4))]),
  Buffer.concat([start, h2(kinds.reset, 0, 9, zeros(4))]),
  Buffer.concat([start, h2(kinds.priority, 0, 1, zeros(4))]),
  Buffer.concat([start, h2(kinds.push, 4, 1, zeros(8))]),
  Buffer.concat([start, h2(laterKinds.goAway, 0, 0, zeros(3))]),
  Buffer.concat([start, h2(laterKinds.window, 0, 0, zeros(4))]),
  Buffer.concat([start, h2(laterKinds.window, 0, 0, Buffer.from([0x7f, 0xff, 0xff, 0xff]))]),
  Buffer.concat([start, h2(laterKinds.unknown, 255, 0x7fffffff, zeros(100))]),
  Buffer.concat([start, h2(kinds.data, 0, 1, zeros(10), 0xffffff)]),
  // Streams that are opened and reset at once.
  Buffer.concat([
    start,
    ...Array.from({ length: 1_000 }, (_, at) =>
      Buffer.concat([
        h2(kinds.headers, 4, at * 2 + 1, someHeaders),
        h2(kinds.reset, 0, at * 2 + 1, zeros(4)),
      ]),
    ),
  ]),
];

function message(flag: number, payload: Buffer, length = payload.length): Buffer {
  const header = Buffer.alloc(5);
  header.writeUInt8(flag, 0);
  header.writeUInt32BE(length, 1);
  return Buffer.concat([header, payload]);
}

/** Bodies of gRPC calls. */
export const grpcBodies: readonly Buffer[] = [
  zeros(0),
  zeros(3),
  message(0, zeros(0)),
  message(0, zeros(100)),
  message(0, Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f])),
  message(0, Buffer.from([0x0a, 0x02, 0x12])),
  message(0, Buffer.alloc(64, 0xff)),
  message(0, Buffer.alloc(5_000, 0x0b)),
  message(0, bytesOf('{"options":{}}')),
  message(0, zeros(10), 0xffffffff),
  message(0, zeros(10), 5),
  message(0, zeros(10), 100),
  message(1, zeros(10)),
  message(1, Buffer.from([0x1f, 0x8b, 0x08, 0x00])),
  message(255, zeros(10)),
  Buffer.concat(Array.from({ length: 200 }, () => message(0, zeros(0)))),
];

/** Copies of the samples in which some bytes are changed, removed, repeated or added. */
export function changed(samples: readonly Buffer[]): fc.Arbitrary<Buffer> {
  const edit = fc.record({
    at: fc.nat(4_000),
    kind: fc.constantFrom('change', 'remove', 'repeat', 'add'),
    bytes: fc.uint8Array({ minLength: 1, maxLength: 16 }),
  });
  return fc
    .tuple(fc.constantFrom(...samples), fc.array(edit, { minLength: 1, maxLength: 6 }))
    .map(([sample, edits]) =>
      edits.reduce((bytes, { at, kind, bytes: given }) => {
        const place = at % (bytes.length + 1);
        const [head, tail] = [bytes.subarray(0, place), bytes.subarray(place)];
        if (kind === 'add') return Buffer.concat([head, given, tail]);
        if (kind === 'remove') return Buffer.concat([head, tail.subarray(given.length)]);
        if (kind === 'repeat') return Buffer.concat([head, tail.subarray(0, 64), tail]);
        return Buffer.concat([head, given, tail.subarray(given.length)]);
      }, sample),
    );
}
