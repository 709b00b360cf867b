// The views over subscriptions, jobs, deliveries, the deployment, tokens and the audit, in a real browser.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { until } from '../../src/testing/support/server/api-rig.ts';
import { launchBrowser, openConsole, type ConsoleRig } from './console-rig.ts';

/** The address of each view with its details open, and a text that it shows when it is filled. */
async function fill(rig: ConsoleRig): Promise<readonly (readonly [path: string, text: string])[]> {
  await rig.api.fail('core', 'flow-9');
  const { failed } = await rig.jobs();
  const { engines, tokens } = rig.api.platform;
  const [dead] = (await engines.outbox?.list({ status: 'DEAD' })) ?? [];
  const { token } = await tokens.create({ name: 'shop', scopes: ['read'], tenant: 'core' });
  return [
    ['subscriptions?open=sub:banking:alarm:v1', 'Waiting events'],
    ['projections?open=sub:banking:accounts:v1', 'banking.account v1'],
    [`jobs?open=${failed}`, 'no such mailbox'],
    ['jobs?show=types', 'email-send'],
    ['jobs?show=workers', 'worker-1'],
    [`deliveries?open=${dead?.id ?? ''}`, 'Payload'],
    ['deliveries?show=destinations', 'partner:x'],
    ['system', 'Use sqlite:<file> for data'],
    [`tokens?open=${token.id}`, 'shop'],
    ['audit', 'console.sign-in'],
  ];
}

describe('the views of an operator in Chromium', () => {
  let browser: Browser;
  before(async () => {
    browser = await launchBrowser();
  });
  after(() => browser.close());

  test('a subscription is paused and resumed, and its dead letter replayed, with the keyboard alone', async () => {
    await using rig = await openConsole(browser);
    await rig.api.fail('core');
    await using visit = await rig.visit({ scope: 'operate' });
    const { page } = visit;
    await page.keyboard.press('g');
    await page.keyboard.press('s');
    await page.getByRole('button', { name: 'sub:banking:alarm:v1' }).waitFor();
    await page.keyboard.press('j');
    const sheet = page.getByRole('dialog', { name: 'sub:banking:alarm:v1' });
    await sheet.getByRole('row', { name: /^0 / }).waitFor();
    await sheet.getByRole('button', { name: 'Pause' }).press('Enter');
    await sheet.getByText('Paused in all processes').waitFor();
    await page.getByRole('row', { name: /alarm:v1 paused/ }).waitFor();
    const { subscriptions } = rig.api.platform;
    const isPaused = async (): Promise<boolean | undefined> =>
      (await subscriptions.list()).find((each) => each.subscription === 'sub:banking:alarm:v1')
        ?.paused;
    assert.equal(await isPaused(), true);
    await sheet.getByRole('button', { name: 'Resume' }).press('Enter');
    await sheet.getByText('It continues after its position').waitFor();
    assert.equal(await isPaused(), false);
    rig.api.faults.isFixed = true;
    await sheet.getByRole('button', { name: 'Replay 1 dead letter' }).press('Enter');
    await sheet.getByText('Replay of 1 requested').waitFor();
    await sheet
      .getByRole('button', { name: 'Replay 1 dead letter' })
      .waitFor({ state: 'detached' });
    await page.keyboard.press('Escape');
    await sheet.waitFor({ state: 'detached' });
    assert.match(page.url(), /\/console\/subscriptions$/);
  });

  test('the focus is in the details of a row, returns to the row, and moves among flows', async () => {
    await using rig = await openConsole(browser);
    await rig.append('order.placed.v1');
    await rig.api.fail('core', 'flow-9');
    await using visit = await rig.visit({ path: null });
    const { page } = visit;
    const focus = page.locator(':focus');
    for (const [path, row] of [
      ['failures', page.locator('#main tbody button').first()],
      ['subscriptions', page.locator('#main tbody button').first()],
      ['events', page.getByRole('option').first()],
    ] as const) {
      await visit.go(path);
      await row.waitFor();
      await page.keyboard.press('j');
      // Not on the button that closes: Enter after j would close what j has opened.
      await page.locator('[role=dialog]:focus').waitFor();
      await page.keyboard.press('Escape');
      await row.and(focus).waitFor();
    }
    await visit.go('failures');
    await page.getByRole('columnheader', { name: 'Cause' }).waitFor();
    await visit.go('deliveries?show=destinations');
    const destination = page.getByRole('row', { name: /partner:x/ });
    await destination.waitFor();
    await page.keyboard.press('j');
    await destination.and(focus).waitFor();
    await visit.go('traces');
    const flows = page.getByRole('link', { name: /flow-/ });
    await flows.nth(1).waitFor();
    for (const [key, at] of [
      ['j', 0],
      ['j', 1],
      ['k', 0],
    ] as const) {
      await page.keyboard.press(key);
      await flows.nth(at).and(focus).waitFor();
    }
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Trace', exact: true }).waitFor();
    assert.equal(await page.title(), 'Trace flow-9 · Millrace');
    // In a trace, k alone selects a row, and o folds it.
    for (const [key, title] of [
      ['k', 'Jobs'],
      ['o', 'Overview'],
    ] as const) {
      await page.keyboard.press('g');
      await page.keyboard.press(key);
      await page.getByRole('heading', { name: title, exact: true }).waitFor();
      await page.goBack();
      await page.getByRole('heading', { name: 'Trace' }).waitFor();
    }
  });

  test('Back closes the details of a row, and closing them leaves no entry of the history', async () => {
    await using rig = await openConsole(browser);
    await rig.append('order.placed.v1');
    await rig.api.fail('core', 'flow-9');
    await using visit = await rig.visit();
    const { page } = visit;
    const sheet = page.getByRole('dialog');
    const press = async (...keys: readonly string[]): Promise<void> => {
      for (const key of keys) await page.keyboard.press(key);
    };
    const isOverview = () => page.getByRole('heading', { name: 'Overview' }).waitFor();
    await isOverview();
    await press('/');
    await page.getByRole('combobox').waitFor();
    await press('Escape');
    await page.getByRole('combobox').waitFor({ state: 'detached' });
    for (const [key, row] of [
      ['s', page.locator('#main tbody button').first()],
      ['d', page.locator('#main tbody button').first()],
      ['e', page.getByRole('option').first()],
    ] as const) {
      await press('g', key);
      await row.waitFor();
      const { href } = new URL(page.url());
      await press('j');
      await sheet.waitFor();
      const { href: first } = new URL(page.url());
      await press('j');
      await page.waitForURL((url) => url.href !== first);
      await page.goBack();
      await sheet.waitFor({ state: 'detached' });
      assert.equal(page.url(), href);
      await press('j');
      await sheet.waitFor();
      // The second Escape comes before the browser has gone back.
      await page.evaluate(
        "for (const key of ['Escape', 'Escape']) dispatchEvent(new KeyboardEvent('keydown', { key }))",
      );
      await sheet.waitFor({ state: 'detached' });
      assert.equal(page.url(), href);
      await page.goBack();
      await isOverview();
    }
    await visit.open('subscriptions?open=sub:banking:alarm:v1');
    await sheet.getByRole('button', { name: 'Close' }).click();
    await sheet.waitFor({ state: 'detached' });
    assert.match(page.url(), /\/subscriptions$/);
    await page.goBack();
    await isOverview();
  });

  test('new events of a stream are announced, and never move the rows', async () => {
    await using rig = await openConsole(browser);
    await rig.append('order.placed.v1');
    await using visit = await rig.visit({ path: 'streams/shop.order.v1-core-1' });
    const { page } = visit;
    const rows = page.locator('#main li');
    await rows.getByText('@0').waitFor();
    await rig.append('order.paid.v1');
    const announced = page.getByRole('button', { name: '1 new' });
    await announced.waitFor();
    assert.equal(await rows.count(), 1);
    await announced.click();
    await rows.getByText('@1').waitFor();
    assert.equal(await announced.count(), 0);
  });

  test('a failed job shows its steps and is retried, and a queued one is cancelled after a question', async () => {
    await using rig = await openConsole(browser);
    const { failed, queued } = await rig.jobs();
    await using visit = await rig.visit({ scope: 'operate', path: 'jobs?state=failed' });
    const { page } = visit;
    await page.getByRole('button', { name: failed }).click();
    const sheet = page.getByRole('dialog', { name: 'email-send' });
    await sheet.getByText('render').first().waitFor();
    await sheet.getByText('"bytes"').waitFor();
    await sheet.getByRole('button', { name: 'Retry' }).click();
    await sheet.getByText('Completed steps do not run again').waitFor();
    const tasks = await rig.api.platform.tasks();
    assert.equal((await tasks.get(failed))?.state, 'queued');
    const [job] = await tasks.claim({ worker: 'w', types: { 'email-send': 1 }, waitMs: 0 });
    await tasks.complete(job?.token ?? assert.fail('not claimed'), { sent: true });
    await sheet.getByRole('button', { name: 'Run again…' }).click();
    await page.getByText('The job has completed').waitFor();
    assert.equal((await tasks.get(failed))?.state, 'completed');
    await page
      .getByRole('dialog', { name: 'Run again?' })
      .getByRole('button', { name: 'Run again' })
      .click();
    await until(async () => (await tasks.get(failed))?.state === 'queued');

    await visit.open(`jobs?open=${queued}`);
    await page.getByRole('button', { name: 'Cancel the job' }).click();
    await page.getByText('A waiting job ends at once').waitFor();
    assert.equal((await tasks.get(queued))?.state, 'queued');
    await page
      .getByRole('dialog', { name: 'Cancel the job?' })
      .getByRole('button', { name: 'Cancel the job' })
      .click();
    await page.getByText('Cancellation requested').waitFor();
    assert.equal((await tasks.get(queued))?.state, 'cancelled');
  });

  test('new jobs are announced and never move the rows, and a bad cursor leaves them', async () => {
    await using rig = await openConsole(browser);
    const { queued } = await rig.jobs();
    await using visit = await rig.visit({ path: 'jobs?type=report-gen' });
    const { page } = visit;
    await page.getByRole('button', { name: queued }).waitFor();
    const tasks = await rig.api.platform.tasks();
    const { id } = await tasks.enqueue({ type: 'report-gen', payload: {} });
    await page.getByRole('button', { name: '1 new' }).waitFor();
    assert.equal(await page.getByRole('button', { name: id }).count(), 0);
    await page.getByRole('button', { name: '1 new' }).click();
    await page.getByRole('button', { name: id }).waitFor();

    for (let at = 0; at < 100; at += 1) await tasks.enqueue({ type: 'report-gen', payload: {} });
    await page.route(/cursor=/, (request) =>
      request.continue({
        url: request
          .request()
          .url()
          .replace(/cursor=[^&]*/, 'cursor=broken'),
      }),
    );
    await visit.open('jobs?type=report-gen');
    await page.getByRole('button', { name: 'Load more' }).click();
    await page.getByRole('alert').getByText('cursor').first().waitFor();
    assert.equal(await page.getByRole('row').count(), 101);
    assert.equal(visit.errors.splice(0).length, 1);
  });

  test('a dead message is replayed, a waiting one retried now and another one discarded', async () => {
    await using rig = await openConsole(browser);
    await rig.api.fail('core', 'flow-9');
    const waiting = await rig.waitingMessage();
    await using visit = await rig.visit({ scope: 'operate', path: 'deliveries?show=destinations' });
    const { page } = visit;
    const row = page.getByRole('row', { name: /partner:x/ });
    await row.getByRole('button', { name: 'Pause' }).click();
    await row.getByText('paused', { exact: true }).waitFor();
    const { outbox } = rig.api.platform.engines;
    assert.deepEqual(
      (await outbox?.paused())?.map(({ integrationType }) => integrationType),
      ['partner:x'],
    );
    await row.getByRole('button', { name: 'Resume' }).click();
    await row.getByText('active', { exact: true }).waitFor();
    rig.api.faults.isFixed = true;
    await page.getByRole('button', { name: 'Messages' }).click();
    await page.getByRole('button', { name: /^dead/ }).click();
    await page.getByRole('button', { name: /partner:x/ }).click();
    const sheet = page.getByRole('dialog', { name: 'partner:x' });
    await sheet.getByRole('button', { name: 'Replay' }).click();
    await sheet.getByText('Its idempotency key stays the same').waitFor();
    await until(async () => (await outbox?.counts())?.SENT === 3);
    await sheet.getByText('sent', { exact: true }).first().waitFor();
    assert.equal(await sheet.locator('.bg-bad-wash.mono').count(), 0);
    await visit.open(`deliveries?status=PENDING`);
    await page.getByRole('button', { name: 'Retry now' }).press('Enter');
    await until(async () => (await outbox?.find(waiting))?.status === 'SENT');
    await outbox?.pause('partner:x', 'ada');
    await rig.waitingMessage('later');
    await visit.open(`deliveries?status=PENDING`);
    await page.getByRole('button', { name: 'Discard…' }).press('Enter');
    await page.getByLabel('Reason, stored with the message').fill('sent by hand');
    await page.keyboard.press('Enter');
    await until(async () => (await outbox?.counts())?.DISCARDED === 1);
    await page.getByRole('button', { name: /^discarded/ }).click();
    await page.getByRole('button', { name: /partner:x/ }).click();
    await sheet.getByText('sent by hand').waitFor();
  });

  test('a token is revoked after a question, and the audit names who did it', async () => {
    await using rig = await openConsole(browser);
    const { token } = await rig.api.platform.tokens.create({ name: 'shop', scopes: ['read'] });
    await using visit = await rig.visit({ name: 'ada', path: `tokens?open=${token.id}` });
    const { page } = visit;
    await page.getByRole('button', { name: 'Revoke shop' }).click();
    await page
      .getByRole('dialog', { name: 'Revoke shop?' })
      .getByRole('button', { name: 'Revoke shop' })
      .click();
    await page.getByRole('row', { name: /shop revoked/ }).waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('l');
    await page.getByRole('row', { name: /token\.revoke .* done ada/ }).waitFor();
  });

  test('an id of nothing, and a page without rows, say what was looked for', async () => {
    await using rig = await openConsole(browser);
    await using visit = await rig.visit({ path: null });
    const { page } = visit;
    for (const [path, text, errors] of [
      ['subscriptions?open=sub:no:such:v1', "unknown subscription 'sub:no:such:v1'", 1],
      ['subscriptions?state=lost', 'Nothing matches the filter', 0],
      ['jobs', 'No jobs yet', 0],
      [
        'jobs?open=email-send.0199aaaa-0000-7000-8000-000000000000',
        'Jobs are deleted when the retention',
        1,
      ],
      ['jobs?type=no-such-type', 'Nothing matches the filter', 0],
      ['deliveries', 'No messages', 0],
      ['deliveries?open=0199aaaa-0000-7000-8000-000000000000', 'Sent messages are deleted', 1],
      ['tokens?open=nothing', 'No token has the id', 0],
      ['audit?actor=unknown', 'Nothing matches the filter', 0],
    ] as const) {
      await visit.open(path);
      await page.getByText(text).first().waitFor();
      assert.equal(visit.errors.splice(0).length, errors, path);
    }
  });

  for (const theme of ['light', 'dark'] as const) {
    test(`every ${theme} view is designed for nothing, and leaves nothing serious for axe`, async () => {
      await using rig = await openConsole(browser);
      await using visit = await rig.visit({ theme, bypassCsp: true, path: null });
      for (const [path, text] of [
        ['failures', 'Nothing has failed'],
        ['traces', 'No flows yet'],
        ['traces?show=failed', 'No flow failed'],
        ['traces?show=slow', 'No flows yet'],
        ['deliveries', 'No messages'],
        ['deliveries?show=destinations', 'partner'],
        ['jobs', 'No jobs yet'],
        ['jobs?show=workers', 'workers'],
        ['audit?actor=unknown', 'Nothing matches the filter'],
        ['streams/shop.order.v1-core-never', 'This stream has no events'],
        ['events?payload=a%3D1', 'Nothing matches the filter'],
        ['no/such/page', 'There is no such page'],
      ] as const) {
        await visit.go(path);
        await visit.page.locator('#main').getByText(text).first().waitFor();
        assert.deepEqual(await visit.axe(), [], `${theme} ${path}`);
      }
    });
  }

  test('every view fits a screen of 360 pixels, and leaves nothing serious for axe', async () => {
    await using rig = await openConsole(browser);
    const views = await fill(rig);
    for (const theme of ['light', 'dark'] as const) {
      await using visit = await rig.visit({
        theme,
        width: 360,
        height: 740,
        bypassCsp: true,
        path: null,
      });
      for (const [path, text] of views) {
        await visit.go(path);
        await visit.page.getByText(text).first().waitFor();
        const width = await visit.page.evaluate('document.documentElement.scrollWidth');
        assert.equal(width, 360, path);
        // A box hides what does not fit into it.
        const isCut = await visit.page.evaluate(
          "[...document.querySelectorAll('#main table')].some((each) => each.scrollWidth > each.parentElement.clientWidth)",
        );
        assert.equal(isCut, false, path);
        assert.deepEqual(await visit.axe(), [], `${theme} ${path}`);
      }
    }
  });
});
