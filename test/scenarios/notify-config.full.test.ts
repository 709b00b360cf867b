// The configuration from the documents with the notifications module, served by `millrace start` and `dev`.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { apiCaller } from '../../src/testing/index.ts';
import { startProduct } from '../start-product.ts';
import { createWorkspace } from '../store/rig.ts';

const source = (path: string): string => new URL(`../../${path}`, import.meta.url).href;

const config = `
import { notifications } from '${source('modules/customers/index.ts')}';
import { defineConfig } from '${source('src/platform/index.ts')}';

export default defineConfig({ modules: [notifications()] });
`;

for (const command of ['start', 'dev']) {
  test(`millrace ${command} serves the customers, broadcasts and topics of a configuration`, async (t) => {
    await using workspace = await createWorkspace();
    await writeFile(join(workspace.folder, 'millrace.config.ts'), config);
    const more = command === 'dev' ? ['--no-watch'] : [];
    const product = await startProduct(workspace.folder, [command, '--no-kurrent', ...more]);
    t.after(() => product.signal('SIGKILL'));
    const shop = apiCaller(product.base, product.token ?? '');
    const core = { 'x-tenant-id': 'core' };
    const customer = '/api/v1/notify/customers/cust_1';
    const channels = ['socket', 'topic'];
    const alert = { enabled: true, channels, breaksQuiet: true };
    const preferences = { timeZone: 'UTC', quietHours: [], categories: { alert } };
    await shop.ask('PUT', `${customer}/preferences`, preferences, core);
    await shop.ask('PUT', `${customer}/contact`, { topic: 'server-alerts' }, core);
    const message = { category: 'alert', title: 'The disk is full' };
    const response = await shop.ask('POST', `${customer}/notifications`, message, core);
    assert.deepEqual([response.status, response.body['outcome']], [201, 'delivered']);
    // Readers of the ntfy topic receive the notification, too.
    const topic = await fetch(`${product.base}/core_server-alerts/raw?since=all`);
    for await (const chunk of topic.body ?? []) {
      if (new TextDecoder().decode(chunk).includes('The disk is full')) break;
    }
    assert.equal(await product.stop('SIGTERM'), 0);
  });
}
