// Cold storage in a bucket, over S3's own protocol: AWS, MinIO, R2 and others that speak it.

import type { ColdStorage } from '../../bus/cold-storage.ts';
import { systemClock, type Clock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { encoded, signRequest, type S3Keys } from './sign-request.ts';

export interface S3Options {
  readonly bucket: string;
  /** Before every name. */
  readonly prefix?: string | undefined;
  /** Default: `us-east-1`. */
  readonly region?: string | undefined;
  /** Default: that of AWS in the region. */
  readonly endpoint?: string | undefined;
  readonly keys: S3Keys;
  /** Of each request. Default: 60 s. */
  readonly timeoutMs?: number | undefined;
  readonly clock?: Clock | undefined;
}

/**
 * Cold storage in a bucket. `ifAbsent` needs a server that knows `If-None-Match` on a put, as AWS and
 * MinIO do.
 *
 * @example
 * import { s3ColdStorage } from 'millrace/adapters/s3';
 *
 * const storage = s3ColdStorage({
 *   bucket: 'archive',
 *   region: 'eu-central-1',
 *   keys: { accessKeyId: 'id', secretAccessKey: 'secret' },
 * });
 */
export function s3ColdStorage(options: S3Options): ColdStorage {
  const { bucket, prefix = '', region = 'us-east-1', keys, timeoutMs = 60_000 } = options;
  const { clock = systemClock } = options;
  const endpoint = options.endpoint ?? `https://s3.${region}.amazonaws.com`;
  const base = `${endpoint.replace(/\/$/, '')}/${encoded(bucket)}`;

  async function ask(
    method: string,
    url: string,
    more: { readonly body?: Uint8Array; readonly headers?: Readonly<Record<string, string>> } = {},
  ): Promise<Response> {
    const request = { method, url: new URL(url), ...more };
    try {
      return await fetch(request.url, {
        method,
        headers: signRequest(request, { keys, region, nowMs: clock.now() }),
        redirect: 'error',
        signal: AbortSignal.timeout(timeoutMs),
        ...(more.body === undefined ? {} : { body: Buffer.from(more.body) }),
      });
    } catch (cause) {
      throw new MillraceError('STORE_UNAVAILABLE', `the bucket '${bucket}' cannot be reached`, {
        cause,
        details: { bucket, endpoint },
      });
    }
  }

  const urlOf = (name: string): string =>
    `${base}/${(prefix + name).split('/').map(encoded).join('/')}`;

  async function refused(answer: Response, doing: string): Promise<MillraceError> {
    const { status } = answer;
    const code = /<Code>([^<]{1,100})<\/Code>/.exec(await answer.text())?.[1] ?? '';
    return new MillraceError(
      'STORE_UNAVAILABLE',
      `the bucket '${bucket}' did not take the ${doing}: ${status} ${code}`.trim(),
      {
        details: { bucket, status, code },
        retryable: status >= 500 || status === 408 || status === 429,
      },
    );
  }

  async function listPage(below: string, token: string | undefined): Promise<string> {
    const query = new URLSearchParams({
      'list-type': '2',
      prefix: prefix + below,
      ...(token === undefined ? {} : { 'continuation-token': token }),
    });
    const answer = await ask('GET', `${base}?${query.toString().replaceAll('+', '%20')}`);
    if (!answer.ok) throw await refused(answer, 'list');
    return answer.text();
  }

  return {
    async put(name, data, { ifAbsent = false } = {}) {
      const headers = ifAbsent ? { 'if-none-match': '*' } : {};
      const answer = await ask('PUT', urlOf(name), { body: data, headers });
      if (ifAbsent && answer.status === 412) {
        await answer.body?.cancel();
        return false;
      }
      if (!answer.ok) throw await refused(answer, 'write');
      await answer.body?.cancel();
      return true;
    },
    async get(name) {
      const answer = await ask('GET', urlOf(name));
      if (answer.status === 404) {
        await answer.body?.cancel();
        return undefined;
      }
      if (!answer.ok) throw await refused(answer, 'read');
      return new Uint8Array(await answer.arrayBuffer());
    },
    async *list(below) {
      let token: string | undefined;
      do {
        const page = await listPage(below, token);
        for (const [, key = ''] of page.matchAll(/<Key>([^<]*)<\/Key>/g)) {
          yield unescaped(key).slice(prefix.length);
        }
        const next = /<NextContinuationToken>([^<]+)<\/NextContinuationToken>/.exec(page)?.[1];
        token = next === undefined ? undefined : unescaped(next);
      } while (token !== undefined);
    },
    async remove(name) {
      const answer = await ask('DELETE', urlOf(name));
      if (!answer.ok && answer.status !== 404) throw await refused(answer, 'removal');
      await answer.body?.cancel();
    },
  };
}

const entities: Readonly<Record<string, string>> = {
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  amp: '&',
};

function unescaped(xml: string): string {
  return xml.replaceAll(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (whole, hex, decimal, name) => {
    if (hex !== undefined) return String.fromCodePoint(Number.parseInt(String(hex), 16));
    if (decimal !== undefined) return String.fromCodePoint(Number(decimal));
    return entities[String(name)] ?? whole;
  });
}
