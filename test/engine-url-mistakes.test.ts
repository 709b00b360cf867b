// Every kind of mistake in the URL of an engine is refused at the public entry, before anything is opened.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../src/foundation/error.ts';
import { createPlatform } from '../src/platform/index.ts';

const secret = 'hunter2';

for (const [setting, url, mistake] of [
  ['store', `postgre://u:${secret}@h/db`, /'postgre:' is not supported.*Did you mean postgres:\?/],
  ['store', `postgres://u:${secret}@h:5432`, /names no database/],
  ['store', `postgres://u:${secret}@h:99999/db`, /port from 1 to 65535/],
  ['outbox', `postgres://u:${secret}@h:x/db`, /port from 1 to 65535/],
  ['store', `postgres://u:${secret}@h/db?sslmod=require`, /'sslmod': did you mean 'sslmode'/],
  ['store', `postgres://u:${secret}/x@h/db`, /percent-encoded/],
  ['store', `mongdb://u:${secret}@h/db`, /Did you mean mongodb:\?/],
  ['store', `mongodb://u:${secret}@h`, /names no database/],
  ['store', `mongodb://u:${secret}@/db`, /names no host/],
  ['store', `mongodb://u:${secret}@h:0/db`, /port from 1 to 65535/],
  ['store', `mongodb://u:${secret}@h/db?replicatSet=a`, /did you mean 'replicaSet'/],
  ['store', `mongodb://u:%zz${secret}@h/db`, /percent-encoded/],
  ['store', `kurentdb://u:${secret}@h`, /Did you mean kurrentdb:\?/],
  ['store', `kurrentdb://u:${secret}@`, /names no host/],
  ['store', `kurrentdb://u:${secret}@h:70000`, /port from 1 to 65535/],
  ['store', `kurrentdb://u:${secret}@h?tlsCaFil=x`, /'tlsCaFil': did you mean 'tlsCAFile'/],
  ['store', `kurrentdb://u:${secret}:x@h`, /percent-encoded/],
  ['keys', `rediss+clusters://u:${secret}@h`, /Did you mean rediss\+cluster:\?/],
  ['keys', `redis://u:${secret}@`, /names no host/],
  ['keys', `redis://u:${secret}@h:0`, /port from 1 to 65535/],
  ['queue', `redis://u:${secret}@h/shop`, /the database must be a number/],
  ['keys', `redis://u:${secret}@h?clster`, /'clster': did you mean 'cluster'/],
  ['keys', `redis://u:${secret}@h@i`, /percent-encoded/],
  ['keys', `redis://u:x?${secret}@h`, /unknown parameter/],
  ['bus', `natss://u:${secret}@h`, /Did you mean nats:\?/],
  ['bus', `nats://u:${secret}@`, /names no host/],
  ['tasks', `nats://u:${secret}@h:99999`, /port from 1 to 65535/],
  ['bus', `nats://u:${secret}@h?tls=1`, /unknown parameter 'tls': the URL takes none/],
  ['bus', `nats://u:${secret}#@h`, /'#' must be written as %23/],
  ['store', 'sqlit:a.db', /Did you mean sqlite:\?/],
  ['store', 'sqlite:', /needs a file/],
  ['store', 'sqlite:a.db?mode=ro', /no parameters/],
  ['store', 'memry:', /Did you mean memory:\?/],
  ['keys', secret, /must start with its engine/],
] as const) {
  test(`names the setting, the mistake and an example: ${setting} ${url}`, async () => {
    await assert.rejects(
      () => createPlatform({ engines: { store: 'memory:', [setting]: url } }),
      (error) => {
        assert.ok(hasCode(error, 'CONFIG_INVALID'));
        assert.match(error.message, mistake);
        const name = `${setting} (MILLRACE_${setting.toUpperCase()}): `;
        assert.ok(error.message.startsWith(name), error.message);
        assert.match(error.message, /as in [a-z]+:|for example [a-z]+:/);
        assert.ok(!JSON.stringify([error.message, error.details]).includes(secret), error.message);
        return true;
      },
    );
  });
}
