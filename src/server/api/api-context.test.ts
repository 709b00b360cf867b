import { test } from 'node:test';
import { rejectsWith } from '../../testing/assertions.ts';
import type { Principal } from '../../platform/modules/principal.ts';
import { checkStreamAccess } from './api-context.ts';

const principalWith = (scopes: Principal['scopes'], tenant?: string): Principal => ({
  kind: 'token',
  name: 'any',
  scopes,
  ...(tenant === undefined ? {} : { tenant }),
});

test('only an administrator of all tenants reads system streams and keys of data subjects', async () => {
  const platform = { ownerOf: async () => '' };
  for (const stream of ['$millrace-tokens', 'millrace.subjectKeys-0a1b']) {
    const access = (principal: Principal): Promise<void> =>
      checkStreamAccess(platform, stream, { headers: {}, principal });
    await access(principalWith(['admin']));
    for (const principal of [principalWith(['read']), principalWith(['admin'], 'core')]) {
      await rejectsWith(() => access(principal), 'NOT_ALLOWED');
    }
  }
});
