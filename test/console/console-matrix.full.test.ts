// Role × tenant × view × button, from the table of routes: hidden where refused, refused where forced.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { mayCall } from '../../src/platform/modules/principal.ts';
import { consoleViews } from '../../console/src/views.ts';
import { launchBrowser, openConsole, type ConsoleRig } from './console-rig.ts';

/** The view of each address, and a text that shows that it is loaded. */
async function pagesWithButtons(
  rig: ConsoleRig,
): Promise<readonly (readonly [needs: string, path: string, ready: string])[]> {
  await rig.api.fail('core', 'flow-9');
  const { failed, queued } = await rig.jobs();
  const { engines, tokens } = rig.api.platform;
  const [dead] = (await engines.outbox?.list({ status: 'DEAD' })) ?? [];
  const [letter] = await engines.subscriptions.deadLetters.list({ status: 'pending' });
  const waiting = await rig.waitingMessage();
  const { token } = await tokens.create({ name: 'shop', scopes: ['read'] });
  return [
    ['GET /admin/subscriptions', 'subscriptions?open=sub:banking:alarm:v1', 'Waiting events'],
    ['GET /admin/projections', 'projections?open=sub:banking:accounts:v1', 'Waiting events'],
    ['GET /api/v1/jobs', `jobs?open=${failed}`, 'no such mailbox'],
    ['GET /api/v1/jobs', `jobs?open=${queued}`, 'Payload'],
    ['GET /api/v1/jobs/types', 'jobs?show=types', 'report-gen'],
    ['GET /admin/outbox', `deliveries?open=${dead?.id ?? ''}`, 'Payload'],
    ['GET /admin/outbox', `deliveries?status=PENDING&open=${waiting}`, 'Payload'],
    ['GET /admin/failures', 'failures', 'partner:x'],
    [
      'GET /admin/parked-streams',
      `failures?show=parked&open=${letter?.id ?? ''}`,
      'Payload of the dead letter',
    ],
    ['GET /admin/destinations', 'deliveries?show=destinations', 'partner:x'],
    ['GET /admin/tokens', `tokens?open=${token.id}`, 'all tenants'],
  ];
}

/** The routes of the buttons, without duplicates, in the order of the page. */
const buttonsOf = async (page: Page): Promise<readonly string[]> => [
  ...new Set<string>(
    await page.evaluate(
      "[...document.querySelectorAll('[data-route]')].map((each) => each.dataset.route)",
    ),
  ),
];

describe('rights in Chromium', () => {
  let browser: Browser;
  before(async () => {
    browser = await launchBrowser();
  });
  after(() => browser.close());

  test('a session sees the views and buttons that its scope and tenant allow, and no others', async () => {
    await using rig = await openConsole(browser);
    const pages = await pagesWithButtons(rig);
    const all = new Map<string, readonly string[]>();
    for (const scope of ['admin', 'operate', 'read'] as const) {
      for (const tenant of [undefined, 'core']) {
        const rights = { scopes: [scope], ...(tenant === undefined ? {} : { tenant }) };
        const may = new Set(
          rig.api.server.routes
            .filter((each) => mayCall(each, rights))
            .map(({ method, path }) => `${method} ${path}`),
        );
        const who = `${scope} ${tenant ?? 'all tenants'}`;
        await using visit = await rig.visit({ scope, ...(tenant && { tenant }) });
        const { page } = visit;
        const navigation = page.getByRole('navigation', { name: 'Views' });
        assert.deepEqual(
          (await navigation.getByRole('link').allInnerTexts()).map((text) => text.split('\n')[0]),
          consoleViews.filter(({ needs }) => may.has(needs)).map(({ title }) => title),
          who,
        );
        for (const [needs, path, ready] of pages) {
          await visit.go(path);
          if (!may.has(needs)) {
            await page.getByText('Not allowed for this session').first().waitFor();
            assert.ok(visit.errors.splice(0).length > 0, `${who} ${path}`);
            assert.deepEqual(await buttonsOf(page), [], `${who} ${path}`);
            continue;
          }
          await page.getByText(ready).first().waitFor();
          const shown = await buttonsOf(page);
          if (!all.has(path)) all.set(path, shown);
          const expected = (all.get(path) ?? []).filter((route) => may.has(route));
          assert.deepEqual(shown, expected, `${who} ${path}`);
        }
      }
    }
    assert.ok([...all.values()].every((buttons) => buttons.length > 0));
    assert.equal(new Set([...all.values()].flat()).size, 14);
  });
});
