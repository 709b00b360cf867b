// Several operators, a payment from its request to its webhook, and invalid addresses, in a real browser.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import type { Browser, Locator, Page } from 'playwright-core';
import { createEnvelope } from '../../src/contracts/index.ts';
import { webhookDestination } from '../../src/destinations/webhook/index.ts';
import { defineModule } from '../../src/platform/index.ts';
import { until } from '../../src/testing/support/server/api-rig.ts';
import { launchBrowser, openConsole, type ConsoleRig } from './console-rig.ts';

/** Events with consecutive numbers, in one stream. */
async function appendMany(rig: ConsoleRig, count: number, id = '1'): Promise<void> {
  const aggregate = { bc: 'shop', type: 'order', id };
  const context = { tenant: 'core', aggregate, correlationId: 'many' };
  for (let done = 0; done < count; done += 1_000) {
    const events = Array.from({ length: Math.min(1_000, count - done) }, (_, at) =>
      createEnvelope({ type: 'order.changed.v1', payload: { amount: done + at } }, context),
    );
    await rig.api.platform.engines.store.append(`shop.order.v1-core-${id}`, events);
  }
}

/** Presses Tab until the element has the focus, as someone without a mouse does. */
async function tabTo(page: Page, target: Locator): Promise<void> {
  await target.waitFor();
  for (let pressed = 0; pressed < 80; pressed += 1) {
    await page.keyboard.press('Tab');
    if ((await target.and(page.locator(':focus')).count()) > 0) return;
  }
  throw new Error('Tab never reaches it');
}

describe('operators in Chromium', () => {
  let browser: Browser;
  before(async () => {
    browser = await launchBrowser();
  });
  after(() => browser.close());

  test('an operator sees what another one did, without a reload', async () => {
    await using rig = await openConsole(browser);
    await rig.api.fail('core', 'flow-9');
    await using ada = await rig.visit({ scope: 'operate', name: 'ada', path: null });
    await using bob = await rig.visit({ scope: 'operate', name: 'bob', path: null });
    for (const { open, page } of [ada, bob]) {
      await open('failures');
      await page.getByRole('button', { name: /partner:x/ }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Replay 1' }).waitFor();
    }
    // The page of Bob is slow: it does not know yet what Ada does.
    const released = Promise.withResolvers<void>();
    await bob.page.route('**/admin/failures**', async (request) => {
      await released.promise;
      await request.continue();
    });
    rig.api.faults.isFixed = true;
    await ada.page.getByRole('dialog').getByRole('button', { name: 'Replay 1' }).click();
    await ada.page.getByText('Replay requested for 1 of 1').waitFor();
    const { page } = bob;
    const sheet = page.getByRole('dialog');
    await sheet.getByRole('button', { name: 'Replay 1' }).click();
    await sheet.getByRole('alert').getByText('0 failures match now').waitFor();
    assert.equal(bob.errors.splice(0).length, 1);
    released.resolve();
    await sheet.getByText('these failures were replayed').waitFor();
    assert.equal(await sheet.getByRole('button', { name: /Replay/ }).count(), 0);
    await page.getByText('2 failures, 2 causes').waitFor();

    await bob.open('subscriptions');
    await ada.open('subscriptions?open=sub:banking:alarm:v1');
    await ada.page.getByRole('button', { name: 'Pause', exact: true }).click();
    await page.getByRole('row', { name: /alarm:v1 paused/ }).waitFor();
    await bob.open('events?live=true');
    await page.getByRole('status').getByText('Live').waitFor();
    await rig.append('order.placed.v1');
    await page.getByRole('option', { name: /order\.placed\.v1/ }).waitFor();

    await ada.open('failures?source=saga');
    await ada.page.getByRole('button', { name: /A handler of the saga failed/ }).click();
    await ada.page.getByRole('button', { name: 'Ignore', exact: true }).click();
    await bob.open('failures?state=ignored');
    await page.getByRole('button', { name: /A handler of the saga failed/ }).click();
    await sheet.getByRole('button', { name: 'Reopen' }).waitFor();
  });

  describe('a payment sent over HTTP is found, explained and followed to its webhook', () => {
    let receiver: Server;
    const bodies: string[] = [];
    before(async () => {
      receiver = createServer((request, response) => {
        let text = '';
        request.setEncoding('utf8');
        request.on('data', (chunk: string) => (text += chunk));
        request.on('end', () => {
          bodies.push(text);
          response.writeHead(204).end();
        });
      });
      receiver.listen(0, '127.0.0.1');
      await once(receiver, 'listening');
    });
    after(async () => {
      receiver.closeAllConnections();
      await new Promise((resolve) => receiver.close(resolve));
    });

    const keyboard = {
      async events(page: Page) {
        await page.keyboard.press('g');
        await page.keyboard.press('e');
        await page.getByRole('option').first().waitFor();
        await page.keyboard.press('/');
        await page.keyboard.type('account.deposited.v1');
        await page.keyboard.press('Enter');
        await page.getByRole('option', { name: /review/ }).waitFor({ state: 'detached' });
        await page.getByRole('option', { name: /account\.deposited/ }).waitFor();
        await page.keyboard.press('Escape');
        await page.keyboard.press('j');
      },
      async follow(page: Page, target: Locator) {
        await tabTo(page, target);
        await page.keyboard.press('Enter');
      },
    };
    const mouse: typeof keyboard = {
      async events(page) {
        await page.getByRole('link', { name: 'Events' }).click();
        await page.getByRole('option', { name: /account\.deposited/ }).click();
      },
      follow: (_page, target) => target.click(),
    };
    for (const [name, hand] of Object.entries({ keyboard, mouse })) {
      test(`with the ${name} alone`, async () => {
        const { port } = receiver.address() as AddressInfo;
        await using webhook = webhookDestination({
          endpoint: {
            id: 'partner',
            url: `http://127.0.0.1:${port}/hook`,
            secrets: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
          },
          allowHttp: true,
          allowAddresses: ['127.0.0.1/32'],
        });
        const hooks = defineModule({
          name: 'hooks',
          outbox: [
            {
              name: 'sub:banking:hooks:v1',
              filter: { types: ['account.deposited.v1'] },
              mapper: {
                map: ({ type, payload }) => ({
                  integrationType: 'webhook:partner',
                  eventType: type,
                  payload: payload as Record<string, unknown>,
                }),
              },
            },
          ],
          destinations: { webhook },
        });
        await using rig = await openConsole(browser, {}, [hooks]);
        const token = await rig.api.token('append', 'core');
        const response = await rig.api.post(
          '/api/v1/commands/account.deposit',
          { id: name, payload: { amount: 7 } },
          token,
          { 'idempotency-key': name, 'x-correlation-id': `pay-${name}` },
        );
        assert.ok(response.ok, await response.text());
        await using visit = await rig.visit({ scope: 'read' });
        const { page } = visit;
        await hand.events(page);
        const sheet = page.getByRole('dialog');
        await hand.follow(page, sheet.getByRole('link', { name: 'What caused this' }));
        await page.getByText('What followed').waitFor();
        assert.match(page.url(), new RegExp(`/traces/pay-${name}\\?view=explain`));
        await page.getByText('account.deposit', { exact: true }).first().waitFor();
        const sent = page.getByRole('listitem').filter({ hasText: 'delivered to webhook:partner' });
        await hand.follow(page, sent.getByRole('link', { name: 'attempts' }));
        await page.waitForURL(/\/deliveries\?open=/);
        await sheet.getByText('sent', { exact: true }).first().waitFor();
        await sheet.getByText('"amount"').waitFor();
        assert.equal(bodies.filter((text) => text.includes('"amount":7')).length > 0, true);
      });
    }
  });

  test('a test message of a destination is sent after a question, and has a trace', async () => {
    await using rig = await openConsole(browser);
    await using visit = await rig.visit({ scope: 'operate', path: null });
    const { page } = visit;
    await rig.api.fail('core');
    await visit.open('deliveries?show=destinations');
    const row = page.getByRole('row', { name: /partner:x/ });
    await row.getByRole('cell', { name: /^\d+ ms$|< 1 ms/ }).waitFor();
    await row.getByRole('button', { name: 'Send a test' }).click();
    await page
      .getByRole('dialog', { name: 'Send a test?' })
      .getByRole('button', { name: 'Send a test' })
      .click();
    const sheet = page.getByRole('dialog', { name: 'partner:x' });
    await sheet.getByText('sent', { exact: true }).first().waitFor();
    await sheet.getByText('millrace.test.v1').waitFor();
    const trace = sheet.locator('a[href*="/traces/"]').first();
    await trace.click();
    await page.getByRole('heading', { name: 'Trace' }).waitFor();
    await page.getByRole('button', { name: /partner:x/ }).waitFor();
    await page.getByText('1 delivery').waitFor();
  });

  test('5,000 failures of 3 causes are 3 rows, and one of them is replayed whole', async () => {
    await using rig = await openConsole(browser);
    const { outbox } = rig.api.platform.engines;
    assert.ok(outbox !== undefined);
    const places = ['partner:a', 'partner:b', 'partner:c'];
    for (let done = 0; done < 5_000; done += 1_000) {
      await outbox.enqueueMany(
        Array.from({ length: 1_000 }, (_, at) => ({
          sourceStreamId: 'banking.account.v1-core-a1',
          sourceEventId: `event-${done + at}`,
          integrationType: places[(done + at) % 3] ?? '',
          eventType: 'account.opened.v1',
          payload: { amount: 14 },
          tenantId: 'core',
        })),
      );
    }
    await until(async () => (await outbox.counts()).DEAD === 5_000);
    await using visit = await rig.visit({ scope: 'operate', path: 'failures' });
    const { page } = visit;
    await page.getByText('5,000 failures, 3 causes').waitFor();
    assert.equal(await page.getByRole('button', { name: /partner:/ }).count(), 3);
    rig.api.faults.isFixed = true;
    await page.getByRole('button', { name: /partner:b/ }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Replay 1,667' }).click();
    await page.getByText('Replay requested for 1,667 of 1,667').waitFor();
    await page.getByText('3,333 failures, 2 causes').waitFor();
    await until(async () => (await outbox.counts()).SENT === 1_667);
  });

  test('a search ends at its limit, says how far it looked, and continues', async () => {
    await using rig = await openConsole(browser);
    await rig.append('order.placed.v1', { id: 'old', payload: { customer: 'c-7' } });
    await appendMany(rig, 20_000);
    await using visit = await rig.visit({ path: 'events?payload=customer%3Dc-7' });
    const { page } = visit;
    await page.getByText('Nothing matches the filter').waitFor();
    await page.getByText('Searched 20K events back to').waitFor();
    await page.getByRole('button', { name: 'Search further' }).click();
    await page.getByRole('option', { name: /order\.placed\.v1/ }).waitFor();
    await page.getByText('that is all').waitFor();
    await page.getByRole('button', { name: 'Clear' }).click();
    await page
      .getByRole('option', { name: /order\.changed\.v1/ })
      .first()
      .waitFor();
    assert.match(page.url(), /\/console\/events$/);
  });

  test('the address of an event opens it, however many follow', async () => {
    await using rig = await openConsole(browser);
    await appendMany(rig, 150);
    const [first] = await rig.api.platform.engines.store.readAll({ limit: 1 }).toArray();
    await using visit = await rig.visit();
    const { page } = visit;
    const sheet = page.getByRole('dialog');
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox').fill(first?.eventId ?? '');
    await page.getByRole('option', { selected: true }).waitFor();
    await page.keyboard.press('Enter');
    await sheet.getByText(first?.eventId ?? '').waitFor();
    await visit.open('events');
    await page.getByRole('option').first().click();
    await page.waitForURL(/sel=/);
    const address = page.url();
    await appendMany(rig, 120);
    await page.goto(address);
    await sheet
      .getByText('@149')
      .or(sheet.getByText('149', { exact: true }))
      .first()
      .waitFor();
  });

  test('an invalid part of an address is named, and the rest of the page stays', async () => {
    await using rig = await openConsole(browser);
    await rig.append('order.placed.v1', { payload: { n: 1 } });
    await rig.api.fail('core');
    await using visit = await rig.visit({ path: null });
    const { page } = visit;
    const id = '<img src=x onerror=alert(1)> שלום 🌊';
    for (const [path, text, rest, errors] of [
      ['streams/shop.order.v1-core-1?at=99', 'has no event with the revision 99', '@0', 0],
      ['streams/shop.order.v1-core-1?at=next', '“next” is not the revision', '@0', 0],
      ['streams/shop.order.v1-core-never', 'This stream has no events', 'Stream', 0],
      ['events?sel=nowhere', 'is not the revision of an event', 'order.placed.v1', 0],
      ['events?from=yesterday', "from 'yesterday' is not a time", 'The filter is not valid', 1],
      ['failures?group=0123456789ab', 'no failure has the cause', 'out of order', 1],
      ['deliveries?open=not-an-id', 'Looked for “not-an-id”', 'partner:x', 1],
      ['jobs?open=not-an-id', 'Looked for “not-an-id”', 'Jobs', 1],
      [`traces/${encodeURIComponent(id)}`, `unknown flow '${id}'`, 'Trace', 1],
      [`failures?where=${encodeURIComponent(id)}`, 'Nothing matches the filter', 'Failures', 0],
      ['no/such/page', 'There is no such page', 'Overview', 0],
    ] as const) {
      await visit.open(path);
      const isShown = (shown: string): Promise<boolean> =>
        page
          .getByText(shown)
          .first()
          .waitFor({ timeout: 10_000 })
          .then(
            () => true,
            () => false,
          );
      assert.deepEqual(
        {
          path,
          hasText: await isShown(text),
          hasRest: await isShown(rest),
          images: await page.locator('#main img').count(),
          errors: visit.errors.splice(0).length,
        },
        { path, hasText: true, hasRest: true, images: 0, errors },
      );
    }
  });

  test('all keys are in the list of shortcuts, and work in a trace', async () => {
    await using rig = await openConsole(browser);
    await rig.api.fail('core', 'flow-9');
    await using visit = await rig.visit({ path: 'traces/flow-9' });
    const { page } = visit;
    await page
      .getByRole('button', { name: /account\.deposit/ })
      .first()
      .waitFor();
    await page.keyboard.press('?');
    const help = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
    for (const key of ['/', 'j', 'k', 'l', 'e', 'o', '?'])
      await help.locator('kbd').getByText(key, { exact: true }).first().waitFor();
    await page.keyboard.press('Escape');
    await help.waitFor({ state: 'detached' });
    await page.keyboard.press('j');
    await page.keyboard.press('o');
    await page.getByRole('button', { name: 'Unfold account.deposit' }).waitFor();
    await page.keyboard.press('e');
    await page.getByText('What followed').waitFor();
  });
});
