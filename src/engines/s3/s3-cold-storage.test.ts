// Runs against a fake S3 server that stores objects and verifies each signature.

import assert from 'node:assert/strict';
import { createHash, createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { coldStorageConformance } from '../../testing/conformance/bus/cold-storage.ts';
import { s3ColdStorage } from './s3-cold-storage.ts';

const keys = { accessKeyId: 'AKIA', secretAccessKey: 'very secret', sessionToken: 'session' };
const buckets = new Map<string, Map<string, Buffer>>();
const server = createServer((request, response) => void serve(request, response));
let endpoint = '';
before(async () => {
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => server.close());

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>));
  const { status, text } = respond(request, body);
  response.writeHead(status).end(text);
}

interface FakeResponse {
  readonly status: number;
  readonly text?: string | Buffer;
}

function respond(request: IncomingMessage, body: Buffer): FakeResponse {
  if (!isSigned(request, body)) return { status: 403, text: '<Code>SignatureDoesNotMatch</Code>' };
  const url = new URL(request.url ?? '', 'http://x');
  const [, bucket = '', ...rest] = url.pathname.split('/');
  const objects = buckets.get(bucket);
  if (objects === undefined) return { status: 404, text: '<Code>NoSuchBucket</Code>' };
  const key = rest.map(decodeURIComponent).join('/');
  if (key === '') return list(objects, url.searchParams);
  if (request.method === 'PUT') {
    if (request.headers['if-none-match'] === '*' && objects.has(key)) return { status: 412 };
    objects.set(key, body);
    return { status: 200 };
  }
  if (request.method === 'DELETE') {
    objects.delete(key);
    return { status: 204 };
  }
  const found = objects.get(key);
  return found === undefined ? { status: 404 } : { status: 200, text: found };
}

/** Lists objects in pages of five. */
function list(objects: ReadonlyMap<string, Buffer>, query: URLSearchParams): FakeResponse {
  const prefix = query.get('prefix') ?? '';
  const token = query.get('continuation-token') ?? '';
  const names = [...objects.keys()].filter((key) => key.startsWith(prefix) && key > token);
  const page = names.toSorted().slice(0, 5);
  const escape = (text: string): string =>
    text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  const next =
    names.length > page.length
      ? `<NextContinuationToken>${escape(page.at(-1) ?? '')}</NextContinuationToken>`
      : '';
  const keysXml = page.map((key) => `<Contents><Key>${escape(key)}</Key></Contents>`).join('');
  return { status: 200, text: `<ListBucketResult>${keysXml}${next}</ListBucketResult>` };
}

/** Verifies the signature of the request as it arrived over the wire. */
function isSigned(request: IncomingMessage, body: Buffer): boolean {
  const { authorization = '', 'x-amz-date': date, 'x-amz-content-sha256': hash } = request.headers;
  const parts =
    /^AWS4-HMAC-SHA256 Credential=AKIA\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(
      authorization,
    );
  const [, day = '', region = '', names = '', signature] = parts ?? [];
  const sha = (data: Buffer | string): string => createHash('sha256').update(data).digest('hex');
  if (hash !== sha(body) || request.headers['x-amz-security-token'] !== 'session') return false;
  for (const needed of ['host', 'x-amz-date', 'x-amz-content-sha256', 'x-amz-security-token']) {
    if (!names.split(';').includes(needed)) return false;
  }
  const [path = '', query = ''] = (request.url ?? '').split('?');
  const canonical = [
    request.method,
    path,
    query.split('&').toSorted().join('&'),
    ...names.split(';').map((name) => `${name}:${String(request.headers[name])}`),
    '',
    names,
    hash,
  ].join('\n');
  const toSign = `AWS4-HMAC-SHA256\n${String(date)}\n${day}/${region}/s3/aws4_request\n${sha(canonical)}`;
  let key: Buffer | string = 'AWS4very secret';
  for (const each of [day, region, 's3', 'aws4_request']) {
    key = createHmac('sha256', key).update(each).digest();
  }
  return createHmac('sha256', key).update(toSign).digest('hex') === signature;
}

let opened = 0;
const open = (more: object = {}) => {
  opened += 1;
  const bucket = `archive-${opened}`;
  buckets.set(bucket, new Map());
  return s3ColdStorage({
    bucket,
    prefix: 'cold/',
    region: 'eu-central-1',
    endpoint,
    keys,
    ...more,
  });
};

for (const { name, run } of coldStorageConformance(async () => open())) {
  test(`cold storage in a bucket (protocol-level fake): ${name}`, run);
}

test('rejects a wrong secret with an error that is not retryable', async () => {
  const storage = open({ keys: { ...keys, secretAccessKey: 'wrong' } });
  await assert.rejects(() => storage.put('a', Buffer.from('1')), {
    code: 'STORE_UNAVAILABLE',
    retryable: false,
    message: /403 SignatureDoesNotMatch/,
  });
});

test('rejects if the bucket is missing or the server is unreachable', async () => {
  const elsewhere = open({ bucket: 'nowhere' });
  await assert.rejects(() => elsewhere.put('a', Buffer.from('1')), { message: /NoSuchBucket/ });
  const unreachable = open({ endpoint: 'http://127.0.0.1:1' });
  await assert.rejects(() => unreachable.get('a'), { code: 'STORE_UNAVAILABLE', retryable: true });
});
