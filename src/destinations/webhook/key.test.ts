import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { hasCode } from '../../foundation/error.ts';
import { createWebhookKeyPair } from './key.ts';
import { signWebhook, verifyWebhook } from './signature.ts';
import { webhookDestination } from './destination.ts';

// The reference pair and signature of v1a.
const secretKey =
  'whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==';
const publicKey = 'whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=';
const signature =
  'v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==';
const shared = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const nowMs = 1_614_265_330_000;
const body = '{"test": 2432232314}';
const content = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', timestampMs: nowMs, body };

const verify = (given: string, secrets: readonly string[], changed = body) =>
  verifyWebhook({
    body: changed,
    headers: {
      'webhook-id': content.id,
      'webhook-timestamp': String(nowMs / 1_000),
      'webhook-signature': given,
    },
    secrets,
    nowMs,
  });
const assertInvalid = (call: () => unknown): void =>
  assert.throws(call, (error) => hasCode(error, 'SIGNATURE_INVALID'));

test('produces and verifies the reference signature of v1a, also from the seed alone', () => {
  assert.equal(signWebhook(content, [secretKey]), signature);
  const seed = Buffer.from(secretKey.slice(5), 'base64').subarray(0, 32).toString('base64');
  assert.equal(signWebhook(content, [`whsk_${seed}`]), signature);
  for (const secret of [publicKey, secretKey]) {
    assert.equal(verify(signature, [secret]).id, content.id);
  }
});

test('receivers with either kind of key accept a webhook signed with both', () => {
  const both = signWebhook(content, [shared, secretKey]);
  assert.match(both, /^v1,\S+ v1a,\S+$/);
  for (const secrets of [[shared], [publicKey], [publicKey, shared]]) {
    assert.equal(verify(both, secrets).id, content.id);
  }
});

test('rejects another key, a changed body and a signature of the other scheme', () => {
  const other = createWebhookKeyPair();
  assertInvalid(() => verify(signature, [other.publicKey]));
  assertInvalid(() => verify(signature, [shared]));
  assertInvalid(() => verify(signature, [publicKey], `${body} `));
  assertInvalid(() => verify(signature.replace('v1a,', 'v1,'), [publicKey]));
  for (const odd of ['v1a,', 'v1a', 'v1a,AAAA', `v1a,${randomBytes(64).toString('base64')}`, ',']) {
    assertInvalid(() => verify(odd, [publicKey, shared]));
  }
});

test('each new pair is different, and signs and verifies', () => {
  const pair = createWebhookKeyPair();
  assert.match(pair.secretKey, /^whsk_[A-Za-z0-9+/]{86}==$/);
  assert.match(pair.publicKey, /^whpk_[A-Za-z0-9+/]{43}=$/);
  assert.equal(verify(signWebhook(content, [pair.secretKey]), [pair.publicKey]).id, content.id);
  assert.notEqual(createWebhookKeyPair().secretKey, pair.secretKey);
});

test('rejects invalid keys and signing with a public key, without showing them', () => {
  const halves = `whsk_${Buffer.concat([randomBytes(32), randomBytes(32)]).toString('base64')}`;
  for (const bad of ['whsk_', 'whpk_AAAA', `whsk_${randomBytes(33).toString('base64')}`, halves]) {
    assert.throws(
      () => signWebhook(content, [bad]),
      (error) =>
        hasCode(error, 'CONFIG_INVALID') &&
        (bad.length < 6 || !error.message.includes(bad.slice(5))),
    );
  }
  assert.throws(() => signWebhook(content, [publicKey]), { code: 'CONFIG_INVALID' });
  const endpoint = { id: 'acme', url: 'https://acme.example/', secrets: [publicKey] } as const;
  assert.throws(() => webhookDestination({ endpoint }), { code: 'CONFIG_INVALID' });
});
