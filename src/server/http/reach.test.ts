import assert from 'node:assert/strict';
import { test } from 'node:test';
import { acceptedHosts, acceptsHost, isReachableFromElsewhere, type Reach } from './reach.ts';

test('a server can be reached from elsewhere by its address, a proxy or a public name', () => {
  const cases: readonly (readonly [Reach, boolean])[] = [
    [{}, false],
    [{ host: '127.0.0.1' }, false],
    [{ host: '::1', baseUrl: 'http://localhost:7480' }, false],
    [{ host: '0.0.0.0' }, true],
    [{ behindProxy: true }, true],
    [{ baseUrl: 'https://push.shop.example' }, true],
    [{ hosts: ['api.shop.example'] }, true],
  ];
  for (const [reach, expected] of cases) {
    assert.equal(isReachableFromElsewhere(reach), expected, JSON.stringify(reach));
  }
});

test('a server on a loopback address accepts its own names and the configured ones', () => {
  const own = ['127.0.0.1:7480', 'localhost', 'LOCALHOST.:7480', '[::1]:7480', undefined];
  const foreign = ['evil.example', 'evil.example:7480', 'localhost.evil.example', '', 'a:b:c'];
  const cases: readonly (readonly [Reach, readonly (string | undefined)[], boolean])[] = [
    [{}, own, true],
    [{}, foreign, false],
    [{ hosts: ['API.shop.example'] }, [...own, 'api.shop.example:443'], true],
    [{ hosts: ['api.shop.example'] }, foreign, false],
    [{ baseUrl: 'https://push.shop.example/base' }, ['push.shop.example'], true],
    [{ behindProxy: true, baseUrl: 'https://push.shop.example' }, foreign, false],
    // The names that a proxy passes are not known.
    [{ behindProxy: true }, foreign, true],
    [{ host: '0.0.0.0' }, foreign, true],
  ];
  for (const [reach, headers, expected] of cases) {
    const hosts = acceptedHosts(reach);
    for (const header of headers)
      assert.equal(acceptsHost(hosts, header), expected, String(header));
  }
});
