import assert from 'node:assert/strict';
import { test } from 'node:test';
import { supportedMethods } from './server-info.ts';

test('methods are listed in lower case, with their features', () => {
  const handler = (): void => undefined;
  const method = { access: 'read' as const, request: {}, response: {}, handler };
  assert.deepEqual(
    supportedMethods({ 'a.B': { GetInfo: { ...method, features: ['stream'] }, Read: method } }),
    [
      { serviceName: 'a.b', methodName: 'getinfo', features: ['stream'] },
      { serviceName: 'a.b', methodName: 'read', features: [] },
    ],
  );
});
