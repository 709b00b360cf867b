// Parked streams, the processes of the deployment and masked payloads, in a real browser.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { until } from '../../src/testing/support/server/api-rig.ts';
import { launchBrowser, openConsole } from './console-rig.ts';
import { park, parkedShop } from './parked-shop.ts';

const stream = 'shop.order.v1-core-7';

/** Runs in the browser: cells that the edge of the screen cuts off. */
const cellsOutside = `[...document.querySelectorAll('th, td')]
  .filter((each) => each.getBoundingClientRect().right > innerWidth).length`;

describe('parked streams, processes and masked payloads in Chromium', () => {
  let browser: Browser;
  before(async () => {
    browser = await launchBrowser();
  });
  after(() => browser.close());

  test('a parked stream is found from its cause and replayed, with the keyboard alone', async () => {
    const shop = parkedShop();
    await using rig = await openConsole(browser, {}, [shop.module]);
    await park(rig, '7', 4);
    await using visit = await rig.visit({ scope: 'operate' });
    const { page } = visit;
    await page.keyboard.press('g');
    await page.keyboard.press('d');
    await page.getByRole('button', { name: /no such mailbox/ }).waitFor();
    await page.keyboard.press('j');
    await page.getByRole('link', { name: '1 parked stream and the events' }).press('Enter');
    await page.getByRole('row', { name: /core-7.*3 events/ }).waitFor();
    await page.keyboard.press('j');
    const sheet = page.getByRole('dialog', { name: stream });
    const waiting = sheet.getByRole('table', { name: 'Waiting events' });
    await waiting.getByRole('row', { name: /order\.shipped\.v1 3/ }).waitFor();
    assert.equal(await waiting.getByRole('row').count(), 4);
    assert.deepEqual(shop.handled, {});
    shop.state.isFixed = true;
    await sheet.getByRole('button', { name: 'Replay' }).press('Enter');
    await sheet.getByText('The dead letter is replayed').waitFor();
    await sheet.getByText('the waiting events follow in order').waitFor();
    await until(() => shop.handled[stream]?.length === 4);
    assert.deepEqual(shop.handled[stream], [0, 1, 2, 3]);
    await page.keyboard.press('Escape');
    await sheet.waitFor({ state: 'detached' });
  });

  test('discarding the blocking dead letter asks for a reason, and the stream continues', async () => {
    const shop = parkedShop();
    await using rig = await openConsole(browser, {}, [shop.module]);
    await park(rig, '7', 3);
    await using visit = await rig.visit({ scope: 'operate', path: 'failures?show=parked' });
    const { page } = visit;
    await page.getByRole('button', { name: stream }).click();
    await page.getByRole('button', { name: 'Discard…' }).click();
    await page.getByLabel('Reason, stored with the dead letter').fill('the customer left');
    await page.keyboard.press('Enter');
    await page.getByText('The dead letter is discarded').waitFor();
    await until(() => shop.handled[stream]?.length === 2);
    assert.deepEqual(shop.handled[stream], [1, 2]);
    await page.getByText('No stream is parked').waitFor();
  });

  test('a tenant and a reader see the parked streams they may, and no buttons without the right', async () => {
    const shop = parkedShop();
    await using rig = await openConsole(browser, {}, [shop.module]);
    await park(rig, '7', 2);
    const [letter] = await rig.api.platform.engines.subscriptions.deadLetters.list({ stream });
    const open = `failures?show=parked&open=${letter?.id ?? ''}`;
    await using reader = await rig.visit({ scope: 'read', tenant: 'core', path: open });
    await reader.page.getByRole('table', { name: 'Waiting events' }).waitFor();
    assert.equal(await reader.page.getByRole('button', { name: 'Replay' }).count(), 0);
    await using other = await rig.visit({
      scope: 'operate',
      tenant: 'acme',
      path: 'failures?show=parked',
    });
    await other.page.getByText('No stream is parked').waitFor();
    await other.open(open);
    await other.page.getByText('No dead letter has this id').waitFor();
    assert.equal(other.errors.splice(0).length, 1);
    await using guest = await rig.visit({ scope: 'append', path: null });
    await guest.open('failures?show=parked');
    await guest.page.getByText('Not allowed for this session').waitFor();
    guest.errors.splice(0);
  });

  test('the system lists the running processes, and forgets a worker that has left', async () => {
    await using rig = await openConsole(browser);
    const tasks = await rig.api.platform.tasks();
    const about = { host: 'worker-box', pid: 7, types: ['report-gen'] };
    await tasks.heartbeat({ worker: 'go-1', tokens: [], leaseMs: 600_000, about });
    await using visit = await rig.visit({ scope: 'read' });
    const { page } = visit;
    await page.keyboard.press('g');
    await page.keyboard.press('h');
    const table = page.getByRole('table', { name: 'Processes' });
    await table.getByRole('row', { name: /this server.*subscriptions/ }).waitFor();
    const worker = table.getByRole('row', { name: /worker-box.*report-gen/ });
    await worker.waitFor();
    await tasks.leave('go-1');
    await worker.waitFor({ state: 'detached' });
  });

  test('masked payloads are shown as masked, and their search is not offered', async () => {
    const shop = parkedShop();
    await using rig = await openConsole(browser, { maskPayloads: true }, [shop.module]);
    await park(rig, '7', 2);
    const [letter] = await rig.api.platform.engines.subscriptions.deadLetters.list({ stream });
    const paths = [
      'events?sel=first&since=1h',
      `failures?show=parked&open=${letter?.id ?? ''}`,
      `streams/${stream}?at=0`,
    ];
    for (const scope of ['operate', 'admin'] as const) {
      await using visit = await rig.visit({ scope, path: null });
      const { page } = visit;
      for (const path of paths) {
        await visit.open(path.replace('sel=first&', ''));
        if (path.includes('sel=first')) {
          await page.getByRole('option').first().click();
          const field = page.getByLabel('Payload', { exact: true });
          assert.equal(await field.count(), scope === 'admin' ? 1 : 0);
        }
        await page.getByText('mill-7').or(page.getByText('Values are masked')).first().waitFor();
        const html = await page.content();
        assert.equal(html.includes('ada@example.com'), scope === 'admin', `${scope} ${path}`);
      }
      await visit.open('failures');
      const title = scope === 'admin' ? 'no such mailbox' : 'Terminal: (masked)';
      await page.getByRole('button', { name: title }).first().click();
      const sheet = page.getByRole('dialog');
      await sheet.getByText('Payload', { exact: true }).click();
      await sheet.getByText('"mill-7"').or(sheet.getByText('Values are masked')).first().waitFor();
      const html = await sheet.innerHTML();
      assert.equal(html.includes('ada@example.com'), scope === 'admin');
    }
  });

  test('the rows of every paged view stay when the next page fails, and it can be tried again', async () => {
    const shop = parkedShop();
    await using rig = await openConsole(browser, {}, [shop.module]);
    await park(rig, '7', 3);
    await rig.jobs();
    await rig.waitingMessage();
    const [letter] = await rig.api.platform.engines.subscriptions.deadLetters.list({ stream });
    await using visit = await rig.visit({ path: null });
    const { page } = visit;
    // Each first page names a second one, which fails.
    const state = { second: 'refused' };
    await page.route(/\/(?:api\/v1|admin)\//, async (request) => {
      const isSecond = request.request().url().includes('cursor=');
      if (isSecond && state.second === 'lost') return request.abort();
      if (isSecond && state.second === 'empty') return request.fulfill({ json: { items: [] } });
      const headers = { ...request.request().headers(), 'sec-fetch-site': 'same-origin' };
      const response = await request.fetch({ headers });
      const content = (await response.json()) as { readonly items?: readonly unknown[] };
      const isPage = response.ok() && content.items !== undefined;
      return request.fulfill({
        response,
        json: isPage ? { ...content, cursor: 'broken' } : content,
      });
    });
    const rows = page.locator('#main, [role=dialog]').locator('tbody tr, li, [role=option]');
    const problem = page.getByRole('alert').filter({ hasText: 'More rows could not be loaded' });
    for (const [path, first, more] of [
      ['events', /order\.placed/, undefined],
      [`events?stream=${stream}`, /order\.placed/, 'Search further'],
      [`streams/${stream}`, /order\.placed/, 'Load older events'],
      ['jobs', /email-send/, 'Load more'],
      ['deliveries', /partner:x/, 'Load more'],
      ['audit', /console\.sign-in/, 'Load more'],
      [`failures?show=parked&open=${letter?.id ?? ''}`, /order\.paid/, 'Load more'],
      ['failures?show=parked', /core-7/, 'Load more'],
    ] as const) {
      state.second = 'refused';
      await visit.go(path);
      await rows.filter({ hasText: first }).first().waitFor();
      if (more !== undefined) await page.getByRole('button', { name: more }).last().click();
      await problem
        .getByText(/cursor/)
        .first()
        .waitFor();
      assert.ok((await rows.filter({ hasText: first }).count()) > 0, path);
      assert.ok(visit.errors.splice(0).length > 0, path);
      if (path === 'events') {
        state.second = 'lost';
        await problem.getByRole('button', { name: 'Try again' }).click();
        await problem.getByText('The server does not respond').waitFor();
      }
      state.second = 'empty';
      await problem.getByRole('button', { name: 'Try again' }).click();
      await problem.waitFor({ state: 'detached' });
      assert.ok((await rows.filter({ hasText: first }).count()) > 0, path);
      visit.errors.splice(0);
    }
  });

  test('the views fit a screen of 360 pixels, and leave nothing serious for axe', async () => {
    const shop = parkedShop();
    await using rig = await openConsole(browser, { maskPayloads: true }, [shop.module]);
    await park(rig, '7', 3);
    const [letter] = await rig.api.platform.engines.subscriptions.deadLetters.list({ stream });
    for (const theme of ['light', 'dark'] as const) {
      await using visit = await rig.visit({
        path: null,
        theme,
        width: 360,
        height: 740,
        scope: 'operate',
        bypassCsp: true,
      });
      for (const [path, text] of [
        ['failures?show=parked', stream],
        [`failures?show=parked&open=${letter?.id ?? ''}`, 'Values are masked'],
        ['failures?show=parked&where=none', 'Nothing matches the filter'],
        ['system', 'this server'],
      ] as const) {
        await visit.go(path);
        await visit.page.getByText(text).first().waitFor();
        const width = await visit.page.evaluate('document.documentElement.scrollWidth');
        assert.equal(width, 360, path);
        assert.equal(await visit.page.evaluate(cellsOutside), 0, path);
        assert.deepEqual(await visit.axe(), [], `${theme} ${path}`);
      }
    }
  });
});
