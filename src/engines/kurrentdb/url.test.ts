import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../../foundation/error.ts';
import { parseKurrentdbUrl } from './url.ts';

const secret = 'hunter2';

function problemOf(url: string): string {
  try {
    parseKurrentdbUrl(url);
  } catch (error) {
    assert.ok(hasCode(error, 'CONFIG_INVALID'));
    assert.ok(!JSON.stringify([error.message, error.details, error.stack]).includes(secret));
    return error.message;
  }
  return assert.fail(`${url} is accepted`);
}

test('the scheme esdb becomes kurrentdb, because the client prints a line for each esdb client', () => {
  const urls = ['esdb://h:1?tls=false', 'esdb+discover://a:1,b:2', 'kurrentdb://u:p@h', 'kdb://h'];
  assert.deepEqual(
    urls.map((url) => parseKurrentdbUrl(url).connection),
    ['kurrentdb://h:1?tls=false', 'kurrentdb+discover://a:1,b:2', 'kurrentdb://u:p@h', 'kdb://h'],
  );
});

test('an unknown parameter is an error that names the nearest one', () => {
  const at = `kurrentdb://u:${secret}@h:2113?tls=true&`;
  assert.match(
    problemOf(`${at}tlsCaFil=/x`),
    /unknown parameter 'tlsCaFil': did you mean 'tlsCAFile'/,
  );
  assert.match(problemOf(`${at}zzzzzz=1`), /unknown parameter 'zzzzzz': known: connectionName, /);
  assert.match(problemOf(`${at}nodePreference=`), /'nodePreference' has no value/);
  for (const name of ['tls-ca-file', 'TLS_VERIFY_CERT', 'nodepreference']) {
    parseKurrentdbUrl(`${at}${name}=x`);
  }
});

test('no error quotes a password', () => {
  for (const url of [
    `kurrentdb://u:${secret}@h@i:1`,
    `kurrentdb://u:${secret}:x@h:1`,
    `kurrentdb://u:%E0%A4%A${secret}@h:1`,
    `kurrentdb://u:${secret}@`,
    `http://u:${secret}@h:1`,
    `u:${secret}@h`,
  ]) {
    problemOf(url);
  }
});

test('only credentials that are percent-encoded are decoded here', () => {
  assert.equal(parseKurrentdbUrl('kurrentdb://u:p@h').credentials, undefined);
  assert.equal(parseKurrentdbUrl('kurrentdb://h').credentials, undefined);
  assert.deepEqual(parseKurrentdbUrl('kurrentdb://j%40x:a%40b%3Ac@h?tls=true').credentials, {
    username: 'j@x',
    password: 'a@b:c',
  });
});
