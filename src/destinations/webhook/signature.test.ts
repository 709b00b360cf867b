import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { hasCode } from '../../foundation/error.ts';
import { signWebhook, verifyWebhook } from './signature.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const other = `whsec_${randomBytes(32).toString('base64')}`;
const nowMs = 1_614_265_330_000;
const body = '{"test": 2432232314}';
const content = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', timestampMs: nowMs, body };

const headersOf = (signature: string, fields: Record<string, string> = {}) => ({
  'webhook-id': content.id,
  'webhook-timestamp': String(nowMs / 1_000),
  'webhook-signature': signature,
  ...fields,
});

const assertInvalid = (reason: RegExp, call: () => unknown): void => {
  assert.throws(call, (error) => {
    return hasCode(error, 'SIGNATURE_INVALID') && reason.test(String(error.details['reason']));
  });
};

test("produces the signature of the standard's example", () => {
  assert.equal(signWebhook(content, [secret]), 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
});

test('verifies a signature with any kind of headers object', () => {
  const headers = headersOf(signWebhook(content, [secret]));
  const verified = { id: content.id, timestampMs: nowMs };
  const bytes = new TextEncoder().encode(body);
  for (const given of [
    headers,
    new Headers(headers),
    Object.fromEntries(Object.entries(headers).map(([k, v]) => [k.toUpperCase(), [v]])),
  ]) {
    assert.deepEqual(verifyWebhook({ body, headers: given, secrets: [secret], nowMs }), verified);
    assert.deepEqual(
      verifyWebhook({ body: bytes, headers: given, secrets: [secret], nowMs }),
      verified,
    );
  }
});

test('during a rotation, receivers with either secret accept the signature', () => {
  const headers = headersOf(signWebhook(content, [other, secret]));
  for (const secrets of [[other], [secret], [secret, other]]) {
    assert.equal(verifyWebhook({ body, headers, secrets, nowMs }).id, content.id);
  }
  // Unknown schemes are ignored.
  const mixed = headersOf(`v1a,abc= v2,x ${signWebhook(content, [secret])}`);
  assert.equal(verifyWebhook({ body, headers: mixed, secrets: [secret], nowMs }).id, content.id);
});

test('rejects a wrong secret and a changed body, id or timestamp', () => {
  const signature = signWebhook(content, [secret]);
  const verify = (fields: Record<string, string>, changed = body, secrets = [secret]) =>
    verifyWebhook({ body: changed, headers: headersOf(signature, fields), secrets, nowMs });
  assertInvalid(/no signature/, () => verify({}, body, [other]));
  assertInvalid(/no signature/, () => verify({}, body, []));
  assertInvalid(/no signature/, () => verify({}, `${body} `));
  assertInvalid(/no signature/, () => verify({ 'webhook-id': 'msg_other' }));
  assertInvalid(/no signature/, () => verify({ 'webhook-timestamp': String(nowMs / 1_000 + 1) }));
  assertInvalid(/malformed/, () => verify({ 'webhook-timestamp': 'now' }));
  assertInvalid(/malformed/, () => verify({ 'webhook-id': '' }));
  assertInvalid(/missing/, () => verifyWebhook({ body, headers: {}, secrets: [secret], nowMs }));
  assertInvalid(/no signature/, () =>
    verify({ 'webhook-signature': signature.replace('v1,', 'v1a,') }),
  );
});

test('a signature does not cover shifted boundaries of id, timestamp and body', () => {
  const moved = { id: 'a', timestampMs: 1_000, body: '2.x' };
  const headers = {
    'webhook-id': 'a.1',
    'webhook-timestamp': '2',
    'webhook-signature': signWebhook(moved, [secret]),
  };
  assertInvalid(/malformed/, () =>
    verifyWebhook({ body: 'x', headers, secrets: [secret], nowMs: 2_000 }),
  );
});

test('rejects timestamps outside the tolerance, which is configurable', () => {
  const headers = headersOf(signWebhook(content, [secret]));
  const at = (offsetMs: number, toleranceMs?: number) =>
    verifyWebhook({
      body,
      headers,
      secrets: [secret],
      nowMs: nowMs + offsetMs,
      ...(toleranceMs === undefined ? {} : { toleranceMs }),
    });
  assert.ok(at(300_000) && at(-300_000));
  assertInvalid(/too far/, () => at(301_000));
  assertInvalid(/too far/, () => at(-301_000));
  assertInvalid(/too far/, () => at(2_000, 1_000));
});

test('rejects an invalid secret without showing it', () => {
  for (const bad of ['whsec_', 'whsec_short', 'not base64 at all!!', '']) {
    assert.throws(
      () => signWebhook(content, [bad]),
      (error) => {
        return (
          hasCode(error, 'CONFIG_INVALID') &&
          (bad === '' || !error.message.includes(bad.slice(6) || '…'))
        );
      },
    );
  }
});

test('verifies any body and any id without a dot, and rejects a flipped bit', () => {
  const ids = fc.stringMatching(/^[A-Za-z0-9_%-]{1,40}$/);
  fc.assert(
    fc.property(ids, fc.uint8Array({ minLength: 1 }), fc.nat(), (id, bytes, pick) => {
      const headers = {
        'webhook-id': id,
        'webhook-timestamp': '1000',
        'webhook-signature': signWebhook({ id, timestampMs: 1_000_000, body: bytes }, [secret]),
      };
      const given = { headers, secrets: [secret], nowMs: 1_000_000 };
      assert.equal(verifyWebhook({ ...given, body: bytes }).id, id);
      const changed = Uint8Array.from(bytes);
      changed[pick % changed.length] = (changed[pick % changed.length] ?? 0) ^ (1 << (pick % 8));
      assert.throws(() => verifyWebhook({ ...given, body: changed }));
    }),
  );
});
